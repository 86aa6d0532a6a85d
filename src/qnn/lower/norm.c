/* Normalisations over the last axis.
 * IR_RMS_NORM -> RmsNorm, IR_LAYER_NORM -> LayerNorm: epsilon, axes {last}; inputs x, gamma, beta. RmsNorm without beta compiles from
 * QAIRT 2.49 only, so the IR always has one. */
#include "qnn/lower/lower.h"

static genai_status* lower_norm(qnn_lowering* self, const ir_op* op, const char* type) {
  uint32_t last = qnn_lowering_input(self, op, 0)->rank - 1;
  qnn_api_param params[2] = {qnn_param_f32("epsilon", op->attr.epsilon)};
  GENAI_TRY(qnn_param_table(self, op, "axes", QNN_API_UINT_32, 1, (const uint32_t[]){1}, &last, &params[1]));
  return qnn_lowering_add(self, op, type, params, 2);
}

genai_status* qnn_lower_rms_norm(qnn_lowering* self, const ir_op* op) {
  return lower_norm(self, op, "RmsNorm");
}

genai_status* qnn_lower_layer_norm(qnn_lowering* self, const ir_op* op) {
  return lower_norm(self, op, "LayerNorm");
}
