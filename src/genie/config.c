/* The bundle's configuration: written when compiling, and read for a run with its files checked and its paths made absolute, because Genie
 * takes relative ones from the process's working directory. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "genie/genie.h"

enum { MAX_CONFIG_BYTES = 4 << 20, MAX_DEPTH = 24 };

/* ---- Writing ---- */
static void begin_versioned(json_writer* writer, const char* key) {
  json_key(writer, key);
  json_begin_object(writer);
  json_key(writer, "version");
  json_write_integer(writer, 1);
}

static void write_context(json_writer* writer, const genie_config* self) {
  begin_versioned(writer, "context");
  json_key(writer, "size");
  json_write_unsigned(writer, self->context_length);
  json_key(writer, "n-vocab");
  json_write_unsigned(writer, self->vocab_size);
  json_key(writer, "bos-token");
  json_write_integer(writer, self->bos_id);
  json_key(writer, "eos-token");
  if (self->n_stop_ids) {
    json_begin_array(writer);
    for (size_t i = 0; i < self->n_stop_ids; i++) json_write_integer(writer, self->stop_ids[i]);
    json_end_array(writer);
  } else {
    json_write_integer(writer, -1);
  }
  json_key(writer, "pad-token"); /* by default the end token's id, which may be none: the embedding's lookup needs a row */
  json_write_integer(writer, 0);
  json_end_object(writer);
}

/* Genie samples unless top-k is 1, and leaves the penalty out when it is: then greedy is a temperature at which only the likeliest counts. */
static void write_sampling(json_writer* writer, const sampling_options* sampling, uint32_t context_length) {
  bool penalty = sampling->repetition_penalty > 0 && (sampling->repetition_penalty < 1 || sampling->repetition_penalty > 1);
  bool greedy = sampling->temperature <= 0 && !penalty, cold = sampling->temperature <= 0 && penalty;
  begin_versioned(writer, "sampler");
  json_key(writer, "seed");
  json_write_unsigned(writer, sampling->seed & INT32_MAX);
  json_key(writer, "temp");
  json_write_number(writer, greedy ? 1.0 : cold ? 0.001 : (double)sampling->temperature);
  json_key(writer, "top-k");
  json_write_unsigned(writer, greedy ? 1 : cold ? 0 : sampling->top_k);
  json_key(writer, "top-p");
  json_write_number(writer, greedy || cold ? 1.0 : (double)sampling->top_p);
  if (greedy) {
    json_key(writer, "greedy");
    json_write_bool(writer, true);
  }
  if (penalty) {
    begin_versioned(writer, "token-penalty");
    json_key(writer, "penalize-last-n");
    json_write_unsigned(writer, context_length);
    json_key(writer, "repetition-penalty");
    json_write_number(writer, (double)sampling->repetition_penalty);
    json_end_object(writer);
  }
  json_end_object(writer);
}

static void write_engine(json_writer* writer, const genie_config* self) {
  begin_versioned(writer, "engine");
  json_key(writer, "n-threads");
  json_write_integer(writer, 3);
  begin_versioned(writer, "backend");
  json_key(writer, "type");
  json_write_string(writer, "QnnHtp");
  begin_versioned(writer, "QnnHtp");
  json_key(writer, "use-mmap");
  json_write_bool(writer, self->extensions != NULL);
  json_key(writer, "spill-fill-bufsize");
  json_write_integer(writer, 0);
  json_key(writer, "mmap-budget");
  json_write_integer(writer, 0);
  json_key(writer, "poll");
  json_write_bool(writer, self->extensions != NULL);
  json_key(writer, "cpu-mask");
  json_write_string(writer, self->extensions ? "0xe0" : "0x3");
  json_key(writer, "kv-dim");
  json_write_unsigned(writer, self->head_dim);
  json_key(writer, "allow-async-init");
  json_write_bool(writer, false);
  json_end_object(writer);
  if (self->extensions) {
    json_key(writer, "extensions");
    json_write_string(writer, self->extensions);
  }
  json_end_object(writer);
  begin_versioned(writer, "model");
  json_key(writer, "type");
  json_write_string(writer, "binary");
  begin_versioned(writer, "binary");
  json_key(writer, "ctx-bins");
  json_begin_array(writer);
  json_write_string(writer, self->binary);
  json_end_array(writer);
  json_end_object(writer);
  json_key(writer, "positional-encoding");
  json_begin_object(writer);
  json_key(writer, "type");
  json_write_string(writer, "absolute");
  json_end_object(writer);
  json_end_object(writer);
  json_end_object(writer);
}

genai_status* genie_config_write(const genie_config* self, text* out) {
  json_writer writer;
  json_writer_init(&writer, out, true);
  json_begin_object(&writer);
  begin_versioned(&writer, "dialog");
  json_key(&writer, "type");
  json_write_string(&writer, "basic");
  write_context(&writer, self);
  write_sampling(&writer, &(sampling_options){.top_p = 1, .repetition_penalty = 1}, self->context_length);
  begin_versioned(&writer, "tokenizer");
  json_key(&writer, "path");
  json_write_string(&writer, self->tokenizer);
  json_end_object(&writer);
  write_engine(&writer, self);
  json_end_object(&writer);
  json_end_object(&writer);
  GENAI_TRY(json_writer_finish(&writer));
  return text_append_char(out, '\n');
}

genai_status* genie_extensions_write(const qnn_soc* soc, bool weight_sharing, text* out) {
  char arch[16];
  snprintf(arch, sizeof arch, "v%u", soc->htp_arch);
  json_writer writer;
  json_writer_init(&writer, out, true);
  json_begin_object(&writer);
  json_key(&writer, "devices");
  json_begin_array(&writer);
  json_begin_object(&writer);
  json_key(&writer, "soc_model");
  json_write_unsigned(&writer, soc->model);
  json_key(&writer, "dsp_arch");
  json_write_string(&writer, arch);
  json_key(&writer, "cores");
  json_begin_array(&writer);
  json_begin_object(&writer);
  json_key(&writer, "core_id");
  json_write_integer(&writer, 0);
  json_key(&writer, "perf_profile");
  json_write_string(&writer, "burst");
  json_key(&writer, "rpc_control_latency");
  json_write_integer(&writer, 100);
  json_end_object(&writer);
  json_end_array(&writer);
  json_end_object(&writer);
  json_end_array(&writer);
  json_key(&writer, "memory");
  json_begin_object(&writer);
  json_key(&writer, "mem_type");
  json_write_string(&writer, "shared_buffer");
  json_end_object(&writer);
  json_key(&writer, "context");
  json_begin_object(&writer);
  json_key(&writer, "weight_sharing_enabled");
  json_write_bool(&writer, weight_sharing);
  json_end_object(&writer);
  json_end_object(&writer);
  GENAI_TRY(json_writer_finish(&writer));
  return text_append_char(out, '\n');
}

/* ---- Reading ---- */
static json_value member(json_value root, const char* const* path) {
  json_value value = root;
  for (; *path; path++) value = json_get(value, *path);
  return value;
}

/* The path of a file that the configuration names, which must be there and hold something. */
static genai_status* resolve_file(const char* config, const char* directory, const char* what, text_view name, char** out) {
  if (!name.data || !name.length || memchr(name.data, 0, name.length))
    return genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\" does not name %s of the bundle", config, what);
  char* copy = mem_strndup(name.data, name.length);
  if (!copy) return genai_status_out_of_memory();
  genai_status* status = NULL;
  char* path = NULL;
  if (*copy == '/') {
    path = copy;
  } else {
    status = path_join(directory, copy, &path);
    mem_free(copy);
    if (status) return status;
  }
  struct stat info;
  if (stat(path, &info) || !S_ISREG(info.st_mode)) {
    status =
        genai_status_create(GENAI_ERROR_NOT_FOUND,
                            "the bundle of \"%s\" is incomplete: %s \"%s\" is missing; copy it there or compile again", config, what, path);
  } else if (!info.st_size) {
    status = genai_status_create(GENAI_ERROR_BAD_FILE, "the bundle of \"%s\" is damaged: %s \"%s\" is empty; compile it again", config,
                                 what, path);
  }
  if (status) {
    mem_free(path);
  } else {
    *out = path;
  }
  return status;
}

/* A copy of the configuration with some members in other words. */
typedef struct rewriting {
  const char* config;
  const char* directory;
  uint32_t context_length;
  const sampling_options* sampling;
  json_writer writer;
  json_value dialog, tokenizer_path, extensions, bos, bins; /* the members that change */
} rewriting;

static bool is_same(json_value a, json_value b) {
  return json_type_of(b) != JSON_ABSENT && a.document == b.document && a.index == b.index;
}

static genai_status* write_file(rewriting* self, const char* what, json_value value) {
  char* path = NULL;
  GENAI_TRY(resolve_file(self->config, self->directory, what, json_string(value), &path));
  json_write_string(&self->writer, path);
  mem_free(path);
  return NULL;
}

static genai_status* rewrite(rewriting* self, json_value value, unsigned depth) {
  if (depth > MAX_DEPTH) return genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\" nests deeper than %d levels", self->config, MAX_DEPTH);
  if (is_same(value, self->tokenizer_path)) return write_file(self, "the tokenizer", value);
  if (is_same(value, self->extensions)) return write_file(self, "the backend's settings", value);
  if (is_same(value, self->bos)) {
    json_write_integer(&self->writer, -1);
    return NULL;
  }
  bool bins = is_same(value, self->bins), dialog = is_same(value, self->dialog);
  json_type type = json_type_of(value);
  text_view key, string = json_string(value);
  json_value item;
  switch (type) {
    case JSON_OBJECT:
      json_begin_object(&self->writer);
      for (json_iterator it = json_iterate(value); json_next(&it, &key, &item);) {
        if (dialog && text_view_equal_cstr(key, "sampler")) continue;
        char* name = mem_strndup(key.data, key.length);
        if (!name) return genai_status_out_of_memory();
        json_key(&self->writer, name);
        mem_free(name);
        GENAI_TRY(rewrite(self, item, depth + 1));
      }
      if (dialog) write_sampling(&self->writer, self->sampling, self->context_length);
      json_end_object(&self->writer);
      break;
    case JSON_ARRAY:
      json_begin_array(&self->writer);
      for (json_iterator it = json_iterate(value); json_next(&it, NULL, &item);)
        GENAI_TRY(bins ? write_file(self, "the context binary", item) : rewrite(self, item, depth + 1));
      json_end_array(&self->writer);
      break;
    case JSON_STRING:
      json_write_bytes(&self->writer, string.data, string.length);
      break;
    case JSON_BOOL:
      json_write_bool(&self->writer, json_bool(value, false));
      break;
    case JSON_INTEGER:
      json_write_integer(&self->writer, json_integer(value, 0));
      break;
    case JSON_NUMBER:
      json_write_number(&self->writer, json_number(value, 0));
      break;
    case JSON_NULL:
    case JSON_ABSENT:
      json_write_string(&self->writer, NULL);
      break;
  }
  return NULL;
}

static genai_status* read_length(const char* config, json_value value, const char* name, uint32_t* out) {
  int64_t number = json_integer(value, 0);
  if (number < 2 || number > INT32_MAX)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\": dialog.context.%s is missing or no length", config, name);
  *out = (uint32_t)number;
  return NULL;
}

static genai_status* read_bundle(genie_bundle* self) {
  static const char* const context[] = {"dialog", "context", NULL};
  const char* config = self->config;
  json_value root = json_root(self->document);
  if (json_type_of(json_get(root, "dialog")) != JSON_OBJECT)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\" is no configuration of a Genie dialog: it has no object \"dialog\"", config);
  GENAI_TRY(read_length(config, json_get(member(root, context), "size"), "size", &self->context_length));
  return read_length(config, json_get(member(root, context), "n-vocab"), "n-vocab", &self->vocab_size);
}

genai_status* genie_bundle_configuration(const genie_bundle* self, const sampling_options* sampling, text* out) {
  static const char* const tokenizer[] = {"dialog", "tokenizer", "path", NULL};
  static const char* const extensions[] = {"dialog", "engine", "backend", "extensions", NULL};
  static const char* const bos[] = {"dialog", "context", "bos-token", NULL};
  static const char* const bins[] = {"dialog", "engine", "model", "binary", "ctx-bins", NULL};
  json_value root = json_root(self->document);
  rewriting state = {.config = self->config,
                     .directory = self->directory,
                     .context_length = self->context_length,
                     .sampling = sampling,
                     .dialog = json_get(root, "dialog"),
                     .tokenizer_path = member(root, tokenizer),
                     .extensions = member(root, extensions),
                     .bos = member(root, bos),
                     .bins = member(root, bins)};
  if (json_type_of(state.bins) != JSON_ARRAY || !json_count(state.bins))
    return genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\" names no context binary (dialog.engine.model.binary.ctx-bins)", self->config);
  if (json_type_of(state.tokenizer_path) != JSON_STRING)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\" names no tokenizer (dialog.tokenizer.path), which Genie needs", self->config);
  json_writer_init(&state.writer, out, false);
  genai_status* status = rewrite(&state, root, 0);
  genai_status* written = json_writer_finish(&state.writer);
  if (!status) return written;
  genai_status_free(written);
  return status;
}

static genai_status* find_config(const char* path, char** config, char** directory) {
  GENAI_TRY(path_is_directory(path)        ? path_join(path, GENIE_CONFIG_FILE, config)
            : (*config = mem_strdup(path)) ? NULL
                                           : genai_status_out_of_memory());
  size_t length = (size_t)(path_base_name(*config) - *config);
  char* folder = length ? mem_strndup(*config, length) : mem_strdup(".");
  char* absolute = folder ? mem_alloc(PATH_MAX) : NULL;
  genai_status* status = NULL;
  if (!folder || !absolute) {
    status = genai_status_out_of_memory();
  } else if (!realpath(folder, absolute) || !file_exists(*config)) {
    status =
        genai_status_create(GENAI_ERROR_NOT_FOUND, "there is no bundle at \"%s\": it has no " GENIE_CONFIG_FILE "; compile it first", path);
  }
  mem_free(folder);
  if (status) {
    mem_free(absolute);
    return status;
  }
  *directory = absolute;
  return NULL;
}

genai_status* genie_bundle_open(const char* path, genie_bundle* out) {
  genie_bundle bundle = {0};
  text trial = {0}; /* finds what is missing */
  genai_status* status = find_config(path, &bundle.config, &bundle.directory);
  if (!status) status = json_parse_file(bundle.config, MAX_CONFIG_BYTES, &bundle.document);
  if (!status) status = read_bundle(&bundle);
  if (!status) status = genie_bundle_configuration(&bundle, &(sampling_options){.top_p = 1}, &trial);
  text_deinit(&trial);
  if (status) {
    genie_bundle_deinit(&bundle);
    return status;
  }
  *out = bundle;
  return NULL;
}

void genie_bundle_deinit(genie_bundle* self) {
  if (self->document) json_free(self->document);
  mem_free(self->config);
  mem_free(self->directory);
  *self = (genie_bundle){0};
}
