/* Outlier neurons: which they are, given their magnitudes, and the rewrite of their block. Measuring is calibrate.c's. */
#include "quantize/neurons.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "quantize/rewrite.h"

static const float GAIN = 8.0f;

typedef struct site {
  ir_op *product, *up, *down;
  int32_t factor; /* tensor that up's output is multiplied with */
} site;

/* The only operator that reads a tensor, once; NULL when there are more or none, or it leaves the graph. */
static ir_op* only_reader(const ir_graph* graph, const ir_tensor* tensor) {
  ir_op* found = NULL;
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    for (uint32_t j = 0; j < graph->ops[i]->n_inputs; j++) {
      if (graph->ops[i]->inputs[j] != tensor->id) continue;
      if (found) return NULL;
      found = graph->ops[i];
    }
  }
  return tensor->kind == IR_OUTPUT ? NULL : found;
}

static bool find_site(const ir_graph* graph, const ir_tensor* tensor, site* out) {
  if (tensor->producer < 0 || graph->ops[tensor->producer]->kind != IR_MULTIPLY || tensor->rank != 4) return false;
  out->product = graph->ops[tensor->producer];
  out->down = only_reader(graph, tensor);
  if (!out->down || out->down->kind != IR_CONV2D) return false;
  for (int i = 1; i >= 0; i--) {
    const ir_tensor* up = graph->tensors[out->product->inputs[i]];
    if (up->producer < 0 || graph->ops[up->producer]->kind != IR_CONV2D || !only_reader(graph, up)) continue;
    out->up = graph->ops[up->producer];
    out->factor = out->product->inputs[1 - i];
    const ir_tensor* factor = graph->tensors[out->factor];
    return factor->rank == 4 && factor->dims[3] == tensor->dims[3] && up->dims[3] == tensor->dims[3];
  }
  return false;
}

bool neurons_site(const ir_graph* graph, const ir_tensor* tensor) {
  site ignored;
  return find_site(graph, tensor, &ignored);
}

uint32_t neurons_choose(const float* largest, uint32_t channels, uint32_t chosen[NEURONS_PER_LAYER]) {
  enum { TOP = NEURONS_PER_LAYER + 1 };
  uint32_t top[TOP], found = 0;
  for (uint32_t i = 0; i < channels; i++) {
    uint32_t place = found;
    while (place > 0 && largest[top[place - 1]] < largest[i]) place--;
    if (place == TOP) continue;
    if (found < TOP) found++;
    memmove(top + place + 1, top + place, (found - place - 1) * sizeof *top);
    top[place] = i;
  }
  uint32_t count = 0;
  while (count + 1 < found && largest[top[count + 1]] * GAIN > largest[top[0]]) count++;
  if (count + 1 >= found || !(largest[top[0]] > 0)) return 0; /* the magnitudes fall off too slowly */
  count++;
  memcpy(chosen, top, count * sizeof *top);
  for (uint32_t i = 1; i < count; i++) {
    for (uint32_t j = i; j > 0 && chosen[j - 1] > chosen[j]; j--) {
      uint32_t swap = chosen[j];
      chosen[j] = chosen[j - 1];
      chosen[j - 1] = swap;
    }
  }
  return count;
}

/* Names of what a split adds to the block of one product. */
#define FACTOR ".outlier_factor"

static genai_status* add_tensor(ir_graph* graph, const char* stem, const char* suffix, const ir_tensor* like, uint32_t width,
                                ir_tensor** out) {
  const char* name = arena_printf(&graph->memory, "%s%s", stem, suffix);
  if (!name) return genai_status_out_of_memory();
  uint32_t dims[4] = {like->dims[0], like->dims[1], like->dims[2], width};
  return ir_graph_add_tensor(graph, name, IR_INTERMEDIATE, IR_F32, 4, dims, out);
}

static genai_status* add_weight(ir_graph* graph, const char* stem, const char* suffix, const float* values, uint64_t rows, uint64_t cols,
                                bool vector, ir_tensor** out) {
  const char* name = arena_printf(&graph->memory, "%s%s", stem, suffix);
  if (!name) return genai_status_out_of_memory();
  ir_static source = {.constants = values, .rows = rows, .cols = cols, .scale = 1.0f};
  uint32_t matrix[4] = {1, 1, (uint32_t)cols, (uint32_t)rows}, line[1] = {(uint32_t)(rows * cols)};
  return ir_graph_add_static(graph, name, vector ? 1 : 4, vector ? line : matrix, &source, out);
}

/* What the chosen neurons have of the two projections: rows of up, [count][inputs], and columns of down, [outputs][count]. */
static genai_status* read_parts(ir_graph* graph, const ir_static* up, const ir_static* down, const uint32_t* channels, uint32_t count,
                                thread_pool* pool, float* rows, float* columns) {
  ir_static_view view;
  GENAI_TRY(ir_static_view_open(up, pool, &view));
  genai_status* status = NULL;
  for (uint32_t i = 0; i < count && !status; i++) status = ir_static_view_read(&view, channels[i], 1, rows + i * up->cols);
  ir_static_view_close(&view);
  if (status) return status;
  GENAI_TRY(ir_static_view_open(down, pool, &view));
  float* line = arena_calloc(&graph->memory, (size_t)down->cols, sizeof *line);
  if (!line) status = genai_status_out_of_memory();
  for (uint64_t r = 0; r < down->rows && !status; r++) {
    status = ir_static_view_read(&view, r, 1, line);
    for (uint32_t i = 0; i < count && !status; i++) columns[r * count + i] = line[channels[i]];
  }
  ir_static_view_close(&view);
  return status;
}

/* a_c: the neurons' channels of the factor, side by side. */
static genai_status* pick_factors(ir_graph* graph, const site* at, const char* stem, const uint32_t* channels, uint32_t count,
                                  int32_t* position, ir_tensor** out) {
  const ir_tensor* factor = graph->tensors[at->factor];
  int32_t parts[NEURONS_PER_LAYER];
  for (uint32_t i = 0; i < count; i++) {
    char suffix[32];
    snprintf(suffix, sizeof suffix, FACTOR "%u", i);
    ir_tensor* part;
    ir_op* slice;
    GENAI_TRY(add_tensor(graph, stem, suffix, factor, 1, &part));
    GENAI_TRY(rewrite_insert(graph, IR_SLICE, part->name, (int32_t[]){at->factor}, 1, part->id, position, &slice));
    for (uint32_t d = 0; d < 3; d++) slice->attr.slice.end[d] = factor->dims[d];
    slice->attr.slice.begin[3] = channels[i];
    slice->attr.slice.end[3] = channels[i] + 1;
    parts[i] = part->id;
    *out = part;
  }
  if (count == 1) return NULL;
  ir_op* concat;
  GENAI_TRY(add_tensor(graph, stem, ".outlier_factors", factor, count, out));
  GENAI_TRY(rewrite_insert(graph, IR_CONCAT, (*out)->name, parts, count, (*out)->id, position, &concat));
  concat->attr.axis = 3;
  return NULL;
}

/* Takes the channels out of a bias; `rest` gets what they had. */
static genai_status* split_bias(ir_graph* graph, ir_tensor* bias, const uint32_t* channels, uint32_t count, float* rest) {
  float* values;
  GENAI_TRY(rewrite_read(graph, bias, &values));
  for (uint32_t i = 0; i < count; i++) {
    rest[i] = values[channels[i]];
    values[channels[i]] = 0;
  }
  rewrite_constants(bias, values);
  return NULL;
}

static genai_status* split_block(ir_graph* graph, const site* at, const uint32_t* channels, uint32_t count, thread_pool* pool) {
  const ir_tensor* product = graph->tensors[at->product->output];
  ir_tensor* result = graph->tensors[at->down->output];
  ir_static *up = graph->tensors[at->up->inputs[1]]->source, *down = graph->tensors[at->down->inputs[1]]->source;
  const char* stem = product->name;
  arena* memory = &graph->memory;
  float* rows = arena_calloc(memory, (size_t)up->cols, count * sizeof *rows);
  float* columns = arena_calloc(memory, (size_t)down->rows, count * sizeof *columns);
  uint32_t* dropped = arena_dup(memory, channels, count * sizeof *channels);
  float* bias = arena_calloc(memory, count, sizeof *bias);
  if (!rows || !columns || !dropped || !bias) return genai_status_out_of_memory();
  GENAI_TRY(read_parts(graph, up, down, channels, count, pool, rows, columns));
  int32_t position = at->down->id + 1;
  ir_tensor *factors, *ups, *products, *downs, *rest, *weight;
  GENAI_TRY(pick_factors(graph, at, stem, channels, count, &position, &factors));
  GENAI_TRY(add_tensor(graph, stem, ".outlier_up", product, count, &ups));
  GENAI_TRY(add_weight(graph, stem, ".outlier_up.weight", rows, count, up->cols, false, &weight));
  int32_t inputs[3] = {at->up->inputs[0], weight->id};
  if (at->up->n_inputs > 2) {
    GENAI_TRY(split_bias(graph, graph->tensors[at->up->inputs[2]], channels, count, bias));
    GENAI_TRY(add_weight(graph, stem, ".outlier_up.bias", bias, 1, count, true, &weight));
    inputs[2] = weight->id;
  }
  GENAI_TRY(rewrite_insert(graph, IR_CONV2D, ups->name, inputs, at->up->n_inputs, ups->id, &position, NULL));
  GENAI_TRY(add_tensor(graph, stem, ".outliers", product, count, &products));
  GENAI_TRY(rewrite_insert(graph, IR_MULTIPLY, products->name, (int32_t[]){factors->id, ups->id}, 2, products->id, &position, NULL));
  GENAI_TRY(add_tensor(graph, stem, ".outlier_down", result, result->dims[3], &downs));
  GENAI_TRY(add_weight(graph, stem, ".outlier_down.weight", columns, down->rows, count, false, &weight));
  GENAI_TRY(rewrite_insert(graph, IR_CONV2D, downs->name, (int32_t[]){products->id, weight->id}, 2, downs->id, &position, NULL));
  GENAI_TRY(add_tensor(graph, stem, ".inlier_down", result, result->dims[3], &rest));
  at->down->output = rest->id;
  rest->producer = at->down->id;
  result->producer = -1;
  const char* sum = arena_printf(memory, "%s.sum", stem);
  if (!sum) return genai_status_out_of_memory();
  GENAI_TRY(rewrite_insert(graph, IR_ADD, sum, (int32_t[]){rest->id, downs->id}, 2, result->id, &position, NULL));
  up->dropped_rows = down->dropped_columns = dropped;
  up->n_dropped_rows = down->n_dropped_columns = count;
  return NULL;
}

genai_status* neurons_split(ir_graph* graph, const outlier_neuron* list, size_t count, thread_pool* pool) {
  for (size_t first = 0; first < count;) {
    uint32_t channels[NEURONS_PER_LAYER], n = 0;
    const char* name = list[first].product;
    for (; first < count && n < NEURONS_PER_LAYER && !strcmp(list[first].product, name); first++) channels[n++] = list[first].channel;
    const ir_tensor* product = ir_graph_find(graph, name);
    site at;
    if (product && find_site(graph, product, &at)) GENAI_TRY(split_block(graph, &at, channels, n, pool));
  }
  return NULL;
}

/* The slices of the factors tell which neurons were split off. */
genai_status* neurons_split_like(ir_graph* graph, const ir_graph* reference) {
  for (uint32_t i = 0; i < reference->n_ops; i++) {
    const ir_op* op = reference->ops[i];
    const char* suffix = op->kind == IR_SLICE ? strstr(op->name, FACTOR) : NULL;
    if (!suffix) continue;
    uint32_t channels[NEURONS_PER_LAYER], n = 0;
    char* name = arena_printf(&graph->memory, "%.*s", (int)(suffix - op->name), op->name);
    if (!name) return genai_status_out_of_memory();
    for (; i < reference->n_ops && reference->ops[i]->kind == IR_SLICE && n < NEURONS_PER_LAYER; i++)
      channels[n++] = reference->ops[i]->attr.slice.begin[3];
    const ir_tensor* product = ir_graph_find(graph, name);
    site at;
    if (!product || !find_site(graph, product, &at))
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph \"%s\" has no product \"%s\" to split as in graph \"%s\"",
                                 graph->name, name, reference->name);
    GENAI_TRY(split_block(graph, &at, channels, n, NULL));
    i--;
  }
  return NULL;
}
