/* The files of a Genie bundle: written when compiling, checked before a run. What the configuration says is src/genie's business. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "genie/genie.h"
#include "pipeline/internal.h"
#include "pipeline/qairt.h"

#define BINARY_FILE "model.bin"
#define EXTENSIONS_FILE "htp_backend_ext_config.json"
#define TOKENIZER_FILE "tokenizer.json"
#define TOKENIZER_CONFIG_FILE "tokenizer_config.json"
#define NO_TOKENIZER_FILE "no_tokenizer.json"

enum { MAX_RECORD_BYTES = 4 << 20, MAX_TOKENIZER_BYTES = 512 << 20 };

/* ---- Writing ---- */
typedef struct bundle_writer {
  const char* path;
  const artifact_request* request;
  genai_string_list* files;
  text sums; /* as sha256sum writes them */
} bundle_writer;

static genai_status* write_file(bundle_writer* self, const char* name, const void* data, size_t size, bool in_sums) {
  char* path;
  GENAI_TRY(path_join(self->path, name, &path));
  genai_status* status = file_write_atomic(path, data, size);
  if (!status) status = artifact_list_file(self->files, path);
  if (!status && in_sums) {
    char hex[65];
    sha256_hex(data, size, hex);
    status = text_printf(&self->sums, "%s  %s\n", hex, name);
  }
  mem_free(path);
  return status;
}

static genai_status* write_text(bundle_writer* self, const char* name, const text* content, bool in_sums) {
  return write_file(self, name, content->data ? content->data : "", content->length, in_sums);
}

static genai_status* copy_file(bundle_writer* self, const char* from, const char* name) {
  mapped_file file;
  GENAI_TRY(mapped_file_open(from, &file));
  genai_status* status = write_file(self, name, file.data, file.size, true);
  mapped_file_close(&file);
  return status;
}

static genai_status* begin_bundle(const char* path) {
  GENAI_TRY(directory_create(path));
  char* config;
  GENAI_TRY(path_join(path, GENIE_CONFIG_FILE, &config));
  (void)unlink(config);
  mem_free(config);
  return NULL;
}

/* Genie cannot do without a tokenizer, even when it is only given ids. */
static genai_status* write_tokenizer(bundle_writer* self, const char** name) {
  static const char none[] =
      "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],\"normalizer\":null,\"pre_tokenizer\":null,"
      "\"post_processor\":null,\"decoder\":null,\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}\n";
  const char* from = self->request->tokenizer_file;
  if (!from) {
    *name = NO_TOKENIZER_FILE;
    return write_file(self, *name, none, sizeof none - 1, false);
  }
  *name = TOKENIZER_FILE;
  GENAI_TRY(copy_file(self, from, TOKENIZER_FILE));
  char* config; /* the chat template is in there */
  GENAI_TRY(qairt_bundle_file(from, TOKENIZER_CONFIG_FILE, &config));
  genai_status* status = file_exists(config) ? copy_file(self, config, TOKENIZER_CONFIG_FILE) : NULL;
  mem_free(config);
  return status;
}

static genai_status* write_record(bundle_writer* self) {
  qnn_library_info library;
  qnn_library_get_info(self->request->library, &library);
  provenance filled = *self->request->record;
  filled.library_build_id = library.build_id;
  filled.simulator = self->request->simulator;
  text record = {0};
  genai_status* status = provenance_write(&filled, &record);
  if (!status) status = text_append_char(&record, '\n');
  if (!status) status = write_text(self, QAIRT_PROVENANCE_FILE, &record, true);
  text_deinit(&record);
  return status;
}

/* The token that the tokenizer puts before every text, which Genie leaves to its configuration; -1: none. */
static genai_status* find_bos(const tokenizer* words, int32_t* out) {
  *out = -1;
  if (!words || tokenizer_bos_id(words) < 0) return NULL;
  token_list ids = {0};
  genai_status* status = tokenizer_encode(words, "a", 1, (tokenizer_encode_options){true, true}, &ids);
  if (!status && ids.count && ids.ids[0] == tokenizer_bos_id(words)) *out = ids.ids[0];
  token_list_deinit(&ids);
  return status;
}

/* The size of a head, off the cache's keys [1, KV, D, slots]. */
static genai_status* find_head_dim(const qnn_binary_info* info, uint32_t* out) {
  for (uint32_t i = 0; i < info->graphs[0].n_inputs; i++) {
    const qnn_tensor_info* tensor = &info->graphs[0].inputs[i];
    if (strcmp(tensor->name, "past_key_0_in") || tensor->rank != 4) continue;
    *out = tensor->dims[2];
    return NULL;
  }
  return genai_status_create(GENAI_ERROR_INTERNAL, "graph \"%s\" of the binary has no input past_key_0_in", info->graphs[0].name);
}

static genai_status* write_config(bundle_writer* self, const char* tokenizer_name, uint32_t head_dim) {
  const provenance* record = self->request->record;
  genie_config config = {.context_length = record->context_length,
                         .vocab_size = record->vocab_size,
                         .head_dim = head_dim,
                         .stop_ids = record->stop_ids,
                         .n_stop_ids = record->n_stop_ids,
                         .binary = BINARY_FILE,
                         .tokenizer = tokenizer_name,
                         .extensions = self->request->simulator ? NULL : EXTENSIONS_FILE};
  GENAI_TRY(find_bos(self->request->words, &config.bos_id));
  text content = {0};
  genai_status* status = NULL;
  if (config.extensions) {
    status = genie_extensions_write(self->request->soc, self->request->weight_sharing, &content);
    if (!status) status = write_text(self, EXTENSIONS_FILE, &content, false);
    text_clear(&content);
  }
  if (!status) status = write_text(self, QAIRT_SUMS_FILE, &self->sums, false);
  if (!status) status = genie_config_write(&config, &content);
  if (!status) status = write_text(self, GENIE_CONFIG_FILE, &content, false);
  text_deinit(&content);
  return status;
}

genai_status* qairt_bundle_write(const char* path, const void* binary, size_t size, const artifact_request* request,
                                 genai_string_list* files) {
  bundle_writer self = {.path = path, .request = request, .files = files};
  qnn_binary_info info;
  uint32_t head_dim = 0;
  const char* tokenizer_name = NULL;
  GENAI_TRY(qnn_binary_inspect(request->library, binary, size, &info));
  genai_status* status = find_head_dim(&info, &head_dim);
  qnn_binary_info_deinit(&info);
  if (!status) status = begin_bundle(path);
  if (!status) status = write_file(&self, BINARY_FILE, binary, size, true);
  if (!status) status = write_tokenizer(&self, &tokenizer_name);
  if (!status) status = write_record(&self);
  if (!status) status = write_config(&self, tokenizer_name, head_dim);
  text_deinit(&self.sums);
  return status;
}

/* ---- Reading ---- */
genai_status* qairt_bundle_file(const char* config, const char* name, char** out) {
  char* directory = mem_strndup(config, (size_t)(path_base_name(config) - config));
  if (!directory) return genai_status_out_of_memory();
  genai_status* status = path_join(*directory ? directory : ".", name, out);
  mem_free(directory);
  return status;
}

genai_status* qairt_bundle_find(const char* path, char** config) {
  *config = NULL;
  if (path_is_directory(path)) {
    GENAI_TRY(path_join(path, GENIE_CONFIG_FILE, config));
    if (file_exists(*config)) return NULL;
    mem_free(*config);
    *config = NULL;
    return NULL;
  }
  if (strcmp(path_base_name(path), GENIE_CONFIG_FILE)) return NULL;
  *config = mem_strdup(path);
  return *config ? NULL : genai_status_out_of_memory();
}

genai_status* qairt_bundle_record(const char* config, provenance* out, bool* found) {
  *found = false;
  char* path;
  GENAI_TRY(qairt_bundle_file(config, QAIRT_PROVENANCE_FILE, &path));
  genai_status* status = NULL;
  if (file_exists(path)) {
    text content = {0};
    status = file_read_all(path, MAX_RECORD_BYTES, &content);
    if (!status) status = provenance_parse(content.data ? content.data : "", content.length, path, out);
    *found = !status;
    text_deinit(&content);
  }
  mem_free(path);
  return status;
}

static genai_status* verify_file(const char* config, const char* name, const char* expected) {
  char* path;
  mapped_file file;
  char hex[65];
  GENAI_TRY(qairt_bundle_file(config, name, &path));
  genai_status* status = mapped_file_open(path, &file);
  if (!status) {
    sha256_hex(file.data, file.size, hex);
    mapped_file_close(&file);
    if (strcmp(hex, expected))
      status = genai_status_create(GENAI_ERROR_BAD_FILE,
                                   "\"%s\" is damaged or was changed: its SHA-256 is %.12s..., " QAIRT_SUMS_FILE
                                   " says %.12s...; copy the bundle again or compile it again",
                                   path, hex, expected);
  } else {
    status = genai_status_wrap(status, genai_status_kind(status), "the bundle of \"%s\" is incomplete: " QAIRT_SUMS_FILE " lists \"%s\"",
                               config, name);
  }
  mem_free(path);
  return status;
}

static genai_status* verify_lines(const char* config, const char* path, const text* sums) {
  const char* line = sums->data ? sums->data : "";
  while (*line) {
    char hex[65], name[64];
    size_t length = strcspn(line, "\n");
    if (length < 67 || length - 66 >= sizeof name || memchr(line + 66, '/', length - 66))
      return genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\" has a line that is no SHA-256 and name of a file beside it", path);
    memcpy(hex, line, 64);
    memcpy(name, line + 66, length - 66);
    hex[64] = name[length - 66] = 0;
    GENAI_TRY(verify_file(config, name, hex));
    line += length + (line[length] == '\n');
  }
  return NULL;
}

genai_status* qairt_bundle_verify(const char* config) {
  char* path;
  text sums = {0};
  GENAI_TRY(qairt_bundle_file(config, QAIRT_SUMS_FILE, &path));
  genai_status* status = file_exists(path) ? file_read_all(path, 1 << 16, &sums) : NULL;
  if (!status) status = verify_lines(config, path, &sums);
  text_deinit(&sums);
  mem_free(path);
  return status;
}
