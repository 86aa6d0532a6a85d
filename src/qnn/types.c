/* Element types of the IR and of the API, each way. */
#include "qnn/qnn_internal.h"

bool qnn_dtype_from_ir(ir_dtype type, bool quantized, uint32_t* out) {
  switch (type) {
    case IR_F32:
      *out = QNN_API_FLOAT_32;
      return !quantized;
    case IR_F16:
      *out = QNN_API_FLOAT_16;
      return !quantized;
    case IR_I32:
      *out = QNN_API_INT_32;
      return !quantized;
    case IR_U8:
      *out = QNN_API_UFIXED_8;
      return quantized;
    case IR_U16:
      *out = QNN_API_UFIXED_16;
      return quantized;
    case IR_S8:
      *out = QNN_API_SFIXED_8;
      return quantized;
    case IR_S16:
      *out = QNN_API_SFIXED_16;
      return quantized;
    case IR_S32:
      *out = QNN_API_SFIXED_32;
      return quantized;
  }
  return false;
}

bool qnn_dtype_to_ir(uint32_t type, ir_dtype* out) {
  switch (type) {
    case QNN_API_FLOAT_32:
      *out = IR_F32;
      return true;
    case QNN_API_FLOAT_16:
      *out = IR_F16;
      return true;
    case QNN_API_INT_32:
    case QNN_API_UINT_32:
      *out = IR_I32;
      return true;
    case QNN_API_UFIXED_8:
      *out = IR_U8;
      return true;
    case QNN_API_UFIXED_16:
      *out = IR_U16;
      return true;
    case QNN_API_SFIXED_8:
      *out = IR_S8;
      return true;
    case QNN_API_SFIXED_16:
      *out = IR_S16;
      return true;
    case QNN_API_SFIXED_32:
      *out = IR_S32;
      return true;
    default:
      return false;
  }
}
