/* The helpers of builder.h. What a decoder is made of is in build.c, build_attention.c and build_feed_forward.c. */
#include "builder.h"

#include <stdio.h>
#include <string.h>

builder_name builder_name_of(const builder* self, const char* name) {
  builder_name full;
  if (self->layer < 0) {
    snprintf(full.text, sizeof full.text, "%s", name);
  } else {
    snprintf(full.text, sizeof full.text, "layer%d.%s%s%s", self->layer, self->part ? self->part : "", self->part ? "." : "", name);
  }
  return full;
}

void builder_fail(builder* self, genai_status* status) {
  if (self->status) {
    genai_status_free(status);
  } else {
    self->status = status;
  }
}

bool builder_ok(const builder* self) {
  return !self->status;
}

ir_tensor* builder_input(builder* self, const char* name, ir_dtype dtype, ir_role role, int32_t layer, uint32_t rank,
                         const uint32_t* dims) {
  ir_tensor* tensor = NULL;
  if (self->status) return NULL;
  self->status = ir_graph_add_tensor(self->graph, name, IR_INPUT, dtype, rank, dims, &tensor);
  if (self->status) return NULL;
  tensor->role = role;
  tensor->layer = layer;
  return tensor;
}

ir_tensor* builder_op(builder* self, ir_op_kind kind, const char* name, ir_tensor* const* inputs, uint32_t n_inputs, uint32_t rank,
                      const uint32_t* dims, ir_op** op) {
  if (self->status) return NULL;
  int32_t ids[4];
  for (uint32_t i = 0; i < n_inputs; ++i) ids[i] = inputs[i]->id;
  builder_name full = builder_name_of(self, name);
  ir_tensor* output = NULL;
  ir_op* added = NULL;
  self->status = ir_graph_add_tensor(self->graph, full.text, IR_INTERMEDIATE, IR_F32, rank, dims, &output);
  if (!self->status) self->status = ir_graph_add_op(self->graph, kind, full.text, ids, n_inputs, output->id, &added);
  if (self->status) return NULL;
  output->layer = self->layer;
  if (op) *op = added;
  return output;
}

ir_tensor* builder_unary(builder* self, ir_op_kind kind, const char* name, ir_tensor* x) {
  return self->status ? NULL : builder_op(self, kind, name, &x, 1, x->rank, x->dims, NULL);
}

ir_tensor* builder_binary(builder* self, ir_op_kind kind, const char* name, ir_tensor* x, ir_tensor* y) {
  return self->status ? NULL : builder_op(self, kind, name, (ir_tensor*[]){x, y}, 2, x->rank, x->dims, NULL);
}

ir_tensor* builder_reshape(builder* self, const char* name, ir_tensor* x, uint32_t rank, const uint32_t* dims) {
  return builder_op(self, IR_RESHAPE, name, &x, 1, rank, dims, NULL);
}

ir_tensor* builder_transpose(builder* self, const char* name, ir_tensor* x, const uint32_t* perm) {
  if (self->status) return NULL;
  uint32_t dims[IR_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; ++i) dims[i] = x->dims[perm[i]];
  ir_op* op = NULL;
  ir_tensor* y = builder_op(self, IR_TRANSPOSE, name, &x, 1, x->rank, dims, &op);
  if (y) memcpy(op->attr.perm, perm, x->rank * sizeof *perm);
  return y;
}

ir_tensor* builder_slice(builder* self, const char* name, ir_tensor* x, uint32_t axis, uint32_t begin, uint32_t end) {
  if (self->status) return NULL;
  uint32_t dims[IR_MAX_RANK];
  memcpy(dims, x->dims, sizeof dims);
  dims[axis] = end - begin;
  ir_op* op = NULL;
  ir_tensor* y = builder_op(self, IR_SLICE, name, &x, 1, x->rank, dims, &op);
  if (!y) return NULL;
  memcpy(op->attr.slice.end, x->dims, sizeof op->attr.slice.end);
  op->attr.slice.begin[axis] = begin;
  op->attr.slice.end[axis] = end;
  return y;
}

ir_tensor* builder_concat(builder* self, const char* name, ir_tensor* const* inputs, uint32_t n_inputs, int32_t axis) {
  if (self->status) return NULL;
  uint32_t dims[IR_MAX_RANK];
  memcpy(dims, inputs[0]->dims, sizeof dims);
  for (uint32_t i = 1; i < n_inputs; ++i) dims[axis] += inputs[i]->dims[axis];
  ir_op* op = NULL;
  ir_tensor* y = builder_op(self, IR_CONCAT, name, inputs, n_inputs, inputs[0]->rank, dims, &op);
  if (y) op->attr.axis = axis;
  return y;
}

ir_tensor* builder_constant(builder* self, const char* name, uint32_t rank, const uint32_t* dims, uint64_t rows, uint64_t cols,
                            const float* values) {
  if (self->status) return NULL;
  ir_tensor* tensor = ir_graph_find(self->graph, name);
  if (tensor) return tensor;
  float* copy = arena_calloc(&self->graph->memory, (size_t)(rows * cols), sizeof *copy);
  if (!copy) {
    builder_fail(self, genai_status_out_of_memory());
    return NULL;
  }
  if (values) memcpy(copy, values, (size_t)(rows * cols) * sizeof *copy);
  ir_static source = {.constants = copy, .rows = rows, .cols = cols, .scale = 1.0f};
  self->status = ir_graph_add_static(self->graph, name, rank, dims, &source, &tensor);
  return self->status ? NULL : tensor;
}

ir_tensor* builder_scalar(builder* self, const char* name, float value) {
  return builder_constant(self, name, 1, (uint32_t[]){1}, 1, 1, &value);
}

/* "NAME.SUFFIX" with the builder's prefix. */
static ir_tensor* add_static(builder* self, const char* name, const char* suffix, uint32_t rank, const uint32_t* dims,
                             const ir_static* source) {
  builder_name full = builder_name_of(self, name);
  char whole[112];
  snprintf(whole, sizeof whole, "%s.%s", full.text, suffix);
  ir_tensor* tensor = NULL;
  self->status = ir_graph_add_static(self->graph, whole, rank, dims, source, &tensor);
  return self->status ? NULL : tensor;
}

static uint32_t layer_of(const builder* self) {
  return self->layer < 0 ? 0 : (uint32_t)self->layer;
}

static ir_static describe(const builder* self, const checkpoint_tensor* tensor, const linear_part* part) {
  ir_static source = {.tensor = tensor,
                      .rows = part->rows,
                      .first_row = part->first_row,
                      .group_rows = part->group_rows,
                      .group_stride = part->group_stride,
                      .scale = (float)part->scale};
  const layer_traits* traits = self->layer < 0 ? NULL : &self->model->traits[self->layer];
  if (part->interleaved && traits && traits->rotary) {
    source.row_order = IR_ROWS_ROTARY_INTERLEAVED;
    source.head_dim = self->model->head_dim;
    source.rotary_dim = self->model->ropes[traits->rope].rotary_dim;
  }
  return source;
}

ir_tensor* builder_linear(builder* self, const char* name, ir_tensor* x, const linear_part* part) {
  if (self->status) return NULL;
  uint32_t layer = layer_of(self), inner = x->dims[3], rows = (uint32_t)part->rows;
  ir_static source = describe(self, tensors_find(self->model, part->slot, layer, "weight"), part);
  source.cols = inner;
  ir_tensor* inputs[3] = {x, add_static(self, name, "weight", 4, (uint32_t[]){1, 1, inner, rows}, &source), NULL};
  uint32_t n_inputs = 2;
  const checkpoint_tensor* bias = tensors_find(self->model, part->slot, layer, "bias");
  if (bias && !self->status) {
    source = describe(self, bias, part);
    source.cols = 1;
    inputs[n_inputs++] = add_static(self, name, "bias", 1, &rows, &source);
  }
  return builder_op(self, IR_CONV2D, name, inputs, n_inputs, 4, (uint32_t[]){1, x->dims[1], x->dims[2], rows}, NULL);
}

ir_tensor* builder_norm(builder* self, const char* name, ir_tensor* x, model_slot slot, double scale, bool interleaved) {
  if (self->status) return NULL;
  const model* source_model = self->model;
  uint32_t layer = layer_of(self), length = x->dims[x->rank - 1];
  linear_part part = {.slot = slot, .rows = length, .interleaved = interleaved, .scale = scale};
  ir_static source = describe(self, tensors_find(source_model, slot, layer, "weight"), &part);
  source.cols = 1;
  source.add = (float)(source_model->norm_add * scale);
  ir_tensor* gamma = add_static(self, name, "weight", 1, &length, &source);
  ir_tensor* beta = NULL;
  const checkpoint_tensor* bias = tensors_find(source_model, slot, layer, "bias");
  if (bias && !self->status) {
    source = describe(self, bias, &part);
    source.cols = 1;
    beta = add_static(self, name, "bias", 1, &length, &source);
  } else { /* QNN's RmsNorm needs one before 2.49 */
    char zeros[32];
    snprintf(zeros, sizeof zeros, "zeros.%u", length);
    beta = builder_constant(self, zeros, 1, &length, 1, length, NULL);
  }
  ir_op* op = NULL;
  ir_op_kind kind = source_model->family->norm == NORM_RMS ? IR_RMS_NORM : IR_LAYER_NORM;
  ir_tensor* y = builder_op(self, kind, name, (ir_tensor*[]){x, gamma, beta}, 3, x->rank, x->dims, &op);
  if (y) op->attr.epsilon = source_model->epsilon;
  return y;
}
