/* Finds a tokenizer: recognises a file's format by its content, and the tokenizer that belongs to a checkpoint. The formats themselves are
 * in load_*.c. */
#include "base/file.h"
#include "base/memory.h"
#include "tokenizer/tokenizer_internal.h"

enum { MAX_TOKENIZER_BYTES = 1 << 28 }; /* the largest tokenizer.json known has 33 MB */

/* The files that hold a vocabulary, best first. tiktoken files have no common name. */
static const char* const vocabulary_files[] = {"tokenizer.json", "tokenizer.model",         "tekken.json",
                                               "spiece.model",   "sentencepiece.bpe.model", "qwen.tiktoken"};
enum { VOCABULARY_FILES = sizeof vocabulary_files / sizeof vocabulary_files[0] };

static bool looks_like_json(const uint8_t* data, size_t size) {
  size_t i = size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
  while (i < size && (data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n')) i++;
  return i < size && data[i] == '{';
}

/* "BASE64 RANK" in the first line. */
static bool looks_like_tiktoken(const uint8_t* data, size_t size) {
  size_t i = 0, digits = 0;
  while (i < size && i < 4096 &&
         (data[i] == '+' || data[i] == '/' || data[i] == '=' || (data[i] >= '0' && data[i] <= '9') ||
          ((data[i] | 0x20) >= 'a' && (data[i] | 0x20) <= 'z')))
    i++;
  if (i == 0 || i >= size || data[i] != ' ') return false;
  for (i++; i < size && data[i] >= '0' && data[i] <= '9'; i++) digits++;
  return digits > 0 && (i == size || data[i] == '\n' || data[i] == '\r');
}

static genai_status* load_json_file(const mapped_file* file, tokenizer** out) {
  json_document* document = NULL;
  GENAI_TRY(json_parse((const char*)file->data, file->size, file->path, &document));
  json_value root = json_root(document);
  bool tekken = json_type_of(json_get(root, "vocab")) == JSON_ARRAY && json_string(json_get(json_get(root, "config"), "pattern")).data;
  genai_status* status = tekken ? tokenizer_load_tekken(root, file->path, out) : tokenizer_load_json(root, file->path, out);
  json_free(document);
  return status;
}

static genai_status* load_file(const char* path, json_value config, tokenizer** out) {
  mapped_file file;
  GENAI_TRY(mapped_file_open(path, &file));
  genai_status* status = checkpoint_check_is_there(path, file.data, file.size);
  if (status) {
    mapped_file_close(&file);
    return status;
  }
  if (file.size > MAX_TOKENIZER_BYTES) {
    status = genai_status_create(GENAI_ERROR_BAD_FILE, "%s has %zu bytes, too many for a tokenizer (at most %d)", path, file.size,
                                 MAX_TOKENIZER_BYTES);
  } else if (looks_like_json(file.data, file.size)) {
    status = load_json_file(&file, out);
  } else if (looks_like_tiktoken(file.data, file.size)) {
    status = tokenizer_load_tiktoken((const char*)file.data, file.size, path, config, out);
  } else if (file.data[0] == 0x0a) { /* ModelProto's first field, the pieces */
    status = tokenizer_load_sentencepiece(file.data, file.size, path, out);
  } else {
    status = genai_status_create(
        GENAI_ERROR_BAD_FILE, "%s is not a tokenizer: it is neither JSON, nor a SentencePiece model, nor a tiktoken file, nor GGUF", path);
  }
  mapped_file_close(&file);
  return status;
}

/* tokenizer_config.json in a directory, when there is one. */
static genai_status* read_config(const char* directory, json_document** out) {
  *out = NULL;
  char* path = NULL;
  GENAI_TRY(path_join(directory, "tokenizer_config.json", &path));
  genai_status* status = file_exists(path) ? json_parse_file(path, MAX_TOKENIZER_BYTES, out) : NULL;
  mem_free(path);
  return status;
}

static genai_status* open_with_config(const char* path, const char* directory, tokenizer** out) {
  json_document* document = NULL;
  GENAI_TRY(read_config(directory, &document));
  json_value config = document ? json_root(document) : (json_value){0};
  tokenizer* self = NULL;
  genai_status* status = load_file(path, config, &self);
  if (!status) status = tokenizer_apply_config(self, config, directory);
  json_free(document);
  if (status) {
    tokenizer_close(self);
    return status;
  }
  *out = self;
  return NULL;
}

static genai_status* open_directory(const char* directory, tokenizer** out) {
  for (size_t i = 0; i < VOCABULARY_FILES; i++) {
    char* path = NULL;
    GENAI_TRY(path_join(directory, vocabulary_files[i], &path));
    bool found = file_exists(path);
    genai_status* status = found ? open_with_config(path, directory, out) : NULL;
    mem_free(path);
    if (found || status) return status;
  }
  return genai_status_create(
      GENAI_ERROR_NOT_FOUND,
      "%s holds no tokenizer: none of tokenizer.json, tokenizer.model, tekken.json is there; copy the model's own beside "
      "its weights",
      directory);
}

static genai_status* is_gguf(const char* path, bool* gguf) {
  mapped_file file;
  GENAI_TRY(mapped_file_open(path, &file));
  *gguf = file.size >= 4 && memcmp(file.data, "GGUF", 4) == 0;
  mapped_file_close(&file);
  return NULL;
}

/* The directory part of a path, "." when there is none. The caller frees. */
static genai_status* directory_of(const char* path, char** out) {
  const char* base = path_base_name(path);
  *out = base > path ? mem_strndup(path, (size_t)(base - path)) : mem_strdup(".");
  return *out ? NULL : genai_status_out_of_memory();
}

genai_status* tokenizer_open(const char* path, tokenizer** out) {
  if (path_is_directory(path)) return open_directory(path, out);
  bool gguf;
  GENAI_TRY(is_gguf(path, &gguf));
  if (gguf) {
    checkpoint* file = NULL;
    GENAI_TRY(checkpoint_open(path, &file));
    genai_status* status = tokenizer_load_gguf(file, out);
    checkpoint_close(file);
    return status;
  }
  char* directory = NULL;
  GENAI_TRY(directory_of(path, &directory));
  genai_status* status = open_with_config(path, directory, out);
  mem_free(directory);
  return status;
}

/* The tokenizer beside a Hugging Face checkpoint, which may be named by its directory or by a file in it. */
static genai_status* open_beside(const char* path, tokenizer** out) {
  if (path_is_directory(path)) return open_directory(path, out);
  char* directory = NULL;
  GENAI_TRY(directory_of(path, &directory));
  genai_status* status = open_directory(directory, out);
  mem_free(directory);
  return status;
}

genai_status* tokenizer_open_checkpoint(const checkpoint* file, tokenizer** out) {
  switch (checkpoint_format_of(file)) {
    case CHECKPOINT_GGUF:
      return tokenizer_load_gguf(file, out);
    case CHECKPOINT_HUGGING_FACE:
      return open_beside(checkpoint_path(file), out);
    case CHECKPOINT_LLAMA2C:
      break;
  }
  return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                             "%s: a llama2.c file holds no vocabulary; open the tokenizer.model it was trained with instead",
                             checkpoint_path(file));
}
