/* Loading Qualcomm's libraries and getting their function tables. Which folders are tried is search.c; nothing here compiles or runs. */
#include <dirent.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "qnn/load_flags.h"
#include "qnn/qnn_internal.h"

#define HTP_FILE "libQnnHtp.so"
#define SYSTEM_FILE "libQnnSystem.so"
#define HOW_TO_GET                                                                                                     \
  "run `make setup`, or unpack the PyPI wheel onnxruntime-qnn 2.5.0 and name its folder in GENAI_QNN_DIR, or install " \
  "Qualcomm's QAIRT SDK and set QNN_SDK_ROOT"

/* The wheel's libraries need a libc++, libc++abi and libunwind with mangled names, kept in the folder `onnxruntime_qnn.libs` beside
 * theirs. Once these are in the process, the loader finds them by name, wherever the others lie. They need each other, in an order that
 * file names do not tell: whatever loads is kept, and the rest is tried again. Failures show when libQnnHtp.so is loaded. */
void qnn_preload_dependencies(const char* directory, arena* memory) {
  enum { MAX_FILES = 16 };
  char* folder = arena_printf(memory, "%s/../onnxruntime_qnn.libs", directory);
  DIR* handle = folder ? opendir(folder) : NULL;
  if (!handle) return;
  char* files[MAX_FILES];
  size_t count = 0;
  for (const struct dirent* entry; count < MAX_FILES && (entry = readdir(handle));) {
    if (!strstr(entry->d_name, ".so")) continue;
    files[count] = arena_printf(memory, "%s/%s", folder, entry->d_name);
    if (files[count]) ++count;
  }
  closedir(handle);
  for (bool loaded = true; loaded;) {
    loaded = false;
    for (size_t i = 0; i < count; ++i) {
      if (!files[i] || !dlopen(files[i], QNN_LOAD_FLAGS)) continue;
      files[i] = NULL;
      loaded = true;
    }
  }
}

/* Two versions of the library in one process disturb each other. */
typedef struct other_library {
  const char* wanted; /* resolved path, or NULL for any */
  char found[4096];
} other_library;

static int find_other_library(struct dl_phdr_info* info, size_t size, void* user) {
  (void)size;
  other_library* search = user;
  if (!info->dlpi_name || strcmp(path_base_name(info->dlpi_name), HTP_FILE) != 0) return 0;
  char* resolved = realpath(info->dlpi_name, NULL);
  bool other = resolved && search->wanted && strcmp(resolved, search->wanted) != 0;
  if (other) {
    strncpy(search->found, resolved, sizeof search->found - 1);
    search->found[sizeof search->found - 1] = 0;
  }
  free(resolved);
  return other;
}

static genai_status* check_only_library(const char* path) {
  char* resolved = realpath(path, NULL);
  other_library search = {.wanted = resolved};
  int found = dl_iterate_phdr(find_other_library, &search);
  free(resolved);
  if (!found) return NULL;
  return genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE,
                             "%s cannot be loaded: this process already uses %s, and two versions disturb each other; use one folder in "
                             "a process",
                             path, search.found);
}

static genai_status* load(const char* directory, const char* file, arena* memory, void** out) {
  const char* path = directory ? arena_printf(memory, "%s/%s", directory, file) : file;
  if (!path) return genai_status_out_of_memory();
  void* handle = dlopen(path, QNN_LOAD_FLAGS);
  if (!handle) {
    const char* reason = dlerror();
    return genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE, "%s does not load: %s", path, reason ? reason : "no reason given");
  }
  *out = handle;
  return NULL;
}

static genai_status* find_symbol(void* handle, const char* directory, const char* file, const char* symbol, void** out) {
  *out = dlsym(handle, symbol);
  if (*out) return NULL;
  return genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE, "%s/%s has no function %s: it is not a QNN library", directory, file,
                             symbol);
}

static genai_status* get_interfaces(qnn_library* self) {
  void* symbol;
  GENAI_TRY(find_symbol(self->htp, self->directory, HTP_FILE, "QnnInterface_getProviders", &symbol));
  qnn_api_get_providers providers;
  memcpy(&providers, &symbol, sizeof providers);
  const qnn_api_interface** list = NULL;
  uint32_t count = 0;
  if (providers(&list, &count) != 0 || !list) count = 0;
  for (uint32_t i = 0; i < count && !self->api; ++i) {
    if (list[i] && list[i]->backend_id == QNN_API_BACKEND_HTP && list[i]->core.major == 2) self->api = list[i];
  }
  if (!self->api) {
    return genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE,
                               "%s/" HTP_FILE " offers no HTP backend of QNN API version 2 (%u providers)", self->directory, count);
  }
  GENAI_TRY(find_symbol(self->system, self->directory, SYSTEM_FILE, "QnnSystemInterface_getProviders", &symbol));
  qnn_api_system_get_providers system_providers;
  memcpy(&system_providers, &symbol, sizeof system_providers);
  const qnn_api_system_interface** systems = NULL;
  count = 0;
  if (system_providers(&systems, &count) != 0 || !systems) count = 0;
  for (uint32_t i = 0; i < count && !self->system_api; ++i) {
    if (systems[i] && systems[i]->version.major == 1) self->system_api = systems[i];
  }
  if (!self->system_api) {
    return genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE,
                               "%s/" SYSTEM_FILE " offers no system interface of version 1 (%u providers)", self->directory, count);
  }
  return NULL;
}

static genai_status* start_backend(qnn_library* self) {
  qnn_vendor_log_clear();
  uint32_t level = log_enabled(LOG_DEBUG) ? QNN_API_LOG_INFO : QNN_API_LOG_ERROR;
  if (self->api->log_create(qnn_vendor_log, level, &self->log) != 0) self->log = NULL; /* runs without a log, too */
  uint64_t code = self->api->backend_create(self->log, NULL, &self->backend);
  if (code) {
    self->backend = NULL;
    return qnn_vendor_error(self, code, "the HTP backend does not start");
  }
  const char* build = NULL;
  if (self->api->backend_get_build_id(&build) == 0 && build) {
    self->build_id = mem_strdup(build);
    if (!self->build_id) return genai_status_out_of_memory();
  }
  return NULL;
}

static genai_status* open_in(const char* directory, arena* memory, qnn_library* self) {
  if (directory) {
    const char* path = arena_printf(memory, "%s/" HTP_FILE, directory);
    if (!path) return genai_status_out_of_memory();
    GENAI_TRY(check_only_library(path));
    qnn_preload_dependencies(directory, memory);
  }
  qnn_quiet_begin(STDERR_FILENO); /* nothing of ours is logged meanwhile */
  genai_status* status = load(directory, HTP_FILE, memory, &self->htp);
  qnn_quiet_end(STDERR_FILENO);
  if (status) return status;
  char origin[4096];
  if (!directory) {
    if (dlinfo(self->htp, RTLD_DI_ORIGIN, origin) != 0) strcpy(origin, ".");
    directory = origin;
  }
  self->directory = mem_strdup(directory);
  if (!self->directory) return genai_status_out_of_memory();
  GENAI_TRY(load(directory, SYSTEM_FILE, memory, &self->system));
  GENAI_TRY(get_interfaces(self));
  return start_backend(self);
}

static genai_status* not_available(genai_status* cause, const qnn_place* places, size_t count) {
  text list = {0};
  genai_status* status = NULL;
  for (size_t i = 0; !status && i < count; ++i) {
    status = text_append_cstr(&list, "\n  ");
    if (!status) status = qnn_place_describe(&places[i], &list);
  }
  if (status) {
    genai_status_free(cause);
  } else {
    status = genai_status_wrap(cause, GENAI_ERROR_ENGINE_NOT_AVAILABLE,
                               "Qualcomm's QNN libraries are not available. Searched:%s\nTo get them: %s",
                               list.length ? list.data : " nothing", HOW_TO_GET);
  }
  text_deinit(&list);
  return status;
}

genai_status* qnn_library_open(const char* directory, qnn_library** out) {
  arena memory = {0};
  qnn_place* places;
  size_t count;
  genai_status* status = qnn_search_places(directory, &memory, &places, &count);
  if (status) {
    arena_deinit(&memory);
    return status;
  }
  qnn_library* self = mem_calloc(1, sizeof *self);
  if (!self) {
    arena_deinit(&memory);
    return genai_status_out_of_memory();
  }
  const qnn_place* chosen = NULL;
  for (size_t i = 0; i < count && !chosen; ++i) {
    if (!places[i].directory || qnn_place_has(&places[i], HTP_FILE)) chosen = &places[i];
  }
  if (chosen) {
    qnn_quiet_begin(STDOUT_FILENO); /* the simulator says something while it loads */
    status = open_in(chosen->directory, &memory, self);
    qnn_quiet_end(STDOUT_FILENO);
  }
  if (status || !chosen) {
    if (genai_status_kind(status) != GENAI_ERROR_OUT_OF_MEMORY) status = not_available(status, places, count);
    qnn_library_close(self);
  } else {
    *out = self;
  }
  arena_deinit(&memory);
  return status;
}

void qnn_library_close(qnn_library* self) {
  if (!self) return;
  if (self->backend) self->api->backend_free(self->backend);
  if (self->log) self->api->log_free(self->log);
  mem_free(self->build_id);
  mem_free(self->directory);
  mem_free(self);
}

void qnn_library_get_info(const qnn_library* self, qnn_library_info* out) {
#if defined(__x86_64__)
  const bool simulator = true;
#else
  const bool simulator = false;
#endif
  *out = (qnn_library_info){
      .directory = self->directory,
      .build_id = self->build_id ? self->build_id : "",
      .core_major = self->api->core.major,
      .core_minor = self->api->core.minor,
      .core_patch = self->api->core.patch,
      .backend_major = self->api->backend.major,
      .backend_minor = self->api->backend.minor,
      .backend_patch = self->api->backend.patch,
      .is_simulator = simulator,
  };
}
