/* Matrix products in float32, each on the thread that calls. */
#ifndef GENAI_CPU_GEMM_H
#define GENAI_CPU_GEMM_H

#include <stdbool.h>
#include <stddef.h>

#include "genai/status.h"

/* c[m][n] = op(a)[m][k] * op(b)[k][n]; row-major with leading dimensions; op transposes when asked: b is then stored [n][k]. */
genai_status* gemm_multiply(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float* a, size_t lda, const float* b,
                            size_t ldb, float* c, size_t ldc) GENAI_MUST_USE;

/* y[n] = sum over k of w[n][k] * x[k], for `rows` rows of w. */
void gemm_vector(const float* w, size_t rows, size_t k, const float* x, float* y);

#endif
