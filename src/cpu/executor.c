/* The host executor: checks a graph, plans its memory, and runs its operators in order through the table in operators.c. What an operator
 * computes is in the op_*.c files; what an encoding does is in rounding.c. */
#include <string.h>

#include "cpu/amx.h"
#include "cpu/internal.h"
#include "cpu/rounding.h"

static void executor_free(executor* handle) {
  cpu_executor* self = (cpu_executor*)handle;
  cpu_statics_unload(self);
  cpu_plan_deinit(&self->plan);
  mem_free(self->inputs);
  mem_free(self->outputs);
  mem_free(self->output_port);
  mem_free(self->input_port);
  mem_free(self->memory);
  mem_free(self->statics);
  mem_free(self->owns_static);
  mem_free(self->kept);
  mem_free(self->values);
  mem_free(self->operands);
  mem_free(self->operand_values);
  mem_free(self->scratch.memory);
  mem_free(self->scratch.taken);
  mem_free(self->scratch.shared);
  mem_free(self);
}

/* ---- rounding of whole tensors, on the pool ---- */

typedef struct round_job {
  const ir_tensor* tensor;
  const executor_port* port;
  const void* stored;
  void* store;
  float* values;
} round_job;

static void round_body(void* user, size_t begin, size_t end) {
  const round_job* job = user;
  if (job->tensor->dtype == IR_F16) {
    rounding_apply_half(job->values + begin, end - begin);
  } else {
    rounding_apply(job->tensor->dtype, &job->tensor->encoding, job->values + begin, end - begin);
  }
}

static void decode_body(void* user, size_t begin, size_t end) {
  const round_job* job = user;
  rounding_decode_port(job->port, job->stored, begin, end - begin, job->values + begin);
}

static void encode_body(void* user, size_t begin, size_t end) {
  const round_job* job = user;
  rounding_encode_port(job->port, job->values + begin, begin, end - begin, job->store);
}

static void round_tensor(cpu_executor* self, const ir_tensor* tensor, float* values) {
  if (tensor->encoding.kind == IR_ENCODING_NONE && tensor->dtype != IR_F16) return;
  round_job job = {.tensor = tensor, .values = values};
  thread_pool_for(self->options.pool, (size_t)ir_tensor_elements(tensor), cpu_grain(1), round_body, &job);
}

/* ---- one call ---- */

static genai_status* observe(cpu_executor* self, const ir_tensor* tensor) {
  if (!self->options.observer || tensor->dtype == IR_I32) return NULL;
  return self->options.observer(self->options.observer_user, tensor, self->values[tensor->id], (size_t)ir_tensor_elements(tensor));
}

static genai_status* take_input(cpu_executor* self, int32_t tensor, const void* const* inputs) {
  int32_t port = self->input_port[tensor];
  float* values = self->values[tensor];
  if (self->plan.places[tensor].planned) {
    round_job job = {.port = &self->inputs[port], .stored = inputs[port], .values = values};
    thread_pool_for(self->options.pool, (size_t)ir_tensor_elements(self->graph->tensors[tensor]), cpu_grain(1), decode_body, &job);
  }
  return observe(self, self->graph->tensors[tensor]);
}

static void give_output(cpu_executor* self, int32_t tensor, void* const* outputs) {
  if (self->output_port[tensor] < 0) return;
  for (uint32_t i = (uint32_t)self->output_port[tensor]; i < self->base.n_outputs; i++) {
    if (self->graph->outputs[i] != tensor || !outputs[i] || outputs[i] == (void*)self->values[tensor]) continue;
    if (self->outputs[i].dtype == IR_F32 || self->outputs[i].dtype == IR_I32) {
      memcpy(outputs[i], self->values[tensor], executor_port_bytes(&self->outputs[i]));
    } else {
      round_job job = {.port = &self->outputs[i], .store = outputs[i], .values = self->values[tensor]};
      thread_pool_for(self->options.pool, (size_t)ir_tensor_elements(self->graph->tensors[tensor]), cpu_grain(1), encode_body, &job);
    }
  }
}

/* Where every tensor's values are in this call. */
static void bind_values(cpu_executor* self, const void* const* inputs, void* const* outputs) {
  for (uint32_t i = 0; i < self->graph->n_tensors; i++) {
    const cpu_place* place = &self->plan.places[i];
    if (place->root != (int32_t)i) continue;
    if (place->direct >= 0 && outputs[place->direct]) {
      self->values[i] = outputs[place->direct];
    } else if (place->planned) {
      self->values[i] = self->memory + place->offset;
    } else if (self->input_port[i] >= 0) {
      self->values[i] = (float*)inputs[self->input_port[i]]; /* only ever read */
    } else {
      self->values[i] = self->statics[i];
    }
  }
  for (uint32_t i = 0; i < self->graph->n_tensors; i++) {
    const cpu_place* place = &self->plan.places[i];
    float* root = self->values[place->root];
    if (place->root != (int32_t)i) self->values[i] = root ? root + place->shift : NULL;
  }
}

static genai_status* run_op(cpu_executor* self, const ir_op* op) {
  for (uint32_t i = 0; i < op->n_inputs; i++) {
    self->operands[i] = self->graph->tensors[op->inputs[i]];
    self->operand_values[i] = self->values[op->inputs[i]];
  }
  cpu_call call = {.self = self,
                   .pool = self->options.pool,
                   .op = op,
                   .in = self->operands,
                   .x = self->operand_values,
                   .out = self->graph->tensors[op->output],
                   .y = self->values[op->output]};
  genai_status* status = cpu_operators[op->kind].run(&call);
  if (status)
    return genai_status_wrap(status, genai_status_kind(status), "graph %s: %s %s failed", self->graph->name, ir_op_kind_name(op->kind),
                             op->name);
  if (self->options.mode == CPU_SIMULATED) round_tensor(self, call.out, call.y);
  return NULL;
}

static genai_status* executor_call(executor* handle, const void* const* inputs, void* const* outputs) {
  cpu_executor* self = (cpu_executor*)handle;
  const ir_graph* graph = self->graph;
  for (uint32_t i = 0; i < handle->n_inputs; i++) {
    if (!inputs[i])
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s: no buffer for input %s", graph->name, self->inputs[i].name);
  }
  bind_values(self, inputs, outputs);
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    if (!self->plan.places[graph->inputs[i]].planned) GENAI_TRY(observe(self, graph->tensors[graph->inputs[i]]));
  }
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    GENAI_TRY(cancel_check(self->options.cancel));
    for (uint32_t j = 0; j < op->n_inputs; j++) {
      int32_t input = op->inputs[j];
      bool seen = self->input_port[input] < 0 || !self->plan.places[input].planned || self->plan.places[input].birth != op->id;
      for (uint32_t k = 0; k < j; k++) seen = seen || op->inputs[k] == input;
      if (!seen) GENAI_TRY(take_input(self, input, inputs));
    }
    if (!self->plan.views[i]) GENAI_TRY(run_op(self, op));
    GENAI_TRY(observe(self, graph->tensors[op->output]));
    give_output(self, op->output, outputs);
  }
  return NULL;
}

static const executor_vtable vtable = {.run = executor_call, .destroy = executor_free};

/* ---- creation ---- */

static genai_status* check_op(const ir_graph* graph, const ir_op* op) {
  const ir_tensor* out = graph->tensors[op->output];
  bool moves = op->kind == IR_GATHER || op->kind == IR_CONCAT || op->kind == IR_SLICE || op->kind == IR_RESHAPE || op->kind == IR_TRANSPOSE;
  if (!cpu_operators[op->kind].run)
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "graph %s: the host executor has no operator %s (%s)", graph->name,
                               ir_op_kind_name(op->kind), op->name);
  for (uint32_t i = 0; i < op->n_inputs; i++) {
    const ir_tensor* in = graph->tensors[op->inputs[i]];
    bool index = op->kind == IR_GATHER && i == 1;
    bool integer = in->dtype == IR_I32;
    if (index ? !integer : integer != (out->dtype == IR_I32) || (integer && !moves))
      return genai_status_create(GENAI_ERROR_UNSUPPORTED, "graph %s: input %s of %s %s is %s, which it does not compute with", graph->name,
                                 in->name, ir_op_kind_name(op->kind), op->name, ir_dtype_name(in->dtype));
  }
  return NULL;
}

static void make_port(const ir_tensor* tensor, cpu_mode mode, executor_port* out) {
  executor_port_from_tensor(tensor, out);
  if (mode == CPU_FLOAT && out->dtype != IR_I32) {
    out->dtype = IR_F32;
    out->scale = 1.0f;
    out->offset = 0;
  }
}

static genai_status* make_ports(cpu_executor* self) {
  const ir_graph* graph = self->graph;
  self->inputs = mem_calloc((size_t)graph->n_inputs + 1, sizeof *self->inputs);
  self->outputs = mem_calloc((size_t)graph->n_outputs + 1, sizeof *self->outputs);
  self->input_port = mem_calloc((size_t)graph->n_tensors + 1, sizeof *self->input_port);
  self->output_port = mem_calloc((size_t)graph->n_tensors + 1, sizeof *self->output_port);
  if (!self->inputs || !self->outputs || !self->input_port || !self->output_port) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < graph->n_tensors; i++) self->input_port[i] = self->output_port[i] = -1;
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    make_port(graph->tensors[graph->inputs[i]], self->options.mode, &self->inputs[i]);
    self->input_port[graph->inputs[i]] = (int32_t)i;
  }
  for (uint32_t i = graph->n_outputs; i-- > 0;) {
    make_port(graph->tensors[graph->outputs[i]], self->options.mode, &self->outputs[i]);
    self->output_port[graph->outputs[i]] = (int32_t)i;
  }
  return NULL;
}

static genai_status* make_memory(cpu_executor* self) {
  const ir_graph* graph = self->graph;
  uint32_t most = 1;
  cpu_need most_need = {0};
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    if (op->n_inputs > most) most = op->n_inputs;
    cpu_need need = {0};
    if (op->kind == IR_CONV2D) need = cpu_linear_need(self, op);
    if (op->kind == IR_MATMUL) need = cpu_matmul_need(self, op);
    if (need.slot_bytes > most_need.slot_bytes) most_need.slot_bytes = need.slot_bytes;
    if (need.shared_bytes > most_need.shared_bytes) most_need.shared_bytes = need.shared_bytes;
  }
  size_t slots = thread_pool_size(self->options.pool);
  self->scratch.slots = slots;
  self->scratch.slot_bytes = (most_need.slot_bytes + 63) / 64 * 64;
  self->values = mem_calloc((size_t)graph->n_tensors + 1, sizeof *self->values);
  self->statics = mem_calloc((size_t)graph->n_tensors + 1, sizeof *self->statics);
  self->owns_static = mem_calloc((size_t)graph->n_tensors + 1, sizeof *self->owns_static);
  self->kept = mem_calloc((size_t)graph->n_tensors + 1, sizeof *self->kept);
  self->operands = mem_calloc(most, sizeof *self->operands);
  self->operand_values = mem_calloc(most, sizeof *self->operand_values);
  self->scratch.taken = mem_calloc(slots, sizeof *self->scratch.taken);
  self->scratch.memory = mem_alloc_aligned(64, slots * self->scratch.slot_bytes);
  self->scratch.shared = mem_alloc_aligned(64, most_need.shared_bytes);
  self->memory = mem_alloc_aligned(64, self->plan.elements * sizeof(float));
  bool ok = self->values && self->statics && self->owns_static && self->kept && self->operands && self->operand_values &&
            self->scratch.taken && self->scratch.memory && self->scratch.shared && self->memory;
  return ok ? NULL : genai_status_out_of_memory();
}

genai_status* cpu_executor_create(const ir_graph* graph, const cpu_options* options, executor** out) {
  GENAI_TRY(ir_graph_verify(graph));
  for (uint32_t i = 0; i < graph->n_ops; i++) GENAI_TRY(check_op(graph, graph->ops[i]));
  cpu_executor* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->graph = graph;
  self->options = *options;
  self->has_amx = amx_available();
  genai_status* status;
  GENAI_TRY_GOTO(status, make_ports(self), failed);
  GENAI_TRY_GOTO(status, cpu_plan_create(graph, options->mode, &self->plan), failed);
  GENAI_TRY_GOTO(status, make_memory(self), failed);
  GENAI_TRY_GOTO(status, cpu_statics_load(self), failed);
  self->base = (executor){.vtable = &vtable,
                          .name = graph->name,
                          .ar_length = graph->ar_length,
                          .context_length = graph->context_length,
                          .n_inputs = graph->n_inputs,
                          .n_outputs = graph->n_outputs,
                          .inputs = self->inputs,
                          .outputs = self->outputs};
  *out = &self->base;
  return NULL;
failed:
  executor_free(&self->base);
  return status;
}
