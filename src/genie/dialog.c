/* One dialog of Genie's: a bundle's binary in the backend, queried with token ids. Text never goes through Genie, whose tokenizer is only
 * loaded because it must be. */
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "genie/genie_internal.h"
#include "genie/threads.h"

struct genie_dialog {
  const genie_library* library;
  genie_handle handle; /* NULL: not loaded */
  const genie_bundle* bundle;
  uint32_t context_length, vocab_size;
  sampling_options sampling; /* that the handle was made for: a sampler that is changed afterwards goes on as before */
  thread_list threads;       /* that came with the handle */
  /* Nothing can follow the last answer. It reached into the slots that prefill keeps free, from where Genie cannot go back ("KV$ exceeded
   * budget"), reset or not; or it was sampled, and the next one is to begin with the same seed. */
  bool used_up;
};

static genai_status* create(genie_dialog* self) {
  const genie_api* api = &self->library->api;
  genie_handle config = NULL;
  text json = {0};
  genai_status* status = genie_bundle_configuration(self->bundle, &self->sampling, &json);
  genie_code code = status ? GENIE_SUCCESS : api->config_create(json.data, &config);
  text_deinit(&json);
  if (status) return status;
  if (code) return genie_error(self->library, code, "the bundle's configuration is refused");
  if (self->library->log) (void)api->config_bind_logger(config, self->library->log);
  code = api->dialog_create(config, &self->handle);
  if (code) self->handle = NULL;
  (void)api->config_free(config);
  return code ? genie_error(self->library, code, "the bundle does not load") : NULL;
}

/* The lock is held, here and in unload. */
static genai_status* load(genie_dialog* self) {
  thread_list before;
  genie_log_clear();
  qnn_quiet_begin(STDOUT_FILENO);
  qnn_quiet_begin(STDERR_FILENO);
  threads_list(&before);
  genai_status* status = create(self);
  threads_list(&self->threads);
  threads_subtract(&self->threads, &before);
  qnn_quiet_end(STDERR_FILENO);
  qnn_quiet_end(STDOUT_FILENO);
  return status;
}

static void unload(genie_dialog* self) {
  if (!self->handle) return;
  threads_settle(&self->threads, 2.0);
  (void)self->library->api.dialog_free(self->handle);
  self->handle = NULL;
}

genai_status* genie_dialog_create(genie_library* library, const genie_bundle* bundle, const sampling_options* sampling,
                                  genie_dialog** out) {
  genie_dialog* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  *self = (genie_dialog){.library = library,
                         .bundle = bundle,
                         .sampling = *sampling,
                         .context_length = bundle->context_length,
                         .vocab_size = bundle->vocab_size};
  genie_lock();
  genai_status* status = load(self);
  genie_unlock();
  if (status) {
    genie_dialog_destroy(self);
    return status;
  }
  *out = self;
  return NULL;
}

void genie_dialog_destroy(genie_dialog* self) {
  if (!self) return;
  genie_lock();
  unload(self);
  genie_unlock();
  mem_free(self);
}

/* ---- Query ---- */
typedef struct query {
  genie_dialog* dialog;
  const generate_options* options;
  generate_token_sink on_token;
  void* user;
  generate_result result;
  double begun, first;
  bool ended; /* by the sink or by cancelling; tokens that still come are dropped */
} query;

static void abort_query(query* self) {
  self->ended = true;
  (void)self->dialog->library->api.dialog_signal(self->dialog->handle, GENIE_ACTION_ABORT);
}

static void take_tokens(const uint32_t* ids, uint32_t count, int32_t sentence_code, const void* user) {
  (void)sentence_code;
  query* self = (query*)(uintptr_t)user;
  double now = clock_seconds();
  for (uint32_t i = 0; i < count && !self->ended; i++) {
    if (!self->result.new_tokens) {
      self->first = now;
      self->result.ttft_seconds = self->result.prefill_seconds = now - self->begun;
    }
    self->result.decode_seconds = now - self->first;
    self->result.new_tokens++;
    bool wanted = !self->on_token || self->on_token(self->user, (int32_t)ids[i]);
    bool cancelled = self->options->cancel && atomic_load(&self->options->cancel->requested);
    if (!wanted || cancelled) abort_query(self);
  }
}

static genai_status* too_long(size_t count, uint32_t room, uint32_t context_length, uint32_t widest) {
  return genai_status_create(
      GENAI_ERROR_LIMIT,
      "the prompt has %zu tokens; Genie takes %u at most with context %u and prefill AR length %u; shorten the prompt, "
      "or compile with a larger --context or a smaller --prefill-ar",
      count, room, context_length, widest);
}

static bool same_sampling(const sampling_options* a, const sampling_options* b) {
  return a->temperature == b->temperature && a->top_k == b->top_k && a->top_p == b->top_p &&
         a->repetition_penalty == b->repetition_penalty && a->seed == b->seed;
}

static genai_status* prepare(genie_dialog* self, const sampling_options* sampling) {
  if (self->used_up || !same_sampling(&self->sampling, sampling)) unload(self);
  self->used_up = false;
  self->sampling = *sampling;
  if (!self->handle) return load(self);
  genie_log_clear();
  (void)self->library->api.dialog_reset(self->handle);
  return NULL;
}

/* Why the query ended, out of what it gave and what was asked of it. */
static genai_status* conclude(query* self, genie_code code, size_t count, uint32_t limit, bool limited_by_caller) {
  const genie_dialog* dialog = self->dialog;
  generate_result* result = &self->result;
  GENAI_TRY(cancel_check(self->options->cancel));
  if (self->ended) {
    result->end = GENERATE_CALLER;
  } else if (code == GENIE_WARNING_CONTEXT_EXCEEDED && result->new_tokens) {
    result->end = GENERATE_CONTEXT_FULL;
  } else if (code == GENIE_WARNING_CONTEXT_EXCEEDED) {
    return genai_status_create(GENAI_ERROR_LIMIT, "the prompt has %zu tokens, too many for the context of %u; shorten it", count,
                               dialog->context_length);
  } else if (code) {
    return genie_error(dialog->library, code, "generation failed after %u new tokens", result->new_tokens);
  } else if (result->new_tokens < limit) {
    result->end = GENERATE_STOP_TOKEN;
    if (!result->new_tokens) result->ttft_seconds = result->prefill_seconds = clock_seconds() - self->begun;
  } else {
    result->end = limited_by_caller ? GENERATE_MAX_TOKENS : GENERATE_CONTEXT_FULL;
  }
  return NULL;
}

static genai_status* run(query* self, const int32_t* prompt, size_t count, uint32_t slots) {
  genie_dialog* dialog = self->dialog;
  const genie_api* api = &dialog->library->api;
  uint32_t room = dialog->context_length - (uint32_t)count, wanted = self->options->max_new_tokens;
  bool limited_by_caller = wanted && wanted <= room;
  uint32_t limit = limited_by_caller ? wanted : room;
  GENAI_TRY(prepare(dialog, &self->options->sampling));
  genie_code code = api->dialog_set_max_tokens(dialog->handle, limit);
  if (code) return genie_error(dialog->library, code, "%u tokens at most is refused", limit);
  self->begun = clock_seconds();
  code = api->dialog_token_query(dialog->handle, (const uint32_t*)prompt, (uint32_t)count, GENIE_SENTENCE_COMPLETE, take_tokens, self);
  dialog->used_up = code || dialog->sampling.temperature > 0 || count + self->result.new_tokens > dialog->context_length - slots;
  return conclude(self, code, count, limit, limited_by_caller);
}

genai_status* genie_dialog_generate(genie_dialog* self, uint32_t widest, const int32_t* prompt, size_t count,
                                    const generate_options* options, generate_token_sink on_token, void* user, generate_result* out) {
  uint32_t slots = widest ? widest : 1, context = self->context_length;
  if (!count) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the prompt has no tokens; expected at least one");
  uint32_t room = slots < context ? context - slots : 0;
  if (count > room) return too_long(count, room, context, slots);
  for (size_t i = 0; i < count; i++) {
    if (prompt[i] < 0 || (uint32_t)prompt[i] >= self->vocab_size)
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "id %d at position %zu is outside the vocabulary of %u", prompt[i], i,
                                 self->vocab_size);
  }
  GENAI_TRY(sampling_validate(&options->sampling));
  GENAI_TRY(cancel_check(options->cancel));
  query state = {.dialog = self, .options = options, .on_token = on_token, .user = user, .result = {.prompt_tokens = (uint32_t)count}};
  genie_lock();
  genai_status* status = run(&state, prompt, count, slots);
  genie_unlock();
  if (!status) *out = state.result;
  return status;
}
