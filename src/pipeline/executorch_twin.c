/* The simulator's twin, in this process or in a child. The child hands its binary over in a file without a name, so that nothing is left
 * behind whatever happens to it. */
#include "pipeline/executorch_twin.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

static int is_vendor_library(struct dl_phdr_info* info, size_t size, void* user) {
  (void)size;
  (void)user;
  return info->dlpi_name && strstr(info->dlpi_name, "libQnnHtp.so") != NULL;
}

bool twin_child_possible(void) {
  return !dl_iterate_phdr(is_vendor_library, NULL);
}

static genai_status* open_unnamed(const char* directory, int* out) {
  int descriptor = file_operation_fails() ? -1 : open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) { /* not every file system can; a name that is gone at once serves as well */
    char* path;
    GENAI_TRY(path_join(directory, ".twin" TEMPORARY_SUFFIX, &path));
    descriptor = file_operation_fails() ? -1 : mkostemp(path, O_CLOEXEC);
    if (descriptor >= 0) unlink(path);
    mem_free(path);
  }
  if (descriptor < 0)
    return genai_status_create(GENAI_ERROR_IO, "cannot create a file in \"%s\": %s; check its permissions or choose another folder",
                               directory, strerror(errno));
  *out = descriptor;
  return NULL;
}

static genai_status* write_descriptor(int descriptor, const uint8_t* data, size_t size) {
  while (size) {
    ssize_t written = file_operation_fails() ? -1 : write(descriptor, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      return genai_status_create(GENAI_ERROR_IO, "cannot write the simulator's artifact: %s%s", strerror(errno),
                                 errno == ENOSPC ? "; free disk space or choose another folder" : "");
    data += written;
    size -= (size_t)written;
  }
  return NULL;
}

typedef struct twin_times {
  uint64_t size, peak_memory_bytes;
  double build_seconds, finalize_seconds, serialize_seconds;
} twin_times;

static genai_status* compile_unshared(qnn_library* library, const twin_request* request, qnn_binary* out) {
  qnn_compile_options options = request->options;
  options.weight_sharing = false;
  return qnn_compile(library, request->graphs, request->n_graphs, &options, out);
}

static genai_status* work_in_child(void* user, text* payload) {
  twin* self = user;
  qnn_library* library;
  qnn_binary binary = {0};
  GENAI_TRY(qnn_library_open(self->request.qnn_dir, &library));
  self->request.options.pool = NULL; /* its threads exist in the parent alone */
  self->request.options.progress = NULL;
  self->request.options.cancel = NULL; /* the parent kills */
  GENAI_TRY(compile_unshared(library, &self->request, &binary));
  GENAI_TRY(write_descriptor(self->descriptor, binary.data, binary.size));
  twin_times times = {binary.size, memory_peak_bytes(), binary.build_seconds, binary.finalize_seconds, binary.serialize_seconds};
  return text_append(payload, (const char*)&times, sizeof times);
}

genai_status* twin_start(const twin_request* request, twin* out) {
  *out = (twin){.descriptor = -1, .request = *request};
  GENAI_TRY(open_unnamed(request->directory, &out->descriptor));
  genai_status* status = child_start(work_in_child, out, &out->child);
  if (status) twin_cancel(out);
  return status;
}

void twin_cancel(twin* self) {
  child_stop(&self->child);
  if (self->descriptor >= 0) close(self->descriptor);
  self->descriptor = -1;
}

static genai_status* take_binary(const twin* self, const text* payload, twin_result* out) {
  twin_times times;
  if (payload->length != sizeof times)
    return genai_status_create(GENAI_ERROR_INTERNAL, "the child's report has %zu bytes", payload->length);
  memcpy(&times, payload->data, sizeof times);
  void* map = mmap(NULL, (size_t)times.size, PROT_READ, MAP_SHARED, self->descriptor, 0);
  if (map == MAP_FAILED)
    return genai_status_create(GENAI_ERROR_IO, "cannot map the simulator's binary of %llu bytes: %s", (unsigned long long)times.size,
                               strerror(errno));
  *out = (twin_result){.data = map,
                       .size = (size_t)times.size,
                       .build_seconds = times.build_seconds,
                       .finalize_seconds = times.finalize_seconds,
                       .serialize_seconds = times.serialize_seconds,
                       .peak_memory_bytes = times.peak_memory_bytes,
                       .map = map};
  return NULL;
}

genai_status* twin_finish(twin* self, twin_result* out) {
  text payload = {0};
  progress step;
  progress_begin(&step, self->request.options.progress, "waiting for the simulator's twin", "s", 0);
  genai_status* status = child_wait(&self->child, self->request.options.cancel, &step, &payload);
  progress_end(&step, 0);
  if (status && genai_status_kind(status) != GENAI_ERROR_CANCELLED)
    status = genai_status_wrap(status, genai_status_kind(status), "the simulator's twin does not compile (in a child process)");
  if (!status) status = take_binary(self, &payload, out);
  text_deinit(&payload);
  twin_cancel(self);
  return status;
}

genai_status* twin_compile(qnn_library* library, const twin_request* request, twin_result* out) {
  qnn_binary binary = {0};
  GENAI_TRY(compile_unshared(library, request, &binary));
  *out = (twin_result){.data = binary.data,
                       .size = binary.size,
                       .build_seconds = binary.build_seconds,
                       .finalize_seconds = binary.finalize_seconds,
                       .serialize_seconds = binary.serialize_seconds,
                       .binary = binary};
  return NULL;
}

void twin_result_deinit(twin_result* self) {
  if (self->map) munmap(self->map, self->size);
  if (self->binary.data) qnn_binary_deinit(&self->binary);
  *self = (twin_result){0};
}
