/* The generation loop: prefill, then one token a call until a stop rule holds. */
#include <string.h>

#include "base/memory.h"
#include "runtime/runtime.h"

typedef struct last_logits {
  float* values;
  size_t count;
} last_logits;

static genai_status* keep_logits(void* user, uint32_t position, const float* logits) {
  (void)position;
  last_logits* kept = user;
  memcpy(kept->values, logits, kept->count * sizeof *logits);
  return NULL;
}

static bool is_stop(const generate_options* options, int32_t id) {
  for (size_t i = 0; i < options->n_stop_ids; i++) {
    if (options->stop_ids[i] == id) return true;
  }
  return false;
}

/* Prefill in steps of one graph call, so that progress shows between calls. */
static genai_status* prefill(decoder* self, const int32_t* prompt, size_t count, const generate_options* options, last_logits* logits) {
  progress step;
  progress_begin(&step, options->progress, "prefill", "tokens", count);
  size_t done = 0, block = decoder_largest_ar(self);
  genai_status* status = NULL;
  while (!status && done < count) {
    size_t n = count - done < block ? count - done : block;
    bool last = done + n == count;
    status = decoder_run(self, prompt + done, n, false, last ? keep_logits : NULL, logits, options->cancel);
    done += n;
    progress_update(&step, done);
  }
  progress_end(&step, done);
  return status;
}

genai_status* generate(decoder* self, const int32_t* prompt, size_t count, const generate_options* options, generate_token_sink on_token,
                       void* user, generate_result* out) {
  uint32_t context = decoder_context_length(self), start = decoder_position(self);
  if (!count) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the prompt has no tokens; expected at least one");
  if (count > context - start)
    return genai_status_create(
        GENAI_ERROR_LIMIT, "the prompt has %zu tokens%s, the context holds %u; shorten the prompt or compile with --context %zu or more",
        count, start ? " after earlier turns" : "", context, start + count + 1);
  GENAI_TRY(sampling_validate(&options->sampling));
  size_t vocab = decoder_vocab_size(self);
  last_logits logits = {mem_alloc(vocab * sizeof(float)), vocab};
  int32_t* history = mem_alloc((size_t)context * sizeof *history + count * sizeof *history);
  genai_status* status = NULL;
  if (!logits.values || !history) {
    status = genai_status_out_of_memory();
    goto done;
  }
  generate_result result = {.end = GENERATE_MAX_TOKENS, .prompt_tokens = (uint32_t)count};
  double begun = clock_seconds(), executed = decoder_execute_seconds(self);
  GENAI_TRY_GOTO(status, prefill(self, prompt, count, options, &logits), done);
  result.prefill_seconds = clock_seconds() - begun;
  memcpy(history, prompt, count * sizeof *prompt);
  size_t n_history = count;
  uint64_t rng = options->sampling.seed;
  bool has_first = false;
  double first = 0;
  for (;;) {
    int32_t id = sample(logits.values, vocab, &options->sampling, history, n_history, &rng);
    double now = clock_seconds();
    if (!has_first) {
      has_first = true;
      first = now;
      result.ttft_seconds = now - begun;
    }
    result.decode_seconds = now - first;
    if (is_stop(options, id)) {
      result.end = GENERATE_STOP_TOKEN;
      break;
    }
    result.new_tokens++;
    history[n_history++] = id;
    if (on_token && !on_token(user, id)) {
      result.end = GENERATE_CALLER;
      break;
    }
    if (options->max_new_tokens && result.new_tokens >= options->max_new_tokens) break;
    if (decoder_position(self) >= context) {
      result.end = GENERATE_CONTEXT_FULL;
      break;
    }
    GENAI_TRY_GOTO(status, decoder_run(self, &id, 1, false, keep_logits, &logits, options->cancel), done);
  }
  result.execute_seconds = decoder_execute_seconds(self) - executed;
  *out = result;
done:
  mem_free(logits.values);
  mem_free(history);
  return status;
}
