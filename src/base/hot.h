/* Functions whose loops are worth building for several instruction sets; the best one is chosen when the program is loaded. Sanitizers and
 * clang do not go with the loader's choice: there the function is built once. */
#ifndef GENAI_BASE_HOT_H
#define GENAI_BASE_HOT_H

#if defined(GENAI_SANITIZED) || !defined(__x86_64__) || defined(__clang__)
#define BASE_HOT
#else
#define BASE_HOT __attribute__((target_clones("avx512f", "avx2", "default")))
#endif

#endif
