/* Executing context binaries: a context per binary, and executors for its graphs. Nothing here compiles. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qnn/qnn_internal.h"

struct qnn_context {
  const qnn_library* library;
  qnn_api_handle device;
  qnn_api_handle context;
  qnn_binary_info info;
  qnn_graph_tensors* tensors; /* [info.n_graphs], in info.memory */
};

genai_status* qnn_context_open(qnn_library* library, const void* data, size_t size, qnn_context** out) {
  qnn_context* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->library = library;
  genai_status* status;
  GENAI_TRY_GOTO(status, qnn_binary_read(library, data, size, &self->info, &self->tensors), failed);
  qnn_vendor_log_clear();
  GENAI_TRY_GOTO(status, qnn_device_create(library, self->info.soc_model, &self->device), failed);
  qnn_quiet_begin(STDOUT_FILENO);
  uint64_t code = library->api->context_create_from_binary(library->backend, self->device, NULL, data, size, &self->context, NULL);
  qnn_quiet_end(STDOUT_FILENO);
  if (code) {
    self->context = NULL;
    status = qnn_vendor_error(library, code, "the context binary (%zu bytes, built by %s) does not load", size, self->info.build_id);
    /* Code 1000 alone is any feature that is missing; the library's log, which is part of the message, names this one. */
    if (strstr(genai_status_message(status), "Shared weights")) {
      status = genai_status_wrap(status, GENAI_ERROR_UNSUPPORTED,
                                 "the x86-64 simulator cannot load a binary whose graphs share weights; use the artifact for the simulator "
                                 "(NAME.SOC.sim.pte)");
    }
    goto failed;
  }
  *out = self;
  return NULL;
failed:
  qnn_context_close(self);
  return status;
}

void qnn_context_close(qnn_context* self) {
  if (!self) return;
  if (self->context) self->library->api->context_free(self->context, NULL);
  qnn_device_free(self->library, self->device);
  qnn_binary_info_deinit(&self->info);
  mem_free(self);
}

const qnn_binary_info* qnn_context_info(const qnn_context* self) {
  return &self->info;
}

/* One side of a graph's boundary: ports in our order, tensors in the binary's. */
typedef struct boundary {
  uint32_t count;
  executor_port* ports;
  uint32_t* slots; /* port -> place in `tensors` */
  qnn_api_tensor* tensors;
} boundary;

typedef struct qnn_executor {
  executor base;
  const qnn_context* context;
  qnn_api_handle graph;
  boundary inputs, outputs;
  void** spare; /* [outputs.count]: buffers for outputs that a caller does not want, made when first needed */
  arena memory;
} qnn_executor;

/* The number in `prefix<number>_...`, or -1. */
static int64_t boundary_number(const char* name, const char* prefix) {
  size_t length = strlen(prefix);
  if (strncmp(name, prefix, length) != 0 || name[length] < '0' || name[length] > '9') return -1;
  int64_t number = 0;
  const char* digit = name + length;
  for (; *digit >= '0' && *digit <= '9'; ++digit) {
    number = 10 * number + (*digit - '0');
    if (number > INT32_MAX) return -1;
  }
  return *digit == '_' ? number : -1;
}

typedef struct numbered {
  int64_t number;
  uint32_t slot;
} numbered;

static int compare_numbered(const void* a, const void* b) {
  const numbered* left = a;
  const numbered* right = b;
  if (left->number != right->number) return left->number < right->number ? -1 : 1;
  return left->slot < right->slot ? -1 : left->slot > right->slot;
}

static genai_status* boundary_init(boundary* self, arena* memory, const qnn_tensor_info* info, const qnn_api_tensor* tensors,
                                   uint32_t count, const char* prefix) {
  self->count = count;
  self->ports = arena_calloc(memory, count, sizeof *self->ports);
  self->slots = arena_calloc(memory, count, sizeof *self->slots);
  self->tensors = arena_dup(memory, tensors, count * sizeof *tensors);
  numbered* order = arena_calloc(memory, count, sizeof *order);
  if (!self->ports || !self->slots || !self->tensors || !order) return genai_status_out_of_memory();
  bool all_numbered = true;
  for (uint32_t i = 0; i < count; ++i) {
    order[i] = (numbered){.number = boundary_number(info[i].name, prefix), .slot = i};
    all_numbered = all_numbered && order[i].number >= 0;
  }
  if (all_numbered) qsort(order, count, sizeof *order, compare_numbered);
  for (uint32_t i = 0; i < count; ++i) {
    const qnn_tensor_info* tensor = &info[order[i].slot];
    self->slots[i] = order[i].slot;
    executor_port* port = &self->ports[i];
    *port = (executor_port){.name = tensor->name,
                            .role = IR_ROLE_NONE,
                            .layer = -1,
                            .dtype = tensor->dtype,
                            .rank = tensor->rank,
                            .scale = tensor->scale,
                            .offset = tensor->offset};
    memcpy(port->dims, tensor->dims, sizeof port->dims);
    qnn_api_client_buffer* buffer = &self->tensors[tensor - info].as.v1.buffer;
    *buffer = (qnn_api_client_buffer){.data = NULL, .size = (uint32_t)executor_port_bytes(port)};
  }
  return NULL;
}

static genai_status* executor_spare(qnn_executor* self, uint32_t port, void** out) {
  if (!self->spare[port]) {
    self->spare[port] = mem_alloc_aligned(64, executor_port_bytes(&self->outputs.ports[port]));
    if (!self->spare[port]) return genai_status_out_of_memory();
  }
  *out = self->spare[port];
  return NULL;
}

static genai_status* qnn_executor_run(executor* base, const void* const* inputs, void* const* outputs) {
  qnn_executor* self = (qnn_executor*)base;
  for (uint32_t i = 0; i < self->inputs.count; ++i) {
    if (!inputs[i]) {
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph '%s': input %u ('%s') has no buffer", base->name, i,
                                 self->inputs.ports[i].name);
    }
    self->inputs.tensors[self->inputs.slots[i]].as.v1.buffer.data = (void*)(uintptr_t)inputs[i]; /* only read */
  }
  for (uint32_t i = 0; i < self->outputs.count; ++i) {
    void* buffer = outputs[i];
    if (!buffer) GENAI_TRY(executor_spare(self, i, &buffer));
    self->outputs.tensors[self->outputs.slots[i]].as.v1.buffer.data = buffer;
  }
  const qnn_library* library = self->context->library;
  uint64_t code = library->api->graph_execute(self->graph, self->inputs.tensors, self->inputs.count, self->outputs.tensors,
                                              self->outputs.count, NULL, NULL);
  if (code) return qnn_vendor_error(library, code, "graph '%s' does not execute", base->name);
  return NULL;
}

static void qnn_executor_destroy(executor* base) {
  qnn_executor* self = (qnn_executor*)base;
  for (uint32_t i = 0; self->spare && i < self->outputs.count; ++i) mem_free(self->spare[i]);
  arena_deinit(&self->memory);
  mem_free(self);
}

static const executor_vtable qnn_executor_vtable = {.run = qnn_executor_run, .destroy = qnn_executor_destroy};

static genai_status* unknown_graph(const qnn_context* self, const char* graph) {
  text names = {0};
  genai_status* status = NULL;
  for (uint32_t i = 0; !status && i < self->info.n_graphs; ++i) {
    status = text_printf(&names, "%s'%s'", i ? ", " : "", self->info.graphs[i].name);
  }
  if (!status) {
    status = genai_status_create(GENAI_ERROR_NOT_FOUND, "the context binary has no graph '%s'; it has %s", graph, names.data);
  }
  text_deinit(&names);
  return status;
}

genai_status* qnn_context_executor(qnn_context* context, const char* graph, executor** out) {
  const qnn_library* library = context->library;
  uint32_t index = 0;
  while (index < context->info.n_graphs && strcmp(context->info.graphs[index].name, graph) != 0) ++index;
  if (index == context->info.n_graphs) return unknown_graph(context, graph);
  const qnn_graph_info* info = &context->info.graphs[index];
  const qnn_graph_tensors* tensors = &context->tensors[index];
  qnn_executor* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->base.vtable = &qnn_executor_vtable;
  self->context = context;
  genai_status* status;
  GENAI_TRY_GOTO(status, boundary_init(&self->inputs, &self->memory, info->inputs, tensors->inputs, info->n_inputs, "input_"), failed);
  GENAI_TRY_GOTO(status, boundary_init(&self->outputs, &self->memory, info->outputs, tensors->outputs, info->n_outputs, "output_"), failed);
  self->spare = arena_calloc(&self->memory, info->n_outputs, sizeof *self->spare);
  if (!self->spare) {
    status = genai_status_out_of_memory();
    goto failed;
  }
  self->base.name = info->name;
  self->base.n_inputs = info->n_inputs;
  self->base.n_outputs = info->n_outputs;
  self->base.inputs = self->inputs.ports;
  self->base.outputs = self->outputs.ports;
  uint64_t code = library->api->graph_retrieve(context->context, graph, &self->graph);
  if (code) {
    status = qnn_vendor_error(library, code, "graph '%s' cannot be taken from the context", graph);
    goto failed;
  }
  *out = &self->base;
  return NULL;
failed:
  qnn_executor_destroy(&self->base);
  return status;
}

void qnn_executor_ports(executor* base, executor_port** inputs, executor_port** outputs) {
  qnn_executor* self = (qnn_executor*)base;
  if (inputs) *inputs = self->inputs.ports;
  if (outputs) *outputs = self->outputs.ports;
}
