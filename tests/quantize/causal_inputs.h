/* What a graph without caches reads beside its tokens: positions from 0, and both masks of causal attention. */
#ifndef GENAI_TESTS_QUANTIZE_CAUSAL_INPUTS_H
#define GENAI_TESTS_QUANTIZE_CAUSAL_INPUTS_H

#include <stdint.h>

/* For `n` tokens; the masks are n x n. */
static inline void fill_causal_inputs(uint32_t n, uint32_t window, int32_t* positions, float* mask, float* sliding) {
  for (uint32_t i = 0; i < n; i++) {
    positions[i] = (int32_t)i;
    for (uint32_t j = 0; j < n; j++) {
      mask[i * n + j] = j <= i ? 0.0f : -60000.0f;
      sliding[i * n + j] = j <= i && i - j < window ? 0.0f : -60000.0f;
    }
  }
}

#endif
