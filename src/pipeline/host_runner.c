/* The host runner: an artifact on the simulator of this machine. Reads the file that compilation wrote, never what it left in memory. What an
 * engine's artifacts are and how they generate is behind generator.h. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "pipeline/chat_prompt.h"
#include "pipeline/executorch_objects.h"
#include "pipeline/executorch_strategy.h"
#include "pipeline/generator.h"
#include "pipeline/internal.h"

enum { MAX_STOP_IDS = 2 * PROVENANCE_MAX_STOP_IDS };

typedef struct host_runner {
  genai_device_runner base;
  const runner_format* format;
  char* artifact; /* NULL: nothing was pushed */
  char* soc;
} host_runner;

static bool ends_with(const char* string, const char* suffix) {
  size_t length = strlen(string), tail = strlen(suffix);
  return length >= tail && !strcmp(string + length - tail, suffix);
}

/* The simulator's artifact; without one by its name, the first of the format. */
static const char* choose_artifact(const runner_format* format, const genai_push_request* request) {
  for (size_t kind = 0; kind < sizeof format->suffixes / sizeof format->suffixes[0]; kind++) {
    for (size_t i = 0; i < request->n_artifacts; i++) {
      if (ends_with(request->artifacts[i], format->suffixes[kind])) return request->artifacts[i];
    }
  }
  return NULL;
}

static genai_status* push(genai_device_runner* base, const genai_context* context, const genai_push_request* request) {
  host_runner* self = (host_runner*)base;
  (void)context;
  const char* chosen = choose_artifact(self->format, request);
  if (!chosen)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "none of the %zu artifacts is %s, which the host runner needs",
                               request->n_artifacts, self->format->what);
  if (!file_exists(chosen)) return genai_status_create(GENAI_ERROR_NOT_FOUND, "artifact \"%s\" does not exist; compile it first", chosen);
  char* artifact = mem_strdup(chosen);
  char* soc = request->soc ? mem_strdup(request->soc->name) : NULL;
  if (!artifact || (request->soc && !soc)) {
    mem_free(artifact);
    mem_free(soc);
    return genai_status_out_of_memory();
  }
  mem_free(self->artifact);
  mem_free(self->soc);
  self->artifact = artifact;
  self->soc = soc;
  return NULL;
}

static genai_status* expect_pushed(const host_runner* self, const char* call) {
  if (self->artifact) return NULL;
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "DeviceRunner.%s was called before push: nothing is on the device", call);
}

/* What one execute call works with. */
typedef struct execution {
  const host_runner* runner;
  const genai_context* context;
  const genai_execute_request* request;
  generator* generator;
  tokenizer* own_tokenizer;
  const tokenizer* words; /* NULL: ids only */
  chat_template* template;
  size_t n_stop_ids;
  int32_t stop_ids[MAX_STOP_IDS];
} execution;

static genai_status* differs(const execution* self, const char* what, const char* recorded, const char* wanted) {
  return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                             "\"%s\" was compiled with %s %s, this run asks for %s; compile it again or leave the option out",
                             self->runner->artifact, what, recorded, wanted);
}

static genai_status* check_number(const execution* self, const char* option, uint32_t recorded) {
  const char* wanted = genai_options_get(self->request->options, option);
  char number[16];
  snprintf(number, sizeof number, "%u", recorded);
  bool same = !wanted || genai_options_integer(self->request->options, option, 0) == recorded;
  return same ? NULL : differs(self, option, number, wanted);
}

/* An artifact of an earlier run is what that run was told: options that this one is given must not say otherwise. */
static genai_status* check_options(const execution* self, const provenance* record) {
  uint32_t widest = 0;
  for (size_t i = 0; i < record->n_graphs; i++) {
    if (record->graphs[i].ar_length > widest) widest = record->graphs[i].ar_length;
  }
  GENAI_TRY(check_number(self, "context", record->context_length));
  const char* mode = genai_options_get(self->request->options, "mode");
  if (mode && record->mode && strcmp(mode, record->mode)) return differs(self, "mode", record->mode, mode);
  if (record->n_graphs > 1) GENAI_TRY(check_number(self, "prefill_ar", widest));
  const char* named = genai_options_get(self->request->options, "recipe");
  recipe how;
  if (!named || !record->recipe_name) return NULL; /* without quantization a recipe has no meaning */
  GENAI_TRY(recipe_load(named, &how));
  return strcmp(how.name, record->recipe_name) ? differs(self, "recipe", record->recipe_name, how.name) : NULL;
}

static genai_status* check_artifact(const execution* self) {
  const provenance* record = self->generator->record;
  if (!record) return NULL;
  if (self->runner->soc && record->soc && strcmp(record->soc, self->runner->soc))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "\"%s\" was compiled for %s, this run is for %s; compile it again or choose that SoC",
                               self->runner->artifact, record->soc, self->runner->soc);
  return genai_context_artifact_count(self->context) ? check_options(self, record) : NULL;
}

static genai_status* sibling(const char* path, const char* name, char** out) {
  char* directory = mem_strndup(path, (size_t)(path_base_name(path) - path));
  if (!directory) return genai_status_out_of_memory();
  genai_status* status = path_join(*directory ? directory : ".", name, out);
  mem_free(directory);
  return status;
}

/* The runtime tokenizer: the file of this run, else one beside the artifact. */
static genai_status* find_tokenizer_file(const execution* self, char** out) {
  static const char* const names[] = {"tokenizer.json", "tokenizer.model"};
  *out = NULL;
  if (self->request->runtime_tokenizer) {
    *out = mem_strdup(self->request->runtime_tokenizer);
    return *out ? NULL : genai_status_out_of_memory();
  }
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    GENAI_TRY(sibling(self->runner->artifact, names[i], out));
    if (file_exists(*out)) return NULL;
    mem_free(*out);
    *out = NULL;
  }
  return NULL;
}

static genai_status* check_tokenizer_file(const execution* self, const char* path) {
  const provenance* record = self->generator->record;
  if (!record || !record->tokenizer_sha256) return NULL;
  char hex[65];
  mapped_file file;
  GENAI_TRY(mapped_file_open(path, &file));
  sha256_hex(file.data, file.size, hex);
  mapped_file_close(&file);
  if (!strcmp(hex, record->tokenizer_sha256)) return NULL;
  return genai_status_create(
      GENAI_ERROR_CONFIG_VALIDATION,
      "\"%s\" (SHA-256 %.12s...) is not the tokenizer that \"%s\" was compiled with (%.12s...); put that one beside the artifact", path,
      hex, self->runner->artifact, record->tokenizer_sha256);
}

static genai_status* open_tokenizer(execution* self) {
  const executorch_tokenizer* given = genai_object_payload(self->request->tokenizer, &executorch_tokenizer_type);
  if (given) {
    self->words = given->tokenizer;
    return NULL;
  }
  char* path;
  GENAI_TRY(find_tokenizer_file(self, &path));
  if (!path) return NULL;
  genai_status* status = check_tokenizer_file(self, path);
  if (!status) status = tokenizer_open(path, &self->own_tokenizer);
  if (!status) self->words = self->own_tokenizer;
  mem_free(path);
  return status;
}

/* The template that the exported tokenizer_config.json beside the artifact carries. */
static genai_status* stored_template(const execution* self, char** out) {
  char* path;
  GENAI_TRY(sibling(self->runner->artifact, "tokenizer_config.json", &path));
  genai_status* status = NULL;
  if (file_exists(path)) {
    json_document* document;
    status = json_parse_file(path, 64 << 20, &document);
    if (!status) {
      text_view source = json_string(json_get(json_root(document), "chat_template"));
      if (source.data && !(*out = mem_strndup(source.data, source.length))) status = genai_status_out_of_memory();
      json_free(document);
    }
  }
  mem_free(path);
  return status;
}

static genai_status* open_template(execution* self) {
  if (!self->words || genai_options_flag(self->request->options, "raw_prompt", false)) return NULL;
  char* source = NULL;
  text_view own = tokenizer_chat_template(self->words);
  if (self->request->chat_template) {
    source = mem_strdup(self->request->chat_template);
    if (!source) return genai_status_out_of_memory();
  } else if (own.data) {
    source = mem_strndup(own.data, own.length);
    if (!source) return genai_status_out_of_memory();
  } else if (self->own_tokenizer) {
    GENAI_TRY(stored_template(self, &source));
  }
  const char* fallback = genai_options_get(self->request->options, "chat_template");
  if (!source && fallback && !(source = mem_strdup(fallback))) return genai_status_out_of_memory();
  if (!source) return NULL; /* a base model: prompts are plain text */
  genai_status* status = chat_template_parse(source, strlen(source), &self->template);
  mem_free(source);
  return status;
}

static void collect_stop_ids(execution* self) {
  const provenance* record = self->generator->record;
  if (record) {
    memcpy(self->stop_ids, record->stop_ids, record->n_stop_ids * sizeof record->stop_ids[0]);
    self->n_stop_ids = record->n_stop_ids;
  }
  if (!self->words) return;
  size_t room = MAX_STOP_IDS - self->n_stop_ids;
  size_t more = tokenizer_stop_ids(self->words, self->stop_ids + self->n_stop_ids, room);
  self->n_stop_ids += more < room ? more : room;
}

/* ---- One prompt ---- */
static genai_status* encode_text(const execution* self, const char* prompt, token_list* out) {
  if (!self->words)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT,
                               "there is no tokenizer for the prompt; give token ids (--ids) or put tokenizer.json beside \"%s\"",
                               self->runner->artifact);
  const char* system = genai_options_get(self->request->options, "system_prompt");
  return chat_prompt_encode_question(self->words, self->template, system, prompt, out);
}

static genai_status* encode_prompt(const execution* self, size_t index, token_list* out) {
  size_t count;
  const int32_t* ids = genai_context_prompt_ids(self->context, index, &count);
  if (!ids) {
    GENAI_TRY(encode_text(self, genai_context_prompt_text(self->context, index), out));
  } else {
    GENAI_TRY(prompt_check_ids(index, ids, count, self->generator->vocab_size));
    for (size_t i = 0; i < count; i++) GENAI_TRY(token_list_append(out, ids[i]));
  }
  return prompt_check_length(index, out->count, self->generator->context_length, self->generator->longest_prompt);
}

/* Where new ids go: kept, decoded, and streamed. */
typedef struct answer {
  const execution* execution;
  size_t prompt;
  token_list ids;
  token_stream stream;
  text decoded;
  genai_status* status; /* the first failure inside the sink */
} answer;

static genai_status* take_id(answer* self, int32_t id) {
  GENAI_TRY(token_list_append(&self->ids, id));
  if (!self->execution->words) return NULL;
  size_t before = self->decoded.length;
  GENAI_TRY(token_stream_push(&self->stream, id, &self->decoded));
  if (self->decoded.length > before)
    genai_context_report_text(self->execution->context, self->prompt, self->decoded.data + before, self->decoded.length - before, false);
  return NULL;
}

static bool on_token(void* user, int32_t id) {
  answer* self = user;
  self->status = take_id(self, id);
  return !self->status;
}

static const char* end_name(generate_end end) {
  switch (end) {
    case GENERATE_STOP_TOKEN:
      return "stop token";
    case GENERATE_MAX_TOKENS:
      return "token limit";
    case GENERATE_CONTEXT_FULL:
      return "context full";
    case GENERATE_CALLER:
      break;
  }
  return "caller";
}

static genai_status* run_generation(const execution* self, const token_list* prompt, answer* out, generate_result* result) {
  progress_sink sink = context_progress_sink(self->context);
  generate_options options = {
      .max_new_tokens = (uint32_t)genai_options_integer(self->request->options, "max_new_tokens", EXECUTORCH_DEFAULT_NEW_TOKENS),
      .sampling = executorch_sampling(self->request->options),
      .stop_ids = self->stop_ids,
      .n_stop_ids = self->n_stop_ids,
      .cancel = context_cancel_token(self->context),
      .progress = &sink};
  generator* source = self->generator;
  genai_status* status = source->vtable->generate(source, prompt->ids, prompt->count, &options, on_token, out, result);
  if (out->status) {
    genai_status_free(status);
    status = out->status;
    out->status = NULL;
  }
  if (status || !self->words) return status;
  size_t before = out->decoded.length;
  GENAI_TRY(token_stream_finish(&out->stream, &out->decoded));
  size_t after = out->decoded.length;
  genai_context_report_text(self->context, out->prompt, after > before ? out->decoded.data + before : "", after - before, true);
  return NULL;
}

static genai_status* keep_answer(const execution* self, answer* from, const generate_result* result, genai_generation* out) {
  const char* prompt = genai_context_prompt_text(self->context, from->prompt);
  if (prompt && !(out->prompt = mem_strdup(prompt))) return genai_status_out_of_memory();
  if (self->words) {
    out->text = mem_strndup(from->decoded.data ? from->decoded.data : "", from->decoded.length);
    if (!out->text) return genai_status_out_of_memory();
  }
  out->ids = mem_dup(from->ids.ids, from->ids.count * sizeof *out->ids);
  if (!out->ids) return genai_status_out_of_memory();
  out->n_ids = from->ids.count;
  out->end = end_name(result->end);
  out->metrics = (genai_metrics){.load_seconds = self->generator->load_seconds,
                                 .ttft_seconds = result->ttft_seconds,
                                 .prefill_seconds = result->prefill_seconds,
                                 .decode_seconds = result->decode_seconds,
                                 .execute_seconds = result->execute_seconds,
                                 .prompt_tokens = result->prompt_tokens,
                                 .new_tokens = result->new_tokens,
                                 .peak_memory_bytes = memory_peak_bytes(),
                                 .simulated = true};
  return NULL;
}

static genai_status* answer_prompt(const execution* self, const token_list* prompt, size_t index, genai_generation* out) {
  answer got = {.execution = self, .prompt = index};
  generate_result result = {0};
  if (self->words) token_stream_init(&got.stream, self->words, false);
  genai_status* status = run_generation(self, prompt, &got, &result);
  if (!status) status = keep_answer(self, &got, &result, out);
  if (self->words) token_stream_deinit(&got.stream);
  token_list_deinit(&got.ids);
  text_deinit(&got.decoded);
  return status;
}

static void add_metrics(genai_metrics* sum, const genai_metrics* one, bool first) {
  sum->load_seconds = one->load_seconds;
  if (first) sum->ttft_seconds = one->ttft_seconds;
  sum->prefill_seconds += one->prefill_seconds;
  sum->decode_seconds += one->decode_seconds;
  sum->execute_seconds += one->execute_seconds;
  sum->prompt_tokens += one->prompt_tokens;
  sum->new_tokens += one->new_tokens;
  sum->peak_memory_bytes = one->peak_memory_bytes;
  sum->simulated = one->simulated;
}

static genai_status* run_prompts(const execution* self, genai_execute_result* out) {
  size_t count = genai_context_prompt_count(self->context);
  token_list* prompts = mem_calloc(count + 1, sizeof *prompts);
  out->generations = mem_calloc(count + 1, sizeof *out->generations);
  genai_status* status = prompts && out->generations ? NULL : genai_status_out_of_memory();
  /* All of them are checked before the first one costs simulator time. */
  for (size_t i = 0; !status && i < count; i++) status = encode_prompt(self, i, &prompts[i]);
  for (size_t i = 0; !status && i < count; i++) {
    out->n_generations = i + 1;
    status = genai_context_check_cancelled(self->context);
    if (!status) status = answer_prompt(self, &prompts[i], i, &out->generations[i]);
    if (!status) add_metrics(&out->metrics, &out->generations[i].metrics, !i);
  }
  for (size_t i = 0; prompts && i < count; i++) token_list_deinit(&prompts[i]);
  mem_free(prompts);
  return status;
}

static genai_status* execute(genai_device_runner* base, const genai_context* context, const genai_execute_request* request,
                             genai_execute_result* out) {
  host_runner* runner = (host_runner*)base;
  GENAI_TRY(expect_pushed(runner, "execute"));
  execution self = {.runner = runner, .context = context, .request = request};
  genai_execute_result result = {0};
  genai_status* status = runner->format->open(runner->artifact, request->options, &self.generator);
  if (!status) status = check_artifact(&self);
  if (!status) status = open_tokenizer(&self);
  if (!status) status = open_template(&self);
  if (!status) {
    collect_stop_ids(&self);
    status = run_prompts(&self, &result);
  }
  chat_template_free(self.template);
  tokenizer_close(self.own_tokenizer);
  if (self.generator) self.generator->vtable->destroy(self.generator);
  if (status) {
    genai_execute_result_deinit(&result);
    return status;
  }
  *out = result;
  return NULL;
}

/* The simulator leaves no files: the texts are the results. */
static genai_status* pull(genai_device_runner* base, const genai_context* context, const char* directory, genai_string_list* out) {
  (void)context;
  (void)directory;
  (void)out;
  return expect_pushed((const host_runner*)base, "pull");
}

static void destroy(genai_device_runner* base) {
  host_runner* self = (host_runner*)base;
  mem_free(self->artifact);
  mem_free(self->soc);
  mem_free(self);
}

genai_status* host_runner_create(const runner_format* format, genai_device_runner** out) {
  static const genai_device_runner_vtable vtable = {push, execute, pull, destroy};
  host_runner* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->base.vtable = &vtable;
  self->format = format;
  *out = &self->base;
  return NULL;
}
