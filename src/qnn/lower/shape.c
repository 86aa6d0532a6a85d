/* Operators that only move elements.
 * IR_GATHER -> Gather: axis (signed). IR_CONCAT -> Concat: axis. IR_SLICE -> StridedSlice: ranges [rank, 3] of begin, end, stride.
 * IR_RESHAPE -> Reshape: none, the shape is the output's. IR_TRANSPOSE -> Transpose: perm. */
#include "qnn/lower/lower.h"

genai_status* qnn_lower_gather(qnn_lowering* self, const ir_op* op) {
  qnn_api_param axis = qnn_param_i32("axis", op->attr.axis);
  return qnn_lowering_add(self, op, "Gather", &axis, 1);
}

genai_status* qnn_lower_concat(qnn_lowering* self, const ir_op* op) {
  qnn_api_param axis = qnn_param_u32("axis", (uint32_t)op->attr.axis);
  return qnn_lowering_add(self, op, "Concat", &axis, 1);
}

genai_status* qnn_lower_slice(qnn_lowering* self, const ir_op* op) {
  uint32_t rank = qnn_lowering_input(self, op, 0)->rank;
  int32_t ranges[3 * IR_MAX_RANK];
  for (uint32_t i = 0; i < rank; ++i) {
    ranges[3 * i] = (int32_t)op->attr.slice.begin[i];
    ranges[3 * i + 1] = (int32_t)op->attr.slice.end[i];
    ranges[3 * i + 2] = 1;
  }
  qnn_api_param param;
  GENAI_TRY(qnn_param_table(self, op, "ranges", QNN_API_INT_32, 2, (const uint32_t[]){rank, 3}, ranges, &param));
  return qnn_lowering_add(self, op, "StridedSlice", &param, 1);
}

genai_status* qnn_lower_reshape(qnn_lowering* self, const ir_op* op) {
  return qnn_lowering_add(self, op, "Reshape", NULL, 0);
}

genai_status* qnn_lower_transpose(qnn_lowering* self, const ir_op* op) {
  uint32_t rank = qnn_lowering_input(self, op, 0)->rank;
  qnn_api_param perm;
  GENAI_TRY(qnn_param_table(self, op, "perm", QNN_API_UINT_32, 1, (const uint32_t[]){rank}, op->attr.perm, &perm));
  return qnn_lowering_add(self, op, "Transpose", &perm, 1);
}
