/* The memory plan: which tensors share storage, and where the others live in one block whose parts are reused as values die. */
#ifndef GENAI_CPU_PLAN_H
#define GENAI_CPU_PLAN_H

#include "cpu/cpu.h"

typedef struct cpu_place {
  int32_t root;         /* the tensor whose storage this one uses; itself when it has its own */
  size_t shift;         /* elements from the root's start */
  bool planned;         /* roots: lives in the block */
  size_t offset;        /* roots in the block: elements from its start */
  int32_t direct;       /* roots: the output port whose buffer may replace the planned place, or -1 */
  int32_t birth, death; /* roots: operators that write it first and read it last */
} cpu_place;

typedef struct cpu_plan {
  cpu_place* places; /* [n_tensors] */
  bool* views;       /* [n_ops]: the operator's output is its input's storage: nothing to run */
  size_t elements;   /* of the block */
} cpu_plan;

/* Views: reshapes; conversions that change nothing; slices of one contiguous run. In place: operators whose table row allows it and whose
 * input dies there. Inputs that need decoding live in the block from their first use. */
genai_status* cpu_plan_create(const ir_graph* graph, cpu_mode mode, cpu_plan* out) GENAI_MUST_USE;
void cpu_plan_deinit(cpu_plan* plan);

#endif
