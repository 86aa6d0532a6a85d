/* The table of element types and the size arithmetic on shapes. What the bits of a block mean is dequantize.c. */
#include <stdio.h>

#include "checkpoint/checkpoint_internal.h"

/* Block sizes and bytes: ggml's block structures (ggml-common.h), see docs/formats/gguf.md. */
static const struct {
  const char* name;
  uint32_t block_size;
  uint32_t block_bytes;
} types[ELEMENT_TYPE_COUNT] = {
    [ELEMENT_F32] = {"F32", 1, 4},       [ELEMENT_F16] = {"F16", 1, 2},         [ELEMENT_BF16] = {"BF16", 1, 2},
    [ELEMENT_Q4_0] = {"Q4_0", 32, 18},   [ELEMENT_Q4_1] = {"Q4_1", 32, 20},     [ELEMENT_Q5_0] = {"Q5_0", 32, 22},
    [ELEMENT_Q5_1] = {"Q5_1", 32, 24},   [ELEMENT_Q8_0] = {"Q8_0", 32, 34},     [ELEMENT_Q2_K] = {"Q2_K", 256, 84},
    [ELEMENT_Q3_K] = {"Q3_K", 256, 110}, [ELEMENT_Q4_K] = {"Q4_K", 256, 144},   [ELEMENT_Q5_K] = {"Q5_K", 256, 176},
    [ELEMENT_Q6_K] = {"Q6_K", 256, 210}, [ELEMENT_IQ4_NL] = {"IQ4_NL", 32, 18}, [ELEMENT_IQ4_XS] = {"IQ4_XS", 256, 136},
    [ELEMENT_MXFP4] = {"MXFP4", 32, 17},
};

const char* element_type_name(element_type type) {
  return types[type].name;
}
uint32_t element_block_size(element_type type) {
  return types[type].block_size;
}
uint32_t element_block_bytes(element_type type) {
  return types[type].block_bytes;
}

bool tensor_bytes(element_type type, const uint64_t* dims, uint32_t rank, uint64_t* bytes) {
  uint64_t blocks = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    uint64_t factor = dims[i];
    if (i + 1 == rank) {
      if (factor % types[type].block_size) return false;
      factor /= types[type].block_size;
    }
    if (!u64_mul(blocks, factor, &blocks)) return false;
  }
  /* The element count must fit too, so that readers may multiply the dimensions. */
  uint64_t elements;
  if (!u64_mul(blocks, types[type].block_size, &elements)) return false;
  return u64_mul(blocks, types[type].block_bytes, bytes);
}

shape_text describe_shape(const uint64_t* dims, uint32_t rank) {
  shape_text out = {"["};
  size_t length = 1;
  for (uint32_t i = 0; i < rank && length < sizeof out.text; ++i) {
    int written = snprintf(out.text + length, sizeof out.text - length, i ? ", %llu" : "%llu", (unsigned long long)dims[i]);
    length += written > 0 ? (size_t)written : 0;
  }
  if (length < sizeof out.text - 1) {
    out.text[length] = ']';
    out.text[length + 1] = 0;
  }
  return out;
}
