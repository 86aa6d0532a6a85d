/* Float against simulated, layer by layer. One graph runs on both executors, call by call; the float one's values at the tapped tensors are
 * kept, the simulating one's are compared with them as they come. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cpu/cpu.h"
#include "report/report.h"
#include "runtime/runtime.h"

enum { PLACES = 3 };

typedef struct tap {
  const ir_tensor* tensor; /* NULL: the family has no such place */
  size_t width;            /* values of one token */
  float* reference;        /* [tokens][width] */
  double signal, noise;
} tap;

typedef struct measurement {
  const ir_graph* graph;
  const report_quality_options* options;
  size_t count;        /* tokens */
  size_t first, valid; /* of the running call */
  bool comparing;
  uint32_t n_layers;
  tap* taps;       /* [n_layers][PLACES] */
  tap** by_tensor; /* [graph->n_tensors]; NULL: not tapped */
  uint32_t vocab;
  tap logits;
  uint32_t same_choice;
} measurement;

/* ---- Where to tap ---- */
/* The layer that a name such as "layer3.attention.o_proj" belongs to, and what follows; -1: none. */
static int32_t layer_of(const char* name, const char** rest) {
  int layer, length = 0;
  if (sscanf(name, "layer%d.%n", &layer, &length) != 1 || !length) return -1;
  *rest = name + length;
  return layer;
}

static bool has_a_row_per_token(const ir_graph* graph, const ir_tensor* tensor) {
  if (tensor->rank < 2 || tensor->dims[tensor->rank - 2] != graph->ar_length) return false;
  for (uint32_t d = 0; d + 2 < tensor->rank; d++) {
    if (tensor->dims[d] != 1) return false;
  }
  return tensor->dtype != IR_I32;
}

static void offer(measurement* self, uint32_t layer, uint32_t place, const ir_tensor* tensor) {
  if (layer < self->n_layers) self->taps[layer * PLACES + place].tensor = tensor;
}

/* The last tensor of each place wins: operators are in the order they run in. */
static void choose_taps(measurement* self) {
  for (uint32_t i = 0; i < self->graph->n_ops; i++) {
    const ir_tensor* tensor = self->graph->tensors[self->graph->ops[i]->output];
    const char* rest;
    int32_t layer = layer_of(tensor->name, &rest);
    if (layer < 0 || tensor->role != IR_ROLE_NONE || !has_a_row_per_token(self->graph, tensor)) continue;
    bool projects = self->graph->ops[i]->kind == IR_CONV2D;
    if (projects && !strncmp(rest, "attention.", 10)) offer(self, (uint32_t)layer, 0, tensor);
    if (projects && !strncmp(rest, "feed_forward.", 13)) offer(self, (uint32_t)layer, 1, tensor);
    offer(self, (uint32_t)layer, 2, tensor);
  }
}

static uint32_t count_layers(const ir_graph* graph) {
  uint32_t layers = 0;
  for (uint32_t i = 0; i < graph->n_outputs; i++) layers += graph->tensors[graph->outputs[i]]->role == IR_ROLE_KEY_OUT;
  return layers;
}

static genai_status* prepare_tap(tap* self, size_t count) {
  if (!self->tensor) return NULL;
  size_t size;
  self->width = self->tensor->dims[self->tensor->rank - 1];
  if (!size_mul(self->width, count, &size) || !size_mul(size, sizeof *self->reference, &size)) return genai_status_out_of_memory();
  self->reference = mem_alloc(size ? size : 1);
  return self->reference ? NULL : genai_status_out_of_memory();
}

static genai_status* prepare(measurement* self) {
  self->n_layers = count_layers(self->graph);
  if (!self->n_layers)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph \"%s\" gives no keys: it is not a decoder with caches",
                               self->graph->name);
  self->taps = mem_calloc((size_t)self->n_layers * PLACES, sizeof *self->taps);
  self->by_tensor = mem_calloc(self->graph->n_tensors + 1, sizeof(tap*));
  self->logits.tensor = ir_graph_find_role(self->graph, IR_ROLE_LOGITS, -1);
  if (!self->taps || !self->by_tensor) return genai_status_out_of_memory();
  if (!self->logits.tensor) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph \"%s\" gives no logits", self->graph->name);
  choose_taps(self);
  for (uint32_t i = 0; i < self->n_layers * PLACES; i++) {
    tap* place = &self->taps[i];
    GENAI_TRY(prepare_tap(place, self->count));
    if (place->tensor) self->by_tensor[place->tensor->id] = place;
  }
  return prepare_tap(&self->logits, self->count);
}

static void deinit(measurement* self) {
  for (uint32_t i = 0; self->taps && i < self->n_layers * PLACES; i++) mem_free(self->taps[i].reference);
  mem_free(self->logits.reference);
  mem_free(self->taps);
  mem_free(self->by_tensor);
}

/* ---- Taking and comparing ---- */
static void take(const measurement* self, tap* place, size_t token, const float* values, size_t tokens) {
  float* kept = place->reference + token * place->width;
  if (!self->comparing) {
    memcpy(kept, values, tokens * place->width * sizeof *kept);
    return;
  }
  for (size_t i = 0; i < tokens * place->width; i++) {
    double reference = kept[i], difference = reference - (double)values[i];
    place->signal += reference * reference;
    place->noise += difference * difference;
  }
}

static genai_status* observe(void* user, const ir_tensor* tensor, const float* values, size_t count) {
  measurement* self = user;
  tap* place = self->by_tensor[tensor->id];
  if (place && count >= self->valid * place->width) take(self, place, self->first, values, self->valid);
  return NULL;
}

static size_t largest(const float* values, size_t count) {
  size_t best = 0;
  for (size_t i = 1; i < count; i++) best = values[i] > values[best] ? i : best;
  return best;
}

static genai_status* take_logits(void* user, uint32_t position, const float* logits) {
  measurement* self = user;
  if (position >= self->count) return NULL;
  if (self->comparing)
    self->same_choice +=
        largest(self->logits.reference + position * self->logits.width, self->logits.width) == largest(logits, self->logits.width);
  take(self, &self->logits, position, logits, 1);
  return NULL;
}

static genai_status* run_calls(measurement* self, executor* exec, const int32_t* ids, progress* step) {
  decoder* sequence;
  GENAI_TRY(decoder_create(&exec, 1, &sequence));
  decoder_set_sliding_window(sequence, self->options->sliding_window);
  genai_status* status = NULL;
  for (self->first = 0; !status && self->first < self->count; self->first += self->valid) {
    size_t rest = self->count - self->first;
    self->valid = rest < self->graph->ar_length ? rest : self->graph->ar_length;
    status = decoder_run(sequence, ids + self->first, self->valid, true, take_logits, self, self->options->cancel);
    progress_update(step, self->first + self->valid + (self->comparing ? self->count : 0));
  }
  decoder_destroy(sequence);
  return status;
}

static genai_status* run_mode(measurement* self, cpu_mode mode, const int32_t* ids, progress* step) {
  const cpu_options options = {
      .mode = mode, .pool = self->options->pool, .observer = observe, .observer_user = self, .cancel = self->options->cancel};
  executor* exec;
  GENAI_TRY(cpu_executor_create(self->graph, &options, &exec));
  self->comparing = mode == CPU_SIMULATED;
  genai_status* status = run_calls(self, exec, ids, step);
  executor_destroy(exec);
  return status;
}

static double decibels(const tap* place) {
  if (!place->tensor) return NAN;
  return place->noise > 0 ? 10 * log10(place->signal / place->noise) : INFINITY;
}

static genai_status* finish(const measurement* self, report_quality* out) {
  report_layer* layers = mem_calloc(self->n_layers, sizeof *layers);
  if (!layers) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < self->n_layers; i++) {
    const tap* places = &self->taps[i * PLACES];
    layers[i] = (report_layer){decibels(&places[0]), decibels(&places[1]), decibels(&places[2])};
  }
  *out = (report_quality){.n_layers = self->n_layers,
                          .layers = layers,
                          .logits = decibels(&self->logits),
                          .tokens = (uint32_t)self->count,
                          .same_choice = self->same_choice};
  return NULL;
}

genai_status* report_measure_quality(const ir_graph* graph, const int32_t* ids, size_t count, const report_quality_options* options,
                                     report_quality* out) {
  if (!count || count > graph->context_length)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "the text has %zu tokens, expected 1 to the context length %u", count,
                               graph->context_length);
  measurement self = {.graph = graph, .options = options, .count = count};
  progress step;
  progress_begin(&step, options->progress, "comparing float and simulated", "tokens", 2 * count);
  genai_status* status = prepare(&self);
  if (!status) status = run_mode(&self, CPU_FLOAT, ids, &step);
  if (!status) status = run_mode(&self, CPU_SIMULATED, ids, &step);
  if (!status) status = finish(&self, out);
  deinit(&self);
  if (!status) progress_end(&step, 2 * count);
  return status;
}

void report_quality_deinit(report_quality* self) {
  mem_free(self->layers);
  *self = (report_quality){0};
}
