/* Operators of the API: their parameters, their tensors, and handing them to the graph. */
#include <stdio.h>
#include <string.h>

#include "qnn/lower/lower.h"

qnn_api_param qnn_param_u32(const char* name, uint32_t value) {
  return (qnn_api_param){.kind = QNN_API_PARAM_SCALAR, .name = name, .as.scalar = {.dtype = QNN_API_UINT_32, .as.u32 = value}};
}

qnn_api_param qnn_param_i32(const char* name, int32_t value) {
  return (qnn_api_param){.kind = QNN_API_PARAM_SCALAR, .name = name, .as.scalar = {.dtype = QNN_API_INT_32, .as.i32 = value}};
}

qnn_api_param qnn_param_f32(const char* name, float value) {
  return (qnn_api_param){.kind = QNN_API_PARAM_SCALAR, .name = name, .as.scalar = {.dtype = QNN_API_FLOAT_32, .as.f32 = value}};
}

qnn_api_param qnn_param_bool(const char* name, bool value) {
  return (qnn_api_param){.kind = QNN_API_PARAM_SCALAR, .name = name, .as.scalar = {.dtype = QNN_API_BOOL_8, .as.bool8 = value}};
}

genai_status* qnn_param_table(qnn_lowering* self, const ir_op* op, const char* name, qnn_api_dtype type, uint32_t rank,
                              const uint32_t* dims, const void* values, qnn_api_param* out) {
  uint32_t count = 1;
  for (uint32_t i = 0; i < rank; ++i) count *= dims[i];
  *out = (qnn_api_param){.kind = QNN_API_PARAM_TENSOR, .name = name, .as.tensor = {.version = 1}};
  qnn_api_tensor_v1* tensor = &out->as.tensor.as.v1;
  tensor->type = QNN_API_STATIC;
  tensor->dtype = type;
  tensor->quantize = (qnn_api_quantize){.definition = QNN_API_UNDEFINED, .encoding = QNN_API_UNDEFINED};
  tensor->rank = rank;
  tensor->name = arena_printf(&self->memory, "%s.%s", op->name, name);
  tensor->dims = arena_dup(&self->memory, dims, rank * sizeof *dims);
  tensor->buffer = (qnn_api_client_buffer){.data = arena_dup(&self->memory, values, count * 4), .size = count * 4};
  if (!tensor->name || !tensor->dims || !tensor->buffer.data) return genai_status_out_of_memory();
  uint64_t code = self->library->api->tensor_create_graph_tensor(self->graph, &out->as.tensor);
  if (code) {
    return qnn_vendor_error(self->library, code, "graph '%s': parameter %s of operator '%s' is refused", self->ir->name, name, op->name);
  }
  return NULL;
}

static void describe_tensor(const ir_tensor* tensor, char* out, size_t capacity) {
  size_t used = (size_t)snprintf(out, capacity, "%s", ir_dtype_name(tensor->dtype));
  for (uint32_t i = 0; i < tensor->rank && used < capacity; ++i) {
    used += (size_t)snprintf(out + used, capacity - used, "%c%u", i ? 'x' : '[', tensor->dims[i]);
  }
  if (used < capacity) snprintf(out + used, capacity - used, "]");
}

static genai_status* refused(qnn_lowering* self, const ir_op* op, const char* type, uint64_t code) {
  char shapes[400];
  size_t used = 0;
  for (uint32_t i = 0; i <= op->n_inputs && used < sizeof shapes - 64; ++i) {
    char one[64];
    describe_tensor(i < op->n_inputs ? qnn_lowering_input(self, op, i) : qnn_lowering_output(self, op), one, sizeof one);
    used += (size_t)snprintf(shapes + used, sizeof shapes - used, "%s%s", i == op->n_inputs ? " -> " : i ? ", " : "", one);
  }
  return qnn_vendor_error(self->library, code, "graph '%s': operator '%s' (%s: %s) is refused", self->ir->name, op->name, type, shapes);
}

genai_status* qnn_lowering_add(qnn_lowering* self, const ir_op* op, const char* type, qnn_api_param* params, uint32_t n_params) {
  qnn_api_tensor* inputs = arena_calloc(&self->memory, op->n_inputs, sizeof *inputs);
  if (!inputs) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < op->n_inputs; ++i) GENAI_TRY(qnn_lowering_tensor(self, op->inputs[i], &inputs[i]));
  qnn_api_tensor output;
  GENAI_TRY(qnn_lowering_tensor(self, op->output, &output));
  qnn_api_op node = {.version = 1,
                     .v1 = {.name = op->name,
                            .package = "qti.aisw",
                            .type = type,
                            .n_params = n_params,
                            .params = params,
                            .n_inputs = op->n_inputs,
                            .inputs = inputs,
                            .n_outputs = 1,
                            .outputs = &output}};
  /* Adding does not check: a product of 9 heads with 3 would be compiled to something. */
  uint64_t code = self->library->api->backend_validate_op(self->library->backend, node);
  if (!code) code = self->library->api->graph_add_node(self->graph, node);
  if (code) return refused(self, op, type, code);
  ++self->nodes;
  return NULL;
}
