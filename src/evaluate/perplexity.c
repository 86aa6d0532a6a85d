/* Perplexity over fixed windows, from the logits of every position. */
#include <math.h>

#include "evaluate/evaluate.h"

typedef struct scorer {
  const int32_t* window; /* ids of the running window */
  uint32_t length;
  size_t vocab;
  double nll;
  uint64_t scored;
} scorer;

/* -log softmax(logits)[target], with the largest logit taken out first. */
static double negative_log_likelihood(const float* logits, size_t vocab, int32_t target) {
  float largest = logits[0];
  for (size_t i = 1; i < vocab; i++) largest = logits[i] > largest ? logits[i] : largest;
  double sum = 0;
  for (size_t i = 0; i < vocab; i++) sum += exp((double)(logits[i] - largest));
  return log(sum) - (double)(logits[target] - largest);
}

static genai_status* score(void* user, uint32_t position, const float* logits) {
  scorer* self = user;
  if (position + 1 >= self->length) return NULL;
  double nll = negative_log_likelihood(logits, self->vocab, self->window[position + 1]);
  if (!isfinite(nll)) return genai_status_create(GENAI_ERROR_VENDOR, "the logits at position %u are not finite", position);
  self->nll += nll;
  self->scored++;
  return NULL;
}

genai_status* evaluate_perplexity(decoder* model, const int32_t* ids, size_t count, uint32_t window, const progress_sink* sink,
                                  const cancel_token* cancel, perplexity_result* out) {
  uint32_t context = decoder_context_length(model);
  if (window < 2 || window > context)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "perplexity window is %u tokens, expected 2 to the context length %u", window,
                               context);
  if (count < 2) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "perplexity needs at least 2 tokens, got %zu", count);
  progress step;
  progress_begin(&step, sink, "measuring perplexity", "tokens", count);
  scorer self = {.vocab = decoder_vocab_size(model)};
  uint32_t block = decoder_largest_ar(model);
  for (size_t start = 0; start + 1 < count; start += window) {
    self.window = ids + start;
    self.length = count - start < window ? (uint32_t)(count - start) : window;
    decoder_reset(model);
    for (uint32_t done = 0; done < self.length; done += block) {
      uint32_t n = self.length - done < block ? self.length - done : block;
      GENAI_TRY(decoder_run(model, self.window + done, n, true, score, &self, cancel));
      progress_update(&step, start + done + n);
    }
  }
  decoder_reset(model);
  out->nll = self.nll;
  out->scored = self.scored;
  out->perplexity = exp(self.nll / (double)self.scored);
  out->seconds = clock_seconds() - step.started;
  progress_end(&step, count);
  return NULL;
}

double evaluate_sqnr(const float* reference, const float* test, size_t count) {
  double signal = 0, noise = 0;
  for (size_t i = 0; i < count; i++) {
    double difference = (double)reference[i] - (double)test[i];
    signal += (double)reference[i] * (double)reference[i];
    noise += difference * difference;
  }
  return noise > 0 ? 10.0 * log10(signal / noise) : INFINITY;
}
