/* Records of finished stages in the artifact directory: written whole or not at all, checked by hash before they are believed. Which run may use
 * which record is not decided here. */
#include "pipeline/store.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "pipeline/internal.h"

enum { RECORD_FORMAT = 1, MAX_RECORD = 1 << 20, KEPT_BYTES = 8 };

static genai_status* record_path(const char* directory, genai_stage_kind stage, const char* key, const char* suffix, char** out) {
  text path = {0};
  genai_status* status = text_printf(&path, "%s/%s/%s-%.16s%s", directory, STORE_FOLDER, genai_stage_name(stage), key, suffix);
  if (status) {
    text_deinit(&path);
    return status;
  }
  *out = text_detach(&path);
  return *out ? NULL : genai_status_out_of_memory();
}

static genai_status* make_folder(const char* directory) {
  char* folder;
  GENAI_TRY(path_join(directory, STORE_FOLDER, &folder));
  genai_status* status = directory_create(folder);
  mem_free(folder);
  return status;
}

/* A status that only means that nothing can be reused, told in the log; NULL is returned unless memory is short. */
static genai_status* not_usable(genai_status* status, const char* path) {
  if (!status || genai_status_kind(status) == GENAI_ERROR_OUT_OF_MEMORY) return status;
  if (genai_status_kind(status) != GENAI_ERROR_NOT_FOUND)
    log_write(LOG_WARNING, "what is stored in \"%s\" is not used: %s", path, genai_status_message(status));
  genai_status_free(status);
  return NULL;
}

/* ---- Compilation ---- */
/* Names inside the artifact directory are recorded without it, so that the directory can be moved. */
static const char* relative_name(const char* directory, const char* path) {
  size_t length = strlen(directory);
  while (length > 1 && directory[length - 1] == '/') length--;
  return !strncmp(path, directory, length) && path[length] == '/' ? path + length + strspn(path + length, "/") : path;
}

static genai_status* absolute_name(const char* directory, text_view name, char** out) {
  char* copy = mem_strndup(name.data ? name.data : "", name.length);
  if (!copy) return genai_status_out_of_memory();
  if (*copy == '/') {
    *out = copy;
    return NULL;
  }
  genai_status* status = path_join(directory, copy, out);
  mem_free(copy);
  return status;
}

static genai_status* write_file_entry(json_writer* writer, const char* directory, const char* path) {
  char hex[65];
  uint64_t size;
  GENAI_TRY(file_sha256(path, &size, hex));
  json_begin_object(writer);
  json_key(writer, "file");
  json_write_string(writer, relative_name(directory, path));
  json_key(writer, "bytes");
  json_write_unsigned(writer, size);
  json_key(writer, "sha256");
  json_write_string(writer, hex);
  json_end_object(writer);
  return NULL;
}

static genai_status* write_record(const char* directory, const char* key, const genai_compilation_output* output, text* out) {
  json_writer writer;
  json_writer_init(&writer, out, true);
  json_begin_object(&writer);
  json_key(&writer, "format");
  json_write_integer(&writer, RECORD_FORMAT);
  json_key(&writer, "key");
  json_write_string(&writer, key);
  json_key(&writer, "artifacts");
  json_begin_array(&writer);
  genai_status* status = NULL;
  for (size_t i = 0; !status && i < output->artifacts.count; i++) status = write_file_entry(&writer, directory, output->artifacts.items[i]);
  json_end_array(&writer);
  if (!status && output->etrecord) {
    json_key(&writer, "etrecord");
    status = write_file_entry(&writer, directory, output->etrecord);
  }
  json_key(&writer, "statistics");
  json_begin_object(&writer);
  for (size_t i = 0; i < output->statistics.count; i++) {
    json_key(&writer, output->statistics.items[i].name);
    json_write_number(&writer, output->statistics.items[i].value);
  }
  json_end_object(&writer);
  json_end_object(&writer);
  genai_status* finished = json_writer_finish(&writer);
  if (!status) return finished ? finished : text_append_char(out, '\n');
  genai_status_free(finished);
  return status;
}

/* The path of a recorded file that still is what it was. */
static genai_status* check_file_entry(const char* directory, json_value entry, char** out) {
  char* path;
  char hex[65] = "";
  uint64_t size = 0;
  GENAI_TRY(absolute_name(directory, json_string(json_get(entry, "file")), &path));
  genai_status* status = file_sha256(path, &size, hex);
  if (status && genai_status_kind(status) != GENAI_ERROR_OUT_OF_MEMORY) {
    status = genai_status_wrap(status, GENAI_ERROR_BAD_FILE, "the artifact \"%s\" is not there any more", path);
  } else if (!status && !text_view_equal_cstr(json_string(json_get(entry, "sha256")), hex)) {
    status = genai_status_create(GENAI_ERROR_BAD_FILE, "the artifact \"%s\" is not what was written then (its hash differs)", path);
  }
  if (status) {
    mem_free(path);
    return status;
  }
  *out = path;
  return NULL;
}

static genai_status* read_record(const char* directory, const char* key, json_value root, genai_compilation_output* out) {
  if (json_integer(json_get(root, "format"), 0) != RECORD_FORMAT || !text_view_equal_cstr(json_string(json_get(root, "key")), key))
    return genai_status_create(GENAI_ERROR_BAD_FILE, "it is of another format or of other inputs");
  json_value entry;
  for (json_iterator it = json_iterate(json_get(root, "artifacts")); json_next(&it, NULL, &entry);) {
    char* path;
    GENAI_TRY(check_file_entry(directory, entry, &path));
    genai_status* status = genai_string_list_add(&out->artifacts, path);
    mem_free(path);
    if (status) return status;
  }
  if (!out->artifacts.count) return genai_status_create(GENAI_ERROR_BAD_FILE, "it names no artifact");
  if (json_type_of(json_get(root, "etrecord")) == JSON_OBJECT)
    GENAI_TRY(check_file_entry(directory, json_get(root, "etrecord"), &out->etrecord));
  text_view name;
  for (json_iterator it = json_iterate(json_get(root, "statistics")); json_next(&it, &name, &entry);) {
    char* copy = mem_strndup(name.data, name.length);
    if (!copy) return genai_status_out_of_memory();
    genai_status* status = genai_statistics_add(&out->statistics, copy, json_number(entry, 0));
    mem_free(copy);
    if (status) return status;
  }
  return NULL;
}

genai_status* store_find_compilation(const char* directory, const char* key, genai_compilation_output* out, char** record, bool* found) {
  char* path;
  json_document* document = NULL;
  genai_compilation_output output = {0};
  *found = false;
  GENAI_TRY(record_path(directory, GENAI_STAGE_COMPILATION, key, ".json", &path));
  genai_status* status = json_parse_file(path, MAX_RECORD, &document);
  if (!status) status = read_record(directory, key, json_root(document), &output);
  json_free(document);
  if (!status) {
    *out = output;
    *record = path;
    *found = true;
    return NULL;
  }
  genai_compilation_output_deinit(&output);
  status = not_usable(status, path);
  mem_free(path);
  return status;
}

/* Calls `body` with the path of each record of a stage that ends in `suffix`. */
typedef genai_status* (*record_body)(void* user, const char* path);
static genai_status* each_record(const char* directory, genai_stage_kind stage, const char* suffix, record_body body, void* user) {
  char* folder;
  GENAI_TRY(path_join(directory, STORE_FOLDER, &folder));
  const char* prefix = genai_stage_name(stage);
  size_t prefix_length = strlen(prefix), suffix_length = strlen(suffix);
  genai_status* status = NULL;
  DIR* entries = opendir(folder);
  for (const struct dirent* entry; !status && entries && (entry = readdir(entries));) {
    size_t length = strlen(entry->d_name);
    if (length < prefix_length + suffix_length || strncmp(entry->d_name, prefix, prefix_length) ||
        strcmp(entry->d_name + length - suffix_length, suffix))
      continue;
    char* path = NULL;
    status = path_join(folder, entry->d_name, &path);
    if (!status) status = body(user, path);
    mem_free(path);
  }
  if (entries) closedir(entries);
  mem_free(folder);
  return status;
}

typedef struct overwritten {
  const char* directory;
  const char* kept; /* the new record's path */
  const genai_string_list* artifacts;
} overwritten;

/* A record whose artifact was written over can never be used again. */
static genai_status* forget_if_overwritten(void* user, const char* path) {
  const overwritten* self = user;
  json_document* document = NULL;
  if (!strcmp(path, self->kept)) return NULL;
  genai_status* status = json_parse_file(path, MAX_RECORD, &document);
  bool forget = status && genai_status_kind(status) == GENAI_ERROR_BAD_FILE;
  if (!status) {
    json_value entry;
    for (json_iterator it = json_iterate(json_get(json_root(document), "artifacts")); json_next(&it, NULL, &entry);) {
      for (size_t i = 0; i < self->artifacts->count; i++)
        forget |= text_view_equal_cstr(json_string(json_get(entry, "file")), relative_name(self->directory, self->artifacts->items[i]));
    }
  }
  json_free(document);
  if (forget) unlink(path);
  if (status && genai_status_kind(status) == GENAI_ERROR_OUT_OF_MEMORY) return status;
  genai_status_free(status);
  return NULL;
}

genai_status* store_keep_compilation(const char* directory, const char* key, const genai_compilation_output* output) {
  char* path = NULL;
  text content = {0};
  GENAI_TRY(make_folder(directory));
  genai_status* status = record_path(directory, GENAI_STAGE_COMPILATION, key, ".json", &path);
  if (!status) status = write_record(directory, key, output, &content);
  if (!status) status = file_write_atomic(path, content.data, content.length);
  overwritten search = {directory, path, &output->artifacts};
  if (!status) status = each_record(directory, GENAI_STAGE_COMPILATION, ".json", forget_if_overwritten, &search);
  text_deinit(&content);
  mem_free(path);
  return status;
}

/* ---- Bytes ---- */
static const char magic[8] = "genaista";

typedef struct frame {
  char magic[8];
  char key[64];
  uint8_t sha256[32];
  uint64_t size;
} frame;

static void hash_bytes(const void* data, size_t size, uint8_t digest[32]) {
  sha256 hash;
  sha256_init(&hash);
  sha256_update(&hash, data, size);
  sha256_final(&hash, digest);
}

static genai_status* read_frame(const char* path, const char* key, void** data, size_t* size) {
  mapped_file file;
  frame head;
  uint8_t digest[32];
  GENAI_TRY(mapped_file_open(path, &file));
  genai_status* status = NULL;
  if (file.size >= sizeof head) memcpy(&head, file.data, sizeof head);
  if (file.size < sizeof head || memcmp(head.magic, magic, sizeof magic) || memcmp(head.key, key, sizeof head.key) ||
      head.size != file.size - sizeof head) {
    status = genai_status_create(GENAI_ERROR_BAD_FILE, "it is of another format, of other inputs, or cut short");
  } else {
    hash_bytes(file.data + sizeof head, (size_t)head.size, digest);
    if (memcmp(digest, head.sha256, sizeof digest)) status = genai_status_create(GENAI_ERROR_BAD_FILE, "its hash differs");
  }
  if (!status) {
    *data = mem_dup(file.data + sizeof head, (size_t)head.size);
    *size = (size_t)head.size;
    if (!*data) status = genai_status_out_of_memory();
  }
  mapped_file_close(&file);
  return status;
}

genai_status* store_find_bytes(const char* directory, genai_stage_kind stage, const char* key, void** data, size_t* size, char** record,
                               bool* found) {
  char* path;
  *found = false;
  GENAI_TRY(record_path(directory, stage, key, ".bin", &path));
  genai_status* status = read_frame(path, key, data, size);
  if (!status) {
    *record = path;
    *found = true;
    return NULL;
  }
  status = not_usable(status, path);
  mem_free(path);
  return status;
}

typedef struct oldest {
  size_t count;
  char* path;
  struct timespec time;
} oldest;

static genai_status* look_for_oldest(void* user, const char* path) {
  oldest* self = user;
  struct stat info;
  if (stat(path, &info)) return NULL;
  self->count++;
  const struct timespec* time = &info.st_mtim;
  if (self->path && (time->tv_sec > self->time.tv_sec || (time->tv_sec == self->time.tv_sec && time->tv_nsec >= self->time.tv_nsec)))
    return NULL;
  char* copy = mem_strdup(path);
  if (!copy) return genai_status_out_of_memory();
  mem_free(self->path);
  self->path = copy;
  self->time = *time;
  return NULL;
}

static genai_status* forget_oldest(const char* directory, genai_stage_kind stage) {
  for (bool more = true; more;) {
    oldest found = {0};
    genai_status* status = each_record(directory, stage, ".bin", look_for_oldest, &found);
    more = !status && found.count > KEPT_BYTES && !unlink(found.path);
    mem_free(found.path);
    if (status) return status;
  }
  return NULL;
}

genai_status* store_keep_bytes(const char* directory, genai_stage_kind stage, const char* key, const void* data, size_t size) {
  frame head = {.size = size};
  memcpy(head.magic, magic, sizeof magic);
  memcpy(head.key, key, sizeof head.key);
  hash_bytes(data, size, head.sha256);
  char* path = NULL;
  atomic_file file;
  GENAI_TRY(make_folder(directory));
  GENAI_TRY(record_path(directory, stage, key, ".bin", &path));
  genai_status* status = atomic_file_create(path, &file);
  mem_free(path);
  if (status) return status;
  status = atomic_file_write(&file, &head, sizeof head);
  if (!status) status = atomic_file_write(&file, data, size);
  if (status) {
    atomic_file_abort(&file);
    return status;
  }
  GENAI_TRY(atomic_file_commit(&file));
  return forget_oldest(directory, stage);
}
