/* What the readers of the checkpoint room share: the checkpoint under construction, the hashed name table, and bounded names for errors. */
#ifndef GENAI_CHECKPOINT_CHECKPOINT_INTERNAL_H
#define GENAI_CHECKPOINT_CHECKPOINT_INTERNAL_H

#include "base/memory.h"
#include "checkpoint/checkpoint.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the readers take stored numbers as they are, which is little-endian in every format"
#endif

/* Names to indices, open addressing. The names are borrowed. */
typedef struct name_slot {
  const char* name; /* NULL: free */
  size_t index;
} name_slot;
typedef struct name_table {
  name_slot* slots;
  size_t capacity; /* 0 or a power of two */
  size_t count;
} name_table;

/* `*added` is false, and nothing changes, when the name is there already. */
genai_status* name_table_add(name_table* table, const char* name, size_t index, bool* added) GENAI_MUST_USE;
bool name_table_find(const name_table* table, const char* name, size_t* index);
void name_table_deinit(name_table* table);

struct checkpoint {
  checkpoint_format format;
  char* path;
  mapped_file* files;
  size_t file_count;
  checkpoint_tensor* tensors;
  size_t tensor_count;
  size_t tensor_capacity;
  name_table tensor_names;
  name_table passed_over; /* in the files, but not listed: masks, position ids */
  gguf_value* metadata;
  size_t metadata_count;
  size_t metadata_capacity;
  name_table metadata_names;
  json_document* config;
  json_document* generation_config;
  arena memory; /* names, arrays of strings */
};

/* Frees what it holds, but not the struct itself; leaves it zeroed. */
void checkpoint_deinit(checkpoint* file);

/* Room for `count` more; file readers reserve what the file announces after checking that the file is long enough for it. */
genai_status* checkpoint_reserve_tensors(checkpoint* out, size_t count) GENAI_MUST_USE;
genai_status* checkpoint_reserve_metadata(checkpoint* out, size_t count) GENAI_MUST_USE;

/* Appends; the name or key must live as long as the checkpoint. A name that is there already is a GENAI_ERROR_BAD_FILE that names `source`. */
genai_status* checkpoint_add_tensor(checkpoint* out, const checkpoint_tensor* tensor, const char* source) GENAI_MUST_USE;
genai_status* checkpoint_add_metadata(checkpoint* out, const gguf_value* value, const char* source) GENAI_MUST_USE;

/* Maps a file and appends it to `files`; *out points into the array until the next call. An empty file is refused. */
genai_status* checkpoint_map(checkpoint* out, const char* path, const mapped_file** file) GENAI_MUST_USE;

/* The readers. Each fills a zeroed checkpoint (path set by the caller); on failure the caller closes it. */
genai_status* gguf_open(checkpoint* out, const char* path) GENAI_MUST_USE;
genai_status* hugging_face_open_directory(checkpoint* out, const char* directory) GENAI_MUST_USE;
genai_status* hugging_face_open_file(checkpoint* out, const char* path) GENAI_MUST_USE;
genai_status* llama2c_open(checkpoint* out, const char* path) GENAI_MUST_USE;

/* One file's content, without the file: what the fuzz targets call. `name` is for errors. Tensors point into `data`. */
genai_status* gguf_parse(checkpoint* out, const uint8_t* data, size_t size, const char* name) GENAI_MUST_USE;
genai_status* safetensors_parse(checkpoint* out, const uint8_t* data, size_t size, const char* name) GENAI_MUST_USE;
genai_status* llama2c_parse(checkpoint* out, const uint8_t* data, size_t size, const char* name) GENAI_MUST_USE;

/* Whether the content is a llama2.c file: a plausible header, and the size that it asks for (also given, 0 if the header is not plausible). */
bool llama2c_recognise(const uint8_t* data, size_t size, uint64_t* expected_size);

/* Elements of a shape, and their bytes; false when a product overflows or the last dimension is not a whole number of blocks. */
bool tensor_bytes(element_type type, const uint64_t* dims, uint32_t rank, uint64_t* bytes);

/* "[2, 3]" for messages. */
typedef struct shape_text {
  char text[96];
} shape_text;
shape_text describe_shape(const uint64_t* dims, uint32_t rank);

/* A name from a file, cut to a readable length, with bytes that are not printable ASCII written as \xNN. */
typedef struct quoted_name {
  char text[136];
} quoted_name;
quoted_name quote_name(const char* data, size_t length);
quoted_name quote_cstr(const char* name);

bool name_ends_with(const char* name, const char* suffix);

/* The number pair of NAME-00002-of-00005.EXTENSION (one-based number, total); false when the name is not of this form. `digits_at` is where the
 * number begins. */
bool shard_name_parse(const char* path, const char* extension, unsigned* number, unsigned* total, size_t* digits_at);
/* The same path with another number; NULL when memory is out. */
char* shard_name_with(const char* path, size_t digits_at, unsigned number);

/* The directory part of a path ("." if there is none); NULL when memory is out. */
char* path_directory(const char* path);

/* Unaligned little-endian loads. */
static inline uint16_t load_u16(const uint8_t* p) {
  uint16_t value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}
static inline uint32_t load_u32(const uint8_t* p) {
  uint32_t value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}
static inline uint64_t load_u64(const uint8_t* p) {
  uint64_t value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}

/* Exact widening of one half-precision number (IEEE 754 binary16), NaN payloads included. Without branches, so that loops over it vectorise, and
 * without subnormal floats on the way, so that a process that flushes them gets the same numbers. */
static inline float half_to_float(uint16_t half) {
  uint32_t exponent = half & 0x7C00u;
  uint32_t rest = (uint32_t)(half & 0x7FFFu) << 13;
  float small = (float)(int32_t)(half & 0x3FFu) * 0x1p-24f;
  uint32_t bits;
  __builtin_memcpy(&bits, &small, sizeof bits);
  uint32_t normal = 0u - (exponent != 0);
  uint32_t special = 0u - (exponent == 0x7C00u);
  bits = (bits & ~normal) | ((rest + (112u << 23)) & normal); /* exponent bias 127 - 15 */
  bits |= (0x7F800000u & special) | (uint32_t)(half & 0x8000u) << 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

#endif
