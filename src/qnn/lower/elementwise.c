/* Element by element: sums, differences, products (the API broadcasts as the IR does), activations, and the softmax.
 * IR_ADD, IR_SUBTRACT, IR_MULTIPLY -> ElementWiseAdd, ElementWiseSubtract, ElementWiseMultiply; IR_SIGMOID -> Sigmoid, IR_TANH -> Tanh,
 * IR_GELU -> Gelu: no parameters. IR_SOFTMAX -> Softmax: axis = last; beta is 1 by default. */
#include "qnn/lower/lower.h"

genai_status* qnn_lower_elementwise(qnn_lowering* self, const ir_op* op) {
  return qnn_lowering_add(self, op, ir_op_kind_name(op->kind), NULL, 0);
}

genai_status* qnn_lower_softmax(qnn_lowering* self, const ir_op* op) {
  qnn_api_param axis = qnn_param_u32("axis", qnn_lowering_input(self, op, 0)->rank - 1);
  return qnn_lowering_add(self, op, "Softmax", &axis, 1);
}
