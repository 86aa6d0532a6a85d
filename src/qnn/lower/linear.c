/* Linear layers and products of activations.
 * IR_CONV2D -> Conv2d: stride {1, 1}, pad_amount 0, group 1; weights are in the API's own order [1, 1, K, N].
 * IR_MATMUL -> MatMul: transpose_in0, transpose_in1. */
#include "qnn/lower/lower.h"

genai_status* qnn_lower_conv2d(qnn_lowering* self, const ir_op* op) {
  static const uint32_t stride[2] = {1, 1}, padding[4] = {0};
  qnn_api_param params[3];
  GENAI_TRY(qnn_param_table(self, op, "stride", QNN_API_UINT_32, 1, (const uint32_t[]){2}, stride, &params[0]));
  GENAI_TRY(qnn_param_table(self, op, "pad_amount", QNN_API_UINT_32, 2, (const uint32_t[]){2, 2}, padding, &params[1]));
  params[2] = qnn_param_u32("group", 1);
  return qnn_lowering_add(self, op, "Conv2d", params, 3);
}

genai_status* qnn_lower_matmul(qnn_lowering* self, const ir_op* op) {
  qnn_api_param params[] = {qnn_param_bool("transpose_in0", op->attr.matmul.transpose_a),
                            qnn_param_bool("transpose_in1", op->attr.matmul.transpose_b)};
  return qnn_lowering_add(self, op, "MatMul", params, 2);
}
