/* Stage objects: a name and a strategy. They only delegate, and see to it that a failure leaves as a stage error. */
#include <string.h>

#include "pipeline/internal.h"

struct genai_stage {
  genai_stage_kind kind;
  genai_strategy* strategy;
};

static const struct {
  const char* name;
  const char* class_name;
} stages[GENAI_STAGE_COUNT] = {
    {"model_preparation", "ModelPreparationStage"},
    {"quantization", "QuantizationStage"},
    {"compilation", "CompilationStage"},
    {"inference", "InferenceStage"},
};

const char* genai_stage_name(genai_stage_kind stage) {
  return (unsigned)stage < GENAI_STAGE_COUNT ? stages[stage].name : NULL;
}

const char* genai_stage_class_name(genai_stage_kind stage) {
  return (unsigned)stage < GENAI_STAGE_COUNT ? stages[stage].class_name : NULL;
}

genai_status* genai_stage_find(const char* name, genai_stage_kind* out) {
  for (size_t i = 0; name && i < GENAI_STAGE_COUNT; i++) {
    if (strcmp(stages[i].name, name)) continue;
    *out = (genai_stage_kind)i;
    return NULL;
  }
  return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "unknown stage \"%s\", expected one of %s, %s, %s, %s", name ? name : "",
                             stages[0].name, stages[1].name, stages[2].name, stages[3].name);
}

const char* genai_backend_name(genai_backend backend) {
  static const char* const names[GENAI_BACKEND_COUNT] = {"htp", "gpu", "lpai"};
  return (unsigned)backend < GENAI_BACKEND_COUNT ? names[backend] : NULL;
}

genai_status* genai_backend_find(const char* name, genai_backend* out) {
  for (size_t i = 0; name && i < GENAI_BACKEND_COUNT; i++) {
    if (strcmp(genai_backend_name((genai_backend)i), name)) continue;
    *out = (genai_backend)i;
    return NULL;
  }
  return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "unknown backend \"%s\", expected one of htp, gpu, lpai", name ? name : "");
}

static bool serves(const genai_strategy_vtable* v, genai_stage_kind kind) {
  switch (kind) {
    case GENAI_STAGE_MODEL_PREPARATION:
      return v->prepare != NULL;
    case GENAI_STAGE_QUANTIZATION:
      return v->quantize != NULL;
    case GENAI_STAGE_COMPILATION:
      return v->compile != NULL;
    case GENAI_STAGE_INFERENCE:
      return v->infer != NULL;
    case GENAI_STAGE_COUNT:
      break;
  }
  return false;
}

genai_status* genai_stage_create(genai_stage_kind kind, genai_strategy* strategy, genai_stage** out) {
  if ((unsigned)kind >= GENAI_STAGE_COUNT) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "there is no stage %d", (int)kind);
  if (!strategy || !strategy->vtable)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "stage %s needs a strategy", stages[kind].name);
  if (strategy->vtable->stage != kind || !serves(strategy->vtable, kind))
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "stage %s was given a strategy for %s%s", stages[kind].name,
                               genai_stage_name(strategy->vtable->stage) ? genai_stage_name(strategy->vtable->stage) : "no stage",
                               strategy->vtable->stage == kind ? " that lacks the function of that stage" : "");
  genai_stage* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->kind = kind;
  self->strategy = strategy;
  *out = self;
  return NULL;
}

void genai_stage_destroy(genai_stage* self) {
  if (!self) return;
  if (self->strategy->vtable->destroy) self->strategy->vtable->destroy(self->strategy);
  mem_free(self);
}

genai_stage_kind genai_stage_kind_of(const genai_stage* self) {
  return self->kind;
}

const char* genai_stage_engine(const genai_stage* self) {
  return self->strategy->vtable->engine;
}

genai_strategy* genai_stage_strategy(const genai_stage* self) {
  return self->strategy;
}

static genai_status* finish(const genai_stage* self, genai_status* status) {
  if (!status) return NULL;
  return genai_status_wrap_stage(status, stages[self->kind].name, "failed (engine %s)", self->strategy->vtable->engine);
}

static genai_status* check_kind(const genai_stage* self, genai_stage_kind wanted) {
  if (self->kind == wanted) return NULL;
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "a %s stage was invoked as %s", stages[self->kind].name, stages[wanted].name);
}

genai_status* genai_model_preparation_invoke(genai_stage* self, const genai_context* context, const genai_model_preparation_input* input,
                                             genai_model_preparation_output* output) {
  *output = (genai_model_preparation_output){0};
  GENAI_TRY(check_kind(self, GENAI_STAGE_MODEL_PREPARATION));
  genai_status* status = self->strategy->vtable->prepare(self->strategy, context, input, output);
  if (status) genai_model_preparation_output_deinit(output);
  return finish(self, status);
}

genai_status* genai_quantization_invoke(genai_stage* self, const genai_context* context, const genai_quantization_input* input,
                                        genai_quantization_output* output) {
  *output = (genai_quantization_output){0};
  GENAI_TRY(check_kind(self, GENAI_STAGE_QUANTIZATION));
  genai_status* status = self->strategy->vtable->quantize(self->strategy, context, input, output);
  if (status) genai_quantization_output_deinit(output);
  return finish(self, status);
}

genai_status* genai_compilation_invoke(genai_stage* self, const genai_context* context, const genai_compilation_input* input,
                                       genai_compilation_output* output) {
  *output = (genai_compilation_output){0};
  GENAI_TRY(check_kind(self, GENAI_STAGE_COMPILATION));
  genai_status* status = self->strategy->vtable->compile(self->strategy, context, input, output);
  if (status) genai_compilation_output_deinit(output);
  return finish(self, status);
}

genai_status* genai_inference_invoke(genai_stage* self, const genai_context* context, const genai_inference_input* input,
                                     genai_inference_output* output) {
  *output = (genai_inference_output){0};
  GENAI_TRY(check_kind(self, GENAI_STAGE_INFERENCE));
  genai_status* status = self->strategy->vtable->infer(self->strategy, context, input, output);
  if (status) genai_inference_output_deinit(output);
  return finish(self, status);
}
