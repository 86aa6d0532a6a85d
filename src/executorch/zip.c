/* Zip archives without compression: local headers, content, central directory. Times are zip's epoch, so that equal content gives equal
 * files. */
#include "executorch/zip.h"

#include <string.h>

enum {
  LOCAL_SIGNATURE = 0x04034b50,
  CENTRAL_SIGNATURE = 0x02014b50,
  END_SIGNATURE = 0x06054b50,
  VERSION = 20,           /* 2.0 */
  FLAG_UTF8 = 1 << 11,    /* names */
  EPOCH = 0x21 << 16 | 0, /* 1 January 1980 */
  MAX_ENTRIES = 65535
};

uint32_t zip_crc32(const void* data, size_t size) {
  const uint8_t* bytes = data;
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < size; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
  }
  return ~crc;
}

static genai_status* append_number(text* out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; i++) GENAI_TRY(text_append_char(out, (char)(value >> 8 * i & 0xff)));
  return NULL;
}

/* The part that local and central headers have in common. */
static genai_status* append_entry(text* out, const char* name, uint32_t crc, uint32_t size) {
  GENAI_TRY(append_number(out, VERSION, 2));
  GENAI_TRY(append_number(out, FLAG_UTF8, 2));
  GENAI_TRY(append_number(out, 0, 2)); /* stored */
  GENAI_TRY(append_number(out, EPOCH, 4));
  GENAI_TRY(append_number(out, crc, 4));
  GENAI_TRY(append_number(out, size, 4));
  GENAI_TRY(append_number(out, size, 4));
  GENAI_TRY(append_number(out, (uint32_t)strlen(name), 2));
  return append_number(out, 0, 2); /* extra field */
}

static genai_status* append_central(text* out, const char* name, uint32_t crc, uint32_t size, uint32_t offset) {
  GENAI_TRY(append_number(out, CENTRAL_SIGNATURE, 4));
  GENAI_TRY(append_number(out, VERSION, 2));
  GENAI_TRY(append_entry(out, name, crc, size));
  GENAI_TRY(append_number(out, 0, 2)); /* comment */
  GENAI_TRY(append_number(out, 0, 2)); /* disk */
  GENAI_TRY(append_number(out, 0, 2)); /* internal and external attributes */
  GENAI_TRY(append_number(out, 0, 4));
  GENAI_TRY(append_number(out, offset, 4));
  return text_append_cstr(out, name);
}

genai_status* zip_create(const char* path, zip_writer* out) {
  *out = (zip_writer){0};
  return atomic_file_create(path, &out->file);
}

genai_status* zip_add(zip_writer* self, const char* name, const void* data, size_t size) {
  uint64_t offset = self->file.size;
  if (size > INT32_MAX || offset > INT32_MAX || strlen(name) > 1024 || self->entries == MAX_ENTRIES)
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "\"%s\": member \"%s\" of %zu bytes makes the archive larger than 2 GB",
                               self->file.path, name, size);
  uint32_t crc = zip_crc32(data, size);
  text header = {0};
  genai_status* status = append_number(&header, LOCAL_SIGNATURE, 4);
  if (!status) status = append_entry(&header, name, crc, (uint32_t)size);
  if (!status) status = text_append_cstr(&header, name);
  if (!status) status = append_central(&self->directory, name, crc, (uint32_t)size, (uint32_t)offset);
  if (!status) status = atomic_file_write(&self->file, header.data, header.length);
  if (!status && size) status = atomic_file_write(&self->file, data, size);
  text_deinit(&header);
  self->entries++;
  return status;
}

static genai_status* write_end(zip_writer* self) {
  text end = {0};
  uint64_t offset = self->file.size;
  genai_status* status = append_number(&end, END_SIGNATURE, 4);
  if (!status) status = append_number(&end, 0, 4); /* one disk */
  if (!status) status = append_number(&end, self->entries, 2);
  if (!status) status = append_number(&end, self->entries, 2);
  if (!status) status = append_number(&end, (uint32_t)self->directory.length, 4);
  if (!status) status = append_number(&end, (uint32_t)offset, 4);
  if (!status) status = append_number(&end, 0, 2); /* comment */
  if (!status && self->directory.length) status = atomic_file_write(&self->file, self->directory.data, self->directory.length);
  if (!status) status = atomic_file_write(&self->file, end.data, end.length);
  text_deinit(&end);
  return status;
}

genai_status* zip_commit(zip_writer* self) {
  genai_status* status = write_end(self);
  text_deinit(&self->directory);
  if (status) {
    atomic_file_abort(&self->file);
    return status;
  }
  return atomic_file_commit(&self->file);
}

void zip_abort(zip_writer* self) {
  text_deinit(&self->directory);
  atomic_file_abort(&self->file);
}
