/* Loading libGenie.so, its log, and its status codes in words. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "genie/genie_internal.h"
#include "qnn/load_flags.h"

static pthread_mutex_t api_lock = PTHREAD_MUTEX_INITIALIZER;

void genie_lock(void) {
  pthread_mutex_lock(&api_lock);
}

void genie_unlock(void) {
  pthread_mutex_unlock(&api_lock);
}

/* ---- Log ---- */
/* The callback carries no pointer of the caller's, and may come from the library's threads; calls take turns, so that one place serves. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static char log_lines[1024];
static size_t log_length;

void genie_log_clear(void) {
  pthread_mutex_lock(&log_lock);
  log_length = 0;
  log_lines[0] = 0;
  pthread_mutex_unlock(&log_lock);
}

/* One line, one space between words, without the letter for the level that messages of the QNN libraries begin with. */
static size_t tidy_line(char* line) {
  const char* from = line;
  while (*from == ' ') from++;
  if (from[0] == '<' && from[1] && from[2] == '>') from += 3;
  size_t length = 0;
  for (; *from; from++) {
    char c = *from == '\n' || *from == '\t' ? ' ' : *from;
    if (c != ' ' || (length && line[length - 1] != ' ')) line[length++] = c;
  }
  while (length && line[length - 1] == ' ') length--;
  line[length] = 0;
  return length;
}

static void take_log(genie_handle log, const char* format, int32_t level, uint64_t timestamp, va_list arguments) {
  (void)log;
  (void)timestamp;
  char line[320];
  vsnprintf(line, sizeof line, format, arguments);
  size_t length = tidy_line(line);
  if (!length) return;
  log_write(LOG_DEBUG, "Genie: %s", line);
  if (level != GENIE_LOG_ERROR) return;
  pthread_mutex_lock(&log_lock);
  if (log_length + length + 3 < sizeof log_lines) {
    int written = snprintf(log_lines + log_length, sizeof log_lines - log_length, "%s%s", log_length ? "; " : "", line);
    log_length += (size_t)written;
  }
  pthread_mutex_unlock(&log_lock);
}

/* ---- Codes ---- */
static const char* code_meaning(genie_code code) {
  switch (code) {
    case GENIE_WARNING_ABORTED:
      return "the query was aborted";
    case GENIE_WARNING_BOUND_HANDLE:
    case GENIE_ERROR_BOUND_HANDLE:
      return "the handle is bound to another";
    case GENIE_WARNING_PAUSED:
      return "the query is paused";
    case GENIE_WARNING_CONTEXT_EXCEEDED:
      return "the context is full";
    case GENIE_ERROR_GENERAL:
      return "general error";
    case GENIE_ERROR_INVALID_ARGUMENT:
      return "invalid argument";
    case GENIE_ERROR_MEM_ALLOC:
      return "out of memory";
    case GENIE_ERROR_INVALID_CONFIG:
      return "invalid configuration";
    case GENIE_ERROR_INVALID_HANDLE:
      return "invalid handle";
    case GENIE_ERROR_QUERY_FAILED:
      return "the query failed";
    case GENIE_ERROR_JSON_FORMAT:
      return "the configuration is not JSON";
    case GENIE_ERROR_JSON_SCHEMA:
      return "the configuration has a member it does not know, or lacks one";
    case GENIE_ERROR_JSON_VALUE:
      return "a value in the configuration is not allowed";
    case GENIE_ERROR_GENERATE_FAILED:
      return "generation failed";
    case GENIE_ERROR_GET_HANDLE_FAILED:
      return "no such handle";
    case GENIE_ERROR_APPLY_CONFIG_FAILED:
      return "the configuration cannot be applied";
    case GENIE_ERROR_SET_PARAMS_FAILED:
      return "parameters cannot be set";
    default:
      return "a code that genai does not know";
  }
}

genai_status* genie_error(const genie_library* self, genie_code code, const char* format, ...) {
  char what[1024], lines[sizeof log_lines];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  pthread_mutex_lock(&log_lock);
  memcpy(lines, log_lines, sizeof lines);
  pthread_mutex_unlock(&log_lock);
  return genai_status_create(code == GENIE_ERROR_MEM_ALLOC ? GENAI_ERROR_OUT_OF_MEMORY : GENAI_ERROR_VENDOR,
                             "%s: Genie error %d (%s)%s%s (%s, version %u.%u.%u)", what, code, code_meaning(code),
                             lines[0] ? ", its log says: " : "", lines, self->path, self->version.major, self->version.minor,
                             self->version.patch);
}

/* ---- Loading ---- */
/* The symbol's address goes into a pointer to a function, which have the same representation where dlsym exists. */
#define LOOK_UP(member, symbol)                                                                                                     \
  do {                                                                                                                              \
    void* address = dlsym(handle, symbol);                                                                                          \
    if (!address)                                                                                                                   \
      return genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE, "%s has no function %s; QAIRT 2.47 to 2.51 have it", self->path, \
                                 symbol);                                                                                           \
    memcpy(&self->api.member, &address, sizeof address);                                                                            \
  } while (0)

static genai_status* look_up(genie_library* self, void* handle) {
  LOOK_UP(version_major, "Genie_getApiMajorVersion");
  LOOK_UP(version_minor, "Genie_getApiMinorVersion");
  LOOK_UP(version_patch, "Genie_getApiPatchVersion");
  self->version = (genie_version){self->api.version_major(), self->api.version_minor(), self->api.version_patch()};
  if (self->version.major != 1)
    return genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE, "%s has version %u.%u.%u of Genie's API, genai knows version 1",
                               self->path, self->version.major, self->version.minor, self->version.patch);
  LOOK_UP(log_create, "GenieLog_create");
  LOOK_UP(log_free, "GenieLog_free");
  LOOK_UP(config_create, "GenieDialogConfig_createFromJson");
  LOOK_UP(config_bind_logger, "GenieDialogConfig_bindLogger");
  LOOK_UP(config_free, "GenieDialogConfig_free");
  LOOK_UP(dialog_create, "GenieDialog_create");
  LOOK_UP(dialog_free, "GenieDialog_free");
  LOOK_UP(dialog_reset, "GenieDialog_reset");
  LOOK_UP(dialog_set_max_tokens, "GenieDialog_setMaxNumTokens");
  LOOK_UP(dialog_token_query, "GenieDialog_tokenQuery");
  LOOK_UP(dialog_signal, "GenieDialog_signal");
  return NULL;
}

/* Genie loads libQnnHtp.so, libQnnSystem.so and libQnnHtpNetRunExtensions.so by their bare names. Once a library of that name is in the
 * process, the loader gives that one: the first two are there already, through `base`, and a bundle without settings for the backend
 * does without the third. */
static void load_extensions(const char* directory) {
  char* path;
  genai_status* status = path_join(directory, "libQnnHtpNetRunExtensions.so", &path);
  if (status) {
    genai_status_free(status);
    return;
  }
  (void)dlopen(path, QNN_LOAD_FLAGS);
  mem_free(path);
}

static genai_status* load(genie_library* self, const char* directory) {
  load_extensions(directory);
  GENAI_TRY(path_join(directory, "libGenie.so", &self->path));
  void* handle = dlopen(self->path, QNN_LOAD_FLAGS);
  if (!handle) {
    const char* reason = dlerror();
    return genai_status_create(
        GENAI_ERROR_ENGINE_NOT_AVAILABLE,
        "engine qairt needs %s, which does not load: %s; the PyPI wheel onnxruntime-qnn and Qualcomm's QAIRT SDK have it", self->path,
        reason ? reason : "no reason given");
  }
  return look_up(self, handle);
}

genai_status* genie_library_open(const qnn_library* base, genie_library** out) {
  qnn_library_info info;
  qnn_library_get_info(base, &info);
  genie_library* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  qnn_quiet_begin(STDOUT_FILENO);
  genai_status* status = load(self, info.directory);
  qnn_quiet_end(STDOUT_FILENO);
  if (status) {
    genie_library_close(self);
    return status;
  }
  genie_lock();
  if (self->api.log_create(NULL, take_log, log_enabled(LOG_DEBUG) ? GENIE_LOG_WARNING : GENIE_LOG_ERROR, &self->log) != GENIE_SUCCESS)
    self->log = NULL;
  genie_unlock();
  *out = self;
  return NULL;
}

void genie_library_close(genie_library* self) {
  if (!self) return;
  if (self->log) {
    genie_lock();
    self->api.log_free(self->log);
    genie_unlock();
  }
  mem_free(self->path);
  mem_free(self);
}

genie_version genie_library_version(const genie_library* self) {
  return self->version;
}
