/* Reads tests/data/cpu/ops.json (made by tests/tools/make_cpu_ops.py) and builds its cases as graphs. */
#ifndef GENAI_TESTS_CPU_OPS_FILE_H
#define GENAI_TESTS_CPU_OPS_FILE_H

#include <math.h>

#include "base/json.h"
#include "cpu/cpu.h"
#include "support.h"

/* The formula of make_cpu_ops.py, for float32. */
static inline float ops_uniform(uint64_t i, uint64_t seed, double amplitude) {
  uint64_t bits = (i + seed * 7919) * 2654435761u & 0xffffffffu;
  bits = (bits ^ bits >> 15) * 2246822519u & 0xffffffffu;
  return (float)(((double)(bits >> 8) / 8388608.0 - 1.0) * amplitude);
}

static inline int ops_dtype(text_view name) {
  for (int i = 0; i <= IR_S32; i++) {
    if (text_view_equal_cstr(name, ir_dtype_name((ir_dtype)i))) return i;
  }
  fail_msg("dtype %.*s", (int)name.length, name.data);
  return 0;
}

static inline uint32_t ops_numbers(json_value list, uint32_t* out) {
  for (size_t i = 0; i < json_count(list); i++) {
    json_iterator at = json_iterate(list);
    json_value item;
    for (size_t skip = 0; skip <= i; skip++) json_next(&at, NULL, &item);
    out[i] = (uint32_t)json_integer(item, 0);
  }
  return (uint32_t)json_count(list);
}

static inline double* ops_doubles(json_value list, size_t* count) {
  *count = json_count(list);
  double* values = malloc((*count + 1) * sizeof *values);
  json_iterator at = json_iterate(list);
  json_value item;
  for (size_t i = 0; json_next(&at, NULL, &item); i++) values[i] = json_number(item, NAN);
  return values;
}

static inline void ops_encoding(ir_graph* graph, json_value json, ir_encoding* out) {
  if (json_type_of(json) == JSON_ABSENT) return;
  out->bits = (uint8_t)json_integer(json_get(json, "bits"), 0);
  json_value scales = json_get(json, "scales"), blocks = json_get(json, "block_scales");
  if (json_type_of(scales) == JSON_ABSENT) {
    out->kind = IR_ENCODING_PER_TENSOR;
    out->scale = (float)json_number(json_get(json, "scale"), 0);
    out->offset = (int32_t)json_integer(json_get(json, "offset"), 0);
    return;
  }
  out->kind = IR_ENCODING_PER_CHANNEL;
  out->axis = (int32_t)json_integer(json_get(json, "axis"), 0);
  size_t count;
  double* values = ops_doubles(scales, &count);
  float* kept = arena_calloc(&graph->memory, count, sizeof *kept);
  for (size_t i = 0; i < count; i++) kept[i] = (float)values[i];
  free(values);
  out->channels = (uint32_t)count;
  out->scales = kept;
  if (json_type_of(blocks) == JSON_ABSENT) return;
  out->kind = IR_ENCODING_BLOCK_EXPANSION;
  values = ops_doubles(blocks, &count);
  uint8_t* expansions = arena_calloc(&graph->memory, count, 1);
  for (size_t i = 0; i < count; i++) expansions[i] = (uint8_t)values[i];
  free(values);
  out->blocks = (uint32_t)count / out->channels;
  out->block_scales = expansions;
}

static inline const char* ops_name(json_value value) {
  static char names[16][64];
  static int next;
  text_view view = json_string(value);
  char* name = names[next++ % 16];
  snprintf(name, sizeof names[0], "%.*s", (int)view.length, view.data);
  return name;
}

static inline void ops_add_tensor(ir_graph* graph, json_value json) {
  const char* name = ops_name(json_get(json, "name"));
  uint32_t dims[IR_MAX_RANK], rank = ops_numbers(json_get(json, "dims"), dims);
  text_view kind = json_string(json_get(json, "kind"));
  ir_tensor* tensor = NULL;
  if (text_view_equal_cstr(kind, "static")) {
    uint64_t rows = (uint64_t)json_integer(json_get(json, "rows"), 0), cols = (uint64_t)json_integer(json_get(json, "cols"), 0);
    float* values = arena_calloc(&graph->memory, (size_t)(rows * cols), sizeof *values);
    for (uint64_t i = 0; i < rows * cols; i++)
      values[i] = ops_uniform(i, (uint64_t)json_integer(json_get(json, "seed"), 0), json_number(json_get(json, "amplitude"), 0));
    ir_static source = {.constants = values, .rows = rows, .cols = cols, .scale = 1.0f};
    assert_ok(ir_graph_add_static(graph, name, rank, dims, &source, &tensor));
    tensor->dtype = (ir_dtype)ops_dtype(json_string(json_get(json, "dtype")));
  } else {
    ir_tensor_kind which = text_view_equal_cstr(kind, "input") ? IR_INPUT : IR_INTERMEDIATE;
    assert_ok(ir_graph_add_tensor(graph, name, which, (ir_dtype)ops_dtype(json_string(json_get(json, "dtype"))), rank, dims, &tensor));
  }
  ops_encoding(graph, json_get(json, "encoding"), &tensor->encoding);
}

static inline void ops_add_op(ir_graph* graph, json_value json, int index) {
  int32_t inputs[16];
  uint32_t n_inputs = 0;
  json_iterator at = json_iterate(json_get(json, "inputs"));
  json_value item;
  while (json_next(&at, NULL, &item)) inputs[n_inputs++] = ir_graph_find(graph, ops_name(item))->id;
  ir_op_kind kind = 0;
  while (strcmp(ir_op_kind_name(kind), ops_name(json_get(json, "kind")))) kind++;
  char name[32];
  snprintf(name, sizeof name, "op%d", index);
  ir_op* op;
  assert_ok(ir_graph_add_op(graph, kind, name, inputs, n_inputs, ir_graph_find(graph, ops_name(json_get(json, "output")))->id, &op));
  json_value attributes = json_get(json, "attributes");
  switch (kind) {
    case IR_RMS_NORM:
    case IR_LAYER_NORM:
      op->attr.epsilon = (float)json_number(json_get(attributes, "epsilon"), 0);
      break;
    case IR_GATHER:
    case IR_CONCAT:
      op->attr.axis = (int32_t)json_integer(json_get(attributes, "axis"), 0);
      break;
    case IR_MATMUL:
      op->attr.matmul.transpose_a = json_bool(json_get(attributes, "transpose_a"), false);
      op->attr.matmul.transpose_b = json_bool(json_get(attributes, "transpose_b"), false);
      break;
    case IR_SLICE:
      ops_numbers(json_get(attributes, "begin"), op->attr.slice.begin);
      ops_numbers(json_get(attributes, "end"), op->attr.slice.end);
      break;
    case IR_TRANSPOSE:
      ops_numbers(json_get(attributes, "perm"), op->attr.perm);
      break;
    default:
      break;
  }
}

static inline ir_graph* ops_build(json_value json) {
  ir_graph* graph;
  json_iterator at;
  json_value item;
  assert_ok(ir_graph_create("case", &graph));
  graph->ar_length = graph->context_length = 1;
  at = json_iterate(json_get(json, "tensors"));
  while (json_next(&at, NULL, &item)) ops_add_tensor(graph, item);
  at = json_iterate(json_get(json, "ops"));
  for (int i = 0; json_next(&at, NULL, &item); i++) ops_add_op(graph, item, i);
  at = json_iterate(json_get(json, "tensors"));
  while (json_next(&at, NULL, &item)) {
    if (text_view_equal_cstr(json_string(json_get(item, "kind")), "output"))
      assert_ok(ir_graph_mark_output(graph, ir_graph_find(graph, ops_name(json_get(item, "name"))), IR_ROLE_NONE, -1));
  }
  return graph;
}

/* The case's description of a tensor. */
static inline json_value ops_tensor(json_value json, const char* name) {
  json_iterator at = json_iterate(json_get(json, "tensors"));
  json_value item = {0};
  while (json_next(&at, NULL, &item)) {
    if (text_view_equal_cstr(json_string(json_get(item, "name")), name)) return item;
  }
  fail_msg("no tensor %s", name);
  return item;
}

static inline size_t ops_port_elements(const executor_port* port) {
  return executor_port_bytes(port) / ir_dtype_size(port->dtype);
}

/* Buffers for a call: inputs filled by the case, outputs filled with a pattern. */
typedef struct ops_buffers {
  void* inputs[16];
  void* outputs[16];
} ops_buffers;

static inline void ops_buffers_make(const executor* self, json_value json, ops_buffers* out) {
  for (uint32_t i = 0; i < self->n_inputs; i++) {
    const executor_port* port = &self->inputs[i];
    json_value tensor = ops_tensor(json, port->name);
    out->inputs[i] = malloc(executor_port_bytes(port));
    size_t count = ops_port_elements(port);
    if (port->dtype == IR_I32) {
      ops_numbers(json_get(tensor, "integers"), out->inputs[i]);
      continue;
    }
    for (size_t j = 0; j < count; j++) {
      float value = ops_uniform(j, (uint64_t)json_integer(json_get(tensor, "seed"), 0), json_number(json_get(tensor, "amplitude"), 0));
      executor_port_write(port, out->inputs[i], j, value);
    }
  }
  for (uint32_t i = 0; i < self->n_outputs; i++) {
    out->outputs[i] = malloc(executor_port_bytes(&self->outputs[i]));
    memset(out->outputs[i], 0xa5, executor_port_bytes(&self->outputs[i]));
  }
}

static inline void ops_buffers_free(const executor* self, ops_buffers* buffers) {
  for (uint32_t i = 0; i < self->n_inputs; i++) free(buffers->inputs[i]);
  for (uint32_t i = 0; i < self->n_outputs; i++) free(buffers->outputs[i]);
}

#endif
