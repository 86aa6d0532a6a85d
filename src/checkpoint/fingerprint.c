/* The hash that identifies a checkpoint in artifacts. */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint_internal.h"

static int by_path(const void* a, const void* b) {
  const mapped_file* const* x = a;
  const mapped_file* const* y = b;
  return strcmp(path_base_name((*x)->path), path_base_name((*y)->path));
}

genai_status* checkpoint_fingerprint(const checkpoint* file, char hex[65]) {
  if (file->file_count == 1) {
    sha256_hex(file->files[0].data, file->files[0].size, hex);
    return NULL;
  }
  const mapped_file** sorted = mem_calloc(file->file_count, sizeof *sorted);
  if (!sorted) return genai_status_out_of_memory();
  for (size_t i = 0; i < file->file_count; ++i) sorted[i] = &file->files[i];
  qsort(sorted, file->file_count, sizeof *sorted, by_path);
  text lines = {0};
  genai_status* status = NULL;
  for (size_t i = 0; i < file->file_count && !status; ++i) {
    char digest[65];
    sha256_hex(sorted[i]->data, sorted[i]->size, digest);
    status = text_printf(&lines, "%s  %s\n", digest, path_base_name(sorted[i]->path));
  }
  if (!status) sha256_hex(lines.data, lines.length, hex);
  text_deinit(&lines);
  mem_free(sorted);
  return status;
}
