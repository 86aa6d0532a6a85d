/* Writing graphs as DLC files through libQnnIr.so, whose "finalize" serialises. Lowering is the same as for the HTP. */
#include "qnn/dlc.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "qnn/lower/lower.h"

#define IR_FILE "libQnnIr.so"

enum { BACKEND_IR = 9, GRAPH_SERIALIZATION = 1, SERIALIZATION_FLATBUFFER = 1 };

/* The graph's own block of libQnnIr.so: where to serialise to. */
typedef struct ir_graph_config {
  int32_t option;
  _Alignas(8) int32_t type;
  const char* path;
} ir_graph_config;

genai_status* qnn_find_library(const char* directory, const char* file, char** folder, text* searched) {
  arena memory = {0};
  qnn_place* places;
  size_t count = 0;
  *folder = NULL;
  genai_status* status = qnn_search_places(directory, &memory, &places, &count);
  for (size_t i = 0; !status && !*folder && i < count; ++i) {
    if (!places[i].directory) continue;
    if (qnn_place_has(&places[i], file)) {
      *folder = mem_strdup(places[i].directory);
      if (!*folder) status = genai_status_out_of_memory();
    } else if (searched) {
      status = text_printf(searched, "%s%s", searched->length ? ", " : "", places[i].directory);
    }
  }
  arena_deinit(&memory);
  return status;
}

static genai_status* get_interface(qnn_library* self, const char* path) {
  void* symbol = dlsym(self->htp, "QnnInterface_getProviders");
  qnn_api_get_providers providers;
  const qnn_api_interface** list = NULL;
  uint32_t count = 0;
  memcpy(&providers, &symbol, sizeof providers);
  if (!symbol || providers(&list, &count) || !list) count = 0;
  for (uint32_t i = 0; i < count && !self->api; ++i) {
    if (list[i] && list[i]->backend_id == BACKEND_IR && list[i]->core.major == 2) self->api = list[i];
  }
  if (self->api) return NULL;
  return genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE, "%s offers no IR backend of QNN API version 2 (%u providers)", path, count);
}

static genai_status* load(qnn_library* self) {
  arena memory = {0};
  char* path = NULL;
  qnn_preload_dependencies(self->directory, &memory);
  genai_status* status = path_join(self->directory, IR_FILE, &path);
  if (!status && !(self->htp = dlopen(path, RTLD_NOW | RTLD_LOCAL))) {
    const char* reason = dlerror();
    status = genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE, "%s does not load: %s", path, reason ? reason : "no reason given");
  }
  if (!status) status = get_interface(self, path);
  mem_free(path);
  arena_deinit(&memory);
  return status;
}

static genai_status* start(qnn_library* self) {
  qnn_vendor_log_clear();
  if (self->api->log_create(qnn_vendor_log, QNN_API_LOG_ERROR, &self->log) != 0) self->log = NULL;
  uint64_t code = self->api->backend_create(self->log, NULL, &self->backend);
  if (!code) return NULL;
  self->backend = NULL;
  return qnn_vendor_error(self, code, "the IR backend does not start");
}

/* A library whose only backend is IR: what lowering needs of it is the function table. */
static genai_status* open_ir(const char* directory, qnn_library** out) {
  text searched = {0};
  qnn_library* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  genai_status* status = qnn_find_library(directory, IR_FILE, &self->directory, &searched);
  if (!status && !self->directory)
    status = genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE,
                                 "Qualcomm's " IR_FILE
                                 ", which writes graphs for preparation on a device, was not found. Searched: %s. To get "
                                 "it: run `make setup`, or install Qualcomm's QAIRT SDK and set QNN_SDK_ROOT",
                                 searched.length ? searched.data : "nothing");
  if (!status) status = load(self);
  if (!status) status = start(self);
  text_deinit(&searched);
  if (status) {
    qnn_library_close(self);
    return status;
  }
  *out = self;
  return NULL;
}

genai_status* qnn_dlc_probe(const char* directory, text* build_id) {
  qnn_library* library = NULL;
  const char* build = NULL;
  GENAI_TRY(open_ir(directory, &library));
  genai_status* status = NULL;
  if (build_id && library->api->backend_get_build_id(&build) == 0 && build) status = text_append_cstr(build_id, build);
  qnn_library_close(library);
  return status;
}

static genai_status* serialise(qnn_library* library, qnn_api_handle context, const ir_graph* ir, const qnn_dlc_options* options,
                               const char* path) {
  const ir_graph_config where = {.option = GRAPH_SERIALIZATION, .type = SERIALIZATION_FLATBUFFER, .path = path};
  const qnn_api_config custom = {.option = QNN_API_CONFIG_CUSTOM, .as.pointer = &where};
  const qnn_api_config* configuration[] = {&custom, NULL};
  qnn_api_handle graph = NULL;
  uint64_t code = library->api->graph_create(context, ir->name, configuration, &graph);
  if (code) return qnn_vendor_error(library, code, "cannot create graph '%s' for a DLC", ir->name);
  qnn_lowering lowering;
  genai_status* status = qnn_lowering_init(&lowering, library, graph, ir);
  if (!status) {
    lowering.pool = options->pool;
    status = qnn_lowering_run(&lowering, options->cancel);
  }
  qnn_lowering_deinit(&lowering);
  if (status) return status;
  GENAI_TRY(cancel_check(options->cancel));
  qnn_quiet_begin(STDOUT_FILENO);
  code = library->api->graph_finalize(graph, NULL, NULL);
  qnn_quiet_end(STDOUT_FILENO);
  return code ? qnn_vendor_error(library, code, "graph '%s' cannot be written as a DLC to \"%s\"", ir->name, path) : NULL;
}

/* The library notes the time in two records of JSON, which have no checksum; equal graphs must give equal files. */
static genai_status* forget_times(const char* path) {
  static const char key[] = "\"timestamp\": \"", epoch[] = "1980-01-01 00:00:00 UTC";
  mapped_file file;
  GENAI_TRY(mapped_file_open(path, &file));
  genai_status* status = NULL;
  int descriptor = file_operation_fails() ? -1 : open(path, O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) status = genai_status_create(GENAI_ERROR_IO, "cannot open \"%s\" again: %s", path, strerror(errno));
  const uint8_t* end = file.data + file.size;
  for (const uint8_t* at = file.data; !status && (at = memmem(at, (size_t)(end - at), key, sizeof key - 1));) {
    at += sizeof key - 1;
    if ((size_t)(end - at) < sizeof epoch || at[sizeof epoch - 1] != '"') continue;
    if (file_operation_fails() || pwrite(descriptor, epoch, sizeof epoch - 1, (off_t)(at - file.data)) != (ssize_t)sizeof epoch - 1)
      status = genai_status_create(GENAI_ERROR_IO, "cannot write to \"%s\": %s", path, strerror(errno));
  }
  if (descriptor >= 0) close(descriptor);
  mapped_file_close(&file);
  return status;
}

genai_status* qnn_dlc_write(const ir_graph* graph, const qnn_dlc_options* options, const char* path) {
  qnn_library* library = NULL;
  qnn_api_handle context = NULL;
  GENAI_TRY(open_ir(options->directory, &library));
  uint64_t code = library->api->context_create(library->backend, NULL, NULL, &context);
  genai_status* status =
      code ? qnn_vendor_error(library, code, "cannot create a context for a DLC") : serialise(library, context, graph, options, path);
  if (context) library->api->context_free(context, NULL);
  qnn_library_close(library);
  if (!status && !file_exists(path)) status = genai_status_create(GENAI_ERROR_VENDOR, IR_FILE " wrote no \"%s\"", path);
  return status ? status : forget_times(path);
}

void qnn_dlc_output_order(const ir_graph* graph, uint32_t* order) {
  for (uint32_t i = 0; i < graph->n_outputs; ++i) {
    int32_t producer = graph->tensors[graph->outputs[i]]->producer;
    uint32_t place = i;
    for (; place && graph->tensors[graph->outputs[order[place - 1]]]->producer > producer; --place) order[place] = order[place - 1];
    order[place] = i;
  }
}
