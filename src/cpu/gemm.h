/* Matrix products in float32, each on the thread that calls. */
#ifndef GENAI_CPU_GEMM_H
#define GENAI_CPU_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "genai/status.h"

/* c[m][n] = op(a)[m][k] * op(b)[k][n]; row-major with leading dimensions; op transposes when asked: b is then stored [n][k]. */
genai_status* gemm_multiply(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float* a, size_t lda, const float* b,
                            size_t ldb, float* c, size_t ldc) GENAI_MUST_USE;

/* y[n] = sum over k of w[n][k] * x[k], for `rows` rows of w; the second form has integers and a scale for each row, or one for all. */
void gemm_vector(const float* w, size_t rows, size_t k, const float* x, float* y);
void gemm_vector_s8(const int8_t* w, size_t rows, size_t k, const float* x, const float* scales, bool one_scale, float* y);

/* c[m][n] = a[m][k] * b[k][n] for few rows: b is read where it lies. */
void gemm_few_rows(size_t m, size_t n, size_t k, const float* a, const float* b, float* c);

#endif
