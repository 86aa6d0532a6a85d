/* How the hot loops of this room are compiled: plain C that the compiler vectorises, once per instruction set, chosen at load time. */
#ifndef GENAI_CPU_KERNELS_H
#define GENAI_CPU_KERNELS_H

/* Sanitizers instrument the resolvers of multi-versioned functions before their runtime is ready, so those builds take the baseline.
 * For static functions only: compilers differ in the names they give the versions. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(GENAI_SANITIZED)
#define CPU_HOT __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define CPU_HOT
#endif

#define CPU_INLINE static inline __attribute__((always_inline))

/* Before a loop whose iterations are independent although its pointers may be equal (operators that work in place). */
#if defined(__clang__)
#define CPU_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define CPU_INDEPENDENT _Pragma("GCC ivdep")
#else
#define CPU_INDEPENDENT
#endif

/* Partial results of a reduction: one per lane, so that the order of additions is the same whatever the vector width. */
enum { CPU_LANES = 16 };

#endif
