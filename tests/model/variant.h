/* A fixture checkpoint with some of its text changed, in a folder of its own: for what a model must refuse or read otherwise. */
#ifndef GENAI_TESTS_MODEL_VARIANT_H
#define GENAI_TESTS_MODEL_VARIANT_H

#include "model/model.h"
#include "support.h"

typedef struct edit { /* ended by a NULL `from` */
  const char *from, *to;
} edit;

typedef struct variant {
  char directory[512];
  checkpoint* file;
} variant;

static inline char* variant_read(const char* path, size_t* size) {
  FILE* in = fopen(path, "rb");
  if (!in) return NULL;
  fseek(in, 0, SEEK_END);
  *size = (size_t)ftell(in);
  rewind(in);
  char* data = calloc(1, *size + 1);
  assert_int_equal(fread(data, 1, *size, in), *size);
  fclose(in);
  return data;
}

static inline void variant_write(const char* path, const char* data, size_t size) {
  FILE* out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(data, 1, size, out), size);
  fclose(out);
}

/* Replaces every `from` in data[*size] (which may hold NUL bytes); at least one must be there. */
static inline char* variant_replace(char* data, size_t* size, const char* from, const char* to) {
  size_t from_length = strlen(from), to_length = strlen(to), found = 0;
  for (char* at = data; (at = memmem(at, *size - (size_t)(at - data), from, from_length)); at += from_length) ++found;
  if (!found) fail_msg("\"%s\" is not in the file to edit", from);
  char* edited = calloc(1, *size + found * to_length + 1);
  size_t length = 0, done = 0;
  while (done < *size) {
    char* at = memmem(data + done, *size - done, from, from_length);
    size_t plain = at ? (size_t)(at - data) - done : *size - done;
    memcpy(edited + length, data + done, plain);
    length += plain;
    done += plain;
    if (!at) break;
    memcpy(edited + length, to, to_length);
    length += to_length;
    done += from_length;
  }
  free(data);
  *size = length;
  return edited;
}

/* `tensor_edits` change names in the header of model.safetensors, whose length is set anew. */
static inline variant variant_open(const char* fixture, const edit* config_edits, const edit* tensor_edits) {
  variant v = {.file = NULL};
  char path[1024], source[1024];
  snprintf(v.directory, sizeof v.directory, "%s/genai_model_XXXXXX", P_tmpdir);
  assert_non_null(mkdtemp(v.directory));
  size_t size = 0;
  snprintf(source, sizeof source, "%s/checkpoints/%s/config.json", GENAI_TEST_DATA, fixture);
  char* config = variant_read(source, &size);
  assert_non_null(config);
  for (const edit* e = config_edits; e && e->from; ++e) config = variant_replace(config, &size, e->from, e->to);
  snprintf(path, sizeof path, "%s/config.json", v.directory);
  variant_write(path, config, size);
  free(config);

  snprintf(source, sizeof source, "%s/checkpoints/%s/model.safetensors", GENAI_TEST_DATA, fixture);
  char* tensors = variant_read(source, &size);
  assert_non_null(tensors);
  uint64_t header_length;
  memcpy(&header_length, tensors, sizeof header_length);
  size_t length = (size_t)header_length, rest = size - 8 - length;
  char* header = malloc(length);
  memcpy(header, tensors + 8, length);
  for (const edit* e = tensor_edits; e && e->from; ++e) header = variant_replace(header, &length, e->from, e->to);
  char* whole = malloc(8 + length + rest);
  header_length = length;
  memcpy(whole, &header_length, 8);
  memcpy(whole + 8, header, length);
  memcpy(whole + 8 + length, tensors + size - rest, rest);
  snprintf(path, sizeof path, "%s/model.safetensors", v.directory);
  variant_write(path, whole, 8 + length + rest);
  free(whole);
  free(header);
  free(tensors);
  assert_ok(checkpoint_open(v.directory, &v.file));
  return v;
}

static inline void variant_close(variant* v) {
  static const char* const names[] = {"config.json", "generation_config.json", "model.safetensors"};
  checkpoint_close(v->file);
  for (size_t i = 0; i < 3; ++i) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", v->directory, names[i]);
    unlink(path);
  }
  rmdir(v->directory);
}

/* The model of a variant must be refused like this. */
#define variant_fails(fixture, kind, needle, ...)                                              \
  do {                                                                                         \
    variant variant_ = variant_open(fixture, (const edit[]){__VA_ARGS__, {NULL, NULL}}, NULL); \
    model* model_;                                                                             \
    assert_fails(model_open(variant_.file, &model_), kind, needle);                            \
    variant_close(&variant_);                                                                  \
  } while (0)

#endif
