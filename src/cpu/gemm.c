/* Matrix products. Large ones are oneDNN's sgemm held to one OpenMP thread: the pool above it decides what runs side by side. */
#include "cpu/gemm.h"

#include <dnnl.h>

#include "cpu/kernels.h"

/* libgomp; its header comes with one compiler only. */
extern void omp_set_num_threads(int threads);
extern int omp_get_max_threads(void);

genai_status* gemm_multiply(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k, const float* a, size_t lda, const float* b,
                            size_t ldb, float* c, size_t ldc) {
  int before = omp_get_max_threads(); /* the setting is the calling thread's own */
  if (before != 1) omp_set_num_threads(1);
  dnnl_status_t result = dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', (dnnl_dim_t)m, (dnnl_dim_t)n, (dnnl_dim_t)k, 1.0f, a,
                                    (dnnl_dim_t)lda, b, (dnnl_dim_t)ldb, 0.0f, c, (dnnl_dim_t)ldc);
  if (before != 1) omp_set_num_threads(before);
  if (result == dnnl_success) return NULL;
  if (result == dnnl_out_of_memory) return genai_status_out_of_memory();
  return genai_status_create(GENAI_ERROR_INTERNAL, "oneDNN refused a product of %zu x %zu x %zu with code %d", m, n, k, (int)result);
}

CPU_INLINE float dot(const float* w, const float* x, size_t k) {
  cpu_lanes sums[4] = {{0}}, a, b;
  float tail = 0;
  size_t i = 0;
  for (; i + 4 * CPU_LANES <= k; i += 4 * CPU_LANES) {
    for (int j = 0; j < 4; j++) {
      CPU_LOAD(a, w + i + j * CPU_LANES);
      CPU_LOAD(b, x + i + j * CPU_LANES);
      sums[j] += a * b;
    }
  }
  for (; i < k; i++) tail += w[i] * x[i];
  sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return cpu_lane_sum(&sums[0]) + tail;
}

CPU_INLINE void dot_rows_plain(const float* w, size_t rows, size_t k, const float* x, float* y) {
  for (size_t row = 0; row < rows; row++) y[row] = dot(w + row * k, x, k);
}

CPU_HOT(dot_rows, (const float* w, size_t rows, size_t k, const float* x, float* y), (w, rows, k, x, y))

void gemm_vector(const float* w, size_t rows, size_t k, const float* x, float* y) {
  dot_rows(w, rows, k, x, y);
}

CPU_INLINE float dot_s8(const int8_t* w, const float* x, size_t k) {
  cpu_lanes sums[4] = {{0}}, b;
  cpu_lane_bytes a;
  float tail = 0;
  size_t i = 0;
  for (; i + 4 * CPU_LANES <= k; i += 4 * CPU_LANES) {
    for (int j = 0; j < 4; j++) {
      CPU_LOAD(a, w + i + j * CPU_LANES);
      CPU_LOAD(b, x + i + j * CPU_LANES);
      sums[j] += __builtin_convertvector(a, cpu_lanes) * b;
    }
  }
  for (; i < k; i++) tail += (float)w[i] * x[i];
  sums[0] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return cpu_lane_sum(&sums[0]) + tail;
}

CPU_INLINE void dot_rows_s8_plain(const int8_t* w, size_t rows, size_t k, const float* x, const float* scales, bool one_scale, float* y) {
  for (size_t row = 0; row < rows; row++) y[row] = dot_s8(w + row * k, x, k) * scales[one_scale ? 0 : row];
}

CPU_HOT(dot_rows_s8, (const int8_t* w, size_t rows, size_t k, const float* x, const float* scales, bool one_scale, float* y),
        (w, rows, k, x, scales, one_scale, y))

void gemm_vector_s8(const int8_t* w, size_t rows, size_t k, const float* x, const float* scales, bool one_scale, float* y) {
  dot_rows_s8(w, rows, k, x, scales, one_scale, y);
}

/* A strip of columns gathers in registers while k advances. */
CPU_INLINE void strips_plain(size_t m, size_t n, size_t k, const float* a, const float* b, float* c) {
  enum { VECTORS = 4, STRIP = VECTORS * CPU_LANES };
  for (size_t i = 0; i < m; i++) {
    size_t j = 0;
    for (; j + STRIP <= n; j += STRIP) {
      cpu_lanes sums[VECTORS] = {{0}}, part;
      for (size_t p = 0; p < k; p++) {
        for (int q = 0; q < VECTORS; q++) {
          CPU_LOAD(part, b + p * n + j + q * CPU_LANES);
          sums[q] += part * a[i * k + p];
        }
      }
      for (int q = 0; q < VECTORS; q++) CPU_STORE(c + i * n + j + q * CPU_LANES, sums[q]);
    }
    for (; j < n; j++) {
      float sum = 0;
      for (size_t p = 0; p < k; p++) sum += a[i * k + p] * b[p * n + j];
      c[i * n + j] = sum;
    }
  }
}

CPU_HOT(strips, (size_t m, size_t n, size_t k, const float* a, const float* b, float* c), (m, n, k, a, b, c))

void gemm_few_rows(size_t m, size_t n, size_t k, const float* a, const float* b, float* c) {
  strips(m, n, k, a, b, c);
}
