/* A Hugging Face checkpoint: config.json, and the safetensors files that belong together, by index or by name. What is in one safetensors file is
 * safetensors.c's business. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "checkpoint/checkpoint_internal.h"

#define MAX_CONFIG_BYTES ((size_t)16 << 20)
#define MAX_INDEX_BYTES ((size_t)256 << 20)

/* File names in a directory; they live in the checkpoint's arena. */
typedef struct name_list {
  const char** names;
  size_t count;
  size_t capacity;
} name_list;

static genai_status* name_list_add(name_list* list, arena* memory, const char* name, size_t length) {
  if (list->count == list->capacity) {
    size_t capacity = list->capacity ? list->capacity * 2 : 16;
    const char** grown = mem_realloc_array(list->names, capacity, sizeof *grown);
    if (!grown) return genai_status_out_of_memory();
    list->names = grown;
    list->capacity = capacity;
  }
  char* copy = arena_alloc(memory, length + 1);
  if (!copy) return genai_status_out_of_memory();
  memcpy(copy, name, length);
  copy[length] = 0;
  list->names[list->count++] = copy;
  return NULL;
}

static int by_name(const void* a, const void* b) {
  return strcmp(*(const char* const*)a, *(const char* const*)b);
}

/* Sorts and drops repetitions. */
static void name_list_sort(name_list* list) {
  if (!list->count) return;
  qsort(list->names, list->count, sizeof *list->names, by_name);
  size_t kept = 1;
  for (size_t i = 1; i < list->count; ++i) {
    if (strcmp(list->names[i], list->names[kept - 1])) list->names[kept++] = list->names[i];
  }
  list->count = kept;
}

static bool name_list_has(const name_list* list, const char* name) {
  return list->count && bsearch(&name, list->names, list->count, sizeof *list->names, by_name);
}

static bool has_affixes(const char* name, const char* prefix, const char* suffix) {
  return !strncmp(name, prefix, strlen(prefix)) && name_ends_with(name, suffix);
}

static genai_status* list_directory(arena* memory, const char* directory, name_list* list) {
  DIR* stream = opendir(directory);
  if (!stream) return genai_status_create(GENAI_ERROR_IO, "%s: cannot list the directory: %s", directory, strerror(errno));
  genai_status* status = NULL;
  const struct dirent* item;
  while (!status && (item = readdir(stream))) status = name_list_add(list, memory, item->d_name, strlen(item->d_name));
  closedir(stream);
  if (!status) name_list_sort(list);
  return status;
}

/* The first name with these affixes, or NULL. */
static const char* find_affixes(const name_list* list, const char* prefix, const char* suffix) {
  for (size_t i = 0; i < list->count; ++i) {
    if (has_affixes(list->names[i], prefix, suffix)) return list->names[i];
  }
  return NULL;
}

static genai_status* refuse_without_config(const char* directory, const name_list* files) {
  const char* found;
  if (find_affixes(files, "consolidated.", ".pth"))
    return genai_status_create(
        GENAI_ERROR_UNSUPPORTED,
        "%s: a checkpoint in Meta's own layout (consolidated.*.pth); convert it with transformers' "
        "convert_llama_weights_to_hf.py, or download the model in the Hugging Face layout (config.json and safetensors)",
        directory);
  if ((found = find_affixes(files, "", ".gguf")))
    return genai_status_create(GENAI_ERROR_NOT_FOUND, "%s: no config.json, but GGUF files; pass the file itself, such as %s/%s", directory,
                               directory, found);
  if (name_list_has(files, "adapter_config.json"))
    return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                               "%s: a LoRA adapter without its base model; merge it into the base model first (peft's "
                               "merge_and_unload, then save_pretrained)",
                               directory);
  return genai_status_create(GENAI_ERROR_NOT_FOUND,
                             "%s: no config.json; expected a Hugging Face checkpoint (config.json and *.safetensors), or the path of "
                             "a GGUF or llama2.c file",
                             directory);
}

static genai_status* refuse_without_safetensors(const char* directory, const name_list* files) {
  if (find_affixes(files, "consolidated.", ".pth") || find_affixes(files, "pytorch_model", ".bin"))
    return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                               "%s: the weights are PyTorch pickles, which are not read because unpickling runs code; load them "
                               "with transformers and save_pretrained(..., safe_serialization=True), or download the safetensors files",
                               directory);
  return genai_status_create(GENAI_ERROR_NOT_FOUND, "%s: config.json is there, but no .safetensors file; download the weights too",
                             directory);
}

static genai_status* refuse_quantized(const char* directory, json_value config) {
  static const char* const keys[] = {"quantization_config", "compression_config"};
  json_value scopes[] = {config, json_get(config, "text_config")};
  for (size_t i = 0; i < 4; ++i) {
    json_value block = json_get(scopes[i / 2], keys[i % 2]);
    if (json_type_of(block) != JSON_OBJECT) continue;
    text_view method = json_string(json_get(block, "quant_method"));
    return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                               "%s: config.json has a \"%s\" (%s): the checkpoint is quantized already, and genai quantizes "
                               "itself; take the original checkpoint in BF16, F16 or F32",
                               directory, keys[i % 2], method.length ? quote_name(method.data, method.length).text : "no quant_method");
  }
  return NULL;
}

/* The file becomes one of the checkpoint's, so that the fingerprint covers it. */
static genai_status* load_json(checkpoint* out, const char* directory, const char* name, size_t limit, json_document** document) {
  char* path;
  const mapped_file* file;
  GENAI_TRY(path_join(directory, name, &path));
  genai_status* status = checkpoint_map(out, path, &file);
  if (!status && file->size > limit)
    status = genai_status_create(GENAI_ERROR_LIMIT, "%s: %zu bytes, expected at most %zu", path, file->size, limit);
  if (!status) status = json_parse((const char*)file->data, file->size, path, document);
  if (!status && json_type_of(json_root(*document)) != JSON_OBJECT) {
    status = genai_status_create(GENAI_ERROR_BAD_FILE, "%s: not a JSON object", path);
    json_free(*document);
    *document = NULL;
  }
  mem_free(path);
  return status;
}

static genai_status* load_configs(checkpoint* out, const char* directory, const name_list* files) {
  if (!name_list_has(files, "config.json")) return refuse_without_config(directory, files);
  GENAI_TRY(load_json(out, directory, "config.json", MAX_CONFIG_BYTES, &out->config));
  if (name_list_has(files, "generation_config.json"))
    GENAI_TRY(load_json(out, directory, "generation_config.json", MAX_CONFIG_BYTES, &out->generation_config));
  out->format = CHECKPOINT_HUGGING_FACE;
  return refuse_quantized(directory, json_root(out->config));
}

/* The names that are not among `files`, for a message: "a, b, ...". */
static genai_status* join_missing(const name_list* wanted, const name_list* files, size_t* missing, text* out) {
  *missing = 0;
  for (size_t i = 0; i < wanted->count; ++i) {
    if (name_list_has(files, wanted->names[i])) continue;
    if (++*missing <= 8) GENAI_TRY(text_printf(out, "%s%s", *missing > 1 ? ", " : "", quote_cstr(wanted->names[i]).text));
  }
  return *missing > 8 ? text_append_cstr(out, ", ...") : NULL;
}

static genai_status* refuse_missing(const char* directory, const char* said_by, const name_list* wanted, const name_list* files) {
  size_t missing;
  text list = {0};
  genai_status* status = join_missing(wanted, files, &missing, &list);
  if (!status && missing)
    status = genai_status_create(GENAI_ERROR_NOT_FOUND, "%s: %zu of the %zu files that %s asks for are missing: %s; download them",
                                 directory, missing, wanted->count, said_by, list.data);
  text_deinit(&list);
  return status;
}

static genai_status* list_index_files(checkpoint* out, const char* path, json_value index, name_list* wanted) {
  json_value map = json_get(index, "weight_map");
  if (json_type_of(map) != JSON_OBJECT || !json_count(map))
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: no \"weight_map\" object; download the file again", path);
  json_iterator iterator = json_iterate(map);
  text_view key, previous = {NULL, 0};
  json_value value;
  while (json_next(&iterator, &key, &value)) {
    text_view file = json_string(value);
    /* Only plain names: an index must not reach outside its directory. */
    if (!file.length || memchr(file.data, '/', file.length) || memchr(file.data, 0, file.length))
      return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: tensor \"%s\" is said to be in \"%s\", expected a file name", path,
                                 quote_name(key.data, key.length).text, quote_name(file.data, file.length).text);
    if (text_view_equal(file, previous)) continue; /* most neighbours share a file */
    previous = file;
    GENAI_TRY(name_list_add(wanted, &out->memory, file.data, file.length));
  }
  name_list_sort(wanted);
  return NULL;
}

/* Adds the siblings of every NAME-00001-of-00005.safetensors in `wanted`, so that a missing one is noticed. */
static genai_status* add_siblings(checkpoint* out, name_list* wanted) {
  size_t given = wanted->count;
  for (size_t i = 0; i < given; ++i) {
    unsigned number, total;
    size_t digits_at;
    if (!shard_name_parse(wanted->names[i], ".safetensors", &number, &total, &digits_at)) continue;
    if (i && total > 1 && !strncmp(wanted->names[i], wanted->names[i - 1], digits_at)) continue; /* done with the one before */
    for (unsigned j = 1; j <= total; ++j) {
      char* sibling = shard_name_with(wanted->names[i], digits_at, j);
      genai_status* status = sibling ? name_list_add(wanted, &out->memory, sibling, strlen(sibling)) : genai_status_out_of_memory();
      mem_free(sibling);
      GENAI_TRY(status);
    }
  }
  name_list_sort(wanted);
  return NULL;
}

static genai_status* open_files(checkpoint* out, const char* directory, const name_list* wanted) {
  for (size_t i = 0; i < wanted->count; ++i) {
    char* path;
    const mapped_file* file;
    GENAI_TRY(path_join(directory, wanted->names[i], &path));
    genai_status* status = checkpoint_map(out, path, &file);
    if (!status) status = safetensors_parse(out, file->data, file->size, path);
    mem_free(path);
    GENAI_TRY(status);
  }
  return NULL;
}

/* Every tensor of the index must have been found; one that the index does not mention is used with a warning. */
static genai_status* check_against_index(const checkpoint* out, const char* path, json_value index) {
  json_iterator iterator = json_iterate(json_get(index, "weight_map"));
  text_view key;
  json_value value;
  size_t listed = 0;
  while (json_next(&iterator, &key, &value)) {
    char* name = mem_strndup(key.data, key.length);
    if (!name) return genai_status_out_of_memory();
    size_t ignored;
    bool found = name_table_find(&out->tensor_names, name, &ignored);
    bool passed_over = !found && name_table_find(&out->passed_over, name, &ignored);
    mem_free(name);
    listed += found;
    if (!found && !passed_over) {
      text_view file = json_string(value);
      return genai_status_create(GENAI_ERROR_BAD_FILE,
                                 "%s: tensor \"%s\" is said to be in %s, but no file holds it; download the files again", path,
                                 quote_name(key.data, key.length).text, quote_name(file.data, file.length).text);
    }
  }
  if (listed < out->tensor_count)
    log_write(LOG_WARNING, "%s: %zu tensors are in the files but not in the index; they are used", path, out->tensor_count - listed);
  return NULL;
}

static const char index_file_name[] = "model.safetensors.index.json";

/* `only_if_listed` (may be NULL): a file name; when the index does not list it, nothing is opened and *opened stays false. */
static genai_status* open_by_index(checkpoint* out, const char* directory, const name_list* files, const char* only_if_listed,
                                   bool* opened) {
  json_document* index = NULL;
  char* path = NULL;
  name_list wanted = {0};
  genai_status* status = load_json(out, directory, index_file_name, MAX_INDEX_BYTES, &index);
  if (!status) status = path_join(directory, index_file_name, &path);
  if (!status) status = list_index_files(out, path, json_root(index), &wanted);
  *opened = !status && (!only_if_listed || name_list_has(&wanted, only_if_listed));
  if (*opened) {
    status = refuse_missing(directory, index_file_name, &wanted, files);
    if (!status) status = open_files(out, directory, &wanted);
    if (!status) status = check_against_index(out, path, json_root(index));
  }
  mem_free(wanted.names);
  mem_free(path);
  json_free(index);
  return status;
}

static genai_status* open_by_names(checkpoint* out, const char* directory, const name_list* files, name_list* wanted) {
  GENAI_TRY(add_siblings(out, wanted));
  GENAI_TRY(refuse_missing(directory, "their numbering", wanted, files));
  return open_files(out, directory, wanted);
}

/* Without an index: model.safetensors, else every safetensors file except those that hold the same weights in another layout or no model. */
static genai_status* open_without_index(checkpoint* out, const char* directory, const name_list* files) {
  name_list wanted = {0};
  genai_status* status = NULL;
  bool single = name_list_has(files, "model.safetensors");
  for (size_t i = 0; i < files->count && !status; ++i) {
    const char* name = files->names[i];
    bool model =
        single ? !strcmp(name, "model.safetensors")
               : has_affixes(name, "", ".safetensors") && !has_affixes(name, "consolidated", "") && !has_affixes(name, "adapter_model", "");
    if (model) status = name_list_add(&wanted, &out->memory, name, strlen(name));
  }
  if (!status && !wanted.count) status = refuse_without_safetensors(directory, files);
  if (!status) status = open_by_names(out, directory, files, &wanted);
  mem_free(wanted.names);
  return status;
}

genai_status* hugging_face_open_directory(checkpoint* out, const char* directory) {
  name_list files = {0};
  genai_status* status = list_directory(&out->memory, directory, &files);
  if (!status) status = load_configs(out, directory, &files);
  bool opened = false;
  if (!status && name_list_has(&files, index_file_name)) {
    status = open_by_index(out, directory, &files, NULL, &opened);
  } else if (!status) {
    status = open_without_index(out, directory, &files);
  }
  mem_free(files.names);
  return status;
}

genai_status* hugging_face_open_file(checkpoint* out, const char* path) {
  name_list files = {0};
  name_list wanted = {0};
  const char* name = path_base_name(path);
  char* directory = path_directory(path);
  bool opened = false;
  genai_status* status = directory ? list_directory(&out->memory, directory, &files) : genai_status_out_of_memory();
  if (status) goto done;
  if (!name_list_has(&files, "config.json")) {
    status = genai_status_create(GENAI_ERROR_NOT_FOUND,
                                 "%s: no config.json beside it; a safetensors file holds tensors only, put the model's config.json "
                                 "into the same directory",
                                 path);
    goto done;
  }
  GENAI_TRY_GOTO(status, load_configs(out, directory, &files), done);
  /* One file of several stands for all of them, whether an index or their numbering says so. */
  if (name_list_has(&files, index_file_name)) GENAI_TRY_GOTO(status, open_by_index(out, directory, &files, name, &opened), done);
  if (!opened) {
    GENAI_TRY_GOTO(status, name_list_add(&wanted, &out->memory, name, strlen(name)), done);
    status = open_by_names(out, directory, &files, &wanted);
  }
done:
  mem_free(wanted.names);
  mem_free(files.names);
  mem_free(directory);
  return status;
}
