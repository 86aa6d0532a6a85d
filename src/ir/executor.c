/* Boundary ports: their sizes, and reals in and out of their buffers. Execution itself is in src/cpu and src/qnn. */
#include "ir/executor.h"

#include <math.h>
#include <string.h>

#include "ir/half.h"

size_t executor_port_bytes(const executor_port* port) {
  size_t count = ir_dtype_size(port->dtype);
  for (uint32_t i = 0; i < port->rank; ++i) count *= port->dims[i];
  return count;
}

void executor_port_from_tensor(const ir_tensor* tensor, executor_port* out) {
  *out = (executor_port){.name = tensor->name,
                         .role = tensor->role,
                         .layer = tensor->layer,
                         .dtype = tensor->dtype,
                         .rank = tensor->rank,
                         .scale = 1.0f,
                         .offset = 0};
  memcpy(out->dims, tensor->dims, sizeof out->dims);
  if (tensor->encoding.kind == IR_ENCODING_PER_TENSOR) {
    out->scale = tensor->encoding.scale;
    out->offset = tensor->encoding.offset;
  }
}

static float clamp_round(float value, float low, float high) {
  float rounded = rintf(value);
  return rounded > low ? (rounded < high ? rounded : high) : low; /* NaN becomes `low` */
}

float executor_port_read(const executor_port* port, const void* buffer, size_t index) {
  switch (port->dtype) {
    case IR_F32:
      return ((const float*)buffer)[index];
    case IR_F16:
      return half_to_float(((const uint16_t*)buffer)[index]);
    case IR_I32:
      return (float)((const int32_t*)buffer)[index];
    case IR_U8:
      return port->scale * (float)(((const uint8_t*)buffer)[index] + port->offset);
    case IR_U16:
      return port->scale * (float)(((const uint16_t*)buffer)[index] + port->offset);
    case IR_S8:
      return port->scale * (float)(((const int8_t*)buffer)[index] + port->offset);
    case IR_S16:
      return port->scale * (float)(((const int16_t*)buffer)[index] + port->offset);
    case IR_S32:
      return (float)((double)port->scale * ((double)((const int32_t*)buffer)[index] + port->offset));
  }
  return 0.0f;
}

void executor_port_write(const executor_port* port, void* buffer, size_t index, float value) {
  float stored = value / port->scale - (float)port->offset;
  switch (port->dtype) {
    case IR_F32:
      ((float*)buffer)[index] = value;
      break;
    case IR_F16:
      ((uint16_t*)buffer)[index] = float_to_half(value);
      break;
    case IR_I32:
      ((int32_t*)buffer)[index] = (int32_t)clamp_round(value, -2147483648.0f, 2147483520.0f);
      break;
    case IR_U8:
      ((uint8_t*)buffer)[index] = (uint8_t)clamp_round(stored, 0.0f, 255.0f);
      break;
    case IR_U16:
      ((uint16_t*)buffer)[index] = (uint16_t)clamp_round(stored, 0.0f, 65535.0f);
      break;
    case IR_S8:
      ((int8_t*)buffer)[index] = (int8_t)clamp_round(stored, -128.0f, 127.0f);
      break;
    case IR_S16:
      ((int16_t*)buffer)[index] = (int16_t)clamp_round(stored, -32768.0f, 32767.0f);
      break;
    case IR_S32:
      ((int32_t*)buffer)[index] = (int32_t)clamp_round(stored, -2147483648.0f, 2147483520.0f);
      break;
  }
}
