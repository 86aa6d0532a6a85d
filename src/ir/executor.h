/* Something that executes one static graph: the host executor (src/cpu) or a QNN context (src/qnn). The runtime drives only this. */
#ifndef GENAI_IR_EXECUTOR_H
#define GENAI_IR_EXECUTOR_H

#include "ir/ir.h"

/* One boundary tensor as the executor sees it. Buffers hold `dtype` elements, row-major, dense. */
typedef struct executor_port {
  const char* name;
  ir_role role;
  int32_t layer;
  ir_dtype dtype; /* F32 or F16 for float graphs; I32 for tokens and positions; U8/U16 with `scale`, `offset` for quantized ones */
  uint32_t rank;
  uint32_t dims[IR_MAX_RANK];
  float scale; /* real = scale * (q + offset); 1 and 0 for float and integer ports */
  int32_t offset;
} executor_port;

size_t executor_port_bytes(const executor_port* port);

typedef struct executor executor;
typedef struct executor_vtable {
  /* One call. inputs[i] belongs to ports inputs[i]; outputs likewise. Buffers are the caller's, of executor_port_bytes each, and must not
   * overlap. An output pointer may be NULL: the caller does not want it. */
  genai_status* (*run)(executor* self, const void* const* inputs, void* const* outputs);
  void (*destroy)(executor* self);
} executor_vtable;

struct executor {
  const executor_vtable* vtable;
  const char* name; /* the graph's name */
  uint32_t ar_length, context_length;
  uint32_t n_inputs, n_outputs;
  const executor_port* inputs;
  const executor_port* outputs;
};

/* Fills ports from a graph's boundary; port names point into the graph. */
void executor_port_from_tensor(const ir_tensor* tensor, executor_port* out);

static inline genai_status* executor_run(executor* self, const void* const* inputs, void* const* outputs) {
  return self->vtable->run(self, inputs, outputs);
}
static inline void executor_destroy(executor* self) {
  if (self) self->vtable->destroy(self);
}

/* Real value of element `index` of a port's buffer, and the other way round (rounded to nearest, clamped). */
float executor_port_read(const executor_port* port, const void* buffer, size_t index);
void executor_port_write(const executor_port* port, void* buffer, size_t index, float value);

#endif
