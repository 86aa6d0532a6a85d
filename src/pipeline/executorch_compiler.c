/* The default compiler: the graphs into one weight-shared context binary for the device and its twin for the simulator, both as artifacts of an
 * engine's format. Fan-out and constants come from the strategy; a .pte's content is executorch_artifact.c. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "executorch/etrecord.h"
#include "pipeline/chipset.h"
#include "pipeline/executorch.h"
#include "pipeline/executorch_artifact.h"
#include "pipeline/executorch_constants.h"
#include "pipeline/executorch_gpu.h"
#include "pipeline/executorch_objects.h"
#include "pipeline/executorch_strategy.h"
#include "pipeline/executorch_twin.h"
#include "pipeline/internal.h"

typedef struct compiler {
  genai_compiler base;
  const artifact_format* format;
} compiler;

typedef struct job {
  const artifact_format* format;
  const genai_context* context;
  const genai_compile_request* request;
  qnn_soc soc;
  executorch_model* model;
  const recipe* how; /* NULL: float */
  const ir_graph* graphs[PROVENANCE_MAX_GRAPHS];
  ir_graph* built[PROVENANCE_MAX_GRAPHS]; /* float graphs made here */
  size_t n_graphs;
  progress_sink progress;
  qnn_compile_options options;
  provenance record;
  char tokenizer_sha256[65];
  model_info info;
  char* device_path;
  char* simulator_path;
} job;

static genai_status* probe_libraries(void* user, text* build_id) {
  qnn_library* library;
  qnn_library_info info;
  GENAI_TRY(qnn_library_open(user, &library));
  qnn_library_get_info(library, &info);
  genai_status* status = text_append_cstr(build_id, info.build_id);
  qnn_library_close(library);
  return status;
}

genai_status* executorch_probe(const genai_context* context, child_work work, text* payload) {
  const genai_options* options = genai_context_options(context);
  void* directory = (void*)(uintptr_t)genai_options_get(options, "qnn_dir");
  if (strcmp(genai_options_text(options, "simulator_twin", "inline"), "process") || !twin_child_possible()) return work(directory, payload);
  child_process child;
  GENAI_TRY(child_start(work, directory, &child));
  return child_wait(&child, context_cancel_token(context), NULL, payload);
}

genai_status* executorch_compiler_validate(const char* engine, const genai_context* context, const genai_chipset* soc,
                                           genai_backend backend, text* build_id) {
  if (backend != GENAI_BACKEND_HTP) return executorch_backend_validate(engine, context, soc, backend, build_id);
  char what[64];
  snprintf(what, sizeof what, "engine %s", engine);
  qnn_soc target = chipset_soc(soc);
  GENAI_TRY(qnn_soc_require(&target, QNN_FEATURE_BINARY, what));
  /* When a child is to compile, this process must not have loaded the libraries: so it asks another one whether they load. */
  return executorch_probe(context, probe_libraries, build_id);
}

static genai_status* collect_graph(job* self, size_t index) {
  const genai_compile_graph* source = &self->request->graphs[index];
  executorch_graph* graph = genai_object_payload(source->graph, &executorch_graph_type);
  executorch_model* loaded = genai_object_payload(graph ? graph->model : source->graph, &executorch_model_type);
  if (!loaded)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph \"%s\" is a \"%s\", the default compiler takes \"%s\" or \"%s\"",
                               source->name, genai_object_type_name(source->graph), executorch_graph_type.name, executorch_model_type.name);
  if (source->n_passes)
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "graph \"%s\" asks for pass \"%s\", which the default compiler does not know",
                               source->name, source->passes[0]);
  const recipe* how = graph ? &graph->how : NULL;
  if (index && (loaded != self->model || !how != !self->how))
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph \"%s\" is of another model or precision than the first one",
                               source->name);
  self->model = loaded;
  self->how = how;
  uint32_t ar, context;
  GENAI_TRY(executorch_graph_lengths(source->name, source->inputs, source->n_inputs, &ar, &context));
  if (graph) {
    self->graphs[index] = graph->graph;
  } else {
    model_graph_options options = {.name = source->name, .ar_length = ar, .context_length = context};
    GENAI_TRY(model_build_graph(loaded->decoder, &options, &self->built[index]));
    self->graphs[index] = self->built[index];
  }
  if (self->format->check_graph) GENAI_TRY(self->format->check_graph(self->graphs[index]));
  self->n_graphs = index + 1;
  self->record.graphs[index] = (provenance_graph){source->name, ar};
  self->record.context_length = context;
  return NULL;
}

static genai_status* fill_record(job* self) {
  provenance* record = &self->record;
  model_get_info(self->model->decoder, &self->info);
  record->genai_version = genai_version();
  record->soc = self->soc.name;
  record->soc_model = self->soc.model;
  record->htp_arch = self->soc.htp_arch;
  record->vtcm_mb = self->options.vtcm_mb ? self->options.vtcm_mb : self->soc.vtcm_mb;
  record->mode = self->n_graphs > 1 ? "hybrid" : "kv";
  record->n_graphs = self->n_graphs;
  record->layers = self->info.layers;
  record->vocab_size = self->info.vocab;
  record->sliding_window = self->info.sliding_window;
  record->checkpoint_name = self->info.name;
  const ir_tensor* key = ir_graph_find_role(self->graphs[0], IR_ROLE_KEY_OUT, 0);
  record->kv_dtype = key ? ir_dtype_name(key->dtype) : NULL;
  GENAI_TRY(provenance_set_encodings(record, self->graphs[0]));
  if (self->how) GENAI_TRY(provenance_set_recipe(record, self->how));
  const executorch_tokenizer* words = genai_object_payload(self->model->tokenizer, &executorch_tokenizer_type);
  record->bos_id = words ? tokenizer_bos_id(words->tokenizer) : -1;
  record->eos_id = words ? tokenizer_eos_id(words->tokenizer) : -1;
  record->n_stop_ids = executorch_stop_ids(self->model, record->stop_ids);
  GENAI_TRY(executorch_model_fingerprint(self->model, &record->checkpoint_sha256));
  if (self->request->runtime_tokenizer) {
    uint64_t size;
    GENAI_TRY(file_sha256(self->request->runtime_tokenizer, &size, self->tokenizer_sha256));
    record->tokenizer_sha256 = self->tokenizer_sha256;
  }
  return NULL;
}

/* Bytes of a graph's statics as the binary will hold them, roughly: 4-bit weights are packed there. */
static uint64_t static_bytes(const ir_graph* graph) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < graph->n_tensors; i++) {
    const ir_tensor* tensor = graph->tensors[i];
    if (tensor->kind != IR_STATIC) continue;
    uint64_t size = ir_tensor_elements(tensor) * (tensor->dtype == IR_F32 ? 2 : ir_dtype_size(tensor->dtype));
    bytes += tensor->encoding.bits == 4 ? size / 2 : size;
  }
  return bytes;
}

/* Refuses before a minute of compiling what cannot be written after it. */
static genai_status* check_space(const job* self, bool twin_wanted) {
  uint64_t each = static_bytes(self->graphs[0]);
  bool shared = self->options.weight_sharing || self->n_graphs == 1;
  uint64_t needed = each * (shared ? 1 : self->n_graphs);
  if (twin_wanted) needed += 2 * each * self->n_graphs; /* the file, and the child's copy until it is written */
  uint64_t available = disk_free_bytes(self->request->artifact_directory);
  if (available >= needed) return NULL;
  return genai_status_create(
      GENAI_ERROR_IO, "the artifacts need about %.0f MB in \"%s\" but its disk has %.0f MB left; free disk space or choose another folder",
      (double)needed / 1e6, self->request->artifact_directory, (double)available / 1e6);
}

static genai_status* make_path(const job* self, const char* suffix, char** out) {
  text name = {0};
  genai_status* status = text_printf(&name, "%s.%s%s", self->request->file_name, self->soc.name, suffix);
  if (!status) status = path_join(self->request->artifact_directory, name.data, out);
  text_deinit(&name);
  return status;
}

/* The weights are with the vendor now: the checkpoint need not fill memory while the vendor needs most. */
static void release_checkpoint(void* user) {
  const executorch_model* source = user;
  const checkpoint* file = genai_object_payload(source->file, &executorch_checkpoint_type);
  if (file) checkpoint_release_pages(file);
}

static genai_status* prepare_job(job* self) {
  const genai_compile_request* request = self->request;
  if (!request->n_graphs || request->n_graphs > PROVENANCE_MAX_GRAPHS)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "%zu graphs to compile, expected 1 to %d", request->n_graphs,
                               PROVENANCE_MAX_GRAPHS);
  bool makes_gpu = !strcmp(self->format->engine, "executorch"), gpu = makes_gpu && request->backend == GENAI_BACKEND_GPU;
  if (request->backend != GENAI_BACKEND_HTP && !gpu)
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "the compiler of engine %s serves backend htp%s, not %s", self->format->engine,
                               makes_gpu ? " and gpu" : "", genai_backend_name(request->backend));
  self->soc = chipset_soc(request->soc);
  for (size_t i = 0; i < request->n_graphs; i++) GENAI_TRY(collect_graph(self, i));
  self->progress = context_progress_sink(self->context);
  self->options = (qnn_compile_options){.soc = &self->soc,
                                        .weight_sharing = self->n_graphs > 1 && qnn_soc_supports(&self->soc, QNN_FEATURE_WEIGHT_SHARING),
                                        .optimization_level = (uint32_t)genai_options_integer(request->options, "optimization_level", 3),
                                        .vtcm_mb = (uint32_t)genai_options_integer(request->options, "vtcm_mb", 0),
                                        .float16 = !self->how,
                                        .pool = self->model->pool,
                                        .progress = &self->progress,
                                        .cancel = context_cancel_token(self->context),
                                        .sources_read = release_checkpoint,
                                        .sources_read_user = self->model,
                                        .name_boundary = self->format->name_boundary};
  if (self->n_graphs > 1 && !self->options.weight_sharing)
    log_write(LOG_WARNING, "%s has HTP v%u, which cannot share weights between graphs (v%u can): the artifact holds them %zu times",
              self->soc.name, self->soc.htp_arch, qnn_feature_arch(QNN_FEATURE_WEIGHT_SHARING), self->n_graphs);
  if (gpu && (self->how || self->n_graphs != 1))
    return genai_status_create(
        GENAI_ERROR_INVALID_ARGUMENT,
        "the compiler got %zu %s graphs for the gpu, which takes one float graph: skip quantization, and choose mode kv", self->n_graphs,
        self->how ? "quantized" : "float");
  GENAI_TRY(directory_create(request->artifact_directory));
  GENAI_TRY(make_path(self, gpu ? GPU_ARTIFACT_SUFFIX : self->format->device_suffix, &self->device_path));
  GENAI_TRY(make_path(self, self->format->simulator_suffix, &self->simulator_path));
  return fill_record(self);
}

static genai_status* add_times(genai_statistics* out, const char* prefix, double build, double finalize, double serialize, size_t size) {
  const struct {
    const char* name;
    double value;
  } values[] = {{"build_seconds", build}, {"finalize_seconds", finalize}, {"serialize_seconds", serialize}, {"binary_bytes", (double)size}};
  log_write(LOG_INFO, "%s binary: %.1f s building, %.1f s in the vendor's finalize, %.1f s serialising, %zu bytes", prefix, build, finalize,
            serialize, size);
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    text name = {0};
    genai_status* status = text_printf(&name, "%s.%s", prefix, values[i].name);
    if (!status) status = genai_statistics_add(out, name.data, values[i].value);
    text_deinit(&name);
    if (status) return status;
  }
  return NULL;
}

static artifact_request request_of(const job* self, qnn_library* library, bool simulator) {
  const executorch_tokenizer* words = genai_object_payload(self->model->tokenizer, &executorch_tokenizer_type);
  return (artifact_request){.library = library,
                            .constants = self->request->constants,
                            .n_constants = self->request->n_constants,
                            .record = &self->record,
                            .soc = &self->soc,
                            .weight_sharing = self->options.weight_sharing && !simulator,
                            .float16 = self->options.float16,
                            .simulator = simulator,
                            .profile = genai_options_flag(self->request->options, "profile", false),
                            .words = words ? words->tokenizer : NULL,
                            .tokenizer_file = self->request->runtime_tokenizer};
}

static genai_status* write_artifact(const job* self, qnn_library* library, const char* path, const void* data, size_t size, bool simulator,
                                    genai_compile_result* out) {
  artifact_request request = request_of(self, library, simulator);
  GENAI_TRY(cancel_check(self->options.cancel));
  return self->format->write(path, data, size, &request, &out->artifacts);
}

typedef enum twin_mode { TWIN_OFF, TWIN_SAME, TWIN_INLINE, TWIN_PROCESS } twin_mode;

static twin_mode choose_twin(const job* self) {
  const char* wanted = genai_options_text(self->request->options, "simulator_twin", "inline");
  if (!strcmp(wanted, "off")) return TWIN_OFF;
  if (!self->options.weight_sharing) return TWIN_SAME; /* the device's own binary loads in the simulator */
  return !strcmp(wanted, "process") && twin_child_possible() ? TWIN_PROCESS : TWIN_INLINE;
}

/* Compiles the device's binary, gets the twin's, and only then writes: both files or none. */
static genai_status* compile_and_write(const job* self, twin_mode mode, qnn_library* library, twin* running, genai_compile_result* out) {
  twin_request request = running->request;
  qnn_binary device = {0};
  twin_result simulator = {0};
  genai_status* status = qnn_compile(library, self->graphs, self->n_graphs, &self->options, &device);
  if (!status)
    status = add_times(&out->statistics, "device", device.build_seconds, device.finalize_seconds, device.serialize_seconds, device.size);
  if (!status && mode == TWIN_PROCESS) status = twin_finish(running, &simulator);
  if (!status && mode == TWIN_INLINE) {
    /* One binary in memory at a time: this one waits in its file. */
    status = write_artifact(self, library, self->device_path, device.data, device.size, false, out);
    qnn_binary_deinit(&device);
    device = (qnn_binary){0};
    if (!status) status = twin_compile(library, &request, &simulator);
  } else if (!status) {
    status = write_artifact(self, library, self->device_path, device.data, device.size, false, out);
  }
  if (!status && mode == TWIN_SAME) status = write_artifact(self, library, self->simulator_path, device.data, device.size, true, out);
  if (!status && (mode == TWIN_INLINE || mode == TWIN_PROCESS)) {
    status = write_artifact(self, library, self->simulator_path, simulator.data, simulator.size, true, out);
    if (!status)
      status = add_times(&out->statistics, "twin", simulator.build_seconds, simulator.finalize_seconds, simulator.serialize_seconds,
                         simulator.size);
    if (!status && simulator.peak_memory_bytes)
      status = genai_statistics_add(&out->statistics, "twin.peak_memory_bytes", (double)simulator.peak_memory_bytes);
  }
  twin_result_deinit(&simulator);
  if (device.data) qnn_binary_deinit(&device);
  return status;
}

static genai_status* write_etrecord(const job* self, genai_compile_result* out) {
  if (!genai_options_flag(self->request->options, "etrecord", false)) return NULL;
  GENAI_TRY(make_path(self, self->request->backend == GENAI_BACKEND_GPU ? ".gpu.etrecord" : ".etrecord", &out->etrecord));
  return etrecord_write(out->etrecord, self->graphs, self->n_graphs);
}

static genai_status* run_gpu_job(const job* self, genai_compile_result* out) {
  qnn_dlc_options options = {genai_options_get(self->request->options, "qnn_dir"), self->options.pool, self->options.cancel};
  artifact_request request = request_of(self, NULL, false);
  GENAI_TRY(check_space(self, false));
  GENAI_TRY(gpu_artifact_write(self->device_path, self->graphs[0], &request, &options, &out->artifacts));
  log_write(LOG_INFO, "a program for the gpu: the device compiles its graph when it is loaded; nothing on this host can run it");
  return write_etrecord(self, out);
}

static genai_status* run_job(job* self, genai_compile_result* out) {
  GENAI_TRY(prepare_job(self));
  if (self->request->backend == GENAI_BACKEND_GPU) return run_gpu_job(self, out);
  twin_mode mode = choose_twin(self);
  GENAI_TRY(check_space(self, mode != TWIN_OFF));
  const char* directory = genai_options_get(self->request->options, "qnn_dir");
  twin_request request = {directory, self->graphs, self->n_graphs, self->options, self->request->artifact_directory};
  twin running = {.descriptor = -1, .request = request};
  if (mode == TWIN_PROCESS) GENAI_TRY(twin_start(&request, &running));
  qnn_library* library = NULL;
  genai_status* status = qnn_library_open(directory, &library);
  if (!status) status = compile_and_write(self, mode, library, &running, out);
  twin_cancel(&running);
  qnn_library_close(library);
  return status ? status : write_etrecord(self, out);
}

/* All artifacts or none. Folders go when nothing else is in them. */
static void discard_artifacts(const job* self, const genai_string_list* files) {
  for (size_t i = 0; i < files->count; i++) unlink(files->items[i]);
  if (self->device_path) (void)rmdir(self->device_path);
  if (self->simulator_path) (void)rmdir(self->simulator_path);
}

static genai_status* compile(genai_compiler* base, const genai_context* context, const genai_compile_request* request,
                             genai_compile_result* out) {
  job self = {.format = ((const compiler*)base)->format, .context = context, .request = request};
  genai_compile_result result = {0};
  genai_status* status = run_job(&self, &result);
  if (status) {
    discard_artifacts(&self, &result.artifacts);
    genai_compile_result_deinit(&result);
  } else {
    *out = result;
  }
  for (size_t i = 0; i < PROVENANCE_MAX_GRAPHS; i++) ir_graph_destroy(self.built[i]);
  provenance_deinit(&self.record);
  mem_free(self.device_path);
  mem_free(self.simulator_path);
  return status;
}

static void destroy(genai_compiler* self) {
  mem_free(self);
}

genai_status* artifact_compiler_create(const artifact_format* format, genai_compiler** out) {
  static const genai_compiler_vtable vtable = {compile, destroy};
  compiler* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->base.vtable = &vtable;
  self->format = format;
  *out = &self->base;
  return NULL;
}

static genai_status* write_pte(const char* path, const void* binary, size_t size, const artifact_request* request,
                               genai_string_list* files) {
  GENAI_TRY(artifact_write(path, binary, size, request));
  return artifact_list_file(files, path);
}

genai_status* executorch_compiler_create(genai_compiler** out) {
  static const artifact_format format = {
      .engine = "executorch", .device_suffix = ".pte", .simulator_suffix = ".sim.pte", .write = write_pte};
  return artifact_compiler_create(&format, out);
}
