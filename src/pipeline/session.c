/* Sessions: executors, roles, decoder. How tokens become text is not here. */
#include "pipeline/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"

enum { MAX_EXECUTORS = 8, HOST_WEIGHT_CACHE = 1 << 30 };

struct session {
  pte_file* file;
  provenance record;
  bool has_record;
  qnn_library* library;
  qnn_context* context;
  size_t n_executors;
  executor* executors[MAX_EXECUTORS];
  decoder* decoder;
  double load_seconds;
};

void session_close(session* self) {
  if (!self) return;
  decoder_destroy(self->decoder);
  for (size_t i = 0; i < self->n_executors; i++) executor_destroy(self->executors[i]);
  qnn_context_close(self->context);
  qnn_library_close(self->library);
  if (self->has_record) provenance_deinit(&self->record);
  pte_close(self->file);
  mem_free(self);
}

decoder* session_decoder(session* self) {
  return self->decoder;
}

const provenance* session_provenance(const session* self) {
  return self->has_record ? &self->record : NULL;
}

double session_load_seconds(const session* self) {
  return self->load_seconds;
}

/* ---- Roles by position ---- */
static void set_role(executor_port* port, ir_role role, uint32_t layer) {
  port->role = role;
  port->layer =
      role == IR_ROLE_KEY_IN || role == IR_ROLE_VALUE_IN || role == IR_ROLE_KEY_OUT || role == IR_ROLE_VALUE_OUT ? (int32_t)layer : -1;
}

/* With one mask, it is the one the model attends through: the sliding one when the model has a window (all its layers slide). */
static void set_input_role(executor_port* port, uint32_t position, uint32_t fixed, uint32_t layers, bool window) {
  static const ir_role one_mask[] = {IR_ROLE_TOKENS, IR_ROLE_MASK, IR_ROLE_POSITIONS};
  static const ir_role one_sliding[] = {IR_ROLE_TOKENS, IR_ROLE_MASK_SLIDING, IR_ROLE_POSITIONS};
  static const ir_role both[] = {IR_ROLE_TOKENS, IR_ROLE_MASK, IR_ROLE_MASK_SLIDING, IR_ROLE_POSITIONS};
  if (position < fixed) {
    set_role(port, fixed == 4 ? both[position] : window ? one_sliding[position] : one_mask[position], 0);
  } else if (position < fixed + layers) {
    set_role(port, IR_ROLE_KEY_IN, position - fixed);
  } else {
    set_role(port, IR_ROLE_VALUE_IN, position - fixed - layers);
  }
}

static void set_output_role(executor_port* port, uint32_t position, uint32_t layers) {
  if (!position) {
    set_role(port, IR_ROLE_LOGITS, 0);
  } else if (position <= layers) {
    set_role(port, IR_ROLE_KEY_OUT, position - 1);
  } else {
    set_role(port, IR_ROLE_VALUE_OUT, position - 1 - layers);
  }
}

static bool numbered(const char* name, const char* prefix) {
  size_t length = strlen(prefix);
  if (strncmp(name, prefix, length)) return false;
  size_t digits = strspn(name + length, "0123456789");
  return digits && name[length + digits] == '_';
}

/* The executor sorts ports whose names carry numbers. Numbered outputs are then in plan order; upstream's have no numbers and stay in the
 * binary's order, which the delegate call maps to the plan. Inputs are numbered in both: argument n of the delegate call. */
static genai_status* assign_roles(executor* exec, const pte_method_view* method, bool window, const char* path) {
  if (exec->n_inputs != method->n_inputs || exec->n_outputs != method->n_outputs)
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "\"%s\": method %s has %u inputs and %u outputs, its graph in the context binary %u and %u", path,
                               method->name, method->n_inputs, method->n_outputs, exec->n_inputs, exec->n_outputs);
  uint32_t layers = (exec->n_outputs - 1) / 2;
  uint32_t fixed = exec->n_inputs - 2 * layers;
  if (!layers || exec->n_outputs != 1 + 2 * layers || exec->n_inputs < 2 * layers || (fixed != 3 && fixed != 4))
    return genai_status_create(
        GENAI_ERROR_UNSUPPORTED,
        "\"%s\": method %s has %u inputs and %u outputs, not those of a decoder with a KV cache (3 + 2 layers and 1 + 2 "
        "layers)",
        path, method->name, exec->n_inputs, exec->n_outputs);
  executor_port* inputs;
  executor_port* outputs;
  qnn_executor_ports(exec, &inputs, &outputs);
  for (uint32_t i = 0; i < exec->n_inputs; i++) {
    uint32_t position = method->delegate_inputs ? method->delegate_inputs[i] : i;
    set_input_role(&inputs[i], position, fixed, layers, window);
  }
  bool sorted = true;
  for (uint32_t i = 0; i < exec->n_outputs; i++) sorted &= numbered(outputs[i].name, "output_");
  for (uint32_t i = 0; i < exec->n_outputs; i++) set_output_role(&outputs[i], sorted ? i : method->delegate_outputs[i], layers);
  return NULL;
}

/* ---- Opening an artifact ---- */
static const pte_method_view* first_delegate(const pte_file* file) {
  for (size_t i = 0; i < pte_method_count(file); i++) {
    const pte_method_view* method = pte_method_at(file, i);
    if (method->is_delegate && method->context_binary) return method;
  }
  return NULL;
}

static genai_status* check_loadable(const session* self, const char* path, const pte_method_view* method) {
  qnn_library_info library;
  qnn_library_get_info(self->library, &library);
  if (library.is_simulator && method->options.weight_sharing) {
    size_t length = strlen(path);
    bool named = length > 4 && !strcmp(path + length - 4, ".pte");
    return genai_status_create(
        GENAI_ERROR_UNSUPPORTED,
        "\"%s\" is for a device: its graphs share weights, which the x86-64 simulator cannot load; run \"%.*s.sim.pte\" "
        "instead",
        path, (int)(named ? length - 4 : length), path);
  }
  if (self->has_record && self->record.library_build_id && strcmp(self->record.library_build_id, library.build_id))
    log_write(LOG_WARNING, "\"%s\" was compiled by libraries %s, these are %s", path, self->record.library_build_id, library.build_id);
  return NULL;
}

static genai_status* open_context(session* self, const char* path, const pte_method_view* method) {
  genai_status* status = qnn_context_open(self->library, method->context_binary, method->context_binary_size, &self->context);
  if (!status || !self->has_record || genai_status_kind(status) == GENAI_ERROR_OUT_OF_MEMORY) return status;
  qnn_library_info library;
  qnn_library_get_info(self->library, &library);
  return genai_status_wrap(
      status, genai_status_kind(status),
      "\"%s\" does not load: compiled for %s (HTP v%u, %u MB VTCM) by libraries %s, these are %s; an older library refuses "
      "newer binaries",
      path, self->record.soc ? self->record.soc : "?", self->record.htp_arch, self->record.vtcm_mb,
      self->record.library_build_id ? self->record.library_build_id : "?", library.build_id);
}

/* What the file and its binary say of themselves against what the record says. */
static genai_status* check_record(const session* self, const char* path) {
  if (!self->has_record) return NULL;
  text differences = {0};
  genai_status* status = provenance_compare(&self->record, self->file, qnn_context_info(self->context), &differences);
  if (!status && differences.length)
    status = genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\" is not what its provenance record says; compile it again:\n%s", path,
                                 differences.data);
  text_deinit(&differences);
  return status;
}

static uint32_t sliding_window_of(const session* self) {
  int64_t window = 0;
  if (self->has_record) return self->record.sliding_window;
  return pte_get_int(self->file, "get_sliding_window", &window) && window > 0 && window <= UINT32_MAX ? (uint32_t)window : 0;
}

static genai_status* open_executors(session* self, const char* path) {
  for (size_t i = 0; i < pte_method_count(self->file); i++) {
    const pte_method_view* method = pte_method_at(self->file, i);
    if (!method->is_delegate || !method->context_binary) continue;
    if (self->n_executors == MAX_EXECUTORS)
      return genai_status_create(GENAI_ERROR_UNSUPPORTED, "\"%s\" has more than %d methods", path, MAX_EXECUTORS);
    GENAI_TRY(qnn_context_executor(self->context, method->name, &self->executors[self->n_executors]));
    executor* exec = self->executors[self->n_executors++];
    GENAI_TRY(assign_roles(exec, method, sliding_window_of(self) > 0, path));
  }
  return NULL;
}

static bool is_for_gpu(const pte_file* file) {
  for (size_t i = 0; i < pte_method_count(file); i++) {
    if (pte_method_at(file, i)->options.gpu) return true;
  }
  return false;
}

static genai_status* open_pte(session* self, const char* path, const char* qnn_dir) {
  GENAI_TRY(pte_open(path, &self->file));
  const pte_method_view* method = first_delegate(self->file);
  if (!method && is_for_gpu(self->file))
    return genai_status_create(
        GENAI_ERROR_UNSUPPORTED,
        "\"%s\" is for the gpu of a device, which compiles its graph when it is loaded: Qualcomm's libraries have no gpu "
        "on this host; run it on a device",
        path);
  if (!method)
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "\"%s\" has no method for the QNN delegate; genai inspect says what is in it",
                               path);
  GENAI_TRY(provenance_read(self->file, &self->record, &self->has_record));
  GENAI_TRY(qnn_library_open(qnn_dir, &self->library));
  GENAI_TRY(check_loadable(self, path, method));
  GENAI_TRY(open_context(self, path, method));
  GENAI_TRY(check_record(self, path));
  GENAI_TRY(open_executors(self, path));
  GENAI_TRY(decoder_create(self->executors, self->n_executors, &self->decoder));
  decoder_set_sliding_window(self->decoder, sliding_window_of(self));
  return NULL;
}

genai_status* session_open_pte(const char* path, const char* qnn_dir, session** out) {
  session* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  double started = clock_seconds();
  genai_status* status = open_pte(self, path, qnn_dir);
  self->load_seconds = clock_seconds() - started;
  if (status) {
    session_close(self);
    return status;
  }
  *out = self;
  return NULL;
}

genai_status* session_open_graphs(const ir_graph* const* graphs, size_t count, const session_host_options* options, session** out) {
  session* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  double started = clock_seconds();
  genai_status* status =
      count > MAX_EXECUTORS ? genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "%zu graphs, at most %d are possible", count, MAX_EXECUTORS)
                            : NULL;
  for (size_t i = 0; !status && i < count; i++) {
    cpu_options host = {.mode = options->mode, .pool = options->pool, .weight_cache_bytes = HOST_WEIGHT_CACHE, .cancel = options->cancel};
    status = cpu_executor_create(graphs[i], &host, &self->executors[i]);
    if (!status) self->n_executors = i + 1;
  }
  if (!status) status = decoder_create(self->executors, self->n_executors, &self->decoder);
  if (status) {
    session_close(self);
    return status;
  }
  decoder_set_sliding_window(self->decoder, options->sliding_window);
  self->load_seconds = clock_seconds() - started;
  *out = self;
  return NULL;
}
