/* For the checkpoint tests: bytes that grow, GGUF and safetensors files built by hand, and a scratch directory. */
#ifndef GENAI_TESTS_CHECKPOINT_SUPPORT_H
#define GENAI_TESTS_CHECKPOINT_SUPPORT_H

#include <dirent.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_internal.h"
#include "support.h"

typedef struct bytes {
  uint8_t data[1 << 16];
  size_t size;
} bytes;

static inline void put(bytes* b, const void* data, size_t size) {
  assert_true(b->size + size <= sizeof b->data);
  if (size) memcpy(b->data + b->size, data, size);
  b->size += size;
}
static inline void put_u32(bytes* b, uint32_t value) {
  put(b, &value, 4);
}
static inline void put_u64(bytes* b, uint64_t value) {
  put(b, &value, 8);
}
static inline void put_string(bytes* b, const char* string) {
  put_u64(b, strlen(string));
  put(b, string, strlen(string));
}

/* Pieces of a GGUF file. */
static inline void gguf_begin(bytes* b, uint64_t tensors, uint64_t pairs) {
  b->size = 0;
  put(b, "GGUF", 4);
  put_u32(b, 3);
  put_u64(b, tensors);
  put_u64(b, pairs);
}
static inline void gguf_pair_u32(bytes* b, const char* key, uint32_t value) {
  put_string(b, key);
  put_u32(b, GGUF_U32);
  put_u32(b, value);
}
static inline void gguf_tensor(bytes* b, const char* name, uint32_t rank, const uint64_t* dims, uint32_t type, uint64_t offset) {
  put_string(b, name);
  put_u32(b, rank);
  for (uint32_t i = 0; i < rank && i < 16; ++i) put_u64(b, dims[i]);
  put_u32(b, type);
  put_u64(b, offset);
}
static inline void pad_to(bytes* b, size_t alignment) {
  while (b->size % alignment) put(b, "", 1);
}

/* A safetensors file of this header and `data_size` bytes. */
static inline void safetensors_file(bytes* b, const char* header, size_t data_size) {
  b->size = 0;
  put_u64(b, strlen(header));
  put(b, header, strlen(header));
  for (size_t i = 0; i < data_size; ++i) put(b, "\1", 1);
}

/* The parsers see a heap block of exactly the file's size, so that ASan notices a read beyond it. */
typedef genai_status* (*parse_function)(checkpoint* out, const uint8_t* data, size_t size, const char* name);
static inline genai_status* parse_exact(parse_function parse, const uint8_t* data, size_t size, checkpoint* out) {
  uint8_t* copy = malloc(size ? size : 1);
  if (size) memcpy(copy, data, size);
  genai_status* status = parse(out, copy, size, "sample");
  /* Whatever was accepted must be readable to its last byte. */
  for (size_t i = 0; !status && i < out->tensor_count; ++i) {
    const checkpoint_tensor* tensor = &out->tensors[i];
    uint64_t columns = tensor->rank ? tensor->dims[tensor->rank - 1] : 1;
    uint64_t rows = 1;
    for (uint32_t j = 0; j + 1 < tensor->rank; ++j) rows *= tensor->dims[j];
    if (!tensor->bytes || columns > 1 << 20) continue;
    float* row = malloc(columns * sizeof *row);
    assert_ok(checkpoint_read_rows(tensor, 0, 1, row));
    assert_ok(checkpoint_read_rows(tensor, rows - 1, 1, row));
    free(row);
  }
  free(copy);
  return status;
}
static inline genai_status* parse_and_drop(parse_function parse, const uint8_t* data, size_t size) {
  checkpoint out = {0};
  genai_status* status = parse_exact(parse, data, size, &out);
  checkpoint_deinit(&out);
  return status;
}
static inline genai_status* try_gguf(const bytes* b) {
  return parse_and_drop(gguf_parse, b->data, b->size);
}
static inline genai_status* try_safetensors(const bytes* b) {
  return parse_and_drop(safetensors_parse, b->data, b->size);
}

/* A directory that teardown removes with what is in it. */
static char scratch_directory[64];
static inline int scratch_create(void** state) {
  (void)state;
  strcpy(scratch_directory, "genai-test-XXXXXX");
  return mkdtemp(scratch_directory) ? 0 : -1;
}
static inline int scratch_remove(void** state) {
  (void)state;
  DIR* stream = opendir(scratch_directory);
  for (struct dirent* item; stream && (item = readdir(stream));) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", scratch_directory, item->d_name);
    unlink(path);
  }
  if (stream) closedir(stream);
  return rmdir(scratch_directory);
}
static inline const char* scratch(const char* name) {
  return test_path(scratch_directory, name);
}
static inline void scratch_write(const char* name, const void* data, size_t size) {
  FILE* file = fopen(scratch(name), "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}
static inline void scratch_write_text(const char* name, const char* content) {
  scratch_write(name, content, strlen(content));
}
static inline void scratch_copy(const char* from, const char* name) {
  mapped_file file;
  assert_ok(mapped_file_open(from, &file));
  scratch_write(name, file.data, file.size);
  mapped_file_close(&file);
}

/* The log lines of a test, joined. */
static char captured_log[8192];
static inline void capture_sink(void* user, log_level level, const char* message) {
  (void)user;
  (void)level;
  size_t length = strlen(captured_log);
  snprintf(captured_log + length, sizeof captured_log - length, "%s\n", message);
}
static inline void capture_log(void) {
  captured_log[0] = 0;
  log_set_sink(capture_sink, NULL, LOG_DEBUG);
}

/* Opening must fail, with this in the message; nothing may be left open. */
#define assert_open_fails(path, kind, needle)                       \
  do {                                                              \
    checkpoint* refused_ = NULL;                                    \
    assert_fails(checkpoint_open((path), &refused_), kind, needle); \
    assert_null(refused_);                                          \
  } while (0)

/* SHA-256 of a tensor's elements as float. */
static inline void tensor_digest(const checkpoint_tensor* tensor, char hex[65]) {
  uint64_t columns = tensor->rank ? tensor->dims[tensor->rank - 1] : 1;
  uint64_t rows = 1;
  for (uint32_t j = 0; j + 1 < tensor->rank; ++j) rows *= tensor->dims[j];
  float* values = malloc(rows * columns * sizeof *values);
  assert_ok(checkpoint_read_rows(tensor, 0, rows, values));
  sha256_hex(values, rows * columns * sizeof *values, hex);
  free(values);
}

#endif
