/* Elementary functions as straight-line code, so that a loop over them vectorises. Accurate to about 2 units in the last place
 * (tests/cpu/test_vector_math.c compares with libm in double). Polynomials: S. Moshier, Cephes mathematical library (single precision). */
#ifndef GENAI_CPU_VECTOR_MATH_H
#define GENAI_CPU_VECTOR_MATH_H

#include <stdint.h>
#include <string.h>

#include "cpu/kernels.h"

CPU_INLINE float vm_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

CPU_INLINE uint32_t vm_to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* 1.5 * 2^23: adding it rounds |x| < 2^22 to an integer (ties to even), which then sits in the low bits. */
#define VM_ROUND 12582912.0f

CPU_INLINE float vm_round(float x) {
  return (x + VM_ROUND) - VM_ROUND;
}

/* e^x = 2^n * e^r with |r| <= ln(2)/2. The power of two is applied in two steps, so that results underflow gradually. */
CPU_INLINE float vm_exp(float x) {
  float c = x < -104.0f ? -104.0f : x;
  c = c > 89.0f ? 89.0f : c;
  float shifted = c * 1.44269504088896341f + VM_ROUND;
  float n = shifted - VM_ROUND;
  float r = c - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  int32_t exponent = (int32_t)(vm_to_bits(shifted) - vm_to_bits(VM_ROUND));
  int32_t half = exponent >> 1;
  float first = vm_from_bits((uint32_t)(half + 127) << 23);
  float second = vm_from_bits((uint32_t)(exponent - half + 127) << 23);
  return p * first * second;
}

CPU_INLINE float vm_sigmoid(float x) {
  return 1.0f / (1.0f + vm_exp(-x));
}

CPU_INLINE float vm_tanh(float x) {
  float magnitude = vm_from_bits(vm_to_bits(x) & 0x7fffffffu);
  float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  float near_zero = p * z * x + x;
  float far = 1.0f - 2.0f / (vm_exp(2.0f * magnitude) + 1.0f);
  float signed_far = vm_from_bits(vm_to_bits(far) | (vm_to_bits(x) & 0x80000000u));
  return magnitude < 0.625f ? near_zero : signed_far;
}

/* x * Phi(x) with Phi the normal distribution: 1 + erf and erfc are taken on their own sides, so that no digits cancel at negative x. */
CPU_INLINE float vm_gelu(float x) {
  float u = x * 0.70710678118654752f;
  float magnitude = vm_from_bits(vm_to_bits(u) & 0x7fffffffu);
  float z = u * u;
  float t = 7.853861353153693e-5f;
  t = t * z - 8.010193625184903e-4f;
  t = t * z + 5.188327685732524e-3f;
  t = t * z - 2.685381193529856e-2f;
  t = t * z + 1.128358514861418e-1f;
  t = t * z - 3.761262582423300e-1f;
  t = t * z + 1.128379165726710e+0f;
  float erf_near = u * t;

  float inverse = 1.0f / (magnitude < 1.0f ? 1.0f : magnitude);
  float q = inverse * inverse;
  float middle = 2.326819970068386e-2f;
  middle = middle * q - 1.387039388740657e-1f;
  middle = middle * q + 3.687424674597105e-1f;
  middle = middle * q - 5.824733027278666e-1f;
  middle = middle * q + 6.210004621745983e-1f;
  middle = middle * q - 4.944515323274145e-1f;
  middle = middle * q + 3.404879937665872e-1f;
  middle = middle * q - 2.741127028184656e-1f;
  middle = middle * q + 5.638259427386472e-1f;
  float far = -1.047766399936249e+1f;
  far = far * q + 1.297719955372516e+1f;
  far = far * q - 7.495518717768503e+0f;
  far = far * q + 2.921019019210786e+0f;
  far = far * q - 1.015265279202700e+0f;
  far = far * q + 4.218463358204948e-1f;
  far = far * q - 2.820767439740514e-1f;
  far = far * q + 5.641895067754075e-1f;
  float tail = vm_exp(-z) * inverse * (magnitude < 2.0f ? middle : far); /* erfc(|u|) for |u| >= 1 */
  float upper = x < 0.0f ? tail : 2.0f - tail;                           /* 1 + erf(u) */
  float twice_phi = magnitude < 1.0f ? 1.0f + erf_near : upper;
  return 0.5f * x * twice_phi;
}

#endif
