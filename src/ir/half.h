/* IEEE 754 binary16 to and from binary32, in plain C: statics and ports may hold half floats on machines without the instructions. */
#ifndef GENAI_IR_HALF_H
#define GENAI_IR_HALF_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Exact. */
static inline float half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 0x1fu, fraction = half & 0x3ffu;
  uint32_t bits;
  if (exponent == 0x1f) {
    bits = sign | 0x7f800000u | fraction << 13;
  } else if (exponent) {
    bits = sign | (exponent + 112) << 23 | fraction << 13;
  } else {
    float magnitude = (float)fraction * 0x1p-24f;
    memcpy(&bits, &magnitude, sizeof bits);
    bits |= sign;
  }
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Rounds to nearest, ties to even; too large becomes infinity. */
static inline uint16_t float_to_half(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
  if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);
  if (magnitude < 0x38800000u) { /* below the smallest normal: a multiple of 2^-24 */
    float absolute;
    memcpy(&absolute, &magnitude, sizeof absolute);
    return (uint16_t)(sign | (uint16_t)lrintf(absolute * 0x1p24f));
  }
  uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u;
  return (uint16_t)(sign | (uint16_t)(rounded >> 13));
}

#endif
