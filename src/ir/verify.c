/* The rules a graph must satisfy as a whole: each operator's shapes and attributes, execution order, the boundary's roles, and encodings
 * against storage types. Nothing is changed here. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/ir.h"

/* "[1,2,3]" for messages. */
typedef struct shape_text {
  char text[80];
} shape_text;

static shape_text show(uint32_t rank, const uint32_t* dims) {
  shape_text shown;
  int length = snprintf(shown.text, sizeof shown.text, "[");
  for (uint32_t i = 0; i < rank; ++i) {
    length += snprintf(shown.text + length, sizeof shown.text - (size_t)length, "%s%u", i ? "," : "", dims[i]);
  }
  snprintf(shown.text + length, sizeof shown.text - (size_t)length, "]");
  return shown;
}

static shape_text show_tensor(const ir_tensor* tensor) {
  return show(tensor->rank, tensor->dims);
}

static genai_status* bad(const ir_graph* graph, const ir_op* op, const char* what) {
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s, %s %s: %s", graph->name, ir_op_kind_name(op->kind), op->name, what);
}

static const ir_tensor* input(const ir_graph* graph, const ir_op* op, uint32_t index) {
  return graph->tensors[op->inputs[index]];
}

/* The output must have this shape. */
static genai_status* expect(const ir_graph* graph, const ir_op* op, uint32_t rank, const uint32_t* dims) {
  const ir_tensor* out = graph->tensors[op->output];
  if (out->rank == rank && !memcmp(out->dims, dims, rank * sizeof *dims)) return NULL;
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s, %s %s: output %s is %s, its inputs make %s", graph->name,
                             ir_op_kind_name(op->kind), op->name, out->name, show_tensor(out).text, show(rank, dims).text);
}

static genai_status* expect_inputs(const ir_graph* graph, const ir_op* op, uint32_t least, uint32_t most) {
  if (op->n_inputs >= least && op->n_inputs <= most) return NULL;
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s, %s %s: %u inputs, expected %u to %u", graph->name,
                             ir_op_kind_name(op->kind), op->name, op->n_inputs, least, most);
}

static bool is_vector(const ir_tensor* tensor, uint32_t length) {
  return tensor->rank == 1 && tensor->dims[0] == length;
}

static genai_status* verify_gather(const ir_graph* graph, const ir_op* op) {
  GENAI_TRY(expect_inputs(graph, op, 2, 2));
  const ir_tensor *table = input(graph, op, 0), *indices = input(graph, op, 1);
  if (indices->dtype != IR_I32) return bad(graph, op, "indices must be i32");
  if (op->attr.axis != 0) return bad(graph, op, "axis must be 0");
  uint32_t rank = indices->rank + table->rank - 1, dims[2 * IR_MAX_RANK];
  if (rank > IR_MAX_RANK) return bad(graph, op, "the result has too many dimensions");
  memcpy(dims, indices->dims, indices->rank * sizeof *dims);
  memcpy(dims + indices->rank, table->dims + 1, (table->rank - 1) * sizeof *dims);
  return expect(graph, op, rank, dims);
}

static genai_status* verify_norm(const ir_graph* graph, const ir_op* op) {
  GENAI_TRY(expect_inputs(graph, op, 3, 3));
  const ir_tensor* x = input(graph, op, 0);
  uint32_t last = x->dims[x->rank - 1];
  for (uint32_t i = 1; i < 3; ++i) {
    const ir_tensor* vector = input(graph, op, i);
    if (!is_vector(vector, last)) {
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s, %s %s: %s is %s, expected [%u]", graph->name,
                                 ir_op_kind_name(op->kind), op->name, vector->name, show_tensor(vector).text, last);
    }
  }
  if (!(op->attr.epsilon >= 0.0f) || !isfinite(op->attr.epsilon)) return bad(graph, op, "epsilon must be finite and not negative");
  return expect(graph, op, x->rank, x->dims);
}

static genai_status* verify_conv(const ir_graph* graph, const ir_op* op) {
  GENAI_TRY(expect_inputs(graph, op, 2, 3));
  const ir_tensor *x = input(graph, op, 0), *weight = input(graph, op, 1);
  if (x->rank != 4 || x->dims[0] != 1) return bad(graph, op, "the activation must be [1,H,W,K]");
  if (weight->kind != IR_STATIC || weight->rank != 4 || weight->dims[0] != 1 || weight->dims[1] != 1 || weight->dims[2] != x->dims[3]) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s, Conv2d %s: weight %s is %s, expected a static [1,1,%u,N]",
                               graph->name, op->name, weight->name, show_tensor(weight).text, x->dims[3]);
  }
  if (weight->source && (weight->source->rows != weight->dims[3] || weight->source->cols != weight->dims[2])) {
    return bad(graph, op, "the weight's source must be a matrix of N rows and K columns");
  }
  if (op->n_inputs == 3 && (input(graph, op, 2)->kind != IR_STATIC || !is_vector(input(graph, op, 2), weight->dims[3]))) {
    return bad(graph, op, "the bias must be a static [N]");
  }
  uint32_t dims[4] = {1, x->dims[1], x->dims[2], weight->dims[3]};
  return expect(graph, op, 4, dims);
}

static genai_status* verify_matmul(const ir_graph* graph, const ir_op* op) {
  GENAI_TRY(expect_inputs(graph, op, 2, 2));
  const ir_tensor *a = input(graph, op, 0), *b = input(graph, op, 1);
  if (a->rank != b->rank || a->rank < 2) return bad(graph, op, "both factors need the same rank, at least 2");
  uint32_t rank = a->rank, dims[IR_MAX_RANK];
  for (uint32_t i = 0; i + 2 < rank; ++i) {
    if (a->dims[i] != b->dims[i]) return bad(graph, op, "batch dimensions differ");
    dims[i] = a->dims[i];
  }
  bool ta = op->attr.matmul.transpose_a, tb = op->attr.matmul.transpose_b;
  uint32_t inner_a = a->dims[ta ? rank - 2 : rank - 1], inner_b = b->dims[tb ? rank - 1 : rank - 2];
  if (inner_a != inner_b) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s, MatMul %s: %s and %s do not share an inner dimension", graph->name,
                               op->name, show_tensor(a).text, show_tensor(b).text);
  }
  dims[rank - 2] = a->dims[ta ? rank - 1 : rank - 2];
  dims[rank - 1] = b->dims[tb ? rank - 2 : rank - 1];
  return expect(graph, op, rank, dims);
}

static genai_status* verify_elementwise(const ir_graph* graph, const ir_op* op) {
  GENAI_TRY(expect_inputs(graph, op, 2, 2));
  const ir_tensor *a = input(graph, op, 0), *b = input(graph, op, 1);
  uint32_t rank = a->rank > b->rank ? a->rank : b->rank, dims[IR_MAX_RANK];
  for (uint32_t i = 0; i < rank; ++i) { /* aligned at the last dimension */
    uint32_t da = i < a->rank ? a->dims[a->rank - 1 - i] : 1, db = i < b->rank ? b->dims[b->rank - 1 - i] : 1;
    if (da != db && da != 1 && db != 1) {
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s, %s %s: %s and %s do not broadcast", graph->name,
                                 ir_op_kind_name(op->kind), op->name, show_tensor(a).text, show_tensor(b).text);
    }
    dims[rank - 1 - i] = da > db ? da : db;
  }
  return expect(graph, op, rank, dims);
}

static genai_status* verify_same(const ir_graph* graph, const ir_op* op) {
  GENAI_TRY(expect_inputs(graph, op, 1, 1));
  const ir_tensor* x = input(graph, op, 0);
  return expect(graph, op, x->rank, x->dims);
}

static genai_status* verify_concat(const ir_graph* graph, const ir_op* op) {
  const ir_tensor* first = input(graph, op, 0);
  uint32_t dims[IR_MAX_RANK];
  memcpy(dims, first->dims, sizeof dims);
  if (op->attr.axis < 0 || (uint32_t)op->attr.axis >= first->rank) return bad(graph, op, "axis is outside the rank");
  for (uint32_t i = 1; i < op->n_inputs; ++i) {
    const ir_tensor* other = input(graph, op, i);
    if (other->rank != first->rank) return bad(graph, op, "inputs differ in rank");
    for (uint32_t d = 0; d < first->rank; ++d) {
      if (d != (uint32_t)op->attr.axis && other->dims[d] != first->dims[d]) return bad(graph, op, "inputs differ outside the axis");
    }
    dims[op->attr.axis] += other->dims[op->attr.axis];
  }
  return expect(graph, op, first->rank, dims);
}

static genai_status* verify_slice(const ir_graph* graph, const ir_op* op) {
  GENAI_TRY(expect_inputs(graph, op, 1, 1));
  const ir_tensor* x = input(graph, op, 0);
  uint32_t dims[IR_MAX_RANK];
  for (uint32_t i = 0; i < x->rank; ++i) {
    uint32_t begin = op->attr.slice.begin[i], end = op->attr.slice.end[i];
    if (begin >= end || end > x->dims[i]) return bad(graph, op, "a range is empty or leaves the input");
    dims[i] = end - begin;
  }
  return expect(graph, op, x->rank, dims);
}

static genai_status* verify_reshape(const ir_graph* graph, const ir_op* op) {
  GENAI_TRY(expect_inputs(graph, op, 1, 1));
  const ir_tensor *x = input(graph, op, 0), *y = graph->tensors[op->output];
  if (ir_tensor_elements(x) == ir_tensor_elements(y)) return NULL;
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s, Reshape %s: %s cannot become %s", graph->name, op->name,
                             show_tensor(x).text, show_tensor(y).text);
}

static genai_status* verify_transpose(const ir_graph* graph, const ir_op* op) {
  GENAI_TRY(expect_inputs(graph, op, 1, 1));
  const ir_tensor* x = input(graph, op, 0);
  uint32_t dims[IR_MAX_RANK];
  uint32_t seen = 0;
  for (uint32_t i = 0; i < x->rank; ++i) {
    uint32_t from = op->attr.perm[i];
    if (from >= x->rank || seen & 1u << from) return bad(graph, op, "perm is not a permutation");
    seen |= 1u << from;
    dims[i] = x->dims[from];
  }
  return expect(graph, op, x->rank, dims);
}

typedef genai_status* (*op_rule)(const ir_graph* graph, const ir_op* op);
static const op_rule op_rules[IR_OP_KIND_COUNT] = {
    [IR_GATHER] = verify_gather,
    [IR_RMS_NORM] = verify_norm,
    [IR_LAYER_NORM] = verify_norm,
    [IR_CONV2D] = verify_conv,
    [IR_MATMUL] = verify_matmul,
    [IR_ADD] = verify_elementwise,
    [IR_SUBTRACT] = verify_elementwise,
    [IR_MULTIPLY] = verify_elementwise,
    [IR_SIGMOID] = verify_same,
    [IR_TANH] = verify_same,
    [IR_GELU] = verify_same,
    [IR_SOFTMAX] = verify_same,
    [IR_CONCAT] = verify_concat,
    [IR_SLICE] = verify_slice,
    [IR_RESHAPE] = verify_reshape,
    [IR_TRANSPOSE] = verify_transpose,
    [IR_CONVERT] = verify_same,
};

static bool scale_is_valid(float scale) {
  return isfinite(scale) && scale > 0.0f;
}

/* What is wrong with the encoding, or NULL. */
static const char* encoding_fault(const ir_tensor* tensor) {
  const ir_encoding* encoding = &tensor->encoding;
  bool integer =
      tensor->dtype == IR_U8 || tensor->dtype == IR_U16 || tensor->dtype == IR_S8 || tensor->dtype == IR_S16 || tensor->dtype == IR_S32;
  if (encoding->kind == IR_ENCODING_NONE) return integer ? "a fixed-point storage type needs an encoding" : NULL;
  if (!integer) return "an encoding needs a fixed-point storage type";
  if (encoding->bits != 4 && encoding->bits != 8 && encoding->bits != 16 && encoding->bits != 32) return "bits must be 4, 8, 16 or 32";
  if (encoding->bits > 8 * ir_dtype_size(tensor->dtype)) return "more bits than the storage type holds";
  bool is_unsigned = tensor->dtype == IR_U8 || tensor->dtype == IR_U16;
  if (encoding->kind == IR_ENCODING_PER_TENSOR) {
    if (!scale_is_valid(encoding->scale)) return "the scale must be finite and positive";
    int64_t least = is_unsigned ? -(((int64_t)1 << encoding->bits) - 1) : 0;
    if (encoding->offset > 0 || encoding->offset < least) return "the offset must let zero be represented";
    return NULL;
  }
  if (is_unsigned) return "channel encodings are signed";
  if (tensor->kind != IR_STATIC) return "only statics have channel encodings";
  if (encoding->axis < 0 || (uint32_t)encoding->axis >= tensor->rank) return "the axis is outside the rank";
  if (encoding->channels != tensor->dims[encoding->axis]) return "one scale per channel is needed";
  for (uint32_t i = 0; i < encoding->channels; ++i) {
    if (!scale_is_valid(encoding->scales[i])) return "every scale must be finite and positive";
  }
  if (encoding->kind == IR_ENCODING_PER_CHANNEL) return NULL;
  if (tensor->rank != 4 || encoding->axis != 3) return "block scales belong to linear weights, along axis 3";
  if (encoding->blocks == 0 || tensor->dims[2] % encoding->blocks) return "the blocks must divide the input dimension";
  for (size_t i = 0; i < (size_t)encoding->channels * encoding->blocks; ++i) {
    if (encoding->block_scales[i] < 1 || encoding->block_scales[i] > 16) return "block scales are 1 to 16";
  }
  return NULL;
}

/* The shape a boundary role prescribes; 0 is any size. False when the role has no shape of its own. */
static bool role_shape(const ir_graph* graph, ir_role role, uint32_t* rank, uint32_t dims[IR_MAX_RANK]) {
  uint32_t ar = graph->ar_length, context = graph->context_length;
  switch (role) {
    case IR_ROLE_NONE:
      return false;
    case IR_ROLE_TOKENS:
    case IR_ROLE_POSITIONS:
      *rank = 2;
      memcpy(dims, (uint32_t[]){1, ar}, 2 * sizeof *dims);
      return true;
    case IR_ROLE_MASK:
    case IR_ROLE_MASK_SLIDING:
      *rank = 4;
      memcpy(dims, (uint32_t[]){1, 1, ar, context}, 4 * sizeof *dims);
      return true;
    case IR_ROLE_KEY_IN:
      *rank = 4;
      memcpy(dims, (uint32_t[]){1, 0, 0, context - ar}, 4 * sizeof *dims);
      return true;
    case IR_ROLE_VALUE_IN:
      *rank = 4;
      memcpy(dims, (uint32_t[]){1, 0, context - ar, 0}, 4 * sizeof *dims);
      return true;
    case IR_ROLE_KEY_OUT:
      *rank = 4;
      memcpy(dims, (uint32_t[]){1, 0, 0, ar}, 4 * sizeof *dims);
      return true;
    case IR_ROLE_VALUE_OUT:
      *rank = 4;
      memcpy(dims, (uint32_t[]){1, 0, ar, 0}, 4 * sizeof *dims);
      return true;
    case IR_ROLE_LOGITS: /* all rows or the last one alone */
      *rank = 3;
      memcpy(dims, (uint32_t[]){1, 0, 0}, 3 * sizeof *dims);
      return true;
  }
  return false;
}

static genai_status* verify_boundary(const ir_graph* graph, const ir_tensor* tensor, ir_tensor_kind kind) {
  if (tensor->kind != kind) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s: %s is in a boundary list it does not belong to", graph->name,
                               tensor->name);
  }
  uint32_t rank, dims[IR_MAX_RANK];
  if (!role_shape(graph, tensor->role, &rank, dims)) return NULL;
  bool fits = tensor->rank == rank;
  for (uint32_t i = 0; fits && i < rank; ++i) fits = dims[i] == 0 || dims[i] == tensor->dims[i];
  if (!fits) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s: %s is %s, but the role %s at AR %u and context %u is %s (0: any)",
                               graph->name, tensor->name, show_tensor(tensor).text, ir_role_name(tensor->role), graph->ar_length,
                               graph->context_length, show(rank, dims).text);
  }
  bool integer = tensor->role == IR_ROLE_TOKENS || tensor->role == IR_ROLE_POSITIONS;
  if (integer != (tensor->dtype == IR_I32)) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s: %s has the role %s but is %s", graph->name, tensor->name,
                               ir_role_name(tensor->role), ir_dtype_name(tensor->dtype));
  }
  if (ir_graph_find_role(graph, tensor->role, tensor->layer) != tensor) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s: two boundary tensors have the role %s (layer %d)", graph->name,
                               ir_role_name(tensor->role), tensor->layer);
  }
  return NULL;
}

static genai_status* verify_tensor(const ir_graph* graph, uint32_t index) {
  const ir_tensor* tensor = graph->tensors[index];
  const char* fault = NULL;
  if (tensor->id != (int32_t)index) fault = "its id is not its place";
  if (ir_graph_find(graph, tensor->name) != tensor) fault = "its name is taken by another tensor";
  if (tensor->kind == IR_STATIC && !tensor->source == !tensor->integers) fault = "a static needs reals or integers, one of the two";
  if (tensor->kind != IR_STATIC && (tensor->source || tensor->integers)) fault = "only statics have values";
  if (tensor->kind == IR_OUTPUT && tensor->producer < 0) fault = "no operator writes this output";
  if (tensor->producer >= 0 && ((uint32_t)tensor->producer >= graph->n_ops || graph->ops[tensor->producer]->output != tensor->id)) {
    fault = "its producer does not write it";
  }
  if (!fault) fault = encoding_fault(tensor);
  if (!fault) return NULL;
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s, tensor %s: %s", graph->name, tensor->name, fault);
}

static genai_status* verify_op(const ir_graph* graph, uint32_t index) {
  const ir_op* op = graph->ops[index];
  if (op->id != (int32_t)index) return bad(graph, op, "its id is not its place");
  if (ir_graph_find_op(graph, op->name) != op) return bad(graph, op, "its name is taken by another operator");
  for (uint32_t i = 0; i < op->n_inputs; ++i) {
    const ir_tensor* tensor = input(graph, op, i);
    bool ready = tensor->kind == IR_INPUT || tensor->kind == IR_STATIC || (tensor->producer >= 0 && tensor->producer < op->id);
    if (!ready) {
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s, %s %s: input %s is not computed before it", graph->name,
                                 ir_op_kind_name(op->kind), op->name, tensor->name);
    }
  }
  if (graph->tensors[op->output]->producer != op->id) return bad(graph, op, "its output has another producer");
  return op_rules[op->kind](graph, op);
}

genai_status* ir_graph_verify(const ir_graph* graph) {
  if (graph->context_length < graph->ar_length) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s: AR length %u is more than the context %u", graph->name,
                               graph->ar_length, graph->context_length);
  }
  for (uint32_t i = 0; i < graph->n_tensors; ++i) GENAI_TRY(verify_tensor(graph, i));
  for (uint32_t i = 0; i < graph->n_ops; ++i) GENAI_TRY(verify_op(graph, i));
  for (uint32_t i = 0; i < graph->n_inputs; ++i) GENAI_TRY(verify_boundary(graph, graph->tensors[graph->inputs[i]], IR_INPUT));
  for (uint32_t i = 0; i < graph->n_outputs; ++i) GENAI_TRY(verify_boundary(graph, graph->tensors[graph->outputs[i]], IR_OUTPUT));
  return NULL;
}
