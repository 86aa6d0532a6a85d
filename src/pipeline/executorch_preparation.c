/* The model preparation strategy: loader and calibration data in order. What a checkpoint is, only the adapters know. */
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "pipeline/executorch_strategy.h"
#include "pipeline/internal.h"

typedef struct preparation {
  genai_strategy base;
  genai_strategy_vtable vtable; /* with the engine's name */
  genai_model_loader* loader;
  genai_model_loader* own_loader;
  genai_calibration_data* calibration;
  genai_calibration_data* own_calibration;
} preparation;

genai_status* executorch_absent(const char* what, const char* producer) {
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "%s absent: %s should have produced it (an empty value is allowed, none is not)",
                             what, producer);
}

static genai_status* validate(genai_strategy* base, const genai_context* context, const genai_chipset* soc, genai_backend backend) {
  const preparation* self = (const preparation*)base;
  (void)soc;
  (void)backend;
  const genai_options* options = genai_context_options(context);
  const char* model = genai_context_model(context);
  if (self->loader == self->own_loader && !file_exists(model))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "model \"%s\" does not exist; expected a GGUF file, a Hugging Face directory or a llama2.c file", model);
  const char* calibration = genai_options_get(options, "calibration_file");
  if (calibration && (!file_exists(calibration) || path_is_directory(calibration)))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "calibration_file \"%s\" is not a file", calibration);
  int64_t length = genai_options_integer(options, "context", EXECUTORCH_DEFAULT_CONTEXT);
  int64_t ar = genai_options_integer(options, "prefill_ar", EXECUTORCH_DEFAULT_PREFILL_AR);
  bool hybrid = strcmp(genai_options_text(options, "mode", "hybrid"), "kv") != 0;
  if (hybrid && ar >= length)
    return genai_status_create(
        GENAI_ERROR_CONFIG_VALIDATION,
        "prefill_ar is %lld and context %lld: the prefill length must be smaller than the context; lower prefill_ar, "
        "raise context or choose mode kv",
        (long long)ar, (long long)length);
  return NULL;
}

static genai_status* check_input(const genai_model_preparation_input* input) {
  if (text_is_blank(input->model)) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the model is missing from the input");
  if (!input->soc) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the SoC is missing from the input");
  return NULL;
}

static genai_status* load(preparation* self, const genai_context* context, const genai_model_preparation_input* input,
                          genai_model_preparation_output* out) {
  const genai_model_loader_vtable* loader = self->loader->vtable;
  GENAI_TRY(loader->load_model(self->loader, context, input->model, input->options, &out->model));
  if (!out->model) return executorch_absent("the prepared model is", "ModelLoader.load_model");
  GENAI_TRY(genai_context_check_cancelled(context));
  GENAI_TRY(loader->load_tokenizer(self->loader, context, out->model, &out->tokenizer));
  GENAI_TRY(genai_context_check_cancelled(context));
  GENAI_TRY(loader->get_example_inputs(self->loader, context, out->model, input->options, &out->example_inputs));
  if (!out->example_inputs) return executorch_absent("the list of example inputs is", "ModelLoader.get_example_inputs");
  if (out->tokenizer) {
    if (loader->get_chat_template) GENAI_TRY(loader->get_chat_template(self->loader, out->tokenizer, &out->chat_template));
    GENAI_TRY(loader->export_tokenizer(self->loader, context, out->tokenizer, genai_context_artifact_directory(context),
                                       &out->runtime_tokenizer));
    if (!out->runtime_tokenizer) return executorch_absent("the runtime tokenizer's file is", "ModelLoader.export_tokenizer");
  }
  /* The tokenizer's own template wins over the one in the options. */
  const char* fallback = genai_options_get(input->options, "chat_template");
  if (!out->chat_template && fallback && !(out->chat_template = mem_strdup(fallback))) return genai_status_out_of_memory();
  return NULL;
}

genai_data_request executorch_calibration_request(genai_object* source, genai_object* words, const char* chat_template,
                                                  const genai_options* options) {
  return (genai_data_request){
      .model = source,
      .tokenizer = words,
      .chat_template = chat_template,
      .n_samples = (size_t)genai_options_integer(options, "calibration_samples", GENAI_DEFAULT_SAMPLES),
      .sequence_length = (size_t)genai_options_integer(options, "calibration_length", GENAI_DEFAULT_SEQUENCE_LENGTH),
      .options = options};
}

static genai_status* find_calibration_data(preparation* self, const genai_context* context, const genai_model_preparation_input* input,
                                           genai_model_preparation_output* out) {
  genai_sample_stream* given = genai_context_calibration_data(context);
  if (given) {
    out->calibration_data = genai_sample_stream_retain(given);
    return NULL;
  }
  genai_data_request request = executorch_calibration_request(out->model, out->tokenizer, out->chat_template, input->options);
  GENAI_TRY(self->calibration->vtable->generate(self->calibration, context, &request, &out->calibration_data));
  if (!out->calibration_data) return executorch_absent("the calibration data is", "CalibrationData.generate");
  return NULL;
}

static genai_status* prepare(genai_strategy* base, const genai_context* context, const genai_model_preparation_input* input,
                             genai_model_preparation_output* output) {
  preparation* self = (preparation*)base;
  genai_status* status = check_input(input);
  if (!status) status = load(self, context, input, output);
  if (!status) status = find_calibration_data(self, context, input, output);
  if (!status) return NULL;
  return genai_status_wrap_stage(status, genai_stage_name(GENAI_STAGE_MODEL_PREPARATION), "cannot prepare \"%s\"",
                                 input->model ? input->model : "");
}

static genai_status* fingerprint(genai_strategy* base, const genai_context* context, const genai_fingerprint_request* request,
                                 genai_fingerprint* out) {
  static const char* const by_content[] = {"calibration_file", "chat_template", NULL};
  const preparation* self = (const preparation*)base;
  const genai_options* options = genai_context_options(context);
  if (self->loader != self->own_loader || self->calibration != self->own_calibration) {
    genai_fingerprint_set_unknown(out, "an adapter of model_preparation is the caller's own");
    return NULL;
  }
  if (genai_context_calibration_data(context)) {
    genai_fingerprint_set_unknown(out, "the calibration data is the caller's own");
    return NULL;
  }
  GENAI_TRY(executorch_add_checkpoint(request->prepared->model, out));
  if (request->prepared->runtime_tokenizer) GENAI_TRY(genai_fingerprint_add_file(out, "tokenizer", request->prepared->runtime_tokenizer));
  if (request->prepared->chat_template) GENAI_TRY(genai_fingerprint_add(out, "chat_template", request->prepared->chat_template));
  const char* file = genai_options_get(options, "calibration_file");
  if (file) GENAI_TRY(genai_fingerprint_add_file(out, "calibration_file", file));
  return genai_fingerprint_add_options(out, options, executorch_option_table, EXECUTORCH_OPTION_COUNT, GENAI_STAGE_MODEL_PREPARATION,
                                       by_content);
}

static void destroy(genai_strategy* base) {
  preparation* self = (preparation*)base;
  if (self->own_loader && self->own_loader->vtable->destroy) self->own_loader->vtable->destroy(self->own_loader);
  if (self->own_calibration && self->own_calibration->vtable->destroy) self->own_calibration->vtable->destroy(self->own_calibration);
  mem_free(self);
}

genai_status* executorch_preparation_strategy(void* user, const genai_adapters* adapters, genai_strategy** out) {
  const engine_parts* engine = engine_of(user);
  static const genai_strategy_vtable vtable = {.stage = GENAI_STAGE_MODEL_PREPARATION,
                                               .options = executorch_option_table,
                                               .n_options = EXECUTORCH_OPTION_COUNT,
                                               .validate = validate,
                                               .prepare = prepare,
                                               .destroy = destroy,
                                               .fingerprint = fingerprint};
  preparation* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->vtable = vtable;
  self->vtable.engine = engine->name;
  self->base.vtable = &self->vtable;
  genai_status* status = NULL;
  self->loader = adapters ? adapters->model_loader : NULL;
  self->calibration = adapters ? adapters->calibration_data : NULL;
  if (!self->loader) {
    status = executorch_loader_create(&self->own_loader);
    self->loader = self->own_loader;
  }
  if (!status && !self->calibration) {
    status = executorch_calibration_create(&self->own_calibration);
    self->calibration = self->own_calibration;
  }
  if (status) {
    destroy(&self->base);
    return status;
  }
  *out = &self->base;
  return NULL;
}
