/* What is in a .pte: methods and their tensors with the encodings of the context binary, delegate options, constant methods, provenance. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/inspect.h"
#include "executorch/pte.h"
#include "pipeline/child.h"
#include "qnn/qnn.h"

/* One file and what could be read out of its binary; `problem` says why not. */
typedef struct program {
  pte_file* file;
  const pte_method_view* first; /* delegate method; NULL: none */
  const char* qnn_dir;
  qnn_library* library;
  bool has_binary;
  qnn_binary_info binary;
  char problem[2048];
} program;

/* The vendor's reader can crash on a forged binary: a child process reads it first. */
static genai_status* read_in_child(void* user, text* payload) {
  (void)payload;
  program* self = user;
  GENAI_TRY(qnn_library_open(self->qnn_dir, &self->library));
  return qnn_binary_inspect(self->library, self->first->context_binary, self->first->context_binary_size, &self->binary);
}

static genai_status* probe_binary(program* self) {
  child_process child;
  text payload = {0};
  GENAI_TRY(child_start(read_in_child, self, &child));
  genai_status* status = child_wait(&child, NULL, NULL, &payload);
  text_deinit(&payload);
  return status;
}

static void open_binary(program* self, const char* qnn_dir) {
  for (size_t i = 0; i < pte_method_count(self->file) && !self->first; i++) {
    const pte_method_view* method = pte_method_at(self->file, i);
    if (method->is_delegate && method->context_binary) self->first = method;
  }
  if (!self->first) return;
  self->qnn_dir = qnn_dir;
  genai_status* status = probe_binary(self);
  if (!status) status = qnn_library_open(qnn_dir, &self->library);
  if (!status) status = qnn_binary_inspect(self->library, self->first->context_binary, self->first->context_binary_size, &self->binary);
  self->has_binary = !status;
  genai_status_format(status, self->problem, sizeof self->problem);
  genai_status_free(status);
}

static const qnn_graph_info* find_graph(const program* self, const char* name) {
  for (uint32_t i = 0; self->has_binary && i < self->binary.n_graphs; i++) {
    if (!strcmp(self->binary.graphs[i].name, name)) return &self->binary.graphs[i];
  }
  return NULL;
}

/* ---- Lines ---- */
static genai_status* print_tensor(text* out, const char* direction, uint32_t index, const char* name, ir_dtype dtype, uint32_t rank,
                                  const uint32_t* dims) {
  GENAI_TRY(text_printf(out, "  %-3s %4u  %-4s [", direction, index, ir_dtype_name(dtype)));
  for (uint32_t d = 0; d < rank; d++) GENAI_TRY(text_printf(out, "%s%u", d ? ", " : "", dims[d]));
  return text_printf(out, "]  %s", name);
}

genai_status* inspect_print_tensors(text* out, const char* direction, const qnn_tensor_info* tensors, uint32_t count, bool all) {
  for (uint32_t i = 0; i < count; i++) {
    if (!all && count > 12 && i >= 6 && i + 3 < count) {
      if (i == 6) GENAI_TRY(text_printf(out, "       ... %u more (--all)\n", count - 9));
      continue;
    }
    GENAI_TRY(print_tensor(out, direction, i, tensors[i].name, tensors[i].dtype, tensors[i].rank, tensors[i].dims));
    if (tensors[i].quantized) GENAI_TRY(text_printf(out, "  scale %.9g offset %d", (double)tensors[i].scale, tensors[i].offset));
    GENAI_TRY(text_append_char(out, '\n'));
  }
  return NULL;
}

static genai_status* print_plan_tensors(text* out, const char* direction, const executor_port* ports, uint32_t count, bool all) {
  for (uint32_t i = 0; ports && i < count; i++) {
    if (!all && count > 12 && i >= 6 && i + 3 < count) {
      if (i == 6) GENAI_TRY(text_printf(out, "       ... %u more (--all)\n", count - 9));
      continue;
    }
    GENAI_TRY(print_tensor(out, direction, i, ports[i].name, ports[i].dtype, ports[i].rank, ports[i].dims));
    GENAI_TRY(text_append_char(out, '\n'));
  }
  return NULL;
}

static genai_status* print_delegate(const program* self, text* out, const pte_method_view* method, bool all) {
  const qnn_graph_info* graph = find_graph(self, method->name);
  GENAI_TRY(text_printf(out, "\nmethod %s: delegate %s, %u inputs, %u outputs\n", method->name, method->delegate_id, method->n_inputs,
                        method->n_outputs));
  if (method->options.gpu)
    GENAI_TRY(text_printf(out, "  for the gpu of SoC %u, prepared on the device from a DLC\n", method->options.soc_model));
  if (!graph) {
    GENAI_TRY(print_plan_tensors(out, "in", method->inputs, method->n_inputs, all));
    return print_plan_tensors(out, "out", method->outputs, method->n_outputs, all);
  }
  GENAI_TRY(text_printf(out, "  spill-fill %llu bytes, VTCM %u bytes, optimization level %u\n", (unsigned long long)graph->spill_fill_bytes,
                        graph->vtcm_bytes, graph->optimization_level));
  GENAI_TRY(inspect_print_tensors(out, "in", graph->inputs, graph->n_inputs, all));
  return inspect_print_tensors(out, "out", graph->outputs, graph->n_outputs, all);
}

static genai_status* print_scalar(text* out, const pte_scalar* value) {
  switch (value->kind) {
    case PTE_INT:
      return text_printf(out, "%lld", (long long)value->as.i);
    case PTE_BOOL:
      return text_append_cstr(out, value->as.b ? "true" : "false");
    case PTE_DOUBLE:
      return text_printf(out, "%.17g", value->as.d);
    case PTE_STRING:
      return text_append_cstr(out, value->as.s);
  }
  return NULL;
}

static genai_status* print_constants(const program* self, text* out, bool all) {
  GENAI_TRY(text_append_cstr(out, "\nconstant methods\n"));
  size_t hidden = 0;
  for (size_t i = 0; i < pte_method_count(self->file); i++) {
    const pte_method_view* method = pte_method_at(self->file, i);
    if (method->is_delegate || !strcmp(method->name, PTE_PROVENANCE_METHOD)) continue;
    if (!all && !strncmp(method->name, "get_kv_output_", 14)) {
      hidden++;
      continue;
    }
    GENAI_TRY(text_printf(out, "  %-32s ", method->name));
    for (size_t v = 0; v < method->n_values; v++) {
      if (v) GENAI_TRY(text_append_cstr(out, ", "));
      GENAI_TRY(print_scalar(out, &method->values[v]));
    }
    GENAI_TRY(text_append_char(out, '\n'));
  }
  return hidden ? text_printf(out, "  ... and %zu get_kv_output_*_quant_attr (--all)\n", hidden) : NULL;
}

genai_status* inspect_print_members(text* out, const char* prefix, json_value object) {
  text_view key;
  json_value value;
  for (json_iterator it = json_iterate(object); json_next(&it, &key, &value);) {
    char name[96];
    text_view string = json_string(value);
    snprintf(name, sizeof name, "%s%.*s", prefix, (int)key.length, key.data);
    switch (json_type_of(value)) {
      case JSON_STRING:
        GENAI_TRY(text_printf(out, "  %-22s %.*s\n", name, (int)string.length, string.data));
        break;
      case JSON_BOOL:
        GENAI_TRY(text_printf(out, "  %-22s %s\n", name, json_bool(value, false) ? "yes" : "no"));
        break;
      case JSON_INTEGER:
        GENAI_TRY(text_printf(out, "  %-22s %lld\n", name, (long long)json_integer(value, 0)));
        break;
      case JSON_NUMBER:
        GENAI_TRY(text_printf(out, "  %-22s %.9g\n", name, json_number(value, 0)));
        break;
      case JSON_OBJECT: {
        if (*prefix) break; /* the record has one level */
        char inner[96];
        snprintf(inner, sizeof inner, "%.*s.", (int)key.length, key.data);
        GENAI_TRY(inspect_print_members(out, inner, value));
        break;
      }
      case JSON_ARRAY: {
        json_value item;
        json_iterator items = json_iterate(value);
        bool numbers = json_count(value) <= 16 && json_next(&items, NULL, &item) && json_type_of(item) == JSON_INTEGER;
        GENAI_TRY(text_printf(out, "  %-22s", name));
        if (!numbers) {
          GENAI_TRY(text_printf(out, " %zu entries\n", json_count(value)));
          break;
        }
        for (items = json_iterate(value); json_next(&items, NULL, &item);)
          GENAI_TRY(text_printf(out, " %lld", (long long)json_integer(item, 0)));
        GENAI_TRY(text_append_char(out, '\n'));
        break;
      }
      default:
        break;
    }
  }
  return NULL;
}

static genai_status* print_provenance(const program* self, text* out) {
  const char* record = pte_get_string(self->file, PTE_PROVENANCE_METHOD);
  if (!record) return text_append_cstr(out, "\nprovenance  none: not written by genai\n");
  json_document* document;
  GENAI_TRY(json_parse(record, strlen(record), PTE_PROVENANCE_METHOD, &document));
  genai_status* status = text_append_cstr(out, "\nprovenance\n");
  if (!status) status = inspect_print_members(out, "", json_root(document));
  json_free(document);
  return status;
}

static genai_status* print_lines(const program* self, text* out, bool all) {
  if (self->first) {
    const pte_delegate_options* options = &self->first->options;
    char size[32];
    format_bytes(self->first->context_binary_size, size);
    GENAI_TRY(text_printf(out, "delegate   %s: SoC %u, HTP v%u, %u MB VTCM, %s, weights %s, performance mode %u\n",
                          self->first->delegate_id, options->soc_model, options->htp_arch, options->vtcm_mb,
                          options->fp16 ? "half precision" : "quantized", options->weight_sharing ? "shared between graphs" : "not shared",
                          options->performance_mode));
    GENAI_TRY(text_printf(out, "binary     %s, signature %lld\n", size, (long long)self->first->signature));
  }
  if (self->has_binary) {
    GENAI_TRY(text_append_cstr(out, "           "));
    GENAI_TRY(inspect_print_origin(out, &self->binary));
  } else if (*self->problem) {
    GENAI_TRY(text_printf(out, "           encodings cannot be read: %s\n", self->problem));
  }
  for (size_t i = 0; i < pte_method_count(self->file); i++) {
    const pte_method_view* method = pte_method_at(self->file, i);
    if (method->is_delegate) GENAI_TRY(print_delegate(self, out, method, all));
  }
  GENAI_TRY(print_constants(self, out, all));
  return print_provenance(self, out);
}

/* ---- JSON ---- */
static void write_shape(json_writer* writer, const uint32_t* dims, uint32_t rank) {
  json_key(writer, "shape");
  json_begin_array(writer);
  for (uint32_t d = 0; d < rank; d++) json_write_unsigned(writer, dims[d]);
  json_end_array(writer);
}

genai_status* inspect_print_origin(text* out, const qnn_binary_info* binary) {
  return text_printf(out, "written by %s, format %u.%u.%u, SoC %u, HTP v%u, %u graphs\n", binary->build_id, binary->blob_major,
                     binary->blob_minor, binary->blob_patch, binary->soc_model, binary->htp_arch, binary->n_graphs);
}

void inspect_write_origin(json_writer* writer, const qnn_binary_info* binary) {
  json_key(writer, "build_id");
  json_write_string(writer, binary->build_id);
  json_key(writer, "soc_id");
  json_write_unsigned(writer, binary->soc_model);
  json_key(writer, "htp_arch");
  json_write_unsigned(writer, binary->htp_arch);
}

void inspect_write_tensors(json_writer* writer, const char* key, const qnn_tensor_info* tensors, uint32_t count) {
  json_key(writer, key);
  json_begin_array(writer);
  for (uint32_t i = 0; i < count; i++) {
    json_begin_object(writer);
    json_key(writer, "name");
    json_write_string(writer, tensors[i].name);
    json_key(writer, "type");
    json_write_string(writer, ir_dtype_name(tensors[i].dtype));
    write_shape(writer, tensors[i].dims, tensors[i].rank);
    if (tensors[i].quantized) {
      json_key(writer, "scale");
      json_write_number(writer, (double)tensors[i].scale);
      json_key(writer, "offset");
      json_write_integer(writer, tensors[i].offset);
    }
    json_end_object(writer);
  }
  json_end_array(writer);
}

static void write_plan_tensors(json_writer* writer, const char* key, const executor_port* ports, uint32_t count) {
  json_key(writer, key);
  json_begin_array(writer);
  for (uint32_t i = 0; ports && i < count; i++) {
    json_begin_object(writer);
    json_key(writer, "type");
    json_write_string(writer, ir_dtype_name(ports[i].dtype));
    write_shape(writer, ports[i].dims, ports[i].rank);
    json_end_object(writer);
  }
  json_end_array(writer);
}

static void write_options(json_writer* writer, const pte_delegate_options* options) {
  json_key(writer, "options");
  json_begin_object(writer);
  json_key(writer, "backend");
  json_write_string(writer, options->gpu ? "gpu" : "htp");
  json_key(writer, "soc_id");
  json_write_unsigned(writer, options->soc_model);
  json_key(writer, "htp_arch");
  json_write_unsigned(writer, options->htp_arch);
  json_key(writer, "vtcm_mb");
  json_write_unsigned(writer, options->vtcm_mb);
  json_key(writer, "fp16");
  json_write_bool(writer, options->fp16);
  json_key(writer, "weight_sharing");
  json_write_bool(writer, options->weight_sharing);
  json_key(writer, "shared_buffer");
  json_write_bool(writer, options->shared_buffer);
  json_key(writer, "profile_level");
  json_write_unsigned(writer, options->profile_level);
  json_key(writer, "performance_mode");
  json_write_unsigned(writer, options->performance_mode);
  json_end_object(writer);
}

static void write_method(const program* self, json_writer* writer, const pte_method_view* method) {
  json_begin_object(writer);
  json_key(writer, "name");
  json_write_string(writer, method->name);
  if (method->is_delegate) {
    json_key(writer, "delegate");
    json_write_string(writer, method->delegate_id);
    write_options(writer, &method->options);
    write_plan_tensors(writer, "inputs", method->inputs, method->n_inputs);
    write_plan_tensors(writer, "outputs", method->outputs, method->n_outputs);
    const qnn_graph_info* graph = find_graph(self, method->name);
    if (graph) {
      json_key(writer, "graph");
      json_begin_object(writer);
      inspect_write_tensors(writer, "inputs", graph->inputs, graph->n_inputs);
      inspect_write_tensors(writer, "outputs", graph->outputs, graph->n_outputs);
      json_key(writer, "spill_fill_bytes");
      json_write_unsigned(writer, graph->spill_fill_bytes);
      json_end_object(writer);
    }
  } else {
    json_key(writer, "values");
    json_begin_array(writer);
    for (size_t i = 0; i < method->n_values; i++) {
      const pte_scalar* value = &method->values[i];
      switch (value->kind) {
        case PTE_INT:
          json_write_integer(writer, value->as.i);
          break;
        case PTE_BOOL:
          json_write_bool(writer, value->as.b);
          break;
        case PTE_DOUBLE:
          json_write_number(writer, value->as.d);
          break;
        case PTE_STRING:
          json_write_string(writer, value->as.s);
          break;
      }
    }
    json_end_array(writer);
  }
  json_end_object(writer);
}

static void write_facts(const program* self, json_writer* writer) {
  json_begin_object(writer);
  json_key(writer, "format");
  json_write_string(writer, "pte");
  if (self->first) {
    json_key(writer, "context_binary_bytes");
    json_write_unsigned(writer, self->first->context_binary_size);
    json_key(writer, "signature");
    json_write_integer(writer, self->first->signature);
  }
  if (self->has_binary) {
    json_key(writer, "binary");
    json_begin_object(writer);
    inspect_write_origin(writer, &self->binary);
    json_end_object(writer);
  } else if (*self->problem) {
    json_key(writer, "binary_problem");
    json_write_string(writer, self->problem);
  }
  json_key(writer, "methods");
  json_begin_array(writer);
  for (size_t i = 0; i < pte_method_count(self->file); i++) write_method(self, writer, pte_method_at(self->file, i));
  json_end_array(writer);
  json_end_object(writer);
}

genai_status* inspect_program(inspection* how) {
  program self = {0};
  GENAI_TRY(pte_open(how->path, &self.file));
  open_binary(&self, how->qnn_dir);
  genai_status* status = NULL;
  if (how->json) {
    write_facts(&self, &how->writer);
  } else {
    status = print_lines(&self, how->out, how->all);
  }
  if (self.has_binary) qnn_binary_info_deinit(&self.binary);
  qnn_library_close(self.library);
  pte_close(self.file);
  return status;
}
