/* IR_CONVERT: the same reals in another encoding or storage type -> Convert; Quantize from float, Dequantize to float, Cast from integers.
 * Where nothing changes it is a Reshape to the same shape: the API has no identity. */
#include "qnn/lower/lower.h"

genai_status* qnn_lower_convert(qnn_lowering* self, const ir_op* op) {
  const ir_tensor* from = qnn_lowering_input(self, op, 0);
  const ir_tensor* to = qnn_lowering_output(self, op);
  bool from_quantized = from->encoding.kind != IR_ENCODING_NONE, to_quantized = to->encoding.kind != IR_ENCODING_NONE;
  const char* type = "Convert";
  if (!from_quantized && !to_quantized) {
    type = from->dtype == to->dtype ? "Reshape" : "Cast";
  } else if (!from_quantized) {
    type = "Quantize";
  } else if (!to_quantized) {
    type = "Dequantize";
  } else if (from->dtype == to->dtype && ir_encoding_equal(&from->encoding, &to->encoding)) {
    type = "Reshape";
  }
  return qnn_lowering_add(self, op, type, NULL, 0);
}
