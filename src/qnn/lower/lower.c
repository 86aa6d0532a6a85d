/* The walk over a graph and the table that says which function lowers which operator. */
#include "qnn/lower/lower.h"

typedef genai_status* (*lower_function)(qnn_lowering* self, const ir_op* op);

static const lower_function functions[IR_OP_KIND_COUNT] = {
    [IR_GATHER] = qnn_lower_gather,        [IR_RMS_NORM] = qnn_lower_rms_norm,    [IR_LAYER_NORM] = qnn_lower_layer_norm,
    [IR_CONV2D] = qnn_lower_conv2d,        [IR_MATMUL] = qnn_lower_matmul,        [IR_ADD] = qnn_lower_elementwise,
    [IR_SUBTRACT] = qnn_lower_elementwise, [IR_MULTIPLY] = qnn_lower_elementwise, [IR_SIGMOID] = qnn_lower_elementwise,
    [IR_TANH] = qnn_lower_elementwise,     [IR_GELU] = qnn_lower_elementwise,     [IR_SOFTMAX] = qnn_lower_softmax,
    [IR_CONCAT] = qnn_lower_concat,        [IR_SLICE] = qnn_lower_slice,          [IR_RESHAPE] = qnn_lower_reshape,
    [IR_TRANSPOSE] = qnn_lower_transpose,  [IR_CONVERT] = qnn_lower_convert,
};

genai_status* qnn_lowering_init(qnn_lowering* self, const qnn_library* library, qnn_api_handle graph, const ir_graph* ir) {
  *self = (qnn_lowering){.library = library, .graph = graph, .ir = ir};
  self->tensors = arena_calloc(&self->memory, ir->n_tensors, sizeof *self->tensors);
  return self->tensors ? NULL : genai_status_out_of_memory();
}

void qnn_lowering_deinit(qnn_lowering* self) {
  arena_deinit(&self->memory);
}

/* Boundary tensors first: a binary lists them in the order of creation. */
static genai_status* create_boundary(qnn_lowering* self) {
  qnn_api_tensor ignored;
  for (uint32_t i = 0; i < self->ir->n_inputs; ++i) GENAI_TRY(qnn_lowering_tensor(self, self->ir->inputs[i], &ignored));
  for (uint32_t i = 0; i < self->ir->n_outputs; ++i) GENAI_TRY(qnn_lowering_tensor(self, self->ir->outputs[i], &ignored));
  return NULL;
}

genai_status* qnn_lowering_run(qnn_lowering* self, const cancel_token* cancel) {
  GENAI_TRY(create_boundary(self));
  for (uint32_t i = 0; i < self->ir->n_ops; ++i) {
    const ir_op* op = self->ir->ops[i];
    if ((unsigned)op->kind >= IR_OP_KIND_COUNT || !functions[op->kind]) {
      return genai_status_create(GENAI_ERROR_UNSUPPORTED, "graph '%s': operator '%s' (%s) has no lowering to QNN", self->ir->name, op->name,
                                 ir_op_kind_name(op->kind));
    }
    GENAI_TRY(cancel_check(cancel));
    GENAI_TRY(functions[op->kind](self, op));
  }
  return NULL;
}
