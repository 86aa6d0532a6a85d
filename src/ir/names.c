/* Names and sizes of the IR's enumerations: what people see in listings and errors. */
#include "ir/ir.h"

size_t ir_dtype_size(ir_dtype type) {
  switch (type) {
    case IR_F32:
    case IR_I32:
    case IR_S32:
      return 4;
    case IR_F16:
    case IR_U16:
    case IR_S16:
      return 2;
    case IR_U8:
    case IR_S8:
      return 1;
  }
  return 0;
}

const char* ir_dtype_name(ir_dtype type) {
  static const char* const names[] = {"f32", "f16", "i32", "u8", "u16", "s8", "s16", "s32"};
  return (size_t)type < sizeof names / sizeof *names ? names[type] : "?";
}

const char* ir_role_name(ir_role role) {
  static const char* const names[] = {"none",   "tokens",   "positions", "mask",      "mask_sliding",
                                      "key_in", "value_in", "key_out",   "value_out", "logits"};
  return (size_t)role < sizeof names / sizeof *names ? names[role] : "?";
}

const char* ir_op_kind_name(ir_op_kind kind) {
  static const char* const names[IR_OP_KIND_COUNT] = {
      [IR_GATHER] = "Gather",
      [IR_RMS_NORM] = "RmsNorm",
      [IR_LAYER_NORM] = "LayerNorm",
      [IR_CONV2D] = "Conv2d",
      [IR_MATMUL] = "MatMul",
      [IR_ADD] = "ElementWiseAdd",
      [IR_SUBTRACT] = "ElementWiseSubtract",
      [IR_MULTIPLY] = "ElementWiseMultiply",
      [IR_SIGMOID] = "Sigmoid",
      [IR_TANH] = "Tanh",
      [IR_GELU] = "Gelu",
      [IR_SOFTMAX] = "Softmax",
      [IR_CONCAT] = "Concat",
      [IR_SLICE] = "StridedSlice",
      [IR_RESHAPE] = "Reshape",
      [IR_TRANSPOSE] = "Transpose",
      [IR_CONVERT] = "Convert",
  };
  return (size_t)kind < IR_OP_KIND_COUNT ? names[kind] : "?";
}

bool ir_encoding_equal(const ir_encoding* a, const ir_encoding* b) {
  if (a->kind != b->kind) return false;
  if (a->kind == IR_ENCODING_NONE) return true;
  if (a->bits != b->bits) return false;
  if (a->kind == IR_ENCODING_PER_TENSOR) return a->scale == b->scale && a->offset == b->offset;
  if (a->axis != b->axis || a->channels != b->channels) return false;
  for (uint32_t i = 0; i < a->channels; ++i) {
    if (a->scales[i] != b->scales[i]) return false;
  }
  if (a->kind != IR_ENCODING_BLOCK_EXPANSION) return true;
  if (a->blocks != b->blocks) return false;
  for (size_t i = 0; i < (size_t)a->channels * a->blocks; ++i) {
    if (a->block_scales[i] != b->block_scales[i]) return false;
  }
  return true;
}

uint64_t ir_tensor_elements(const ir_tensor* tensor) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < tensor->rank; ++i) count *= tensor->dims[i];
  return count;
}
