/* Rounding and clamping as loops over weights want them: written so that compilers vectorize them with plain SSE2. */
#ifndef GENAI_IR_ROUND_H
#define GENAI_IR_ROUND_H

/* To the nearest integer, ties to even, for magnitudes below 2^22: adding 1.5 * 2^23 leaves no fraction bits. */
static inline float round_small(float value) {
  return (value + 12582912.0f) - 12582912.0f;
}

static inline float clamp(float value, float low, float high) {
  value = value > low ? value : low; /* NaN becomes `low` */
  return value < high ? value : high;
}

#endif
