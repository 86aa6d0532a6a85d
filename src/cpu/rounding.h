/* What an encoding does to a real: the one place where the simulation rounds. */
#ifndef GENAI_CPU_ROUNDING_H
#define GENAI_CPU_ROUNDING_H

#include "ir/executor.h"

/* The integers an encoding may store: [low, high] before the offset is added. Activations use the whole range of their bits, statics the
 * symmetric one when signed (as ir_static_materialize does). */
typedef struct rounding_range {
  double low, high;
} rounding_range;
rounding_range rounding_range_of(ir_dtype dtype, const ir_encoding* encoding, bool is_static);

/* values[i] = scale * (q + offset), q = round(values[i] / scale) - offset clamped to the range; ties to even; NaN becomes the lowest value.
 * PER_TENSOR encodings of 16 bits or less. */
void rounding_apply(ir_dtype dtype, const ir_encoding* encoding, float* values, size_t count);

/* The same with scale, offset and range given apart, for statics. */
void rounding_apply_range(float scale, int32_t offset, rounding_range range, float* values, size_t count);

/* The same for one real in double: biases have 32 bits, more than a float's mantissa holds. */
float rounding_apply_wide(float value, double scale, int32_t offset, rounding_range range);

/* Halves: values[i] rounded to IEEE binary16 and back. */
void rounding_apply_half(float* values, size_t count);

/* Between a port's buffer and reals: count elements from element `first`. */
void rounding_decode_port(const executor_port* port, const void* buffer, size_t first, size_t count, float* values);
void rounding_encode_port(const executor_port* port, const float* values, size_t first, size_t count, void* buffer);

#endif
