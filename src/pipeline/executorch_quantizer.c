/* The default quantizer: the sequence of the adapter contract over src/quantize. */
#include <string.h>

#include "base/memory.h"
#include "pipeline/executorch.h"
#include "pipeline/executorch_objects.h"
#include "pipeline/executorch_recipe.h"
#include "pipeline/internal.h"

enum { DEFAULT_PASS = 512 }; /* tokens of one calibration pass, unless the model was trained on shorter contexts */

typedef enum step { STEP_START, STEP_EXPORTED, STEP_MADE, STEP_PREPARED, STEP_CALIBRATED } step;

typedef struct quantizer {
  genai_quantizer base;
  step reached;
  genai_object* model;
  recipe how;
  calibration* ranges;
  genai_object* first; /* the first converted graph: later ones take its encodings */
} quantizer;

static genai_status* expect_step(const quantizer* self, step wanted, const char* call) {
  static const char* const names[] = {"nothing", "export_model", "make_quantizer", "prepare", "calibrate"};
  if (self->reached >= wanted) return NULL;
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "Quantizer.%s was called after %s; %s must come first", call,
                             names[self->reached], names[wanted]);
}

static void forget(quantizer* self) {
  genai_object_release(self->model);
  genai_object_release(self->first);
  calibration_destroy(self->ranges);
  self->model = self->first = NULL;
  self->ranges = NULL;
  self->reached = STEP_START;
}

static genai_status* export_model(genai_quantizer* base, const genai_context* context, genai_object* source,
                                  const genai_example_inputs* example_inputs) {
  quantizer* self = (quantizer*)base;
  (void)context;
  (void)example_inputs;
  if (!genai_object_payload(source, &executorch_model_type))
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the model is a \"%s\", the default quantizer works on \"%s\"",
                               genai_object_type_name(source), executorch_model_type.name);
  forget(self);
  self->model = genai_object_retain(source);
  self->reached = STEP_EXPORTED;
  return NULL;
}

static genai_status* make_quantizer(genai_quantizer* base, const genai_context* context, const genai_quantizer_request* request) {
  quantizer* self = (quantizer*)base;
  (void)context;
  GENAI_TRY(expect_step(self, STEP_EXPORTED, "make_quantizer"));
  const char* name = request->recipe ? request->recipe : request->dtype ? request->dtype : EXECUTORCH_DEFAULT_RECIPE;
  GENAI_TRY(executorch_recipe_load(name, request->soc, true, &self->how));
  if (request->recipe && request->dtype) {
    recipe types;
    GENAI_TRY(recipe_load(request->dtype, &types));
    if (types.activation_bits != self->how.activation_bits || types.weight_bits != self->how.weight_bits)
      return genai_status_create(
          GENAI_ERROR_CONFIG_VALIDATION, "dtype %s has %u-bit activations and %u-bit weights, recipe %s has %u and %u", request->dtype,
          types.activation_bits, types.weight_bits, self->how.name, self->how.activation_bits, self->how.weight_bits);
  }
  const executorch_model* source = genai_object_payload(self->model, &executorch_model_type);
  recipe_adapt(&self->how, source->decoder);
  if (self->reached < STEP_MADE) self->reached = STEP_MADE;
  return NULL;
}

static genai_status* prepare(genai_quantizer* base, const genai_context* context) {
  quantizer* self = (quantizer*)base;
  (void)context;
  GENAI_TRY(expect_step(self, STEP_MADE, "prepare"));
  if (self->reached < STEP_PREPARED) self->reached = STEP_PREPARED; /* observers live inside the float executor's pass */
  return NULL;
}

typedef struct sequences {
  size_t count, capacity;
  int32_t** ids;
  size_t* lengths;
} sequences;

static void sequences_deinit(sequences* self) {
  for (size_t i = 0; i < self->count; i++) mem_free(self->ids[i]);
  mem_free(self->ids);
  mem_free(self->lengths);
}

static genai_status* sequences_add(sequences* self, const int32_t* tokens, size_t count) {
  if (self->count == self->capacity) {
    size_t capacity = self->capacity ? self->capacity * 2 : 16;
    int32_t** ids = mem_realloc_array(self->ids, capacity, sizeof *ids);
    if (ids) self->ids = ids;
    size_t* lengths = mem_realloc_array(self->lengths, capacity, sizeof *lengths);
    if (lengths) self->lengths = lengths;
    if (!ids || !lengths) return genai_status_out_of_memory();
    self->capacity = capacity;
  }
  int32_t* copy = mem_dup(tokens, count * sizeof *copy);
  if (!copy) return genai_status_out_of_memory();
  self->ids[self->count] = copy;
  self->lengths[self->count++] = count;
  return NULL;
}

/* A sample longer than one pass becomes several sequences, each from an empty cache. */
static genai_status* collect(const genai_context* context, genai_sample_stream* data, size_t longest, sequences* out) {
  for (bool end = false;;) {
    genai_sample sample;
    GENAI_TRY(genai_context_check_cancelled(context));
    GENAI_TRY(genai_sample_stream_next(data, &sample, &end));
    if (end) break;
    for (size_t from = 0; from < sample.n_ids; from += longest) {
      size_t left = sample.n_ids - from;
      GENAI_TRY(sequences_add(out, sample.ids + from, left < longest ? left : longest));
    }
  }
  if (!out->count)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT,
                               "the calibration data holds no sample; give text (--calibration) or leave the built-in "
                               "set");
  return NULL;
}

static genai_status* run_calibration(genai_quantizer* base, const genai_context* context, genai_sample_stream* data) {
  quantizer* self = (quantizer*)base;
  GENAI_TRY(expect_step(self, STEP_PREPARED, "calibrate"));
  const executorch_model* source = genai_object_payload(self->model, &executorch_model_type);
  model_info info;
  model_get_info(source->decoder, &info);
  bool shorter = info.trained_context && info.trained_context < DEFAULT_PASS;
  uint32_t pass = shorter ? info.trained_context : DEFAULT_PASS;
  sequences samples = {0};
  calibration* ranges = NULL;
  genai_status* status = collect(context, data, pass, &samples);
  if (!status) {
    progress_sink sink = context_progress_sink(context);
    calibration_options options = {
        .max_tokens_per_pass = pass, .how = &self->how, .pool = source->pool, .progress = &sink, .cancel = context_cancel_token(context)};
    status = calibrate(source->decoder, (const int32_t* const*)samples.ids, samples.lengths, samples.count, &options, &ranges);
  }
  sequences_deinit(&samples);
  if (status) return status;
  log_write(LOG_INFO, "calibrated on %llu tokens, %.0f a second", (unsigned long long)calibration_tokens(ranges),
            (double)calibration_tokens(ranges) / (calibration_seconds(ranges) > 0 ? calibration_seconds(ranges) : 1));
  calibration_destroy(self->ranges);
  self->ranges = ranges;
  self->reached = STEP_CALIBRATED;
  return NULL;
}

static genai_status* convert(genai_quantizer* base, const genai_context* context, const char* name, const genai_tensor_spec* inputs,
                             size_t n_inputs, genai_object** out) {
  quantizer* self = (quantizer*)base;
  (void)context;
  GENAI_TRY(expect_step(self, STEP_CALIBRATED, "convert"));
  const executorch_model* source = genai_object_payload(self->model, &executorch_model_type);
  model_graph_options options = {.name = name, .rotate_qk = self->how.rotate_qk};
  GENAI_TRY(executorch_graph_lengths(name, inputs, n_inputs, &options.ar_length, &options.context_length));
  ir_graph* graph;
  GENAI_TRY(model_build_graph(source->decoder, &options, &graph));
  const executorch_graph* first = genai_object_payload(self->first, &executorch_graph_type);
  genai_status* status = first ? quantize_graph_like(graph, first->graph) : quantize_graph(graph, self->ranges, &self->how, source->pool);
  if (!status) status = executorch_graph_create(self->model, graph, &self->how, out);
  if (status) {
    ir_graph_destroy(graph);
    return status;
  }
  if (!self->first) self->first = genai_object_retain(*out);
  return NULL;
}

static genai_status* save(genai_quantizer* base, void** data, size_t* size) {
  const quantizer* self = (const quantizer*)base;
  text bytes = {0};
  GENAI_TRY(expect_step(self, STEP_CALIBRATED, "save"));
  genai_status* status = calibration_write(self->ranges, &bytes);
  size_t length = bytes.length;
  char* detached = status ? NULL : text_detach(&bytes);
  if (!status && !detached) status = genai_status_out_of_memory();
  text_deinit(&bytes);
  if (status) return status;
  *data = detached;
  *size = length;
  return NULL;
}

static genai_status* restore(genai_quantizer* base, const genai_context* context, const void* data, size_t size) {
  quantizer* self = (quantizer*)base;
  (void)context;
  calibration* ranges;
  GENAI_TRY(expect_step(self, STEP_PREPARED, "restore"));
  GENAI_TRY(calibration_read(data, size, &ranges));
  calibration_destroy(self->ranges);
  self->ranges = ranges;
  self->reached = STEP_CALIBRATED;
  return NULL;
}

static void destroy(genai_quantizer* base) {
  forget((quantizer*)base);
  mem_free(base);
}

genai_status* executorch_quantizer_create(genai_quantizer** out) {
  static const genai_quantizer_vtable vtable = {export_model, make_quantizer, prepare, run_calibration, convert, destroy,
                                                save,         restore,        NULL};
  quantizer* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->base.vtable = &vtable;
  *out = &self->base;
  return NULL;
}
