/* The context of a run and its builder. What the values mean to an engine is not checked here, only that what is required is there. */
#include <string.h>

#include "pipeline/chipset.h"
#include "pipeline/internal.h"

typedef struct prompt {
  char* text;
  int32_t* ids;
  size_t n_ids;
} prompt;

/* The same fields serve the builder and what it builds. */
typedef struct settings {
  char* model;
  char* soc;
  char* artifact_directory;
  genai_options* options;
  genai_string_list artifacts;
  size_t n_prompts;
  prompt* prompts;
  bool single_prompt; /* set_prompt, not a list: a blank one is an error of its own */
  bool no_inference;
  genai_sample_stream* calibration_data;
  genai_sample_stream* training_data;
  const genai_cancel* cancel;
  genai_progress_callback progress;
  void* progress_user;
  genai_text_callback text;
  void* text_user;
} settings;

struct genai_context {
  settings s;
  qnn_soc_table* socs;
  const qnn_soc* soc; /* NULL: the name is unknown */
};
struct genai_context_builder {
  settings s;
};

static void prompts_clear(settings* s) {
  for (size_t i = 0; i < s->n_prompts; i++) {
    mem_free(s->prompts[i].text);
    mem_free(s->prompts[i].ids);
  }
  mem_free(s->prompts);
  s->prompts = NULL;
  s->n_prompts = 0;
}

static void settings_deinit(settings* s) {
  mem_free(s->model);
  mem_free(s->soc);
  mem_free(s->artifact_directory);
  genai_options_destroy(s->options);
  genai_string_list_deinit(&s->artifacts);
  prompts_clear(s);
  genai_sample_stream_release(s->calibration_data);
  genai_sample_stream_release(s->training_data);
}

genai_status* genai_context_builder_create(genai_context_builder** out) {
  genai_context_builder* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  genai_status* status = genai_options_create(&self->s.options);
  if (status) {
    mem_free(self);
    return status;
  }
  *out = self;
  return NULL;
}

void genai_context_builder_destroy(genai_context_builder* self) {
  if (!self) return;
  settings_deinit(&self->s);
  mem_free(self);
}

static genai_status* replace_string(char** field, const char* value) {
  char* copy = NULL;
  if (value && !(copy = mem_strdup(value))) return genai_status_out_of_memory();
  mem_free(*field);
  *field = copy;
  return NULL;
}

genai_status* genai_context_builder_set_model(genai_context_builder* self, const char* model) {
  return replace_string(&self->s.model, model);
}

genai_status* genai_context_builder_set_soc(genai_context_builder* self, const char* soc) {
  return replace_string(&self->s.soc, soc);
}

genai_status* genai_context_builder_set_artifact_directory(genai_context_builder* self, const char* path) {
  return replace_string(&self->s.artifact_directory, path);
}

genai_status* genai_context_builder_set_option(genai_context_builder* self, const char* key, const char* value) {
  return genai_options_set(self->s.options, key, value);
}

genai_status* genai_context_builder_add_artifact(genai_context_builder* self, const char* path) {
  if (!path) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "an artifact needs a path");
  return genai_string_list_add(&self->s.artifacts, path);
}

/* Appends a prompt; takes its members on success. */
static genai_status* append_prompt(settings* s, prompt added) {
  prompt* grown = mem_realloc_array(s->prompts, s->n_prompts + 1, sizeof *grown);
  if (!grown) return genai_status_out_of_memory();
  s->prompts = grown;
  s->prompts[s->n_prompts++] = added;
  return NULL;
}

static genai_status* append_text(settings* s, const char* string) {
  char* copy = mem_strdup(string);
  if (!copy) return genai_status_out_of_memory();
  genai_status* status = append_prompt(s, (prompt){copy, NULL, 0});
  if (status) mem_free(copy);
  return status;
}

static genai_status* append_ids(settings* s, const int32_t* ids, size_t count) {
  int32_t* copy = mem_dup(ids, count * sizeof *ids);
  if (!copy) return genai_status_out_of_memory();
  genai_status* status = append_prompt(s, (prompt){NULL, copy, count});
  if (status) mem_free(copy);
  return status;
}

genai_status* genai_context_builder_set_prompts(genai_context_builder* self, const char* const* prompts, size_t count) {
  settings fresh = {0};
  for (size_t i = 0; i < count; i++) {
    genai_status* status = append_text(&fresh, prompts[i] ? prompts[i] : "");
    if (status) {
      prompts_clear(&fresh);
      return status;
    }
  }
  prompts_clear(&self->s);
  self->s.prompts = fresh.prompts;
  self->s.n_prompts = fresh.n_prompts;
  self->s.single_prompt = false;
  return NULL;
}

genai_status* genai_context_builder_set_prompt(genai_context_builder* self, const char* prompt_text) {
  GENAI_TRY(genai_context_builder_set_prompts(self, &prompt_text, prompt_text ? 1 : 0));
  self->s.single_prompt = prompt_text != NULL;
  return NULL;
}

genai_status* genai_context_builder_add_prompt_ids(genai_context_builder* self, const int32_t* ids, size_t count) {
  if (!ids || !count) return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "a prompt of token ids needs at least one id");
  GENAI_TRY(append_ids(&self->s, ids, count));
  self->s.single_prompt = false;
  return NULL;
}

genai_status* genai_context_builder_set_no_inference(genai_context_builder* self) {
  self->s.no_inference = true;
  return NULL;
}

genai_status* genai_context_builder_set_calibration_data(genai_context_builder* self, genai_sample_stream* data) {
  genai_sample_stream* old = self->s.calibration_data;
  self->s.calibration_data = genai_sample_stream_retain(data);
  genai_sample_stream_release(old);
  return NULL;
}

genai_status* genai_context_builder_set_training_data(genai_context_builder* self, genai_sample_stream* data) {
  genai_sample_stream* old = self->s.training_data;
  self->s.training_data = genai_sample_stream_retain(data);
  genai_sample_stream_release(old);
  return NULL;
}

genai_status* genai_context_builder_set_cancel(genai_context_builder* self, const genai_cancel* cancel) {
  self->s.cancel = cancel;
  return NULL;
}

genai_status* genai_context_builder_set_progress(genai_context_builder* self, genai_progress_callback callback, void* user) {
  self->s.progress = callback;
  self->s.progress_user = user;
  return NULL;
}

genai_status* genai_context_builder_set_text(genai_context_builder* self, genai_text_callback callback, void* user) {
  self->s.text = callback;
  self->s.text_user = user;
  return NULL;
}

static size_t usable_prompts(const settings* s) {
  size_t usable = 0;
  for (size_t i = 0; i < s->n_prompts; i++) usable += s->prompts[i].ids || !text_is_blank(s->prompts[i].text);
  return usable;
}

static genai_status* complain(text* problems, const char* problem) {
  if (problems->length) GENAI_TRY(text_append_cstr(problems, "; "));
  return text_append_cstr(problems, problem);
}

static genai_status* find_problems(const settings* s, text* problems) {
  if (text_is_blank(s->model)) GENAI_TRY(complain(problems, "model is missing (genai_context_builder_set_model)"));
  if (text_is_blank(s->soc)) GENAI_TRY(complain(problems, "SoC is missing (genai_context_builder_set_soc)"));
  if (!s->no_inference && !usable_prompts(s)) {
    const char* problem = !s->n_prompts      ? "prompt is missing (genai_context_builder_set_prompt or set_prompts)"
                          : s->single_prompt ? "prompt is blank (genai_context_builder_set_prompt)"
                                             : "every prompt of the list is blank (genai_context_builder_set_prompts)";
    GENAI_TRY(complain(problems, problem));
  }
  if (s->artifact_directory && text_is_blank(s->artifact_directory))
    GENAI_TRY(complain(problems, "artifact directory is blank (genai_context_builder_set_artifact_directory)"));
  return NULL;
}

static genai_status* copy_settings(const settings* from, settings* to) {
  *to = (settings){.no_inference = from->no_inference,
                   .cancel = from->cancel,
                   .progress = from->progress,
                   .progress_user = from->progress_user,
                   .text = from->text,
                   .text_user = from->text_user,
                   .calibration_data = genai_sample_stream_retain(from->calibration_data),
                   .training_data = genai_sample_stream_retain(from->training_data)};
  GENAI_TRY(replace_string(&to->model, from->model));
  GENAI_TRY(replace_string(&to->soc, from->soc));
  GENAI_TRY(replace_string(&to->artifact_directory, from->artifact_directory ? from->artifact_directory : "./genai_artifacts"));
  GENAI_TRY(options_copy(from->options, &to->options));
  for (size_t i = 0; i < from->artifacts.count; i++) GENAI_TRY(genai_string_list_add(&to->artifacts, from->artifacts.items[i]));
  for (size_t i = 0; i < from->n_prompts; i++) {
    const prompt* source = &from->prompts[i];
    if (source->ids) {
      GENAI_TRY(append_ids(to, source->ids, source->n_ids));
    } else if (!text_is_blank(source->text)) {
      GENAI_TRY(append_text(to, source->text));
    }
  }
  return NULL;
}

/* An unknown name is no error yet: only a run needs to know it. Resolved once, so that a warning about it comes once. */
static genai_status* find_soc(genai_context* context) {
  GENAI_TRY(qnn_soc_table_open(genai_options_get(context->s.options, "soc_file"), &context->socs));
  genai_status* status = qnn_soc_table_find(context->socs, context->s.soc, &context->soc);
  if (genai_status_kind(status) != GENAI_ERROR_CONFIG_VALIDATION) return status;
  genai_status_free(status);
  return NULL;
}

genai_status* genai_context_builder_build(const genai_context_builder* self, genai_context** out) {
  text problems = {0};
  genai_status* status = find_problems(&self->s, &problems);
  if (!status && problems.length)
    status = genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "the context is not complete: %s", problems.data);
  text_deinit(&problems);
  if (status) return status;
  genai_context* context = mem_calloc(1, sizeof *context);
  if (!context) return genai_status_out_of_memory();
  status = copy_settings(&self->s, &context->s);
  if (!status) status = find_soc(context);
  if (status) {
    genai_context_destroy(context);
    return status;
  }
  *out = context;
  return NULL;
}

void genai_context_destroy(genai_context* self) {
  if (!self) return;
  settings_deinit(&self->s);
  qnn_soc_table_close(self->socs);
  mem_free(self);
}

const char* genai_context_model(const genai_context* self) {
  return self->s.model;
}

const char* genai_context_soc(const genai_context* self) {
  return self->s.soc;
}

genai_status* genai_context_chipset(const genai_context* self, genai_chipset* out) {
  const qnn_soc* soc = self->soc;
  if (!soc) GENAI_TRY(qnn_soc_table_find(self->socs, self->s.soc, &soc));
  *out = chipset_of_soc(soc);
  return NULL;
}

const char* genai_context_artifact_directory(const genai_context* self) {
  return self->s.artifact_directory;
}

const genai_options* genai_context_options(const genai_context* self) {
  return self->s.options;
}

size_t genai_context_prompt_count(const genai_context* self) {
  return self->s.n_prompts;
}

const char* genai_context_prompt_text(const genai_context* self, size_t index) {
  return index < self->s.n_prompts ? self->s.prompts[index].text : NULL;
}

const int32_t* genai_context_prompt_ids(const genai_context* self, size_t index, size_t* count) {
  if (index >= self->s.n_prompts || !self->s.prompts[index].ids) return NULL;
  *count = self->s.prompts[index].n_ids;
  return self->s.prompts[index].ids;
}

size_t genai_context_artifact_count(const genai_context* self) {
  return self->s.artifacts.count;
}

const char* genai_context_artifact(const genai_context* self, size_t index) {
  return index < self->s.artifacts.count ? self->s.artifacts.items[index] : NULL;
}

genai_sample_stream* genai_context_calibration_data(const genai_context* self) {
  return self->s.calibration_data;
}

genai_sample_stream* genai_context_training_data(const genai_context* self) {
  return self->s.training_data;
}

const genai_cancel* genai_context_cancel(const genai_context* self) {
  return self->s.cancel;
}

genai_status* genai_context_check_cancelled(const genai_context* self) {
  return cancel_check(self->s.cancel ? &self->s.cancel->token : NULL);
}

void genai_context_report_progress(const genai_context* self, const genai_progress* event) {
  if (self->s.progress) self->s.progress(self->s.progress_user, event);
}

void genai_context_report_text(const genai_context* self, size_t index, const char* string, size_t length, bool finished) {
  if (self->s.text) self->s.text(self->s.text_user, index, string, length, finished);
}
