/* The orchestrator: validation before anything runs, the stages in order, their times, and the hand-over from one to the next. What a stage
 * does is not here. */
#include <string.h>

#include "pipeline/internal.h"
#include "pipeline/resume.h"

struct genai_pipeline {
  genai_stage* stages[GENAI_STAGE_COUNT];
  genai_backend backend;
};

genai_status* genai_pipeline_from_proxy(const genai_engine_proxy* proxy, const genai_pipeline_options* options, genai_pipeline** out) {
  static const genai_pipeline_options defaults;
  if (!options) options = &defaults;
  const genai_registry* registry = options->registry ? options->registry : genai_registry_default();
  if (!registry) return genai_status_out_of_memory();
  if (options->skip_stages >> GENAI_STAGE_COUNT)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "the set of stages to skip (0x%x) names a stage that does not exist",
                               options->skip_stages);
  genai_pipeline* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->backend = genai_engine_proxy_backend(proxy);
  genai_status* status = NULL;
  for (unsigned i = 0; !status && i < GENAI_STAGE_COUNT; i++) {
    if (options->skip_stages & 1u << i) continue;
    genai_stage_kind kind = (genai_stage_kind)i;
    status = genai_registry_create_stage(registry, kind, genai_engine_proxy_engine(proxy, kind), options->adapters[i], &self->stages[i]);
  }
  if (status) {
    genai_pipeline_destroy(self);
    return status;
  }
  *out = self;
  return NULL;
}

genai_status* genai_pipeline_from_stages(genai_stage* const stages[GENAI_STAGE_COUNT], genai_backend backend, genai_pipeline** out) {
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++) {
    if (stages[i] && genai_stage_kind_of(stages[i]) != (genai_stage_kind)i)
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "a %s stage stands where %s belongs",
                                 genai_stage_name(genai_stage_kind_of(stages[i])), genai_stage_name((genai_stage_kind)i));
  }
  genai_pipeline* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  memcpy(self->stages, stages, sizeof self->stages);
  self->backend = backend;
  *out = self;
  return NULL;
}

void genai_pipeline_destroy(genai_pipeline* self) {
  if (!self) return;
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++) genai_stage_destroy(self->stages[i]);
  mem_free(self);
}

genai_stage* genai_pipeline_stage(const genai_pipeline* self, genai_stage_kind kind) {
  return (unsigned)kind < GENAI_STAGE_COUNT ? self->stages[kind] : NULL;
}

void genai_pipeline_report_deinit(genai_pipeline_report* self) {
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++) mem_free(self->stages[i].reused_from);
  genai_string_list_deinit(&self->artifacts);
  mem_free(self->etrecord);
  mem_free(self->runtime_tokenizer);
  genai_statistics_deinit(&self->statistics);
  *self = (genai_pipeline_report){0};
}

static genai_status* validate(const genai_pipeline* self, const genai_context* context, genai_chipset* soc) {
  GENAI_TRY(genai_context_chipset(context, soc));
  const genai_option_spec* lists[GENAI_STAGE_COUNT + 1] = {genai_pipeline_option_table};
  size_t counts[GENAI_STAGE_COUNT + 1] = {GENAI_PIPELINE_OPTION_COUNT};
  size_t n_lists = 1;
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++) {
    if (!self->stages[i]) continue;
    const genai_strategy_vtable* vtable = genai_stage_strategy(self->stages[i])->vtable;
    lists[n_lists] = vtable->options;
    counts[n_lists++] = vtable->options ? vtable->n_options : 0;
  }
  GENAI_TRY(genai_options_validate(genai_context_options(context), lists, counts, n_lists));
  resume stored;
  GENAI_TRY(resume_init(context, &stored));
  if (self->stages[GENAI_STAGE_INFERENCE] && !genai_context_prompt_count(context))
    return genai_status_create(
        GENAI_ERROR_CONFIG_VALIDATION,
        "the context has no prompt but the inference stage runs; give one (genai_context_builder_set_prompt) or skip "
        "inference");
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++) {
    if (!self->stages[i]) continue;
    genai_strategy* strategy = genai_stage_strategy(self->stages[i]);
    if (strategy->vtable->validate) GENAI_TRY(strategy->vtable->validate(strategy, context, soc, self->backend));
  }
  return NULL;
}

genai_status* genai_pipeline_validate(const genai_pipeline* self, const genai_context* context) {
  genai_chipset soc;
  return validate(self, context, &soc);
}

/* The state of one run. */
typedef struct run {
  genai_pipeline* pipeline;
  const genai_context* context;
  genai_chipset soc;
  resume stored;
  genai_model_preparation_output prepared;
  genai_quantization_output quantized;
  genai_compilation_output compiled;
  genai_inference_output inferred;
} run;

static genai_status* invoke_stage(run* r, genai_stage_kind kind) {
  genai_stage* stage = r->pipeline->stages[kind];
  const genai_context* context = r->context;
  const genai_options* options = genai_context_options(context);
  switch (kind) {
    case GENAI_STAGE_MODEL_PREPARATION: {
      genai_model_preparation_input input = {genai_context_model(context), &r->soc, options};
      return genai_model_preparation_invoke(stage, context, &input, &r->prepared);
    }
    case GENAI_STAGE_QUANTIZATION: {
      genai_quantization_input input = {.model = r->prepared.model,
                                        .example_inputs = r->prepared.example_inputs,
                                        .calibration_data = r->prepared.calibration_data,
                                        .soc = &r->soc,
                                        .backend = &r->pipeline->backend,
                                        .recipe = genai_options_get(options, "recipe"),
                                        .training_data = genai_context_training_data(context),
                                        .options = options,
                                        .stored = r->stored.calibration,
                                        .stored_size = r->stored.calibration_size,
                                        .tokenizer = r->prepared.tokenizer,
                                        .chat_template = r->prepared.chat_template};
      GENAI_TRY(genai_quantization_invoke(stage, context, &input, &r->quantized));
      return resume_keep_quantization(&r->stored, &r->quantized);
    }
    case GENAI_STAGE_COMPILATION: {
      genai_compilation_input input = {.quantized_model = r->quantized.model,
                                       .prepared_model = r->prepared.model,
                                       .example_inputs = r->prepared.example_inputs,
                                       .soc = &r->soc,
                                       .backend = &r->pipeline->backend,
                                       .artifact_directory = genai_context_artifact_directory(context),
                                       .runtime_tokenizer = r->prepared.runtime_tokenizer,
                                       .options = options};
      GENAI_TRY(genai_compilation_invoke(stage, context, &input, &r->compiled));
      return resume_keep_compilation(&r->stored, &r->compiled);
    }
    case GENAI_STAGE_INFERENCE: {
      /* What earlier stages hold is not needed any more: the artifact is read from its file, and memory is what the simulator needs. */
      genai_object_release(r->quantized.model);
      r->quantized.model = NULL;
      genai_object_release(r->prepared.model);
      r->prepared.model = NULL;
      genai_string_list given = {0};
      genai_status* status = NULL;
      for (size_t i = 0; !status && !r->compiled.artifacts.count && i < genai_context_artifact_count(context); i++)
        status = genai_string_list_add(&given, genai_context_artifact(context, i));
      const genai_string_list* artifacts = r->compiled.artifacts.count ? &r->compiled.artifacts : &given;
      genai_inference_input input = {.soc = &r->soc,
                                     .artifacts = (const char* const*)artifacts->items,
                                     .n_artifacts = artifacts->count,
                                     .tokenizer = r->prepared.tokenizer,
                                     .runtime_tokenizer = r->prepared.runtime_tokenizer,
                                     .chat_template = r->prepared.chat_template,
                                     .artifact_directory = genai_context_artifact_directory(context),
                                     .options = options};
      if (!status) status = genai_inference_invoke(stage, context, &input, &r->inferred);
      genai_string_list_deinit(&given);
      return status;
    }
    case GENAI_STAGE_COUNT:
      break;
  }
  return genai_status_create(GENAI_ERROR_INTERNAL, "there is no stage %d", (int)kind);
}

static genai_status* mark_reused(genai_stage_timing* timing, const char* record) {
  timing->state = GENAI_STAGE_REUSED;
  timing->reused_from = mem_strdup(record);
  return timing->reused_from ? NULL : genai_status_out_of_memory();
}

/* Quantization and compilation need not run when what compilation would give is stored. */
static genai_status* reuse_stage(run* r, genai_stage_kind kind, genai_stage_timing* timing, bool* reused) {
  const char* record = r->stored.records[GENAI_STAGE_COMPILATION];
  if (!record || (kind != GENAI_STAGE_QUANTIZATION && kind != GENAI_STAGE_COMPILATION)) return NULL;
  GENAI_TRY(mark_reused(timing, record));
  timing->peak_memory_bytes = memory_peak_bytes();
  *reused = true;
  if (kind == GENAI_STAGE_QUANTIZATION) {
    log_write(LOG_INFO, "[GenAIPipeline] QuantizationStage not needed: the compiled artifacts are reused");
    return NULL;
  }
  r->compiled = r->stored.compiled;
  r->stored.compiled = (genai_compilation_output){0};
  log_write(LOG_INFO, "[GenAIPipeline] CompilationStage reused: inputs, options and versions equal those of \"%s\"", record);
  return NULL;
}

static genai_status* run_stage(run* r, genai_stage_kind kind, genai_stage_timing* timing) {
  const char* name = genai_stage_class_name(kind);
  bool reused = false;
  GENAI_TRY(reuse_stage(r, kind, timing, &reused));
  if (reused) return NULL;
  char elapsed[32];
  log_write(LOG_INFO, "[GenAIPipeline] %s started", name);
  double started = clock_seconds();
  genai_status* status = genai_context_check_cancelled(r->context);
  if (!status) status = invoke_stage(r, kind);
  timing->seconds = clock_seconds() - started;
  timing->peak_memory_bytes = memory_peak_bytes();
  timing->state = status ? GENAI_STAGE_FAILED : GENAI_STAGE_COMPLETED;
  format_seconds(timing->seconds, elapsed);
  if (!status) {
    log_write(LOG_INFO, "[GenAIPipeline] %s completed in %s", name, elapsed);
    if (kind != GENAI_STAGE_QUANTIZATION || !r->quantized.reused) return NULL;
    log_write(LOG_INFO, "[GenAIPipeline] QuantizationStage took the calibration stored in \"%s\"",
              r->stored.records[GENAI_STAGE_QUANTIZATION]);
    return mark_reused(timing, r->stored.records[GENAI_STAGE_QUANTIZATION]);
  }
  log_write(LOG_ERROR, "[GenAIPipeline] %s failed after %s", name, elapsed);
  return genai_status_wrap_stage(status, genai_stage_name(kind), "failed");
}

/* What the model is decides what of an earlier run can be used: so this comes after model_preparation, and belongs to no stage. */
static genai_status* look_for_stored(run* r) {
  genai_fingerprint_request request = {&r->soc, r->pipeline->backend, &r->prepared};
  return resume_look(&r->stored, r->pipeline->stages, r->context, &request);
}

/* What no stage after model_preparation could do anything about is said before they run. */
static genai_status* check_prepared(run* r) {
  genai_fingerprint_request request = {&r->soc, r->pipeline->backend, &r->prepared};
  for (unsigned i = GENAI_STAGE_MODEL_PREPARATION + 1; r->pipeline->stages[GENAI_STAGE_MODEL_PREPARATION] && i < GENAI_STAGE_COUNT; i++) {
    if (!r->pipeline->stages[i]) continue;
    genai_strategy* strategy = genai_stage_strategy(r->pipeline->stages[i]);
    if (!strategy->vtable->check_prepared) continue;
    genai_status* status = strategy->vtable->check_prepared(strategy, r->context, &request);
    if (status) return genai_status_wrap_stage(status, genai_stage_name((genai_stage_kind)i), "cannot run on what was prepared");
  }
  return NULL;
}

static genai_status* run_stages(run* r, genai_pipeline_report* report) {
  char elapsed[32];
  double started = clock_seconds();
  log_write(LOG_INFO, "[GenAIPipeline] pipeline started");
  genai_status* status = NULL;
  for (unsigned i = 0; !status && i < GENAI_STAGE_COUNT; i++) {
    if (r->pipeline->stages[i]) status = run_stage(r, (genai_stage_kind)i, &report->stages[i]);
    if (!status && i == GENAI_STAGE_MODEL_PREPARATION) status = check_prepared(r);
    if (!status && i == GENAI_STAGE_MODEL_PREPARATION && (r->pipeline->stages[i] || r->stored.has_from)) status = look_for_stored(r);
  }
  report->seconds = clock_seconds() - started;
  format_seconds(report->seconds, elapsed);
  log_write(status ? LOG_ERROR : LOG_INFO, "[GenAIPipeline] pipeline %s %s", status ? "failed after" : "completed in", elapsed);
  return status;
}

genai_status* genai_pipeline_invoke(genai_pipeline* self, const genai_context* context, genai_inference_output* output,
                                    genai_pipeline_report* report) {
  genai_pipeline_report own_report = {0};
  genai_pipeline_report* filled = report ? report : &own_report;
  genai_pipeline_report_deinit(filled);
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++)
    filled->stages[i].state = self->stages[i] ? GENAI_STAGE_NOT_REACHED : GENAI_STAGE_SKIPPED;
  if (output) *output = (genai_inference_output){0};
  run r = {.pipeline = self, .context = context};
  GENAI_TRY(validate(self, context, &r.soc));
  GENAI_TRY(resume_init(context, &r.stored));
  directory_lock lock = {-1};
  if (self->stages[GENAI_STAGE_MODEL_PREPARATION] || self->stages[GENAI_STAGE_COMPILATION])
    GENAI_TRY(directory_lock_acquire(genai_context_artifact_directory(context), &lock));
  genai_status* status = run_stages(&r, filled);
  directory_lock_release(&lock);
  filled->artifacts = r.compiled.artifacts;
  r.compiled.artifacts = (genai_string_list){0};
  filled->etrecord = r.compiled.etrecord;
  r.compiled.etrecord = NULL;
  filled->statistics = r.compiled.statistics;
  r.compiled.statistics = (genai_statistics){0};
  filled->runtime_tokenizer = r.prepared.runtime_tokenizer;
  r.prepared.runtime_tokenizer = NULL;
  if (output && !status) {
    *output = r.inferred;
    r.inferred = (genai_inference_output){0};
  }
  resume_deinit(&r.stored);
  genai_model_preparation_output_deinit(&r.prepared);
  genai_quantization_output_deinit(&r.quantized);
  genai_compilation_output_deinit(&r.compiled);
  genai_inference_output_deinit(&r.inferred);
  genai_pipeline_report_deinit(&own_report);
  return status;
}
