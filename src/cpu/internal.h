/* What the files of this room share: the executor's state, and what an operator's kernel is handed. */
#ifndef GENAI_CPU_INTERNAL_H
#define GENAI_CPU_INTERNAL_H

#include <stdatomic.h>

#include "cpu/cpu.h"
#include "cpu/plan.h"

typedef struct cpu_executor cpu_executor;

/* Work buffers: one slot per thread, taken by a body that runs on the pool for its length; and one that all bodies of an operator see. */
typedef struct cpu_scratch {
  size_t slots;
  size_t slot_bytes;
  uint8_t* memory;
  atomic_bool* taken;
  uint8_t* shared;
} cpu_scratch;

typedef struct cpu_need {
  size_t slot_bytes, shared_bytes;
} cpu_need;

/* A linear layer's weight in the form its layer multiplies (op_linear.c). */
typedef enum cpu_form { CPU_FORM_NONE, CPU_FORM_FLOATS, CPU_FORM_BYTES, CPU_FORM_TILES } cpu_form;

typedef struct cpu_kept {
  cpu_form form;
  void* data;
} cpu_kept;

struct cpu_executor {
  executor base; /* first: the public handle points here */
  const ir_graph* graph;
  cpu_options options;
  executor_port* inputs;
  executor_port* outputs;
  int32_t* output_port; /* [n_tensors]: the first output port of a tensor, or -1 */
  int32_t* input_port;  /* [n_tensors] */
  cpu_plan plan;
  float* memory;              /* intermediates, laid out by the plan */
  float** statics;            /* [n_tensors]: reals held between calls, or NULL */
  bool* owns_static;          /* [n_tensors]: statics[i] was allocated here */
  cpu_kept* kept;             /* [n_tensors]: weights held between calls as their layer reads them */
  float** values;             /* [n_tensors]: where a tensor's values are in the running call. Inputs and statics are never written. */
  const ir_tensor** operands; /* room for the longest operand list */
  const float** operand_values;
  cpu_scratch scratch;
  bool has_amx;
};

/* One operator in one call. Values are float, except those of I32 tensors, which are int32_t behind the same pointers. */
typedef struct cpu_call {
  cpu_executor* self;
  thread_pool* pool;
  const ir_op* op;
  const ir_tensor* const* in;
  const float* const* x; /* by input; NULL for a static that is read row by row */
  const ir_tensor* out;
  float* y; /* may be the buffer of an input when the operator's table row says so */
} cpu_call;

typedef struct cpu_operator {
  genai_status* (*run)(const cpu_call* call);
  bool in_place; /* each output element (or row, for operators over the last axis) depends on inputs at its own place only */
} cpu_operator;

/* By ir_op_kind; run is NULL for kinds that are not supported. */
extern const cpu_operator cpu_operators[IR_OP_KIND_COUNT];

genai_status* cpu_run_gather(const cpu_call* call);
genai_status* cpu_run_rms_norm(const cpu_call* call);
genai_status* cpu_run_layer_norm(const cpu_call* call);
genai_status* cpu_run_linear(const cpu_call* call);
genai_status* cpu_run_matmul(const cpu_call* call);
genai_status* cpu_run_binary(const cpu_call* call);
genai_status* cpu_run_activation(const cpu_call* call);
genai_status* cpu_run_softmax(const cpu_call* call);
genai_status* cpu_run_concat(const cpu_call* call);
genai_status* cpu_run_slice(const cpu_call* call);
genai_status* cpu_run_copy(const cpu_call* call); /* reshape and convert */
genai_status* cpu_run_transpose(const cpu_call* call);

/* Keeps the weight of a linear layer in self->kept, if it takes no more than *left bytes, which are then taken off. */
genai_status* cpu_linear_keep(cpu_executor* self, const ir_op* op, uint64_t* left);

/* Scratch that an operator wants. */
cpu_need cpu_linear_need(const cpu_executor* self, const ir_op* op);
cpu_need cpu_matmul_need(const cpu_executor* self, const ir_op* op);

uint8_t* cpu_scratch_take(cpu_scratch* scratch);
void cpu_scratch_give(cpu_scratch* scratch, const uint8_t* slot);

/* Whether the tensor's values are at most 16-bit integers times a scale. */
bool cpu_has_integers(const cpu_executor* self, const ir_tensor* tensor);
/* bfloat16 pieces that hold the tensor's integers, or its reals; those of any real; and the order of a product (amx.h). */
size_t cpu_pieces(const cpu_executor* self, const ir_tensor* tensor);
size_t cpu_real_pieces(const cpu_executor* self);
size_t cpu_order(const cpu_executor* self, bool integers);

/* ---- statics.c ---- */

/* Reads rows of a static's logical matrix as reals, in simulated mode rounded to its encoding. */
genai_status* cpu_static_rows(const cpu_executor* self, const ir_tensor* tensor, uint64_t row, uint64_t count, float* out);
/* The same through a view of the static, which serves rotated rows too. */
genai_status* cpu_static_view_rows(const cpu_executor* self, const ir_tensor* tensor, const ir_static_view* view, uint64_t row,
                                   uint64_t count, float* out);
/* Fills self->statics with what operators need whole, and self->kept with as many weights as the cache may hold, in execution order. */
genai_status* cpu_statics_load(cpu_executor* self);
void cpu_statics_unload(cpu_executor* self);

/* Elements in dims [first, last) of a tensor. */
static inline size_t cpu_span(const ir_tensor* tensor, uint32_t first, uint32_t last) {
  size_t product = 1;
  for (uint32_t i = first; i < last; i++) product *= tensor->dims[i];
  return product;
}

/* Smallest range of `unit_elements`-sized pieces worth a hand-over to another thread. */
static inline size_t cpu_grain(size_t unit_elements) {
  size_t grain = 16384 / (unit_elements ? unit_elements : 1);
  return grain ? grain : 1;
}

#endif
