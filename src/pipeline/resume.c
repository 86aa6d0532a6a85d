/* Resuming: from fingerprints to keys, and from keys to stored results. Files are store.c; what a stage depends on, its strategy says. */
#include "pipeline/resume.h"

#include <string.h>

#include "base/memory.h"
#include "pipeline/fingerprint.h"
#include "pipeline/store.h"

#define STAGE_CHOICES "model_preparation|quantization|compilation|inference"
enum { EVERY_STAGE = (1u << GENAI_STAGE_COUNT) - 1 };

const genai_option_spec genai_pipeline_option_table[GENAI_PIPELINE_OPTION_COUNT] = {
    {"reuse", GENAI_OPTION_FLAG, EVERY_STAGE, 0, 0, NULL, "true", "use what an earlier run stored for equal inputs, options and versions"},
    {"from", GENAI_OPTION_CHOICE, EVERY_STAGE, 0, 0, STAGE_CHOICES, NULL, "earlier stages must be stored; this one and later ones run"},
    {"soc_file", GENAI_OPTION_TEXT, EVERY_STAGE, 0, 0, NULL, NULL, "JSON file with SoCs of your own (docs/formats/socs.md)"},
};

genai_status* resume_init(const genai_context* context, resume* out) {
  const genai_options* options = genai_context_options(context);
  *out = (resume){.directory = genai_context_artifact_directory(context), .reads = genai_options_flag(options, "reuse", true)};
  const char* from = genai_options_get(options, "from");
  if (!from) return NULL;
  GENAI_TRY(genai_stage_find(from, &out->from));
  out->has_from = true;
  if (!out->reads && out->from > GENAI_STAGE_QUANTIZATION)
    return genai_status_create(
        GENAI_ERROR_CONFIG_VALIDATION,
        "option from is \"%s\", which starts from stored results, and option reuse is false, which uses none: give one "
        "of the two",
        from);
  return NULL;
}

void resume_deinit(resume* self) {
  for (size_t i = 0; i < GENAI_STAGE_COUNT; i++) mem_free(self->records[i]);
  mem_free(self->calibration);
  genai_compilation_output_deinit(&self->compiled);
  *self = (resume){0};
}

/* One fingerprint runs through the stages, so that each key holds all that came before. */
static genai_status* add_stage(genai_fingerprint* print, genai_stage* const stages[GENAI_STAGE_COUNT], genai_stage_kind kind,
                               const genai_context* context, const genai_fingerprint_request* request) {
  if (!stages[kind]) return genai_fingerprint_add(print, genai_stage_name(kind), "skipped");
  genai_strategy* strategy = genai_stage_strategy(stages[kind]);
  GENAI_TRY(genai_fingerprint_add(print, genai_stage_name(kind), strategy->vtable->engine));
  if (!strategy->vtable->fingerprint) {
    genai_fingerprint_set_unknown(print, "an engine does not say what its results depend on");
    return NULL;
  }
  return strategy->vtable->fingerprint(strategy, context, request, print);
}

static genai_status* make_keys(resume* self, genai_fingerprint* print, genai_stage* const stages[GENAI_STAGE_COUNT],
                               const genai_context* context, const genai_fingerprint_request* request) {
  if (!stages[GENAI_STAGE_MODEL_PREPARATION]) genai_fingerprint_set_unknown(print, "model_preparation does not run");
  for (unsigned i = 0; i <= GENAI_STAGE_COMPILATION && !print->unknown; i++) {
    genai_stage_kind kind = (genai_stage_kind)i;
    GENAI_TRY(add_stage(print, stages, kind, context, request));
    if (!print->unknown && stages[kind] && kind != GENAI_STAGE_MODEL_PREPARATION) fingerprint_key(print, self->keys[kind]);
  }
  self->unknown = print->unknown;
  if (print->unknown) log_write(LOG_DEBUG, "[GenAIPipeline] not all results can be stored for later runs: %s", print->unknown);
  return NULL;
}

/* Whether the stored result of a stage may stand in for it. */
static bool may_read(const resume* self, genai_stage_kind kind) {
  return *self->keys[kind] && self->reads && (!self->has_from || kind < self->from);
}

static genai_status* missing(const resume* self, genai_stage_kind kind) {
  if (self->unknown)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "cannot start from %s: the result of %s is never stored (%s)",
                               genai_stage_name(self->from), genai_stage_name(kind), self->unknown);
  return genai_status_create(
      GENAI_ERROR_CONFIG_VALIDATION,
      "cannot start from %s: \"%s\" holds no result of %s for these inputs, options and versions; run without it once",
      genai_stage_name(self->from), self->directory, genai_stage_name(kind));
}

genai_status* resume_look(resume* self, genai_stage* const stages[GENAI_STAGE_COUNT], const genai_context* context,
                          const genai_fingerprint_request* request) {
  genai_fingerprint print = {0};
  genai_status* status = fingerprint_init(&print);
  if (!status) status = make_keys(self, &print, stages, context, request);
  fingerprint_deinit(&print);
  if (status) return status;
  bool found = false;
  if (may_read(self, GENAI_STAGE_COMPILATION))
    GENAI_TRY(store_find_compilation(self->directory, self->keys[GENAI_STAGE_COMPILATION], &self->compiled,
                                     &self->records[GENAI_STAGE_COMPILATION], &found));
  if (found) return NULL;
  if (self->has_from && self->from > GENAI_STAGE_COMPILATION && stages[GENAI_STAGE_COMPILATION])
    return missing(self, GENAI_STAGE_COMPILATION);
  if (may_read(self, GENAI_STAGE_QUANTIZATION))
    GENAI_TRY(store_find_bytes(self->directory, GENAI_STAGE_QUANTIZATION, self->keys[GENAI_STAGE_QUANTIZATION], &self->calibration,
                               &self->calibration_size, &self->records[GENAI_STAGE_QUANTIZATION], &found));
  if (!found && self->has_from && self->from > GENAI_STAGE_QUANTIZATION && stages[GENAI_STAGE_QUANTIZATION])
    return missing(self, GENAI_STAGE_QUANTIZATION);
  return NULL;
}

/* A run whose results are in place does not fail because a later one cannot use them. */
static genai_status* without_keeping(genai_status* status) {
  if (!status || genai_status_kind(status) == GENAI_ERROR_OUT_OF_MEMORY) return status;
  log_write(LOG_WARNING, "a later run will have to repeat this stage: %s", genai_status_message(status));
  genai_status_free(status);
  return NULL;
}

genai_status* resume_keep_quantization(const resume* self, const genai_quantization_output* output) {
  const char* key = self->keys[GENAI_STAGE_QUANTIZATION];
  if (!*key || !output->to_store || output->reused) return NULL;
  return without_keeping(store_keep_bytes(self->directory, GENAI_STAGE_QUANTIZATION, key, output->to_store, output->to_store_size));
}

genai_status* resume_keep_compilation(const resume* self, const genai_compilation_output* output) {
  const char* key = self->keys[GENAI_STAGE_COMPILATION];
  return *key ? without_keeping(store_keep_compilation(self->directory, key, output)) : NULL;
}
