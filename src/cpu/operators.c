/* The table of operators, and what their bodies on the pool share: scratch and the first failure. */
#include "cpu/amx.h"
#include "cpu/internal.h"

const cpu_operator cpu_operators[IR_OP_KIND_COUNT] = {
    [IR_GATHER] = {cpu_run_gather, false},       [IR_RMS_NORM] = {cpu_run_rms_norm, true}, [IR_LAYER_NORM] = {cpu_run_layer_norm, true},
    [IR_CONV2D] = {cpu_run_linear, false},       [IR_MATMUL] = {cpu_run_matmul, false},    [IR_ADD] = {cpu_run_binary, true},
    [IR_SUBTRACT] = {cpu_run_binary, true},      [IR_MULTIPLY] = {cpu_run_binary, true},   [IR_SIGMOID] = {cpu_run_activation, true},
    [IR_TANH] = {cpu_run_activation, true},      [IR_GELU] = {cpu_run_activation, true},   [IR_SOFTMAX] = {cpu_run_softmax, true},
    [IR_CONCAT] = {cpu_run_concat, false},       [IR_SLICE] = {cpu_run_slice, false},      [IR_RESHAPE] = {cpu_run_copy, true},
    [IR_TRANSPOSE] = {cpu_run_transpose, false}, [IR_CONVERT] = {cpu_run_copy, true},
};

uint8_t* cpu_scratch_take(cpu_scratch* scratch) {
  for (size_t i = 0;; i = (i + 1) % scratch->slots) { /* as many slots as threads: one is free */
    if (!atomic_exchange_explicit(&scratch->taken[i], true, memory_order_acquire)) return scratch->memory + i * scratch->slot_bytes;
  }
}

void cpu_scratch_give(cpu_scratch* scratch, const uint8_t* slot) {
  size_t index = scratch->slot_bytes ? (size_t)(slot - scratch->memory) / scratch->slot_bytes : 0;
  atomic_store_explicit(&scratch->taken[index], false, memory_order_release);
}

bool cpu_has_integers(const cpu_executor* self, const ir_tensor* tensor) {
  return self->options.mode == CPU_SIMULATED && tensor->encoding.kind != IR_ENCODING_NONE && tensor->encoding.bits <= 16;
}

size_t cpu_real_pieces(const cpu_executor* self) {
  return self->options.fast_products ? 2 : AMX_PIECES;
}

size_t cpu_order(const cpu_executor* self, bool integers) {
  return integers ? AMX_PIECES : cpu_real_pieces(self);
}

size_t cpu_pieces(const cpu_executor* self, const ir_tensor* tensor) {
  if (!cpu_has_integers(self, tensor)) return cpu_real_pieces(self);
  return tensor->encoding.bits <= 8 ? 1 : 2;
}
