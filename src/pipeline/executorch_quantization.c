/* The quantization strategy: export, make the quantizer, prepare, calibrate, and convert once per deployed graph. How numbers become
 * encodings is the adapter's business. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "pipeline/chipset.h"
#include "pipeline/executorch_recipe.h"
#include "pipeline/executorch_strategy.h"
#include "pipeline/internal.h"
#include "quantize/quantize.h"

typedef struct quantization {
  genai_strategy base;
  genai_strategy_vtable vtable; /* with the engine's name */
  genai_quantizer* quantizer;
  genai_quantizer* own_quantizer;
  genai_training_data* training; /* injected only: training data is never made up */
} quantization;

/* Before anything runs; graphs are checked again when they are compiled. */
static genai_status* check_recipe(const recipe* how, const genai_chipset* chipset) {
  qnn_soc soc = chipset_soc(chipset);
  char user[96];
  snprintf(user, sizeof user, "recipe %s", how->name);
  if (how->weight_block) GENAI_TRY(qnn_soc_require(&soc, QNN_FEATURE_BLOCK_WEIGHTS, user));
  return how->kv_bits == 16 ? qnn_soc_require(&soc, QNN_FEATURE_MATMUL_16, user) : NULL;
}

static genai_status* check_trains(const quantization* self) {
  if (self->quantizer->vtable->train) return NULL;
  return genai_status_create(
      GENAI_ERROR_CONFIG_VALIDATION,
      "option qat asks for quantization-aware training, but the quantizer only does post-training quantization; leave "
      "the option out or inject a Quantizer that trains");
}

static genai_status* validate(genai_strategy* base, const genai_context* context, const genai_chipset* soc, genai_backend backend) {
  const quantization* self = (const quantization*)base;
  const genai_options* options = genai_context_options(context);
  if (backend == GENAI_BACKEND_GPU && self->quantizer == self->own_quantizer)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "the gpu computes in float, but the quantization stage runs: skip it (--skip quantization)");
  if (genai_options_flag(options, "qat", false)) {
    if (!genai_context_training_data(context) && !self->training)
      return genai_status_create(
          GENAI_ERROR_CONFIG_VALIDATION,
          "option qat asks for quantization-aware training but there is no training data, and none is ever made up; give "
          "it with genai_context_builder_set_training_data or inject a TrainingData adapter");
    GENAI_TRY(check_trains(self));
  }
  if (self->quantizer != self->own_quantizer) return NULL; /* another quantizer has recipes of its own */
  recipe how;
  const char* dtype = genai_options_get(options, "dtype");
  if (dtype) GENAI_TRY(recipe_load(dtype, &how));
  const char* name = genai_options_text(options, "recipe", dtype ? dtype : EXECUTORCH_DEFAULT_RECIPE);
  GENAI_TRY(executorch_recipe_load(name, soc, false, &how));
  return check_recipe(&how, soc);
}

static genai_status* check_input(const quantization* self, const genai_quantization_input* input) {
  if (!input->model) return executorch_absent("the prepared model is", "ModelLoader.load_model (stage model_preparation)");
  if (!input->example_inputs)
    return executorch_absent("the list of example inputs is", "ModelLoader.get_example_inputs (stage model_preparation)");
  if (!input->calibration_data) return executorch_absent("the calibration data is", "CalibrationData.generate (stage model_preparation)");
  if (!input->soc) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the SoC is missing from the input");
  if (!input->backend) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the backend type is missing from the input");
  if (genai_options_flag(input->options, "qat", false)) {
    if (!input->training_data && !self->training)
      return executorch_absent("training data for qat is", "TrainingData.generate or genai_context_builder_set_training_data");
    return check_trains(self);
  }
  if (input->training_data || self->training)
    log_write(LOG_WARNING, "training data was given, but only post-training quantization is done: it is not used");
  return NULL;
}

/* What the caller gives wins over what an adapter would generate. Gives NULL when no training is asked for. */
static genai_status* find_training_data(quantization* self, const genai_context* context, const genai_quantization_input* input,
                                        genai_sample_stream** out) {
  *out = NULL;
  if (!genai_options_flag(input->options, "qat", false)) return NULL;
  if (input->training_data) {
    *out = genai_sample_stream_retain(input->training_data);
    return NULL;
  }
  genai_data_request request = {.model = input->model,
                                .tokenizer = input->tokenizer,
                                .chat_template = input->chat_template,
                                .n_samples = GENAI_DEFAULT_SAMPLES,
                                .sequence_length = GENAI_DEFAULT_SEQUENCE_LENGTH,
                                .options = input->options};
  GENAI_TRY(self->training->vtable->generate(self->training, context, &request, out));
  return *out ? NULL : executorch_absent("the training data is", "TrainingData.generate");
}

static genai_status* convert_graphs(quantization* self, const genai_context* context, const genai_quantization_input* input,
                                    genai_object* set) {
  const genai_quantizer_vtable* quantizer = self->quantizer->vtable;
  size_t count = genai_example_inputs_graph_count(input->example_inputs);
  for (size_t i = 0; i < (count ? count : 1); i++) {
    size_t n_inputs = 0;
    const char* name = count ? genai_example_inputs_graph(input->example_inputs, i) : "forward";
    const genai_tensor_spec* inputs = count ? genai_example_inputs_tensors(input->example_inputs, i, &n_inputs) : NULL;
    genai_object* graph = NULL;
    GENAI_TRY(genai_context_check_cancelled(context));
    GENAI_TRY(quantizer->convert(self->quantizer, context, name, inputs, n_inputs, &graph));
    if (!graph) return executorch_absent("the converted graph is", "Quantizer.convert");
    genai_status* status = genai_graph_set_add(set, name, graph);
    genai_object_release(graph);
    if (status) return status;
  }
  return NULL;
}

/* What an earlier run stored for the same inputs stands in for calibrating. */
static genai_status* calibrate_or_restore(quantization* self, const genai_context* context, const genai_quantization_input* input,
                                          genai_quantization_output* output) {
  const genai_quantizer_vtable* quantizer = self->quantizer->vtable;
  if (input->stored && quantizer->restore) {
    GENAI_TRY(quantizer->restore(self->quantizer, context, input->stored, input->stored_size));
    output->reused = true;
    return NULL;
  }
  GENAI_TRY(quantizer->calibrate(self->quantizer, context, input->calibration_data));
  return quantizer->save ? quantizer->save(self->quantizer, &output->to_store, &output->to_store_size) : NULL;
}

static genai_status* train(quantization* self, const genai_context* context, genai_sample_stream* data) {
  if (!data) return NULL;
  GENAI_TRY(genai_context_check_cancelled(context));
  return self->quantizer->vtable->train(self->quantizer, context, data);
}

static genai_status* run_quantizer(quantization* self, const genai_context* context, const genai_quantization_input* input,
                                   genai_sample_stream* training_data, genai_quantization_output* output) {
  const genai_quantizer_vtable* quantizer = self->quantizer->vtable;
  GENAI_TRY(quantizer->export_model(self->quantizer, context, input->model, input->example_inputs));
  genai_quantizer_request request = {.backend = *input->backend,
                                     .soc = input->soc,
                                     .dtype = genai_options_get(input->options, "dtype"),
                                     .recipe = input->recipe,
                                     .options = input->options};
  GENAI_TRY(quantizer->make_quantizer(self->quantizer, context, &request));
  GENAI_TRY(quantizer->prepare(self->quantizer, context));
  GENAI_TRY(genai_context_check_cancelled(context));
  GENAI_TRY(calibrate_or_restore(self, context, input, output));
  GENAI_TRY(train(self, context, training_data));
  genai_object* set;
  GENAI_TRY(genai_graph_set_create(&set));
  genai_status* status = convert_graphs(self, context, input, set);
  if (status) {
    genai_object_release(set);
    return status;
  }
  output->model = set;
  return NULL;
}

static genai_status* quantize(genai_strategy* base, const genai_context* context, const genai_quantization_input* input,
                              genai_quantization_output* output) {
  quantization* self = (quantization*)base;
  genai_sample_stream* training_data = NULL;
  genai_status* status = check_input(self, input);
  if (!status) status = find_training_data(self, context, input, &training_data);
  if (!status) status = run_quantizer(self, context, input, training_data, output);
  genai_sample_stream_release(training_data);
  return status ? genai_status_wrap_stage(status, genai_stage_name(GENAI_STAGE_QUANTIZATION), "cannot quantize the model") : NULL;
}

/* A recipe counts by what it says, whatever file it came from. */
static genai_status* add_recipe(const char* name, const char* value, genai_fingerprint* out) {
  recipe how;
  text content = {0};
  GENAI_TRY(recipe_load(value, &how));
  genai_status* status = recipe_write_json(&how, &content);
  if (!status) status = genai_fingerprint_add(out, name, content.data);
  text_deinit(&content);
  return status;
}

static genai_status* fingerprint(genai_strategy* base, const genai_context* context, const genai_fingerprint_request* request,
                                 genai_fingerprint* out) {
  static const char* const by_content[] = {"recipe", "dtype", NULL};
  const quantization* self = (const quantization*)base;
  const genai_options* options = genai_context_options(context);
  (void)request;
  if (self->quantizer != self->own_quantizer) {
    genai_fingerprint_set_unknown(out, "the quantizer is the caller's own");
    return NULL;
  }
  const char* dtype = genai_options_get(options, "dtype");
  const char* named = genai_options_get(options, "recipe");
  if (dtype) GENAI_TRY(add_recipe("dtype", dtype, out));
  GENAI_TRY(add_recipe("recipe", named ? named : dtype ? dtype : EXECUTORCH_DEFAULT_RECIPE, out));
  return genai_fingerprint_add_options(out, options, executorch_option_table, EXECUTORCH_OPTION_COUNT, GENAI_STAGE_QUANTIZATION,
                                       by_content);
}

static void destroy(genai_strategy* base) {
  quantization* self = (quantization*)base;
  if (self->own_quantizer && self->own_quantizer->vtable->destroy) self->own_quantizer->vtable->destroy(self->own_quantizer);
  mem_free(self);
}

genai_status* executorch_quantization_strategy(void* user, const genai_adapters* adapters, genai_strategy** out) {
  const engine_parts* engine = engine_of(user);
  static const genai_strategy_vtable vtable = {.stage = GENAI_STAGE_QUANTIZATION,
                                               .options = executorch_option_table,
                                               .n_options = EXECUTORCH_OPTION_COUNT,
                                               .validate = validate,
                                               .quantize = quantize,
                                               .destroy = destroy,
                                               .fingerprint = fingerprint};
  quantization* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->vtable = vtable;
  self->vtable.engine = engine->name;
  self->base.vtable = &self->vtable;
  self->quantizer = adapters ? adapters->quantizer : NULL;
  self->training = adapters ? adapters->training_data : NULL;
  if (!self->quantizer) {
    genai_status* status = executorch_quantizer_create(&self->own_quantizer);
    if (status) {
      mem_free(self);
      return status;
    }
    self->quantizer = self->own_quantizer;
  }
  *out = &self->base;
  return NULL;
}
