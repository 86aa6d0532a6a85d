/* Encodings of weights: scales per output channel, or per block of inputs (LPBQ). Internal to the room. */
#ifndef GENAI_QUANTIZE_WEIGHTS_H
#define GENAI_QUANTIZE_WEIGHTS_H

#include "base/pool.h"
#include "ir/ir.h"

typedef struct weight_format {
  uint32_t bits;  /* 8 or 4 */
  uint32_t block; /* 0: per channel; else inputs per block, a divisor of the number of inputs */
  bool search;    /* scales of least squared error among fractions of the largest magnitude, instead of the largest magnitude itself */
} weight_format;

/* Gives the linear weight `weight` ([1, 1, K, N]) its encoding and storage type. Symmetric: q in [-(2^(bits-1) - 1), 2^(bits-1) - 1].
 * Blocks follow QNN's block expansion: block scale codes 1..16, channel scale = largest block scale / 16. */
genai_status* weights_encode(ir_graph* graph, ir_tensor* weight, const weight_format* format, thread_pool* pool) GENAI_MUST_USE;

/* Smallest and largest value of a static; both include 0. */
genai_status* static_range(const ir_static* source, thread_pool* pool, float* low, float* high) GENAI_MUST_USE;

/* Calls `body` with tiles of rows of the logical matrix, [count][cols] from row `first` on, on the pool; tiles are disjoint and cover it. */
typedef void (*static_rows_body)(void* user, uint64_t first, uint64_t count, const float* rows);
genai_status* static_rows_for(const ir_static* source, thread_pool* pool, static_rows_body body, void* user) GENAI_MUST_USE;

float largest_magnitude(const float* values, size_t count); /* 0 for none */

#endif
