/* How the hot loops of this room are compiled: plain C that the compiler vectorises, once per instruction set, chosen when it is called. */
#ifndef GENAI_CPU_KERNELS_H
#define GENAI_CPU_KERNELS_H

#include <stdint.h>
#include <string.h>

#define CPU_INLINE static inline __attribute__((always_inline))

/* Defines `name`, which does what the CPU_INLINE function `name`_plain does, with the widest vectors at hand. For example
 *   CPU_INLINE void scale_plain(float* x, size_t n, float by) { ... }
 *   CPU_HOT(scale, (float* x, size_t n, float by), (x, n, by)) */
#if defined(__x86_64__) && defined(__GNUC__)
#if defined(__clang__)
#define CPU_WIDE_TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"
#else
#define CPU_WIDE_TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,prefer-vector-width=512"
#endif
#define CPU_HOT(name, parameters, arguments)                                                                             \
  __attribute__((target(CPU_WIDE_TARGET))) static void name##_512 parameters {                                           \
    name##_plain arguments;                                                                                              \
  }                                                                                                                      \
  __attribute__((target("avx2,fma,f16c"))) static void name##_256 parameters {                                           \
    name##_plain arguments;                                                                                              \
  }                                                                                                                      \
  static void name parameters {                                                                                          \
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && \
        __builtin_cpu_supports("avx512vl")) {                                                                            \
      name##_512 arguments;                                                                                              \
    } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {                                        \
      name##_256 arguments;                                                                                              \
    } else {                                                                                                             \
      name##_plain arguments;                                                                                            \
    }                                                                                                                    \
  }
#else
#define CPU_HOT(name, parameters, arguments) \
  static void name parameters {              \
    name##_plain arguments;                  \
  }
#endif

/* Before a loop whose iterations are independent although its pointers may be equal (operators that work in place). */
#if defined(__clang__)
#define CPU_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define CPU_INDEPENDENT _Pragma("GCC ivdep")
#else
#define CPU_INDEPENDENT
#endif

/* Partial results of a reduction: 16 floats that the compiler keeps in vector registers of whatever width there is, so that the order of
 * additions is always the same. (Arrays of partial results are left to the vectoriser's mood: gcc 12 and clang 14 both break them up into
 * scalars in some loops.) Local variables only: passing them by value depends on the instruction set. */
enum { CPU_LANES = 16 };
typedef float cpu_lanes __attribute__((vector_size(64)));
typedef int32_t cpu_lane_bits __attribute__((vector_size(64)));
typedef int8_t cpu_lane_bytes __attribute__((vector_size(16)));

#define CPU_LOAD(lanes, from) memcpy(&(lanes), (from), sizeof(lanes))
#define CPU_STORE(to, lanes) memcpy((to), &(lanes), sizeof(lanes))
#define CPU_SELECT(mask, a, b) ((cpu_lanes)(((cpu_lane_bits)(a) & (mask)) | ((cpu_lane_bits)(b) & ~(mask))))
#define CPU_MIN(a, b) CPU_SELECT((a) < (b), a, b)
#define CPU_MAX(a, b) CPU_SELECT((a) > (b), a, b)

/* Sum of the lanes, by halves. */
CPU_INLINE float cpu_lane_sum(const cpu_lanes* lanes) {
  float s[CPU_LANES];
  CPU_STORE(s, *lanes);
  for (int j = 0; j < 8; j++) s[j] += s[j + 8];
  for (int j = 0; j < 4; j++) s[j] += s[j + 4];
  return (s[0] + s[2]) + (s[1] + s[3]);
}

CPU_INLINE float cpu_row_sum(const float* x, size_t width) {
  cpu_lanes sums = {0}, part;
  float tail = 0;
  size_t i = 0;
  for (; i + CPU_LANES <= width; i += CPU_LANES) {
    CPU_LOAD(part, x + i);
    sums += part;
  }
  for (; i < width; i++) tail += x[i];
  return cpu_lane_sum(&sums) + tail;
}

#endif
