/* Artifacts for the GPU. Qualcomm's GPU library has no compiler for x86-64 hosts, so that the graph itself travels, as a DLC, and the device
 * compiles it (docs/formats/pte.md). LPAI's compiler is not in what this project uses; the message says where it is. */
#include "pipeline/executorch_gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "executorch/pte.h"
#include "pipeline/internal.h"

#define LPAI_FILE "libQnnLpai.so"

/* ---- Before anything runs ---- */
static genai_status* list_lpai_socs(text* out) {
  for (size_t i = 0; i < qnn_soc_count(); i++) {
    const qnn_soc* soc = qnn_soc_at(i);
    if (soc->lpai_version) GENAI_TRY(text_printf(out, "%s%s (v%u)", out->length ? ", " : "", soc->name, soc->lpai_version));
  }
  return NULL;
}

static genai_status* validate_lpai(const char* engine, const genai_context* context, const genai_chipset* soc) {
  text places = {0};
  char* folder = NULL;
  genai_status* status = NULL;
  if (!soc->lpai_version) {
    status = list_lpai_socs(&places);
    if (!status)
      status = genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                                   "%s has no LPAI that is known (genai soc lists what is; --soc-file can say more); these have: %s",
                                   soc->name, places.data);
    text_deinit(&places);
    return status;
  }
  status = qnn_find_library(genai_options_get(genai_context_options(context), "qnn_dir"), LPAI_FILE, &folder, &places);
  if (!status && folder) {
    status = genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE,
                                 "%s/" LPAI_FILE
                                 " is there, but engine %s does not drive it: graphs for LPAI v%u must be 8-bit, and the "
                                 "decoders here are not; choose backend htp",
                                 folder, engine, soc->lpai_version);
  } else if (!status) {
    status = genai_status_create(
        GENAI_ERROR_ENGINE_NOT_AVAILABLE,
        "compiling for LPAI v%u takes " LPAI_FILE
        ", Qualcomm's offline compiler for it. Searched: %s. The wheel onnxruntime-qnn does not "
        "have it; Qualcomm's QAIRT SDK 2.39 or newer does (lib/x86_64-linux-clang; set QNN_SDK_ROOT). Engine %s would not drive it yet "
        "either: choose backend htp",
        soc->lpai_version, places.length ? places.data : "nothing", engine);
  }
  mem_free(folder);
  text_deinit(&places);
  return status;
}

static genai_status* validate_gpu(const char* engine, const genai_context* context, text* build_id) {
  const genai_options* options = genai_context_options(context);
  if (strcmp(engine, "executorch"))
    return genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE,
                               "engine %s compiles for backend htp, not gpu: engine executorch can make a program for the gpu", engine);
  if (strcmp(genai_options_text(options, "mode", "hybrid"), "kv"))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "option mode is \"%s\", but a program for the gpu holds one graph, because the format that the device "
                               "prepares (DLC) does: expected kv (--mode kv)",
                               genai_options_text(options, "mode", "hybrid"));
  return qnn_dlc_probe(genai_options_get(options, "qnn_dir"), build_id);
}

genai_status* executorch_backend_validate(const char* engine, const genai_context* context, const genai_chipset* soc, genai_backend backend,
                                          text* build_id) {
  return backend == GENAI_BACKEND_GPU ? validate_gpu(engine, context, build_id) : validate_lpai(engine, context, soc);
}

/* ---- The program ---- */
static genai_status* make_ports(arena* memory, const ir_graph* graph, const int32_t* tensors, uint32_t count, const executor_port** out) {
  executor_port* ports = arena_calloc(memory, count, sizeof *ports);
  if (!ports) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < count; i++) executor_port_from_tensor(graph->tensors[tensors[i]], &ports[i]);
  *out = ports;
  return NULL;
}

static genai_status* make_method(arena* memory, const ir_graph* graph, pte_method* out) {
  uint32_t* order = arena_calloc(memory, graph->n_outputs, sizeof *order);
  if (!order) return genai_status_out_of_memory();
  qnn_dlc_output_order(graph, order);
  *out = (pte_method){.name = graph->name, .n_inputs = graph->n_inputs, .n_outputs = graph->n_outputs, .binary_output_order = order};
  GENAI_TRY(make_ports(memory, graph, graph->inputs, graph->n_inputs, &out->inputs));
  return make_ports(memory, graph, graph->outputs, graph->n_outputs, &out->outputs);
}

static genai_status* write_program(arena* memory, const char* path, const mapped_file* dlc, const ir_graph* graph,
                                   const artifact_request* request, const char* record) {
  pte_method method;
  pte_constant* constants;
  GENAI_TRY(make_method(memory, graph, &method));
  GENAI_TRY(artifact_constants(memory, request, record, &constants));
  pte_program program = {.n_methods = 1,
                         .methods = &method,
                         .n_constants = request->n_constants + 1,
                         .constants = constants,
                         .options = {.soc_model = request->soc->model,
                                     .htp_arch = request->soc->htp_arch,
                                     .vtcm_mb = request->soc->vtcm_mb,
                                     .profile_level = request->profile ? 2 : 0,
                                     .gpu = true},
                         .context_binary = dlc->data,
                         .context_binary_size = dlc->size};
  return pte_write(path, &program);
}

/* The DLC lies beside the program until it is inside, under a name that the next run removes should this one be killed. */
static genai_status* make_dlc(const char* path, const ir_graph* graph, const qnn_dlc_options* options, mapped_file* out) {
  text name = {0};
  GENAI_TRY(text_printf(&name, "%s.bin" TEMPORARY_SUFFIX, path));
  int descriptor = file_operation_fails() ? -1 : mkostemp(name.data, O_CLOEXEC);
  genai_status* status = NULL;
  if (descriptor < 0)
    status = genai_status_create(GENAI_ERROR_IO, "cannot create \"%s\": %s; check its permissions or choose another folder", name.data,
                                 strerror(errno));
  if (descriptor >= 0) close(descriptor);
  if (!status) status = qnn_dlc_write(graph, options, name.data);
  if (!status) status = mapped_file_open(name.data, out);
  if (descriptor >= 0) unlink(name.data); /* the map stays valid */
  text_deinit(&name);
  return status;
}

genai_status* gpu_artifact_write(const char* path, const ir_graph* graph, const artifact_request* request, const qnn_dlc_options* options,
                                 genai_string_list* files) {
  arena memory = {0};
  text record = {0}, build_id = {0};
  mapped_file dlc = {0};
  provenance filled = *request->record;
  genai_status* status = qnn_dlc_probe(options->directory, &build_id);
  filled.library_build_id = build_id.data;
  filled.backend = "gpu";
  if (!status) status = provenance_write(&filled, &record);
  if (!status) status = make_dlc(path, graph, options, &dlc);
  if (!status) status = cancel_check(options->cancel);
  if (!status) status = write_program(&memory, path, &dlc, graph, request, record.data);
  if (!status) status = artifact_list_file(files, path);
  mapped_file_close(&dlc);
  text_deinit(&build_id);
  text_deinit(&record);
  arena_deinit(&memory);
  return status;
}
