/* From a context binary to a .pte: ports read back from the binary, constant methods, provenance. */
#include "pipeline/executorch_artifact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

/* The position that a boundary tensor's name carries: `input_<n>_...`, `output_<n>_...`. */
static bool name_position(const char* name, const char* prefix, uint32_t count, uint32_t* position) {
  size_t length = strlen(prefix);
  if (strncmp(name, prefix, length)) return false;
  char* end;
  unsigned long value = strtoul(name + length, &end, 10);
  if (end == name + length || *end != '_' || value >= count) return false;
  *position = (uint32_t)value;
  return true;
}

/* Ports in plan order, and the plan position of each of the binary's tensors. */
static genai_status* read_ports(arena* memory, const qnn_graph_info* graph, const qnn_tensor_info* tensors, uint32_t count,
                                const char* prefix, const executor_port** ports_out, const uint32_t** order_out) {
  executor_port* ports = arena_calloc(memory, count, sizeof *ports);
  uint32_t* order = arena_calloc(memory, count, sizeof *order);
  if (!ports || !order) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < count; i++) {
    const qnn_tensor_info* tensor = &tensors[i];
    if (!name_position(tensor->name, prefix, count, &order[i]) || ports[order[i]].name)
      return genai_status_create(GENAI_ERROR_INTERNAL,
                                 "graph \"%s\" of the binary has a tensor \"%s\", expected each of %s0.. to %s%u.. once", graph->name,
                                 tensor->name, prefix, prefix, count - 1);
    executor_port* port = &ports[order[i]];
    *port = (executor_port){.name = tensor->name,
                            .layer = -1,
                            .dtype = tensor->dtype,
                            .rank = tensor->rank,
                            .scale = tensor->quantized ? tensor->scale : 1,
                            .offset = tensor->quantized ? tensor->offset : 0};
    memcpy(port->dims, tensor->dims, sizeof port->dims);
  }
  *ports_out = ports;
  *order_out = order;
  return NULL;
}

static genai_status* read_methods(arena* memory, const qnn_binary_info* info, pte_method** out) {
  pte_method* methods = arena_calloc(memory, info->n_graphs, sizeof *methods);
  if (!methods) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < info->n_graphs; i++) {
    const qnn_graph_info* graph = &info->graphs[i];
    methods[i] = (pte_method){.name = graph->name, .n_inputs = graph->n_inputs, .n_outputs = graph->n_outputs};
    /* The runtime sorts inputs by their number, which is the plan's: the delegate call lists them in plan order. */
    const uint32_t* input_order;
    GENAI_TRY(read_ports(memory, graph, graph->inputs, graph->n_inputs, "input_", &methods[i].inputs, &input_order));
    GENAI_TRY(read_ports(memory, graph, graph->outputs, graph->n_outputs, "output_", &methods[i].outputs, &methods[i].binary_output_order));
  }
  *out = methods;
  return NULL;
}

static pte_scalar scalar_of(const genai_value* value) {
  switch (value->kind) {
    case GENAI_VALUE_BOOL:
      return (pte_scalar){PTE_BOOL, {.b = value->as.b}};
    case GENAI_VALUE_DOUBLE:
      return (pte_scalar){PTE_DOUBLE, {.d = value->as.d}};
    case GENAI_VALUE_STRING:
      return (pte_scalar){PTE_STRING, {.s = value->as.s}};
    case GENAI_VALUE_INTEGER:
      break;
  }
  return (pte_scalar){PTE_INT, {.i = value->as.i}};
}

genai_status* artifact_constants(arena* memory, const artifact_request* request, const char* record, pte_constant** out) {
  pte_constant* constants = arena_calloc(memory, request->n_constants + 1, sizeof *constants);
  pte_scalar* provenance_value = arena_calloc(memory, 1, sizeof *provenance_value);
  if (!constants || !provenance_value) return genai_status_out_of_memory();
  for (size_t i = 0; i < request->n_constants; i++) {
    const genai_constant_method* source = &request->constants[i];
    pte_scalar* values = arena_calloc(memory, source->count + 1, sizeof *values);
    if (!values) return genai_status_out_of_memory();
    for (size_t j = 0; j < source->count; j++) values[j] = scalar_of(&source->values[j]);
    constants[i] = (pte_constant){source->name, source->count, values};
  }
  *provenance_value = (pte_scalar){PTE_STRING, {.s = record}};
  constants[request->n_constants] = (pte_constant){PTE_PROVENANCE_METHOD, 1, provenance_value};
  *out = constants;
  return NULL;
}

static genai_status* write_program(arena* memory, const char* path, const void* binary, size_t size, const artifact_request* request,
                                   const qnn_binary_info* info, const char* record) {
  pte_method* methods = NULL;
  pte_constant* constants = NULL;
  GENAI_TRY(read_methods(memory, info, &methods));
  GENAI_TRY(artifact_constants(memory, request, record, &constants));
  pte_program program = {.n_methods = info->n_graphs,
                         .methods = methods,
                         .n_constants = request->n_constants + 1,
                         .constants = constants,
                         .options = {.soc_model = request->soc->model,
                                     .htp_arch = request->soc->htp_arch,
                                     .vtcm_mb = request->record->vtcm_mb,
                                     .fp16 = request->float16,
                                     .weight_sharing = request->weight_sharing,
                                     .shared_buffer = !request->simulator,
                                     .profile_level = request->profile ? 2 : 0,
                                     .performance_mode = 2},
                         .context_binary = binary,
                         .context_binary_size = size};
  return pte_write(path, &program);
}

static genai_status* check_space(const char* path, size_t needed) {
  char* directory = mem_strndup(path, (size_t)(path_base_name(path) - path));
  if (!directory) return genai_status_out_of_memory();
  uint64_t available = disk_free_bytes(*directory ? directory : ".");
  mem_free(directory);
  if (available >= needed) return NULL;
  return genai_status_create(GENAI_ERROR_IO, "\"%s\" needs %.1f MB but the disk has %.1f MB left; free disk space or choose another folder",
                             path, (double)needed / 1e6, (double)available / 1e6);
}

genai_status* artifact_write(const char* path, const void* binary, size_t size, const artifact_request* request) {
  GENAI_TRY(check_space(path, size + (1 << 20)));
  arena memory = {0};
  text record = {0};
  qnn_binary_info info = {0};
  qnn_library_info library;
  qnn_library_get_info(request->library, &library);
  provenance filled = *request->record;
  filled.library_build_id = library.build_id;
  filled.simulator = request->simulator;
  genai_status* status = provenance_write(&filled, &record);
  if (!status) status = qnn_binary_inspect(request->library, binary, size, &info);
  if (!status) {
    status = write_program(&memory, path, binary, size, request, &info, record.data);
    qnn_binary_info_deinit(&info);
  }
  text_deinit(&record);
  arena_deinit(&memory);
  return status;
}

genai_status* artifact_list_file(genai_string_list* files, const char* path) {
  genai_status* status = genai_string_list_add(files, path);
  if (status) unlink(path);
  return status;
}
