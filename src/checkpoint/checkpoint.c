/* Opening a checkpoint: which format a path holds, and the questions a reader of an open one asks. The formats themselves are gguf.c,
 * safetensors.c, hugging_face.c and llama2c.c. */
#include <string.h>

#include "checkpoint/checkpoint_internal.h"

static bool starts_with(const uint8_t* data, size_t size, const char* magic, size_t length) {
  return size >= length && !memcmp(data, magic, length);
}

/* A safetensors file begins with the header's length and the header's brace; the length is checked later, with a better message. */
static bool is_safetensors(const uint8_t* data, size_t size, const char* path) {
  return name_ends_with(path, ".safetensors") || (size > 9 && data[8] == '{' && data[9] == '"' && load_u64(data) < (uint64_t)1 << 40);
}

/* Files that people pass by mistake, each with what to do instead. */
static genai_status* refuse_content(const char* path, const uint8_t* data, size_t size) {
  static const struct {
    const char* magic;
    size_t length;
    size_t offset;
    const char* text;
  } known[] = {
      {"PK\3\4", 4, 0,
       "is a PyTorch checkpoint (zip of pickles), which is not read because unpickling runs code; load it with transformers and "
       "save_pretrained(..., safe_serialization=True), or convert it to GGUF with llama.cpp's convert_hf_to_gguf.py"},
      {"\x80\x02", 2, 0,
       "is a Python pickle, which is not read because unpickling runs code; load it with transformers and save_pretrained(..., "
       "safe_serialization=True)"},
      {"lmgg", 4, 0, "is a GGML file from before GGUF; convert the original model again with llama.cpp's convert_hf_to_gguf.py"},
      {"fmgg", 4, 0, "is a GGMF file from before GGUF; convert the original model again with llama.cpp's convert_hf_to_gguf.py"},
      {"tjgg", 4, 0, "is a GGJT file from before GGUF; convert the original model again with llama.cpp's convert_hf_to_gguf.py"},
      {"24ka", 4, 0, "is a llama2.c file of export version 1 or 2; export it again with \"export.py --version 0\""},
      {"ET12", 4, 4, "is an ExecuTorch program, which is already compiled; use \"genai generate\" or \"genai inspect\" with it"},
      {"<!DOCTYPE", 9, 0, "is a web page, not a model; the download went to a page instead of the file"},
      {"<html", 5, 0, "is a web page, not a model; the download went to a page instead of the file"},
      {"{", 1, 0, "is a JSON file; pass the directory that holds it"},
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i) {
    if (size >= known[i].offset && starts_with(data + known[i].offset, size - known[i].offset, known[i].magic, known[i].length))
      return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s %s", path, known[i].text);
  }
  uint64_t expected = 0;
  if (name_ends_with(path, ".bin") && !llama2c_recognise(data, size, &expected) && expected)
    return genai_status_create(
        GENAI_ERROR_BAD_FILE,
        "%s: its header is that of a llama2.c checkpoint of %llu bytes, but the file has %zu; it is truncated, damaged, or "
        "of another format",
        path, (unsigned long long)expected, size);
  return genai_status_create(
      GENAI_ERROR_UNSUPPORTED,
      "%s: not a checkpoint format that is read (it begins with \"%s\"); expected a GGUF file, a safetensors file, a "
      "llama2.c file, or a directory with config.json and safetensors",
      path, quote_name((const char*)data, size < 8 ? size : 8).text);
}

genai_status* checkpoint_check_is_there(const char* path, const uint8_t* data, size_t size) {
  if (!size) return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: the file is empty (0 bytes); download or copy it again", path);
  if (starts_with(data, size, "version https://git-lfs", 23))
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "%s is a Git LFS pointer, not the file itself; fetch the content with \"git lfs pull\"", path);
  return NULL;
}

static genai_status* open_path(checkpoint* out, const char* path) {
  if (path_is_directory(path)) return hugging_face_open_directory(out, path);
  mapped_file file;
  GENAI_TRY(mapped_file_open(path, &file));
  uint64_t expected = 0;
  bool gguf = starts_with(file.data, file.size, "GGUF", 4);
  bool safetensors = !gguf && is_safetensors(file.data, file.size, path);
  bool llama2c = !gguf && !safetensors && llama2c_recognise(file.data, file.size, &expected);
  genai_status* status = checkpoint_check_is_there(path, file.data, file.size);
  if (!status && !gguf && !safetensors && !llama2c) status = refuse_content(path, file.data, file.size);
  mapped_file_close(&file);
  GENAI_TRY(status);
  if (gguf) return gguf_open(out, path);
  return safetensors ? hugging_face_open_file(out, path) : llama2c_open(out, path);
}

genai_status* checkpoint_open(const char* path, checkpoint** out) {
  checkpoint* file = mem_calloc(1, sizeof *file);
  if (!file) return genai_status_out_of_memory();
  file->path = mem_strdup(path);
  genai_status* status = file->path ? open_path(file, path) : genai_status_out_of_memory();
  if (status) {
    checkpoint_close(file);
    return status;
  }
  *out = file;
  return NULL;
}

void checkpoint_release_pages(const checkpoint* file) {
  for (size_t i = 0; i < file->file_count; i++) mapped_file_release(&file->files[i]);
}

void checkpoint_close(checkpoint* file) {
  if (!file) return;
  checkpoint_deinit(file);
  mem_free(file);
}

void checkpoint_deinit(checkpoint* file) {
  for (size_t i = 0; i < file->file_count; ++i) mapped_file_close(&file->files[i]);
  mem_free(file->files);
  mem_free(file->path);
  mem_free(file->tensors);
  mem_free(file->metadata);
  name_table_deinit(&file->tensor_names);
  name_table_deinit(&file->passed_over);
  name_table_deinit(&file->metadata_names);
  json_free(file->config);
  json_free(file->generation_config);
  arena_deinit(&file->memory);
  *file = (checkpoint){0};
}

genai_status* checkpoint_map(checkpoint* out, const char* path, const mapped_file** file) {
  mapped_file* grown = mem_realloc_array(out->files, out->file_count + 1, sizeof *grown);
  if (!grown) return genai_status_out_of_memory();
  out->files = grown;
  GENAI_TRY(mapped_file_open(path, &grown[out->file_count]));
  *file = &grown[out->file_count++];
  return checkpoint_check_is_there(path, (*file)->data, (*file)->size);
}

static genai_status* reserve(void** items, size_t* capacity, size_t count, size_t more, size_t size) {
  size_t needed;
  if (!size_add(count, more, &needed)) return genai_status_out_of_memory();
  if (needed <= *capacity) return NULL;
  if (needed < *capacity * 2) needed = *capacity * 2;
  void* grown = mem_realloc_array(*items, needed, size);
  if (!grown) return genai_status_out_of_memory();
  *items = grown;
  *capacity = needed;
  return NULL;
}

genai_status* checkpoint_reserve_tensors(checkpoint* out, size_t count) {
  return reserve((void**)&out->tensors, &out->tensor_capacity, out->tensor_count, count, sizeof *out->tensors);
}

genai_status* checkpoint_reserve_metadata(checkpoint* out, size_t count) {
  return reserve((void**)&out->metadata, &out->metadata_capacity, out->metadata_count, count, sizeof *out->metadata);
}

genai_status* checkpoint_add_tensor(checkpoint* out, const checkpoint_tensor* tensor, const char* source) {
  bool added;
  GENAI_TRY(checkpoint_reserve_tensors(out, 1));
  GENAI_TRY(name_table_add(&out->tensor_names, tensor->name, out->tensor_count, &added));
  if (!added) return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: tensor \"%s\" is there twice", source, quote_cstr(tensor->name).text);
  out->tensors[out->tensor_count++] = *tensor;
  return NULL;
}

genai_status* checkpoint_add_metadata(checkpoint* out, const gguf_value* value, const char* source) {
  bool added;
  GENAI_TRY(checkpoint_reserve_metadata(out, 1));
  GENAI_TRY(name_table_add(&out->metadata_names, value->key, out->metadata_count, &added));
  if (!added)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: metadata key \"%s\" is there twice", source, quote_cstr(value->key).text);
  out->metadata[out->metadata_count++] = *value;
  return NULL;
}

checkpoint_format checkpoint_format_of(const checkpoint* file) {
  return file->format;
}
const char* checkpoint_path(const checkpoint* file) {
  return file->path;
}
size_t checkpoint_tensor_count(const checkpoint* file) {
  return file->tensor_count;
}
const checkpoint_tensor* checkpoint_tensor_at(const checkpoint* file, size_t index) {
  return &file->tensors[index];
}

const checkpoint_tensor* checkpoint_find(const checkpoint* file, const char* name) {
  size_t index;
  return name_table_find(&file->tensor_names, name, &index) ? &file->tensors[index] : NULL;
}

static json_value root_or_absent(const json_document* document) {
  return document ? json_root(document) : (json_value){NULL, 0};
}
json_value checkpoint_config(const checkpoint* file) {
  return root_or_absent(file->config);
}
json_value checkpoint_generation_config(const checkpoint* file) {
  return root_or_absent(file->generation_config);
}

size_t checkpoint_metadata_count(const checkpoint* file) {
  return file->metadata_count;
}
const gguf_value* checkpoint_metadata_at(const checkpoint* file, size_t index) {
  return &file->metadata[index];
}

const gguf_value* checkpoint_metadata(const checkpoint* file, const char* key) {
  size_t index;
  return name_table_find(&file->metadata_names, key, &index) ? &file->metadata[index] : NULL;
}

int64_t checkpoint_metadata_integer(const checkpoint* file, const char* key, int64_t fallback) {
  const gguf_value* value = checkpoint_metadata(file, key);
  if (!value) return fallback;
  switch (value->type) {
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
      return (int64_t)value->as.u;
    case GGUF_U64:
      return value->as.u <= INT64_MAX ? (int64_t)value->as.u : fallback;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64:
      return value->as.i;
    case GGUF_BOOL:
      return value->as.b;
    default:
      return fallback;
  }
}

double checkpoint_metadata_number(const checkpoint* file, const char* key, double fallback) {
  const gguf_value* value = checkpoint_metadata(file, key);
  if (!value) return fallback;
  switch (value->type) {
    case GGUF_F32:
    case GGUF_F64:
      return value->as.f;
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64:
      return (double)value->as.u;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64:
      return (double)value->as.i;
    default:
      return fallback;
  }
}

text_view checkpoint_metadata_string(const checkpoint* file, const char* key) {
  const gguf_value* value = checkpoint_metadata(file, key);
  return value && value->type == GGUF_STRING ? value->as.s : (text_view){NULL, 0};
}
