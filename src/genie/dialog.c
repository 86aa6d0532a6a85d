/* One dialog of Genie's: a bundle's binary in the backend, queried with token ids. Text never goes through Genie, whose tokenizer is only
 * loaded because it must be. */
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/memory.h"
#include "genie/genie_internal.h"
#include "genie/threads.h"

struct genie_dialog {
  const genie_library* library;
  genie_handle handle;
  uint32_t context_length, vocab_size;
  thread_list threads; /* that came with it */
};

static genai_status* create(genie_dialog* self, const char* json) {
  const genie_api* api = &self->library->api;
  genie_handle config = NULL;
  genie_code code = api->config_create(json, &config);
  if (code) return genie_error(self->library, code, "the bundle's configuration is refused");
  if (self->library->log) (void)api->config_bind_logger(config, self->library->log);
  code = api->dialog_create(config, &self->handle);
  if (code) self->handle = NULL;
  (void)api->config_free(config);
  return code ? genie_error(self->library, code, "the bundle does not load") : NULL;
}

genai_status* genie_dialog_create(genie_library* library, const genie_bundle* bundle, genie_dialog** out) {
  genie_dialog* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  *self = (genie_dialog){.library = library, .context_length = bundle->context_length, .vocab_size = bundle->vocab_size};
  genie_lock();
  genie_log_clear();
  qnn_quiet_begin(STDOUT_FILENO);
  qnn_quiet_begin(STDERR_FILENO);
  thread_list before;
  threads_list(&before);
  genai_status* status = create(self, bundle->text.data);
  threads_list(&self->threads);
  threads_subtract(&self->threads, &before);
  qnn_quiet_end(STDERR_FILENO);
  qnn_quiet_end(STDOUT_FILENO);
  genie_unlock();
  if (status) {
    mem_free(self);
    return status;
  }
  *out = self;
  return NULL;
}

void genie_dialog_destroy(genie_dialog* self) {
  if (!self) return;
  genie_lock();
  threads_settle(&self->threads, 2.0);
  (void)self->library->api.dialog_free(self->handle);
  genie_unlock();
  mem_free(self);
}

/* ---- Sampling ---- */
/* Genie samples unless top-k is 1: its "greedy" alone does not make it greedy. */
static genai_status* write_sampler(const sampling_options* sampling, uint32_t context_length, text* out) {
  bool greedy = sampling->temperature <= 0;
  json_writer writer;
  json_writer_init(&writer, out, false);
  json_begin_object(&writer);
  json_key(&writer, "sampler");
  json_begin_object(&writer);
  json_key(&writer, "version");
  json_write_integer(&writer, 1);
  json_key(&writer, "type");
  json_write_string(&writer, "basic");
  json_key(&writer, "seed");
  json_write_unsigned(&writer, sampling->seed & INT32_MAX);
  json_key(&writer, "temp");
  json_write_number(&writer, greedy ? 1.0 : (double)sampling->temperature);
  json_key(&writer, "top-k");
  json_write_unsigned(&writer, greedy ? 1 : sampling->top_k);
  json_key(&writer, "top-p");
  json_write_number(&writer, greedy ? 1.0 : (double)sampling->top_p);
  json_key(&writer, "greedy");
  json_write_bool(&writer, greedy);
  if (sampling->repetition_penalty > 0 && (sampling->repetition_penalty < 1 || sampling->repetition_penalty > 1)) {
    json_key(&writer, "token-penalty");
    json_begin_object(&writer);
    json_key(&writer, "version");
    json_write_integer(&writer, 1);
    json_key(&writer, "penalize-last-n");
    json_write_unsigned(&writer, context_length);
    json_key(&writer, "repetition-penalty");
    json_write_number(&writer, (double)sampling->repetition_penalty);
    json_end_object(&writer);
  }
  json_end_object(&writer);
  json_end_object(&writer);
  return json_writer_finish(&writer);
}

/* Also makes the seed begin anew, so that equal prompts give equal answers. */
static genai_status* set_sampler(genie_dialog* self, const sampling_options* sampling) {
  const genie_api* api = &self->library->api;
  text json = {0};
  genie_handle config = NULL, sampler = NULL;
  genai_status* status = write_sampler(sampling, self->context_length, &json);
  genie_code code = GENIE_SUCCESS;
  if (!status) code = api->sampler_config_create(json.data, &config);
  if (!status && !code) code = api->dialog_get_sampler(self->handle, &sampler);
  if (!status && !code) code = api->sampler_apply(sampler, config);
  if (config) (void)api->sampler_config_free(config);
  if (!status && code) status = genie_error(self->library, code, "the sampling options are refused");
  text_deinit(&json);
  return status;
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

static genai_status* run(query* self, const int32_t* prompt, size_t count) {
  genie_dialog* dialog = self->dialog;
  const genie_api* api = &dialog->library->api;
  uint32_t room = dialog->context_length - (uint32_t)count, wanted = self->options->max_new_tokens;
  bool limited = wanted && wanted <= room;
  genie_log_clear();
  (void)api->dialog_reset(dialog->handle);
  GENAI_TRY(set_sampler(dialog, &self->options->sampling));
  genie_code code = api->dialog_set_max_tokens(dialog->handle, limited ? wanted : room);
  if (code) return genie_error(dialog->library, code, "%u tokens at most is refused", limited ? wanted : room);
  self->begun = clock_seconds();
  code = api->dialog_token_query(dialog->handle, (const uint32_t*)prompt, (uint32_t)count, GENIE_SENTENCE_COMPLETE, take_tokens, self);
  GENAI_TRY(cancel_check(self->options->cancel));
  if (self->ended) {
    self->result.end = GENERATE_CALLER;
  } else if (code == GENIE_WARNING_CONTEXT_EXCEEDED) {
    if (!self->result.new_tokens)
      return genie_error(dialog->library, code, "a prompt of %zu tokens is too long for context %u", count, dialog->context_length);
    self->result.end = GENERATE_CONTEXT_FULL;
  } else if (code) {
    return genie_error(dialog->library, code, "generation ended after %u new tokens", self->result.new_tokens);
  } else if (self->result.new_tokens < (limited ? wanted : room)) {
    self->result.end = GENERATE_STOP_TOKEN;
    if (!self->result.new_tokens) self->result.ttft_seconds = self->result.prefill_seconds = clock_seconds() - self->begun;
  } else {
    self->result.end = limited ? GENERATE_MAX_TOKENS : GENERATE_CONTEXT_FULL;
  }
  return NULL;
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
  genai_status* status = run(&state, prompt, count);
  genie_unlock();
  if (!status) *out = state.result;
  return status;
}
