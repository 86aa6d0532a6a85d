/* Stored elements to float: exact widening of the float types, and ggml's block formats. Each block function writes the numbers that ggml's
 * dequantize_row_* writes (ggml-quants.c), in the same order of operations; the layouts are in docs/formats/gguf.md. */
#include <string.h>

#include "checkpoint/checkpoint_internal.h"

/* 4-bit codes of IQ4_NL and IQ4_XS, and the doubled values of MXFP4's E2M1 codes. */
static const int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int8_t e2m1_doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static float load_half(const uint8_t* p) {
  return half_to_float(load_u16(p));
}

static float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void q4_0(const uint8_t* block, float* out) {
  float d = load_half(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = (float)((block[2 + i] & 15) - 8) * d;
    out[16 + i] = (float)((block[2 + i] >> 4) - 8) * d;
  }
}

static void q4_1(const uint8_t* block, float* out) {
  float d = load_half(block);
  float m = load_half(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = (float)(block[4 + i] & 15) * d + m;
    out[16 + i] = (float)(block[4 + i] >> 4) * d + m;
  }
}

static void q5_0(const uint8_t* block, float* out) {
  float d = load_half(block);
  uint32_t high = load_u32(block + 2);
  for (int i = 0; i < 16; ++i) {
    int low = (int)((block[6 + i] & 15u) | (high >> i & 1u) << 4);
    int upper = (int)(block[6 + i] >> 4 | (high >> (16 + i) & 1u) << 4);
    out[i] = (float)(low - 16) * d;
    out[16 + i] = (float)(upper - 16) * d;
  }
}

static void q5_1(const uint8_t* block, float* out) {
  float d = load_half(block);
  float m = load_half(block + 2);
  uint32_t high = load_u32(block + 4);
  for (int i = 0; i < 16; ++i) {
    out[i] = (float)((block[8 + i] & 15u) | (high >> i & 1u) << 4) * d + m;
    out[16 + i] = (float)(block[8 + i] >> 4 | (high >> (16 + i) & 1u) << 4) * d + m;
  }
}

static void q8_0(const uint8_t* block, float* out) {
  float d = load_half(block);
  for (int i = 0; i < 32; ++i) out[i] = (float)(int8_t)block[2 + i] * d;
}

static void q2_k(const uint8_t* block, float* out) {
  const uint8_t* scales = block;
  const uint8_t* q = block + 16;
  float d = load_half(block + 80);
  float minimum = load_half(block + 82);
  for (int i = 0; i < 256; ++i) {
    int scale = scales[i / 16];
    int code = q[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
    out[i] = d * (float)(scale & 15) * (float)code - minimum * (float)(scale >> 4);
  }
}

static void q3_k(const uint8_t* block, float* out) {
  const uint8_t* mask = block;
  const uint8_t* q = block + 32;
  const uint8_t* packed = block + 96;
  float d = load_half(block + 108);
  for (int i = 0; i < 256; ++i) {
    int s = i / 16;
    int scale = (packed[s % 8] >> (s / 8 * 4) & 15) | (packed[8 + s % 4] >> (s / 4 * 2) & 3) << 4;
    int code = q[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2) & 3;
    if (!(mask[i % 32] >> (i / 32) & 1)) code -= 4;
    out[i] = d * (float)(scale - 32) * (float)code;
  }
}

/* Scale and minimum `j` of 8, six bits each, of Q4_K and Q5_K. */
static void k_scale(const uint8_t* packed, int j, int* scale, int* minimum) {
  if (j < 4) {
    *scale = packed[j] & 63;
    *minimum = packed[j + 4] & 63;
  } else {
    *scale = (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4;
    *minimum = packed[j + 4] >> 4 | (packed[j] >> 6) << 4;
  }
}

static void q4_k(const uint8_t* block, float* out) {
  float d = load_half(block);
  float minimum = load_half(block + 2);
  for (int j = 0; j < 8; ++j) {
    int scale, offset;
    k_scale(block + 4, j, &scale, &offset);
    float step = d * (float)scale;
    float base = minimum * (float)offset;
    const uint8_t* q = block + 16 + j / 2 * 32;
    for (int i = 0; i < 32; ++i) out[j * 32 + i] = step * (float)(q[i] >> (j % 2 * 4) & 15) - base;
  }
}

static void q5_k(const uint8_t* block, float* out) {
  float d = load_half(block);
  float minimum = load_half(block + 2);
  const uint8_t* high = block + 16;
  for (int j = 0; j < 8; ++j) {
    int scale, offset;
    k_scale(block + 4, j, &scale, &offset);
    float step = d * (float)scale;
    float base = minimum * (float)offset;
    const uint8_t* q = block + 48 + j / 2 * 32;
    for (int i = 0; i < 32; ++i) out[j * 32 + i] = step * (float)((q[i] >> (j % 2 * 4) & 15) + (high[i] >> j & 1) * 16) - base;
  }
}

static void q6_k(const uint8_t* block, float* out) {
  const uint8_t* low = block;
  const uint8_t* high = block + 128;
  const uint8_t* scales = block + 192;
  float d = load_half(block + 208);
  for (int i = 0; i < 256; ++i) {
    int half = i / 128;
    int part = i / 32 % 4;
    int code = (low[half * 64 + part % 2 * 32 + i % 32] >> (part / 2 * 4) & 15) | (high[half * 32 + i % 32] >> (part * 2) & 3) << 4;
    out[i] = d * (float)(int8_t)scales[i / 16] * (float)(code - 32);
  }
}

static void iq4_nl(const uint8_t* block, float* out) {
  float d = load_half(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * (float)iq4_values[block[2 + i] & 15];
    out[16 + i] = d * (float)iq4_values[block[2 + i] >> 4];
  }
}

static void iq4_xs(const uint8_t* block, float* out) {
  float d = load_half(block);
  unsigned high = load_u16(block + 2);
  for (int j = 0; j < 8; ++j) {
    int scale = (int)((block[4 + j / 2] >> (j % 2 * 4) & 15u) | (high >> (2 * j) & 3u) << 4);
    float step = d * (float)(scale - 32);
    const uint8_t* q = block + 8 + j * 16;
    for (int i = 0; i < 16; ++i) {
      out[j * 32 + i] = step * (float)iq4_values[q[i] & 15];
      out[j * 32 + 16 + i] = step * (float)iq4_values[q[i] >> 4];
    }
  }
}

static void mxfp4(const uint8_t* block, float* out) {
  /* Half of 2^(e-127): the table holds doubled values. For e < 2 that is subnormal. */
  float d = from_bits(block[0] < 2 ? 0x00200000u << block[0] : (block[0] - 1u) << 23);
  for (int i = 0; i < 16; ++i) {
    out[i] = (float)e2m1_doubled[block[1 + i] & 15] * d;
    out[16 + i] = (float)e2m1_doubled[block[1 + i] >> 4] * d;
  }
}

typedef void (*block_function)(const uint8_t* block, float* out);
static const block_function block_functions[ELEMENT_TYPE_COUNT] = {
    [ELEMENT_Q4_0] = q4_0,     [ELEMENT_Q4_1] = q4_1,     [ELEMENT_Q5_0] = q5_0,   [ELEMENT_Q5_1] = q5_1, [ELEMENT_Q8_0] = q8_0,
    [ELEMENT_Q2_K] = q2_k,     [ELEMENT_Q3_K] = q3_k,     [ELEMENT_Q4_K] = q4_k,   [ELEMENT_Q5_K] = q5_k, [ELEMENT_Q6_K] = q6_k,
    [ELEMENT_IQ4_NL] = iq4_nl, [ELEMENT_IQ4_XS] = iq4_xs, [ELEMENT_MXFP4] = mxfp4,
};

static void widen(element_type type, const uint8_t* data, uint64_t count, float* out) {
  if (type == ELEMENT_F32) {
    memcpy(out, data, (size_t)count * sizeof *out);
  } else if (type == ELEMENT_F16) {
    for (uint64_t i = 0; i < count; ++i) out[i] = load_half(data + 2 * i);
  } else if (type == ELEMENT_BF16) {
    for (uint64_t i = 0; i < count; ++i) out[i] = from_bits((uint32_t)load_u16(data + 2 * i) << 16);
  } else {
    block_function function = block_functions[type];
    uint64_t size = element_block_size(type);
    uint64_t bytes = element_block_bytes(type);
    for (uint64_t i = 0; i < count / size; ++i) function(data + i * bytes, out + i * size);
  }
}

genai_status* checkpoint_read_rows(const checkpoint_tensor* tensor, uint64_t row, uint64_t count, float* out) {
  uint64_t rows = 1;
  for (uint32_t i = 0; i + 1 < tensor->rank; ++i) rows *= tensor->dims[i];
  uint64_t columns = tensor->rank ? tensor->dims[tensor->rank - 1] : 1;
  if (row > rows || count > rows - row)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "rows %llu to %llu of tensor \"%s\" asked for, which has %llu",
                               (unsigned long long)row, (unsigned long long)(row + count), quote_cstr(tensor->name).text,
                               (unsigned long long)rows);
  if (!count || !columns) return NULL;
  uint64_t row_bytes = columns / element_block_size(tensor->type) * element_block_bytes(tensor->type);
  widen(tensor->type, tensor->data + row * row_bytes, count * columns, out);
  return NULL;
}
