/* Rounding reals to encodings, and moving reals in and out of port buffers. Nothing else in this room quantizes. */
#include "cpu/rounding.h"

#include <math.h>

#include "cpu/kernels.h"
#include "cpu/vector_math.h"
#include "ir/half.h"

static bool is_unsigned(ir_dtype dtype) {
  return dtype == IR_U8 || dtype == IR_U16;
}

rounding_range rounding_range_of(ir_dtype dtype, const ir_encoding* encoding, bool is_static) {
  int bits = encoding->bits ? encoding->bits : (int)(8 * ir_dtype_size(dtype));
  if (is_unsigned(dtype)) return (rounding_range){0, ldexp(1, bits) - 1};
  double high = ldexp(1, bits - 1) - 1;
  return (rounding_range){is_static ? -high : -high - 1, high};
}

float rounding_apply_wide(float value, double scale, int32_t offset, rounding_range range) {
  double q = nearbyint((double)value / scale) - offset;
  if (!(q >= range.low)) q = range.low;
  if (q > range.high) q = range.high;
  return (float)(scale * (q + offset));
}

/* Bounds are in steps from zero, that is, with the offset added; |bounds| < 2^22, as vm_round needs. */
CPU_INLINE void round_values_plain(float* values, size_t count, float scale, float low, float high) {
  CPU_INDEPENDENT
  for (size_t i = 0; i < count; i++) {
    float steps = values[i] / scale;
    steps = steps >= low ? steps : low;
    steps = steps > high ? high : steps;
    values[i] = scale * vm_round(steps);
  }
}
CPU_HOT(round_values, (float* values, size_t count, float scale, float low, float high), (values, count, scale, low, high))

void rounding_apply(ir_dtype dtype, const ir_encoding* encoding, float* values, size_t count) {
  rounding_apply_range(encoding->scale, encoding->offset, rounding_range_of(dtype, encoding, false), values, count);
}

void rounding_apply_range(float scale, int32_t offset, rounding_range range, float* values, size_t count) {
  round_values(values, count, scale, (float)(range.low + offset), (float)(range.high + offset));
}

void rounding_apply_half(float* values, size_t count) {
  for (size_t i = 0; i < count; i++) values[i] = half_to_float(float_to_half(values[i]));
}

#define DEFINE_CODEC(name, type)                                                                                                \
  CPU_INLINE void decode_##name##_plain(const type* stored, size_t count, float scale, int32_t offset, float* values) {         \
    for (size_t i = 0; i < count; i++) values[i] = scale * (float)((int32_t)stored[i] + offset);                                \
  }                                                                                                                             \
  CPU_HOT(decode_##name, (const type* stored, size_t count, float scale, int32_t offset, float* values),                        \
          (stored, count, scale, offset, values))                                                                               \
  CPU_INLINE void encode_##name##_plain(const float* values, size_t count, float scale, int32_t offset, float low, float high,  \
                                        type* stored) {                                                                         \
    for (size_t i = 0; i < count; i++) {                                                                                        \
      float steps = values[i] / scale;                                                                                          \
      steps = steps >= low ? steps : low;                                                                                       \
      steps = steps > high ? high : steps;                                                                                      \
      stored[i] = (type)((int32_t)vm_round(steps) - offset);                                                                    \
    }                                                                                                                           \
  }                                                                                                                             \
  CPU_HOT(encode_##name, (const float* values, size_t count, float scale, int32_t offset, float low, float high, type* stored), \
          (values, count, scale, offset, low, high, stored))
DEFINE_CODEC(u8, uint8_t)
DEFINE_CODEC(u16, uint16_t)
DEFINE_CODEC(s8, int8_t)
DEFINE_CODEC(s16, int16_t)

void rounding_decode_port(const executor_port* port, const void* buffer, size_t first, size_t count, float* values) {
  switch (port->dtype) {
    case IR_U8:
      decode_u8((const uint8_t*)buffer + first, count, port->scale, port->offset, values);
      return;
    case IR_U16:
      decode_u16((const uint16_t*)buffer + first, count, port->scale, port->offset, values);
      return;
    case IR_S8:
      decode_s8((const int8_t*)buffer + first, count, port->scale, port->offset, values);
      return;
    case IR_S16:
      decode_s16((const int16_t*)buffer + first, count, port->scale, port->offset, values);
      return;
    default:
      for (size_t i = 0; i < count; i++) values[i] = executor_port_read(port, buffer, first + i);
  }
}

void rounding_encode_port(const executor_port* port, const float* values, size_t first, size_t count, void* buffer) {
  ir_encoding encoding = {.kind = IR_ENCODING_PER_TENSOR};
  rounding_range range = rounding_range_of(port->dtype, &encoding, false);
  float low = (float)(range.low + port->offset), high = (float)(range.high + port->offset);
  switch (port->dtype) {
    case IR_U8:
      encode_u8(values, count, port->scale, port->offset, low, high, (uint8_t*)buffer + first);
      return;
    case IR_U16:
      encode_u16(values, count, port->scale, port->offset, low, high, (uint16_t*)buffer + first);
      return;
    case IR_S8:
      encode_s8(values, count, port->scale, port->offset, low, high, (int8_t*)buffer + first);
      return;
    case IR_S16:
      encode_s16(values, count, port->scale, port->offset, low, high, (int16_t*)buffer + first);
      return;
    default:
      for (size_t i = 0; i < count; i++) executor_port_write(port, buffer, first + i, values[i]);
  }
}
