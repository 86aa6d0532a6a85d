/* genai inspect of a Genie bundle: its configuration, whether its files are the ones that were written, the record, and the graphs of its
 * context binary. A bundle that is damaged is still explained as far as it can be read. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/inspect.h"
#include "genie/genie.h"
#include "pipeline/qairt.h"

enum { MAX_JSON_BYTES = 4 << 20 };

typedef struct bundle {
  const char* config;
  json_document* document;
  json_document* record; /* NULL: none */
  char verdict[1024];    /* of the files' sums */
  bool sound;
  mapped_file file; /* the first context binary */
  qnn_library* library;
  qnn_binary_info binary;
  bool has_binary;
  char problem[1024]; /* why the binary cannot be read */
} bundle;

static void take_problem(genai_status* status, char* out, size_t capacity) {
  genai_status_format(status, out, capacity);
  genai_status_free(status);
}

static json_value first_binary(const bundle* self) {
  json_value value = json_root(self->document), item = json_get(value, "dialog");
  static const char* const path[] = {"engine", "model", "binary", "ctx-bins"};
  for (size_t i = 0; i < sizeof path / sizeof path[0]; i++) item = json_get(item, path[i]);
  json_iterator items = json_iterate(item);
  return json_next(&items, NULL, &value) ? value : json_get(item, "");
}

static genai_status* open_binary(bundle* self, const char* qnn_dir) {
  text_view name = json_string(first_binary(self));
  char* copy = name.data ? mem_strndup(name.data, name.length) : NULL;
  if (!copy) return genai_status_create(GENAI_ERROR_BAD_FILE, "the configuration names no context binary");
  char* path = NULL;
  genai_status* status = *copy == '/' ? NULL : qairt_bundle_file(self->config, copy, &path);
  if (!status) status = mapped_file_open(path ? path : copy, &self->file);
  mem_free(path);
  mem_free(copy);
  if (!status) status = qnn_library_open(qnn_dir, &self->library);
  if (!status) status = qnn_binary_inspect(self->library, self->file.data, self->file.size, &self->binary);
  self->has_binary = !status;
  return status;
}

static genai_status* open_record(bundle* self) {
  char* path;
  GENAI_TRY(qairt_bundle_file(self->config, QAIRT_PROVENANCE_FILE, &path));
  genai_status* status = file_exists(path) ? json_parse_file(path, MAX_JSON_BYTES, &self->record) : NULL;
  mem_free(path);
  return status;
}

static genai_status* print_lines(const bundle* self, text* out, bool all) {
  GENAI_TRY(text_printf(out, "bundle     %s\nfiles      %s\n", self->config, self->sound ? "as they were written" : self->verdict));
  if (self->has_binary) {
    char size[32];
    format_bytes(self->file.size, size);
    GENAI_TRY(text_printf(out, "binary     %s, ", size));
    GENAI_TRY(inspect_print_origin(out, &self->binary));
  } else {
    GENAI_TRY(text_printf(out, "binary     cannot be read: %s\n", self->problem));
  }
  for (uint32_t i = 0; self->has_binary && i < self->binary.n_graphs; i++) {
    const qnn_graph_info* graph = &self->binary.graphs[i];
    GENAI_TRY(text_printf(out, "\ngraph %s: %u inputs, %u outputs\n", graph->name, graph->n_inputs, graph->n_outputs));
    GENAI_TRY(inspect_print_tensors(out, "in", graph->inputs, graph->n_inputs, all));
    GENAI_TRY(inspect_print_tensors(out, "out", graph->outputs, graph->n_outputs, all));
  }
  GENAI_TRY(text_append_cstr(out, "\ncontext\n"));
  GENAI_TRY(inspect_print_members(out, "", json_get(json_get(json_root(self->document), "dialog"), "context")));
  if (!self->record) return text_append_cstr(out, "\nprovenance  none: not written by genai\n");
  GENAI_TRY(text_append_cstr(out, "\nprovenance\n"));
  return inspect_print_members(out, "", json_root(self->record));
}

static void write_facts(const bundle* self, json_writer* writer) {
  json_value context = json_get(json_get(json_root(self->document), "dialog"), "context");
  json_begin_object(writer);
  json_key(writer, "format");
  json_write_string(writer, "genie");
  json_key(writer, "config");
  json_write_string(writer, self->config);
  json_key(writer, "sound");
  json_write_bool(writer, self->sound);
  if (!self->sound) {
    json_key(writer, "problem");
    json_write_string(writer, self->verdict);
  }
  json_key(writer, "context_length");
  json_write_integer(writer, json_integer(json_get(context, "size"), 0));
  json_key(writer, "vocab_size");
  json_write_integer(writer, json_integer(json_get(context, "n-vocab"), 0));
  if (self->has_binary) {
    json_key(writer, "binary");
    json_begin_object(writer);
    json_key(writer, "bytes");
    json_write_unsigned(writer, self->file.size);
    inspect_write_origin(writer, &self->binary);
    json_key(writer, "graphs");
    json_begin_array(writer);
    for (uint32_t i = 0; i < self->binary.n_graphs; i++) {
      const qnn_graph_info* graph = &self->binary.graphs[i];
      json_begin_object(writer);
      json_key(writer, "name");
      json_write_string(writer, graph->name);
      inspect_write_tensors(writer, "inputs", graph->inputs, graph->n_inputs);
      inspect_write_tensors(writer, "outputs", graph->outputs, graph->n_outputs);
      json_end_object(writer);
    }
    json_end_array(writer);
    json_end_object(writer);
  } else {
    json_key(writer, "binary_problem");
    json_write_string(writer, self->problem);
  }
  json_end_object(writer);
}

genai_status* inspect_bundle(inspection* how, const char* config) {
  bundle self = {.config = config};
  GENAI_TRY(json_parse_file(config, MAX_JSON_BYTES, &self.document));
  genai_status* status = open_record(&self);
  if (!status) {
    genai_status* damage = qairt_bundle_verify(config);
    self.sound = !damage;
    take_problem(damage, self.verdict, sizeof self.verdict);
    take_problem(open_binary(&self, how->qnn_dir), self.problem, sizeof self.problem);
    if (how->json) {
      write_facts(&self, &how->writer);
    } else {
      status = print_lines(&self, how->out, how->all);
    }
  }
  if (self.has_binary) qnn_binary_info_deinit(&self.binary);
  qnn_library_close(self.library);
  mapped_file_close(&self.file);
  json_free(self.record);
  json_free(self.document);
  return status;
}
