/* The tile unit: packing operands into bfloat16 pieces, and the product of packed operands. Which layers use it is decided in op_linear.c
 * and op_matmul.c. Instructions: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18. */
#include "cpu/amx.h"

#if defined(__x86_64__) && defined(__linux__)

#include <cpuid.h>
#include <immintrin.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AMX_CODE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")))
#define AMX_INLINE AMX_CODE static inline __attribute__((always_inline))

bool amx_available(void) {
  enum { ARCH_REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 }; /* Linux: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) */
  unsigned a, b, c, d, features;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq"))
    return false;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &features) || !(features & 1u << 22) || !(features & 1u << 24))
    return false;                                                               /* AMX-BF16, TILE */
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a & 1u << 5)) return false; /* AVX512-BF16 */
  return syscall(SYS_arch_prctl, ARCH_REQUEST_PERMISSION, TILE_DATA) == 0;
}

/* ---- packing ---- */

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

AMX_INLINE __m512 widen(__m256i halves) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

/* The next piece of 32 values, which are left with what it does not hold. */
AMX_INLINE __m512i take_piece(__m512* low, __m512* high) {
  __m512i piece = (__m512i)_mm512_cvtne2ps_pbh(*high, *low);
  *low = _mm512_sub_ps(*low, widen(_mm512_castsi512_si256(piece)));
  *high = _mm512_sub_ps(*high, widen(_mm512_extracti64x4_epi64(piece, 1)));
  return piece;
}

AMX_INLINE __mmask16 mask_of(size_t count) {
  unsigned bits = count >= 16 ? 0xffffu : (1u << count) - 1;
  return (__mmask16)bits;
}

AMX_INLINE __m512 load(const float* from, size_t count, bool to_integer, __m512 inverse) {
  __m512 values = _mm512_maskz_loadu_ps(mask_of(count), from);
  if (!to_integer) return values;
  return _mm512_roundscale_ps(_mm512_mul_ps(values, inverse), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

AMX_INLINE size_t past(size_t count, size_t step) {
  return count > step ? count - step : 0;
}

/* 32 values of one row from k0 on; zero past k. */
AMX_INLINE void load_row(const amx_source* source, size_t row, size_t k0, size_t k, __m512* low, __m512* high) {
  const float* from = source->values + row * source->stride + k0;
  bool to_integer = source->inverse != NULL;
  __m512 inverse = _mm512_set1_ps(to_integer ? source->inverse[source->one_inverse ? 0 : row] : 1.0f);
  *low = load(from, k - k0, to_integer, inverse);
  *high = load(from + 16, past(k - k0, 16), to_integer, inverse);
}

AMX_CODE void amx_pack_left(const amx_source* source, size_t rows, size_t k, size_t pieces, uint8_t* packed) {
  size_t depth = amx_tiles(k, AMX_DEPTH), tile_rows = amx_tiles(rows, 2 * AMX_SIDE) * 2 * AMX_SIDE;
  size_t step = depth * pieces * AMX_TILE_BYTES;
  for (size_t row = 0; row < tile_rows; row++) {
    uint8_t* line = packed + row / AMX_SIDE * step + row % AMX_SIDE * 64;
    for (size_t t = 0; t < depth; t++) {
      __m512 low = _mm512_setzero_ps(), high = low;
      if (row < rows) load_row(source, row, t * AMX_DEPTH, k, &low, &high);
      for (size_t p = 0; p < pieces; p++) _mm512_store_si512(line + (t * pieces + p) * AMX_TILE_BYTES, take_piece(&low, &high));
    }
  }
}

/* Two rows of k interleaved: the pair's first value in the low half of each word. */
AMX_INLINE __m512i take_pair(__m512* even, __m512* odd) {
  __m256i first = (__m256i)_mm512_cvtneps_pbh(*even), second = (__m256i)_mm512_cvtneps_pbh(*odd);
  *even = _mm512_sub_ps(*even, widen(first));
  *odd = _mm512_sub_ps(*odd, widen(second));
  return _mm512_or_si512(_mm512_cvtepu16_epi32(first), _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
}

AMX_CODE void amx_pack_right(const amx_source* source, size_t columns, size_t k, size_t pieces, uint8_t* packed) {
  size_t depth = amx_tiles(k, AMX_DEPTH), tiles = amx_tiles(columns, 2 * AMX_SIDE) * 2;
  bool to_integer = source->inverse != NULL;
  __m512 inverse = _mm512_set1_ps(to_integer ? source->inverse[0] : 1.0f);
  for (size_t tile = 0; tile < tiles; tile++) {
    size_t left = past(columns, tile * AMX_SIDE);
    for (size_t pair = 0; pair < depth * AMX_DEPTH / 2; pair++) {
      uint8_t* line = packed + (tile * depth + pair / 16) * pieces * AMX_TILE_BYTES + pair % 16 * 64;
      const float* from = source->values + 2 * pair * source->stride + tile * AMX_SIDE;
      __m512 even = _mm512_setzero_ps(), odd = even;
      if (2 * pair < k && left) even = load(from, left, to_integer, inverse);
      if (2 * pair + 1 < k && left) odd = load(from + source->stride, left, to_integer, inverse);
      for (size_t p = 0; p < pieces; p++) _mm512_store_si512(line + p * AMX_TILE_BYTES, take_pair(&even, &odd));
    }
  }
}

/* Transposes 16 rows of 16 words. */
AMX_INLINE void transpose_words(__m512i r[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; i++) { /* quarters of columns i, i + 4, i + 8, i + 12 */
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; i++) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
    r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
  }
}

AMX_CODE void amx_pack_right_transposed(const amx_source* source, size_t columns, size_t k, size_t pieces, uint8_t* packed) {
  size_t depth = amx_tiles(k, AMX_DEPTH), tiles = amx_tiles(columns, 2 * AMX_SIDE) * 2;
  for (size_t tile = 0; tile < tiles; tile++) {
    for (size_t t = 0; t < depth; t++) {
      __m512i rows[AMX_PIECES][16];
      for (size_t i = 0; i < AMX_SIDE; i++) {
        __m512 low = _mm512_setzero_ps(), high = low;
        size_t column = tile * AMX_SIDE + i;
        if (column < columns) load_row(source, column, t * AMX_DEPTH, k, &low, &high);
        for (size_t p = 0; p < pieces; p++) rows[p][i] = take_piece(&low, &high);
      }
      for (size_t p = 0; p < pieces; p++) {
        uint8_t* out = packed + ((tile * depth + t) * pieces + p) * AMX_TILE_BYTES;
        transpose_words(rows[p]);
        for (size_t i = 0; i < AMX_SIDE; i++) _mm512_store_si512(out + i * 64, rows[p][i]);
      }
    }
  }
}

/* ---- the product ---- */

typedef struct tile_config {
  uint8_t palette, start_row, reserved[14];
  uint16_t column_bytes[16];
  uint8_t rows[16];
} tile_config;

/* Tiles 0 to 3 gather a block of 32 by 32; 4 and 5 hold a piece of the left operand, 6 and 7 one of the right. */
AMX_INLINE void load_left(const uint8_t* left, size_t step, size_t piece) {
  _tile_loadd(4, left + piece * AMX_TILE_BYTES, 64);
  _tile_loadd(5, left + step + piece * AMX_TILE_BYTES, 64);
}

AMX_INLINE void load_right(const uint8_t* right, size_t step, size_t piece) {
  _tile_loadd(6, right + piece * AMX_TILE_BYTES, 64);
  _tile_loadd(7, right + step + piece * AMX_TILE_BYTES, 64);
}

AMX_INLINE void multiply_loaded(void) {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

/* Products of pieces back and forth, so that most share an operand with the one before. */
AMX_INLINE void accumulate(const uint8_t* left, size_t left_pieces, const uint8_t* right, size_t right_pieces, size_t depth, size_t order) {
  size_t left_step = depth * left_pieces * AMX_TILE_BYTES, right_step = depth * right_pieces * AMX_TILE_BYTES;
  for (size_t t = 0; t < depth; t++, left += left_pieces * AMX_TILE_BYTES, right += right_pieces * AMX_TILE_BYTES) {
    size_t loaded = right_pieces;
    for (size_t i = 0; i < left_pieces; i++) {
      size_t count = min_size(right_pieces, order - i);
      load_left(left, left_step, i);
      for (size_t n = 0; n < count; n++) {
        size_t j = i % 2 ? n : count - 1 - n;
        if (j != loaded) load_right(right, right_step, j);
        loaded = j;
        multiply_loaded();
      }
    }
  }
}

/* One tile's results, tile[16][16], to the target at (row, column). */
AMX_INLINE void store_plain(const float* tile, const amx_target* target, size_t row, size_t column, size_t rows, size_t columns) {
  __m512 scale = _mm512_set1_ps(target->scale);
  for (size_t i = 0; i < rows; i++)
    _mm512_mask_storeu_ps(target->y + (row + i) * target->stride + column, mask_of(columns),
                          _mm512_mul_ps(_mm512_load_ps(tile + i * AMX_SIDE), scale));
}

AMX_INLINE void store_transposed(const float* tile, const amx_target* target, size_t row, size_t column, size_t rows, size_t columns) {
  __m512i r[16];
  __mmask16 mask = mask_of(rows);
  for (int i = 0; i < AMX_SIDE; i++) r[i] = _mm512_load_si512(tile + i * AMX_SIDE);
  transpose_words(r);
  __m512 scale = _mm512_set1_ps(target->scale), bias = _mm512_setzero_ps();
  if (target->row_scale) scale = _mm512_mul_ps(scale, _mm512_maskz_loadu_ps(mask, target->row_scale + row));
  if (target->row_bias) bias = _mm512_maskz_loadu_ps(mask, target->row_bias + row);
  float* y = target->y + column * target->stride + row;
  if (columns == AMX_SIDE) {
    for (int i = 0; i < AMX_SIDE; i++)
      _mm512_mask_storeu_ps(y + (size_t)i * target->stride, mask, _mm512_fmadd_ps(_mm512_castsi512_ps(r[i]), scale, bias));
    return;
  }
  __m512 spilled[AMX_SIDE];
  for (int i = 0; i < AMX_SIDE; i++) spilled[i] = _mm512_castsi512_ps(r[i]);
  for (size_t i = 0; i < columns; i++) _mm512_mask_storeu_ps(y + i * target->stride, mask, _mm512_fmadd_ps(spilled[i], scale, bias));
}

AMX_INLINE void store_block(float* block, const amx_target* target, size_t row, size_t column, size_t rows, size_t columns) {
  _tile_stored(0, block, 64);
  _tile_stored(1, block + 256, 64);
  _tile_stored(2, block + 512, 64);
  _tile_stored(3, block + 768, 64);
  for (size_t i = 0; i < 4; i++) {
    size_t tile_row = row + i / 2 * AMX_SIDE, tile_column = column + i % 2 * AMX_SIDE;
    if (tile_row >= rows || tile_column >= columns) continue;
    size_t some_rows = min_size(rows - tile_row, AMX_SIDE), some_columns = min_size(columns - tile_column, AMX_SIDE);
    if (target->transposed) {
      store_transposed(block + i * 256, target, tile_row, tile_column, some_rows, some_columns);
    } else {
      store_plain(block + i * 256, target, tile_row, tile_column, some_rows, some_columns);
    }
  }
}

AMX_CODE void amx_multiply(const uint8_t* left, size_t left_pieces, size_t rows, const uint8_t* right, size_t right_pieces, size_t columns,
                           size_t k, size_t order, const amx_target* target) {
  _Alignas(64) float block[1024];
  tile_config config;
  memset(&config, 0, sizeof config);
  config.palette = 1;
  for (int i = 0; i < 8; i++) {
    config.column_bytes[i] = 64;
    config.rows[i] = AMX_SIDE;
  }
  _tile_loadconfig(&config);
  size_t depth = amx_tiles(k, AMX_DEPTH);
  size_t left_step = depth * left_pieces * AMX_TILE_BYTES, right_step = depth * right_pieces * AMX_TILE_BYTES;
  for (size_t column = 0; column < columns; column += 2 * AMX_SIDE) {
    for (size_t row = 0; row < rows; row += 2 * AMX_SIDE) {
      const uint8_t* a = left + row / AMX_SIDE * left_step;
      const uint8_t* b = right + column / AMX_SIDE * right_step;
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
      if (left_pieces == 2 && right_pieces == 2 && order == 2) { /* the compiler unrolls the frequent ones */
        accumulate(a, 2, b, 2, depth, 2);
      } else if (left_pieces == 3 && right_pieces == 3) {
        accumulate(a, 3, b, 3, depth, 3);
      } else if (left_pieces == 1 && right_pieces == 2) {
        accumulate(a, 1, b, 2, depth, 3);
      } else {
        accumulate(a, left_pieces, b, right_pieces, depth, order);
      }
      store_block(block, target, row, column, rows, columns);
    }
  }
  _tile_release();
}

#else

bool amx_available(void) {
  return false;
}

void amx_pack_left(const amx_source* source, size_t rows, size_t k, size_t pieces, uint8_t* packed) {
  (void)source, (void)rows, (void)k, (void)pieces, (void)packed;
}

void amx_pack_right(const amx_source* source, size_t columns, size_t k, size_t pieces, uint8_t* packed) {
  (void)source, (void)columns, (void)k, (void)pieces, (void)packed;
}

void amx_pack_right_transposed(const amx_source* source, size_t columns, size_t k, size_t pieces, uint8_t* packed) {
  (void)source, (void)columns, (void)k, (void)pieces, (void)packed;
}

void amx_multiply(const uint8_t* left, size_t left_pieces, size_t rows, const uint8_t* right, size_t right_pieces, size_t columns, size_t k,
                  size_t order, const amx_target* target) {
  (void)order, (void)left, (void)left_pieces, (void)rows, (void)right, (void)right_pieces, (void)columns, (void)k, (void)target;
}

#endif
