/* Quality of a model or an artifact, measured the same way on every executor: perplexity, and signal-to-quantization-noise ratio. */
#ifndef GENAI_EVALUATE_EVALUATE_H
#define GENAI_EVALUATE_EVALUATE_H

#include "runtime/runtime.h"

typedef struct perplexity_result {
  double perplexity; /* exp(mean negative log likelihood) */
  double nll;        /* sum over the scored tokens, natural logarithm */
  uint64_t scored;   /* tokens predicted: every token of a window but its first */
  double seconds;
} perplexity_result;

/* Perplexity of `ids[count]` in windows of `window` tokens (at most the context length), each a fresh sequence; a last window of one token
 * is left out. This is the fixed-window measure that llama.cpp and the transformers documentation describe, without overlap. */
genai_status* evaluate_perplexity(decoder* model, const int32_t* ids, size_t count, uint32_t window, const progress_sink* progress,
                                  const cancel_token* cancel, perplexity_result* out) GENAI_MUST_USE;

/* 10 log10(sum reference^2 / sum (reference - test)^2) in dB; INFINITY when equal. */
double evaluate_sqnr(const float* reference, const float* test, size_t count);

#endif
