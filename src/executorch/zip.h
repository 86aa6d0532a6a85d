/* Zip archives without compression (APPNOTE 6.3, "stored"), as ETRecords and PyTorch's own files are: writing alone. */
#ifndef GENAI_EXECUTORCH_ZIP_H
#define GENAI_EXECUTORCH_ZIP_H

#include "base/file.h"
#include "base/text.h"

typedef struct zip_writer {
  atomic_file file;
  text directory; /* the central directory so far */
  uint32_t entries;
} zip_writer;

genai_status* zip_create(const char* path, zip_writer* out) GENAI_MUST_USE;
genai_status* zip_add(zip_writer* self, const char* name, const void* data, size_t size) GENAI_MUST_USE;
genai_status* zip_commit(zip_writer* self) GENAI_MUST_USE; /* the writer is gone either way */
void zip_abort(zip_writer* self);
/* CRC-32 of ISO 3309, as zip has it. */
uint32_t zip_crc32(const void* data, size_t size);

#endif
