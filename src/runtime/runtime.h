/* Generation: KV cache, prefill and decode over static graphs, sampling, stop rules, metrics. Works over any executor: the host executor
 * in float or simulated, and QNN contexts from a .pte. */
#ifndef GENAI_RUNTIME_RUNTIME_H
#define GENAI_RUNTIME_RUNTIME_H

#include "base/log.h"
#include "ir/executor.h"

/* One sequence over one or more graphs of the same model and context length (AR 1 for decode, larger ones for prefill; a single graph
 * serves both). The cache holds each layer's keys and values in the graphs' storage type. */
typedef struct decoder decoder;

/* The executors are borrowed. Roles must be assigned. Checks that the graphs agree (layers, shapes, types, encodings of the cache). */
genai_status* decoder_create(executor* const* executors, size_t count, decoder** out) GENAI_MUST_USE;
void decoder_destroy(decoder* self); /* accepts NULL */
/* Width of the sliding window for graphs with an IR_ROLE_MASK_SLIDING input: a token attends to itself and the `window` - 1 before it.
 * Such graphs cannot run before it is set. */
void decoder_set_sliding_window(decoder* self, uint32_t window);

uint32_t decoder_context_length(const decoder* self);
uint32_t decoder_vocab_size(const decoder* self);
uint32_t decoder_largest_ar(const decoder* self); /* tokens a call of the widest graph takes */
uint32_t decoder_position(const decoder* self);   /* tokens in the cache */
void decoder_reset(decoder* self);
genai_status* decoder_rewind(decoder* self, uint32_t position) GENAI_MUST_USE; /* forgets tokens from `position` on */

/* Called with the logits of one position as reals, [vocab]; `position` is absolute. */
typedef genai_status* (*decoder_logits_sink)(void* user, uint32_t position, const float* logits);

/* Runs `ids[count]` through the model and adds them to the cache. Which graph serves is chosen by length: blocks of the largest AR, then
 * the smallest graph that takes the rest (padded, the padding masked and never cached). `sink` (may be NULL) sees every position's logits
 * when `all_logits`, else the last one's. GENAI_ERROR_LIMIT when position + count would pass the context length. */
genai_status* decoder_run(decoder* self, const int32_t* ids, size_t count, bool all_logits, decoder_logits_sink sink, void* user,
                          const cancel_token* cancel) GENAI_MUST_USE;
/* The same through graphs of exactly this AR length (for tests and measurement). */
genai_status* decoder_run_with(decoder* self, uint32_t ar_length, const int32_t* ids, size_t count, bool all_logits,
                               decoder_logits_sink sink, void* user, const cancel_token* cancel) GENAI_MUST_USE;
uint64_t decoder_calls(const decoder* self);         /* executor calls so far */
double decoder_execute_seconds(const decoder* self); /* seconds inside executors so far */

typedef struct sampling_options {
  float temperature;        /* 0: greedy */
  uint32_t top_k;           /* 0: off */
  float top_p;              /* 1: off */
  float repetition_penalty; /* 1: off; negatives are multiplied, positives divided */
  uint64_t seed;
} sampling_options;

typedef struct generate_options {
  uint32_t max_new_tokens; /* 0: until the context is full */
  sampling_options sampling;
  const int32_t* stop_ids;
  size_t n_stop_ids;
  const cancel_token* cancel;
  const progress_sink* progress; /* prefill progress; NULL: none */
} generate_options;

typedef enum generate_end { GENERATE_STOP_TOKEN, GENERATE_MAX_TOKENS, GENERATE_CONTEXT_FULL, GENERATE_CALLER } generate_end;

typedef struct generate_result {
  generate_end end;
  uint32_t prompt_tokens, new_tokens;
  double ttft_seconds;                    /* from the call to the first token */
  double prefill_seconds, decode_seconds; /* decode: from the first token to the last */
  double execute_seconds;                 /* inside executors */
} generate_result;

/* Continues the sequence with `prompt`; each new id goes to `on_token` (stop ids do not), which returns false to end. */
typedef bool (*generate_token_sink)(void* user, int32_t id);
genai_status* generate(decoder* self, const int32_t* prompt, size_t count, const generate_options* options, generate_token_sink on_token,
                       void* user, generate_result* out) GENAI_MUST_USE;

genai_status* sampling_validate(const sampling_options* options) GENAI_MUST_USE; /* NaN, negative temperature, top_p outside (0, 1] */
/* Picks an id from logits[count]; `logits` is scratch and may be changed. `history` for the repetition penalty. */
int32_t sample(float* logits, size_t count, const sampling_options* options, const int32_t* history, size_t n_history, uint64_t* rng_state);

#endif
