/* The memory plan of a graph. Sharing is decided in execution order (views, then work in place), after which each root that lives in the
 * block gets the lowest gap that is free from its first write to its last read. No values are touched here. */
#include "cpu/plan.h"

#include <string.h>

#include "cpu/internal.h"

enum { PLAN_ALIGNMENT = 16 /* floats: one cache line */ };

/* Boundary inputs whose reals differ from the caller's bytes. */
static bool needs_decoding(const ir_tensor* tensor, cpu_mode mode) {
  return mode == CPU_SIMULATED && tensor->dtype != IR_I32 && (tensor->dtype != IR_F32 || tensor->encoding.kind != IR_ENCODING_NONE);
}

static bool same_reals(const ir_tensor* a, const ir_tensor* b, cpu_mode mode) {
  return mode == CPU_FLOAT || (a->dtype == b->dtype && ir_encoding_equal(&a->encoding, &b->encoding));
}

/* A slice is one contiguous run when only dims of extent 1 come before the first partial one. */
static bool slice_is_view(const ir_op* op, const ir_tensor* in, size_t* shift) {
  uint32_t last_partial = 0;
  for (uint32_t i = 0; i < in->rank; i++) {
    if (op->attr.slice.end[i] - op->attr.slice.begin[i] != in->dims[i]) last_partial = i;
  }
  *shift = 0;
  for (uint32_t i = 0; i < in->rank; i++) {
    if (i < last_partial && op->attr.slice.end[i] - op->attr.slice.begin[i] != 1) return false;
    *shift = *shift * in->dims[i] + op->attr.slice.begin[i];
  }
  return true;
}

static bool op_is_view(const ir_graph* graph, const ir_op* op, cpu_mode mode, size_t* shift) {
  const ir_tensor* in = graph->tensors[op->inputs[0]];
  const ir_tensor* out = graph->tensors[op->output];
  *shift = 0;
  if (!same_reals(in, out, mode)) return false;
  if (op->kind == IR_SLICE) return slice_is_view(op, in, shift);
  return op->kind == IR_RESHAPE || op->kind == IR_CONVERT;
}

static int32_t later(int32_t a, int32_t b) {
  return a > b ? a : b;
}

/* The operand whose storage the output may take over, or -1. */
static int32_t in_place_operand(const ir_graph* graph, const ir_op* op, const cpu_place* places) {
  const ir_tensor* out = graph->tensors[op->output];
  if (!cpu_operators[op->kind].in_place || out->kind == IR_OUTPUT) return -1;
  uint64_t elements = ir_tensor_elements(out);
  for (uint32_t i = 0; i < op->n_inputs; i++) {
    const cpu_place* root = &places[places[op->inputs[i]].root];
    if (!root->planned || root->direct >= 0 || root->death > op->id) continue;
    if (ir_tensor_elements(graph->tensors[op->inputs[i]]) != elements) continue;
    bool others_apart = true; /* another operand in the same storage must be read at the same places */
    for (uint32_t j = 0; j < op->n_inputs; j++) {
      const cpu_place* other = &places[op->inputs[j]];
      if (other->root != root->root) continue;
      others_apart =
          others_apart && other->shift == places[op->inputs[i]].shift && ir_tensor_elements(graph->tensors[op->inputs[j]]) == elements;
    }
    if (others_apart) return op->inputs[i];
  }
  return -1;
}

static void share_storage(const ir_graph* graph, cpu_mode mode, const int32_t* last_use, const int32_t* output_port, cpu_plan* plan) {
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    cpu_place* place = &plan->places[op->output];
    size_t shift = 0;
    int32_t shared = -1;
    plan->views[i] = op_is_view(graph, op, mode, &shift);
    if (plan->views[i]) {
      shared = op->inputs[0];
    } else {
      shared = in_place_operand(graph, op, plan->places);
    }
    for (uint32_t j = 0; j < op->n_inputs; j++) { /* decoded at their first use */
      cpu_place* input = &plan->places[plan->places[op->inputs[j]].root];
      if (input->birth < 0) input->birth = op->id;
    }
    if (shared >= 0) {
      place->root = plan->places[shared].root;
      place->shift = plan->places[shared].shift + shift;
      cpu_place* root = &plan->places[place->root];
      root->death = later(root->death, last_use[op->output]);
    } else {
      place->planned = true;
      place->birth = op->id;
      place->death = later(op->id, last_use[op->output]);
    }
    const ir_tensor* out = graph->tensors[op->output];
    if (output_port[op->output] >= 0 && (mode == CPU_FLOAT || out->dtype == IR_F32)) {
      cpu_place* root = &plan->places[place->root];
      if (root->planned && root->direct < 0 && place->shift == 0 && graph->tensors[place->root]->producer >= 0 &&
          ir_tensor_elements(graph->tensors[place->root]) == ir_tensor_elements(out))
        root->direct = output_port[op->output];
    }
  }
}

/* A root in the block while it lives; kept ordered by offset. */
typedef struct live_span {
  size_t offset, size;
  int32_t death;
} live_span;

static size_t place_span(live_span* live, size_t* n_live, size_t size, int32_t birth, int32_t death) {
  size_t kept = 0;
  for (size_t i = 0; i < *n_live; i++) {
    if (live[i].death >= birth) live[kept++] = live[i];
  }
  size_t at = 0, offset = 0;
  while (at < kept && live[at].offset - offset < size) {
    offset = live[at].offset + live[at].size;
    at++;
  }
  memmove(&live[at + 1], &live[at], (kept - at) * sizeof *live);
  live[at] = (live_span){offset, size, death};
  *n_live = kept + 1;
  return offset;
}

static genai_status* place_root(const ir_graph* graph, int32_t tensor, cpu_plan* plan, live_span* live, size_t* n_live) {
  cpu_place* place = &plan->places[tensor];
  uint64_t elements = ir_tensor_elements(graph->tensors[tensor]);
  if (elements > SIZE_MAX / sizeof(float) / 4 || plan->elements > SIZE_MAX / sizeof(float) / 4)
    return genai_status_create(GENAI_ERROR_LIMIT, "graph %s: tensor %s of %llu elements does not fit the address space", graph->name,
                               graph->tensors[tensor]->name, (unsigned long long)elements);
  size_t size = ((size_t)elements + PLAN_ALIGNMENT - 1) / PLAN_ALIGNMENT * PLAN_ALIGNMENT;
  place->offset = place_span(live, n_live, size, place->birth, place->death);
  if (place->offset + size > plan->elements) plan->elements = place->offset + size;
  return NULL;
}

static genai_status* lay_out(const ir_graph* graph, cpu_plan* plan) {
  live_span* live = mem_calloc((size_t)graph->n_tensors + 1, sizeof *live);
  if (!live) return genai_status_out_of_memory();
  size_t n_live = 0;
  genai_status* status = NULL;
  for (uint32_t i = 0; i < graph->n_ops && !status; i++) {
    const ir_op* op = graph->ops[i];
    for (uint32_t j = 0; j <= op->n_inputs && !status; j++) {
      int32_t tensor = j < op->n_inputs ? op->inputs[j] : op->output;
      cpu_place* place = &plan->places[tensor];
      bool again = false; /* an input may be named twice by one operator */
      for (uint32_t k = 0; k < j && k < op->n_inputs; k++) again = again || op->inputs[k] == tensor;
      if (!again && place->root == tensor && place->planned && place->birth == op->id)
        status = place_root(graph, tensor, plan, live, &n_live);
    }
  }
  mem_free(live);
  return status;
}

genai_status* cpu_plan_create(const ir_graph* graph, cpu_mode mode, cpu_plan* out) {
  cpu_plan plan = {0};
  plan.places = mem_calloc((size_t)graph->n_tensors + 1, sizeof *plan.places);
  plan.views = mem_calloc((size_t)graph->n_ops + 1, sizeof *plan.views);
  int32_t* last_use = mem_calloc((size_t)graph->n_tensors + 1, sizeof *last_use);
  int32_t* output_port = mem_calloc((size_t)graph->n_tensors + 1, sizeof *output_port);
  genai_status* status = NULL;
  if (!plan.places || !plan.views || !last_use || !output_port) {
    status = genai_status_out_of_memory();
    goto done;
  }
  for (uint32_t i = 0; i < graph->n_tensors; i++) {
    last_use[i] = output_port[i] = -1;
    bool decoded = graph->tensors[i]->kind == IR_INPUT && needs_decoding(graph->tensors[i], mode);
    plan.places[i] = (cpu_place){.root = (int32_t)i, .planned = decoded, .direct = -1, .birth = -1, .death = -1};
  }
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    for (uint32_t j = 0; j < graph->ops[i]->n_inputs; j++) last_use[graph->ops[i]->inputs[j]] = (int32_t)i;
  }
  for (uint32_t i = graph->n_outputs; i-- > 0;) output_port[graph->outputs[i]] = (int32_t)i;
  for (uint32_t i = 0; i < graph->n_tensors; i++) plan.places[i].death = last_use[i];
  share_storage(graph, mode, last_use, output_port, &plan);
  status = lay_out(graph, &plan);
done:
  mem_free(last_use);
  mem_free(output_port);
  if (status) {
    cpu_plan_deinit(&plan);
    return status;
  }
  *out = plan;
  return NULL;
}

void cpu_plan_deinit(cpu_plan* plan) {
  mem_free(plan->places);
  mem_free(plan->views);
  *plan = (cpu_plan){0};
}
