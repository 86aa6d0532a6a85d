/* A graph of the IR as torch.export's serialized program: tensors, one ATen operator for each of ours, signature. Field names are those of
 * torch/_export/serde/schema.py. Inspectors read names, handles and structure; nothing executes this program, so that it has no weights and
 * a batched product's transposed operand is only said in the node's text. */
#include "executorch/etrecord_program.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"

enum { SCHEMA_MAJOR = 5, SCHEMA_MINOR = 4, ATEN_OPSET = 10, TYPE_INT = 4, TYPE_FLOAT = 7, LAYOUT_STRIDED = 7 };

typedef struct program {
  json_writer writer;
  const ir_graph* graph;
  arena memory;
  char** names; /* of tensors, as identifiers */
} program;

/* ---- Names ---- */
/* A tensor's name with every character that Python does not allow replaced; its id follows when that is not unique. */
static genai_status* name_tensors(program* self) {
  const ir_graph* graph = self->graph;
  self->names = arena_calloc(&self->memory, graph->n_tensors + 1, sizeof *self->names);
  if (!self->names) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < graph->n_tensors; i++) {
    const char* given = graph->tensors[i]->name;
    bool digit = *given >= '0' && *given <= '9', replaced = digit;
    char* name = arena_printf(&self->memory, "%s%s", digit ? "_" : "", given);
    if (!name) return genai_status_out_of_memory();
    for (char* p = name; *p; p++) {
      bool fine = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '_' || *p == '.';
      if (!fine) replaced = true;
      if (!fine || *p == '.') *p = '_';
    }
    if (replaced) name = arena_printf(&self->memory, "%s_%u", name, i);
    if (!name) return genai_status_out_of_memory();
    self->names[i] = name;
  }
  return NULL;
}

/* ---- Arguments ---- */
static void tensor_value(program* self, int32_t tensor) {
  json_begin_object(&self->writer);
  json_key(&self->writer, "as_tensor");
  json_begin_object(&self->writer);
  json_key(&self->writer, "name");
  json_write_string(&self->writer, self->names[tensor]);
  json_end_object(&self->writer);
  json_end_object(&self->writer);
}

static void begin_argument(program* self, const char* name, const char* type) {
  json_begin_object(&self->writer);
  json_key(&self->writer, "name");
  json_write_string(&self->writer, name);
  json_key(&self->writer, "arg");
  if (!type) return;
  json_begin_object(&self->writer);
  json_key(&self->writer, type);
}

static void end_argument(program* self, bool has_type) {
  if (has_type) json_end_object(&self->writer);
  json_end_object(&self->writer);
}

static void argument_tensor(program* self, const char* name, int32_t tensor) {
  begin_argument(self, name, NULL);
  tensor_value(self, tensor);
  end_argument(self, false);
}

static void argument_int(program* self, const char* name, int64_t value) {
  begin_argument(self, name, "as_int");
  json_write_integer(&self->writer, value);
  end_argument(self, true);
}

static void argument_float(program* self, const char* name, double value) {
  begin_argument(self, name, "as_float");
  json_write_number(&self->writer, value);
  end_argument(self, true);
}

static void argument_bool(program* self, const char* name, bool value) {
  begin_argument(self, name, "as_bool");
  json_write_bool(&self->writer, value);
  end_argument(self, true);
}

static void argument_none(program* self, const char* name) {
  begin_argument(self, name, "as_none");
  json_write_bool(&self->writer, true);
  end_argument(self, true);
}

static void argument_ints(program* self, const char* name, const uint32_t* values, uint32_t count) {
  begin_argument(self, name, "as_ints");
  json_begin_array(&self->writer);
  for (uint32_t i = 0; i < count; i++) json_write_unsigned(&self->writer, values[i]);
  json_end_array(&self->writer);
  end_argument(self, true);
}

static void argument_tensors(program* self, const char* name, const ir_op* op) {
  begin_argument(self, name, "as_tensors");
  json_begin_array(&self->writer);
  for (uint32_t i = 0; i < op->n_inputs; i++) {
    json_begin_object(&self->writer);
    json_key(&self->writer, "name");
    json_write_string(&self->writer, self->names[op->inputs[i]]);
    json_end_object(&self->writer);
  }
  json_end_array(&self->writer);
  end_argument(self, true);
}

/* ---- Operators ---- */
static const char* aten_target(ir_op_kind kind) {
  static const char* const targets[IR_OP_KIND_COUNT] = {[IR_GATHER] = "embedding.default",
                                                        [IR_RMS_NORM] = "rms_norm.default",
                                                        [IR_LAYER_NORM] = "layer_norm.default",
                                                        [IR_CONV2D] = "convolution.default",
                                                        [IR_MATMUL] = "matmul.default",
                                                        [IR_ADD] = "add.Tensor",
                                                        [IR_SUBTRACT] = "sub.Tensor",
                                                        [IR_MULTIPLY] = "mul.Tensor",
                                                        [IR_SIGMOID] = "sigmoid.default",
                                                        [IR_TANH] = "tanh.default",
                                                        [IR_GELU] = "gelu.default",
                                                        [IR_SOFTMAX] = "_softmax.default",
                                                        [IR_CONCAT] = "cat.default",
                                                        [IR_SLICE] = "slice_copy.Tensor",
                                                        [IR_RESHAPE] = "view_copy.default",
                                                        [IR_TRANSPOSE] = "permute_copy.default",
                                                        [IR_CONVERT] = "clone.default"};
  return targets[kind];
}

static void norm_arguments(program* self, const ir_op* op) {
  const ir_tensor* x = self->graph->tensors[op->inputs[0]];
  argument_tensor(self, "input", op->inputs[0]);
  argument_ints(self, "normalized_shape", &x->dims[x->rank - 1], 1);
  argument_tensor(self, "weight", op->inputs[1]);
  if (op->kind == IR_LAYER_NORM && op->n_inputs > 2) argument_tensor(self, "bias", op->inputs[2]);
  argument_float(self, "eps", (double)op->attr.epsilon);
}

static void convolution_arguments(program* self, const ir_op* op) {
  static const uint32_t ones[2] = {1, 1}, zeros[2] = {0, 0};
  argument_tensor(self, "input", op->inputs[0]);
  argument_tensor(self, "weight", op->inputs[1]);
  if (op->n_inputs > 2) {
    argument_tensor(self, "bias", op->inputs[2]);
  } else {
    argument_none(self, "bias");
  }
  argument_ints(self, "stride", ones, 2);
  argument_ints(self, "padding", zeros, 2);
  argument_ints(self, "dilation", ones, 2);
  argument_bool(self, "transposed", false);
  argument_ints(self, "output_padding", zeros, 2);
  argument_int(self, "groups", 1);
}

/* One dimension is cut in practice; it is the one that is said. */
static void slice_arguments(program* self, const ir_op* op) {
  const ir_tensor* x = self->graph->tensors[op->inputs[0]];
  uint32_t cut = 0;
  for (uint32_t d = 0; d < x->rank; d++) {
    if (op->attr.slice.begin[d] || op->attr.slice.end[d] != x->dims[d]) cut = d;
  }
  argument_tensor(self, "self", op->inputs[0]);
  argument_int(self, "dim", cut);
  argument_int(self, "start", op->attr.slice.begin[cut]);
  argument_int(self, "end", op->attr.slice.end[cut]);
}

static void arguments(program* self, const ir_op* op) {
  const ir_tensor* y = self->graph->tensors[op->output];
  switch (op->kind) {
    case IR_GATHER:
      argument_tensor(self, "weight", op->inputs[0]);
      argument_tensor(self, "indices", op->inputs[1]);
      return;
    case IR_RMS_NORM:
    case IR_LAYER_NORM:
      norm_arguments(self, op);
      return;
    case IR_CONV2D:
      convolution_arguments(self, op);
      return;
    case IR_CONCAT:
      argument_tensors(self, "tensors", op);
      argument_int(self, "dim", op->attr.axis);
      return;
    case IR_SLICE:
      slice_arguments(self, op);
      return;
    case IR_MATMUL:
    case IR_ADD:
    case IR_SUBTRACT:
    case IR_MULTIPLY:
      argument_tensor(self, "self", op->inputs[0]);
      argument_tensor(self, "other", op->inputs[1]);
      return;
    default:
      break;
  }
  argument_tensor(self, "self", op->inputs[0]);
  if (op->kind == IR_SOFTMAX) {
    argument_int(self, "dim", -1);
    argument_bool(self, "half_to_float", false);
  }
  if (op->kind == IR_RESHAPE) argument_ints(self, "size", y->dims, y->rank);
  if (op->kind == IR_TRANSPOSE) argument_ints(self, "dims", op->attr.perm, y->rank);
}

static genai_status* metadata(program* self, const ir_op* op, uint32_t handle) {
  char number[16];
  char* story = arena_printf(&self->memory, "QNN %s %s%s%s", ir_op_kind_name(op->kind), op->name,
                             op->kind == IR_MATMUL && op->attr.matmul.transpose_a ? " (first operand transposed)" : "",
                             op->kind == IR_MATMUL && op->attr.matmul.transpose_b ? " (second operand transposed)" : "");
  if (!story) return genai_status_out_of_memory();
  snprintf(number, sizeof number, "%u", handle);
  json_key(&self->writer, "metadata");
  json_begin_object(&self->writer);
  json_key(&self->writer, "debug_handle");
  json_write_string(&self->writer, number);
  json_key(&self->writer, "stack_trace");
  json_write_string(&self->writer, story);
  json_end_object(&self->writer);
  return NULL;
}

static genai_status* node(program* self, uint32_t index) {
  const ir_op* op = self->graph->ops[index];
  char* target = arena_printf(&self->memory, "torch.ops.aten.%s", aten_target(op->kind));
  if (!target) return genai_status_out_of_memory();
  json_begin_object(&self->writer);
  json_key(&self->writer, "name");
  json_write_string(&self->writer, self->names[op->output]);
  json_key(&self->writer, "target");
  json_write_string(&self->writer, target);
  json_key(&self->writer, "inputs");
  json_begin_array(&self->writer);
  arguments(self, op);
  json_end_array(&self->writer);
  json_key(&self->writer, "outputs");
  json_begin_array(&self->writer);
  tensor_value(self, op->output);
  json_end_array(&self->writer);
  GENAI_TRY(metadata(self, op, index + 1));
  json_end_object(&self->writer);
  return NULL;
}

/* ---- Tensors ---- */
static void integer_value(program* self, uint64_t value) {
  json_begin_object(&self->writer);
  json_key(&self->writer, "as_int");
  json_write_unsigned(&self->writer, value);
  json_end_object(&self->writer);
}

static void tensor_meta(program* self, const ir_tensor* tensor) {
  json_writer* writer = &self->writer;
  uint64_t strides[IR_MAX_RANK], stride = 1;
  for (uint32_t d = tensor->rank; d-- > 0; stride *= tensor->dims[d]) strides[d] = stride;
  json_key(writer, self->names[tensor->id]);
  json_begin_object(writer);
  json_key(writer, "dtype");
  json_write_integer(writer, tensor->dtype == IR_I32 ? TYPE_INT : TYPE_FLOAT);
  json_key(writer, "sizes");
  json_begin_array(writer);
  for (uint32_t d = 0; d < tensor->rank; d++) integer_value(self, tensor->dims[d]);
  json_end_array(writer);
  json_key(writer, "requires_grad");
  json_write_bool(writer, false);
  json_key(writer, "device");
  json_begin_object(writer);
  json_key(writer, "type");
  json_write_string(writer, "cpu");
  json_end_object(writer);
  json_key(writer, "strides");
  json_begin_array(writer);
  for (uint32_t d = 0; d < tensor->rank; d++) integer_value(self, strides[d]);
  json_end_array(writer);
  json_key(writer, "storage_offset");
  integer_value(self, 0);
  json_key(writer, "layout");
  json_write_integer(writer, LAYOUT_STRIDED);
  json_end_object(writer);
}

/* ---- The whole ---- */
/* What comes in: the graph's inputs in order, then the statics. */
static uint32_t list_inputs(const program* self, int32_t* out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < self->graph->n_inputs; i++) out[count++] = self->graph->inputs[i];
  for (uint32_t i = 0; i < self->graph->n_tensors; i++) {
    if (self->graph->tensors[i]->kind == IR_STATIC) out[count++] = (int32_t)i;
  }
  return count;
}

static void tensor_list(program* self, const char* key, const int32_t* ids, uint32_t count) {
  json_key(&self->writer, key);
  json_begin_array(&self->writer);
  for (uint32_t i = 0; i < count; i++) tensor_value(self, ids[i]);
  json_end_array(&self->writer);
}

static void specs(program* self, const char* key, const char* kind, const int32_t* ids, uint32_t count) {
  json_key(&self->writer, key);
  json_begin_array(&self->writer);
  for (uint32_t i = 0; i < count; i++) {
    json_begin_object(&self->writer);
    json_key(&self->writer, kind);
    json_begin_object(&self->writer);
    json_key(&self->writer, "arg");
    tensor_value(self, ids[i]);
    json_end_object(&self->writer);
    json_end_object(&self->writer);
  }
  json_end_array(&self->writer);
}

static genai_status* write_nodes(program* self) {
  json_key(&self->writer, "nodes");
  json_begin_array(&self->writer);
  for (uint32_t i = 0; i < self->graph->n_ops; i++) GENAI_TRY(node(self, i));
  json_end_array(&self->writer);
  return NULL;
}

static genai_status* write_graph(program* self, const int32_t* inputs, uint32_t n_inputs) {
  json_writer* writer = &self->writer;
  static const char* const empty[] = {"sym_int_values", "sym_bool_values"};
  json_key(writer, "graph");
  json_begin_object(writer);
  tensor_list(self, "inputs", inputs, n_inputs);
  tensor_list(self, "outputs", self->graph->outputs, self->graph->n_outputs);
  GENAI_TRY(write_nodes(self));
  json_key(writer, "tensor_values");
  json_begin_object(writer);
  for (uint32_t i = 0; i < self->graph->n_tensors; i++) tensor_meta(self, self->graph->tensors[i]);
  json_end_object(writer);
  for (size_t i = 0; i < 2; i++) {
    json_key(writer, empty[i]);
    json_begin_object(writer);
    json_end_object(writer);
  }
  json_key(writer, "is_single_tensor_return");
  json_write_bool(writer, false);
  json_key(writer, "custom_obj_values");
  json_begin_object(writer);
  json_end_object(writer);
  json_end_object(writer);
  return NULL;
}

static void write_signature(program* self, const int32_t* inputs, uint32_t n_inputs) {
  json_writer* writer = &self->writer;
  json_key(writer, "signature");
  json_begin_object(writer);
  specs(self, "input_specs", "user_input", inputs, n_inputs);
  specs(self, "output_specs", "user_output", self->graph->outputs, self->graph->n_outputs);
  json_end_object(writer);
  json_key(writer, "module_call_graph");
  json_begin_array(writer);
  json_end_array(writer);
}

static void write_versions(json_writer* writer) {
  json_key(writer, "opset_version");
  json_begin_object(writer);
  json_key(writer, "aten");
  json_write_integer(writer, ATEN_OPSET);
  json_end_object(writer);
  json_key(writer, "range_constraints");
  json_begin_object(writer);
  json_end_object(writer);
  json_key(writer, "schema_version");
  json_begin_object(writer);
  json_key(writer, "major");
  json_write_integer(writer, SCHEMA_MAJOR);
  json_key(writer, "minor");
  json_write_integer(writer, SCHEMA_MINOR);
  json_end_object(writer);
  json_key(writer, "dialect");
  json_write_string(writer, "");
  json_key(writer, "verifiers");
  json_begin_array(writer);
  json_write_string(writer, "TRAINING"); /* allows every ATen operator */
  json_end_array(writer);
}

static genai_status* write_program(program* self) {
  int32_t* inputs = arena_calloc(&self->memory, self->graph->n_inputs + self->graph->n_tensors + 1, sizeof *inputs);
  if (!inputs) return genai_status_out_of_memory();
  uint32_t n_inputs = list_inputs(self, inputs);
  json_begin_object(&self->writer);
  json_key(&self->writer, "graph_module");
  json_begin_object(&self->writer);
  GENAI_TRY(write_graph(self, inputs, n_inputs));
  write_signature(self, inputs, n_inputs);
  json_end_object(&self->writer);
  write_versions(&self->writer);
  json_end_object(&self->writer);
  return NULL;
}

genai_status* etrecord_program(const ir_graph* graph, text* out) {
  program self = {.graph = graph};
  json_writer_init(&self.writer, out, false);
  genai_status* status = name_tensors(&self);
  if (!status) status = write_program(&self);
  genai_status* written = json_writer_finish(&self.writer);
  arena_deinit(&self.memory);
  if (!status) return written;
  genai_status_free(written);
  return status;
}
