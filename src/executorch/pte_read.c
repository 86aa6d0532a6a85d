/* Reading a .pte: maps the file, has its flatbuffer verified and described (pte_schema.cpp), then checks every index, offset and size and
 * turns plans into method views. Nothing here interprets a context binary. */
#include <string.h>

#include "executorch/pte_format.h"
#include "executorch/pte_schema.h"

struct pte_file {
  mapped_file map; /* zeroed for a file opened on a buffer */
  arena memory;    /* everything below */
  uint32_t n_methods;
  pte_method_view* methods;
};

/* What the checks of one file need. */
typedef struct reading {
  const char* path;
  const uint8_t* data;
  pte_layout layout;
  pte_raw_program program;
  arena* memory;
} reading;

/* ---- Ports ---- */

static genai_status* check_index(const reading* in, const char* method, const char* what, int64_t index, uint32_t count) {
  if (index >= 0 && index < count) return NULL;
  return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: method %s: %s %lld, but there are %u; the file is damaged", in->path, method, what,
                             (long long)index, count);
}

static genai_status* read_port(const reading* in, const pte_raw_plan* plan, int32_t index, executor_port* out) {
  const pte_raw_value* value = &plan->values[index];
  const pte_raw_tensor* tensor = &value->as.tensor;
  ir_dtype dtype;
  if (value->kind != PTE_RAW_TENSOR || !pte_scalar_type_to_dtype(tensor->scalar_type, &dtype)) {
    return genai_status_create(
        GENAI_ERROR_UNSUPPORTED,
        "%s: method %s: value %d is %s with scalar type %d; the QNN delegate takes tensors of types 0 (uint8), 1, 2, 3 "
        "(int32), 5, 6 (float32) and 27 (uint16) only",
        in->path, plan->name, index, value->kind == PTE_RAW_TENSOR ? "a tensor" : "no tensor",
        value->kind == PTE_RAW_TENSOR ? tensor->scalar_type : -1);
  }
  if (tensor->rank < 1 || tensor->rank > IR_MAX_RANK || tensor->storage_offset || tensor->shape_dynamism) {
    return genai_status_create(
        GENAI_ERROR_UNSUPPORTED,
        "%s: method %s: value %d has rank %u, storage offset %d and shape dynamism %d; expected rank 1 to %d and a static "
        "shape at offset 0",
        in->path, plan->name, index, tensor->rank, tensor->storage_offset, tensor->shape_dynamism, IR_MAX_RANK);
  }
  *out = (executor_port){.layer = -1, .dtype = dtype, .rank = tensor->rank, .scale = 1};
  uint64_t bytes = ir_dtype_size(dtype);
  for (uint32_t d = 0; d < tensor->rank; d++) {
    if (tensor->sizes[d] < 1 || !u64_mul(bytes, (uint64_t)tensor->sizes[d], &bytes) || bytes > PTRDIFF_MAX) {
      return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: method %s: value %d has %d elements in dimension %u; the file is damaged",
                                 in->path, plan->name, index, tensor->sizes[d], d);
    }
    if (tensor->n_dim_order != tensor->rank || tensor->dim_order[d] != d) {
      return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                                 "%s: method %s: value %d is not stored row by row; only dense row-major tensors are", in->path, plan->name,
                                 index);
    }
    out->dims[d] = (uint32_t)tensor->sizes[d];
  }
  out->name = arena_printf(in->memory, "value %d", index);
  return out->name ? NULL : genai_status_out_of_memory();
}

static genai_status* read_ports(const reading* in, const pte_raw_plan* plan, const int32_t* indices, uint32_t count,
                                const executor_port** out) {
  executor_port* ports = arena_calloc(in->memory, count, sizeof *ports);
  if (!ports) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < count; i++) GENAI_TRY(read_port(in, plan, indices[i], &ports[i]));
  *out = ports;
  return NULL;
}

/* ---- Delegates ---- */

/* `order[i]` becomes the place of args[i] in `indices`; both lists hold the same values once each. */
static genai_status* read_order(const reading* in, const pte_raw_plan* plan, const char* side, const int32_t* args, const int32_t* indices,
                                uint32_t count, const uint32_t** out) {
  uint32_t* order = arena_calloc(in->memory, count, sizeof *order);
  uint32_t* place_of = arena_calloc(in->memory, plan->n_values, sizeof *place_of); /* 1 + place; 0: absent or already used */
  if (!order || !place_of) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < count; i++) place_of[indices[i]] = i + 1;
  for (uint32_t i = 0; i < count; i++) {
    if (!place_of[args[i]]) {
      return genai_status_create(
          GENAI_ERROR_BAD_FILE,
          "%s: method %s: argument value %d of its delegate call is not one of the method's %u %ss, or is there twice; the "
          "file is damaged",
          in->path, plan->name, args[i], count, side);
    }
    order[i] = place_of[args[i]] - 1;
    place_of[args[i]] = 0;
  }
  *out = order;
  return NULL;
}

static genai_status* find_payload(const reading* in, const char* method, const pte_raw_delegate* delegate, pte_raw_blob* out) {
  if (!delegate->in_segment) {
    GENAI_TRY(check_index(in, method, "its delegate's data is inlined blob", delegate->index, in->program.n_inline));
    *out = in->program.inline_data[delegate->index];
    return NULL;
  }
  GENAI_TRY(check_index(in, method, "its delegate's data is segment", delegate->index, in->program.n_segments));
  const pte_raw_segment* segment = &in->program.segments[delegate->index];
  *out = (pte_raw_blob){in->data + in->layout.segment_base + segment->offset, (size_t)segment->size};
  return NULL;
}

static genai_status* read_qnn(const reading* in, const pte_raw_plan* plan, const pte_raw_delegate* delegate, pte_method_view* out) {
  pte_raw_options options = {0};
  if (!delegate->options) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: method %s: the QNN delegate has no option block \"qnn_compile_spec\"", in->path,
                               plan->name);
  }
  GENAI_TRY(pte_options_read(delegate->options, delegate->options_size, in->path, &options));
  out->options = options.delegate;
  if (options.delegate.gpu) return NULL; /* its payload is for the device to read */
  if (options.backend != 2 || options.online_prepare) {
    return genai_status_create(
        GENAI_ERROR_UNSUPPORTED,
        "%s: method %s is made for QNN backend %d%s; only prepared binaries for HTP (2) and graphs for GPU (1) that are "
        "prepared on the device are handled",
        in->path, plan->name, options.backend, options.online_prepare ? " with preparation on the device" : "");
  }
  pte_raw_blob payload;
  const uint8_t* binary;
  GENAI_TRY(find_payload(in, plan->name, delegate, &payload));
  GENAI_TRY(pte_payload_decode(payload.data, payload.size, in->path, plan->name, &out->signature, &binary, &out->context_binary_size));
  out->context_binary = binary;
  return NULL;
}

static genai_status* read_delegate(const reading* in, const pte_raw_plan* plan, pte_method_view* out) {
  const pte_raw_instruction* call = &plan->instructions[0];
  GENAI_TRY(check_index(in, plan->name, "it calls delegate", call->delegate, plan->n_delegates));
  const pte_raw_delegate* delegate = &plan->delegates[call->delegate];
  out->is_delegate = true;
  out->delegate_id = delegate->id;
  if (strcmp(delegate->id, PTE_QNN_DELEGATE)) return NULL;
  if (call->n_args != (uint64_t)plan->n_inputs + plan->n_outputs) {
    return genai_status_create(
        GENAI_ERROR_BAD_FILE,
        "%s: method %s: its delegate call has %u arguments, expected its %u inputs and %u outputs; the file is damaged", in->path,
        plan->name, call->n_args, plan->n_inputs, plan->n_outputs);
  }
  for (uint32_t i = 0; i < call->n_args; i++) GENAI_TRY(check_index(in, plan->name, "argument value", call->args[i], plan->n_values));
  GENAI_TRY(read_ports(in, plan, plan->inputs, plan->n_inputs, &out->inputs));
  GENAI_TRY(read_ports(in, plan, plan->outputs, plan->n_outputs, &out->outputs));
  GENAI_TRY(read_order(in, plan, "input", call->args, plan->inputs, plan->n_inputs, &out->delegate_inputs));
  GENAI_TRY(read_order(in, plan, "output", call->args + plan->n_inputs, plan->outputs, plan->n_outputs, &out->delegate_outputs));
  return read_qnn(in, plan, delegate, out);
}

/* ---- Methods ---- */

/* A method without inputs and instructions whose outputs are all scalars returns constants; anything else is left unexplained. */
static genai_status* read_constant(const reading* in, const pte_raw_plan* plan, pte_method_view* out) {
  for (uint32_t i = 0; i < plan->n_outputs; i++) {
    if (plan->values[plan->outputs[i]].kind != PTE_RAW_SCALAR) return NULL;
  }
  pte_scalar* values = arena_calloc(in->memory, plan->n_outputs, sizeof *values);
  if (!values) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < plan->n_outputs; i++) values[i] = plan->values[plan->outputs[i]].as.scalar;
  out->n_values = plan->n_outputs;
  out->values = values;
  return NULL;
}

static genai_status* read_method(const reading* in, const pte_raw_plan* plan, pte_method_view* out) {
  *out = (pte_method_view){.name = plan->name, .n_inputs = plan->n_inputs, .n_outputs = plan->n_outputs};
  for (uint32_t i = 0; i < plan->n_inputs; i++) GENAI_TRY(check_index(in, plan->name, "input value", plan->inputs[i], plan->n_values));
  for (uint32_t i = 0; i < plan->n_outputs; i++) GENAI_TRY(check_index(in, plan->name, "output value", plan->outputs[i], plan->n_values));
  if (plan->n_instructions == 1 && plan->instructions[0].is_delegate_call) return read_delegate(in, plan, out);
  if (plan->n_instructions == 0 && plan->n_inputs == 0) return read_constant(in, plan, out);
  return NULL;
}

static genai_status* check_segments(const reading* in) {
  for (uint32_t i = 0; i < in->program.n_segments; i++) {
    const pte_raw_segment* segment = &in->program.segments[i];
    if (segment->offset > in->layout.segment_size || segment->size > in->layout.segment_size - segment->offset) {
      return genai_status_create(
          GENAI_ERROR_BAD_FILE, "%s: segment %u takes bytes %llu + %llu of %llu bytes of segments; the file is cut off or damaged",
          in->path, i, (unsigned long long)segment->offset, (unsigned long long)segment->size, (unsigned long long)in->layout.segment_size);
    }
  }
  return NULL;
}

static genai_status* read_file(pte_file* self, const uint8_t* data, size_t size, const char* path) {
  reading in = {.path = path, .data = data, .memory = &self->memory};
  GENAI_TRY(pte_layout_decode(data, size, path, &in.layout));
  GENAI_TRY(pte_schema_read(data, (size_t)in.layout.program_size, path, &self->memory, &in.program));
  if (in.program.version != 0) {
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s: schema version %u, only 0 is known; a newer genai may read it", path,
                               in.program.version);
  }
  if (!in.program.n_plans) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: its program has no methods; the file is damaged", path);
  }
  GENAI_TRY(check_segments(&in));
  self->methods = arena_calloc(&self->memory, in.program.n_plans, sizeof *self->methods);
  if (!self->methods) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < in.program.n_plans; i++) GENAI_TRY(read_method(&in, &in.program.plans[i], &self->methods[i]));
  self->n_methods = in.program.n_plans;
  return NULL;
}

genai_status* pte_open_buffer(const void* data, size_t size, const char* name, pte_file** out) {
  if ((uintptr_t)data % 16) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "%s: its bytes are not aligned to 16", name);
  pte_file* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  genai_status* status = read_file(self, data, size, name);
  if (status) {
    pte_close(self);
    return status;
  }
  *out = self;
  return NULL;
}

genai_status* pte_open(const char* path, pte_file** out) {
  mapped_file map = {0};
  GENAI_TRY(mapped_file_open(path, &map));
  pte_file* self = NULL;
  genai_status* status = pte_open_buffer(map.data, map.size, map.path, &self);
  if (status) {
    mapped_file_close(&map);
    return status;
  }
  self->map = map;
  *out = self;
  return NULL;
}

void pte_close(pte_file* self) {
  if (!self) return;
  arena_deinit(&self->memory);
  mapped_file_close(&self->map);
  mem_free(self);
}

size_t pte_method_count(const pte_file* self) {
  return self->n_methods;
}

const pte_method_view* pte_method_at(const pte_file* self, size_t index) {
  return index < self->n_methods ? &self->methods[index] : NULL;
}

const pte_method_view* pte_find_method(const pte_file* self, const char* name) {
  for (uint32_t i = 0; i < self->n_methods; i++) {
    if (!strcmp(self->methods[i].name, name)) return &self->methods[i];
  }
  return NULL;
}

/* The single value of this kind that the method returns; NULL when it does not. */
static const pte_scalar* find_scalar(const pte_file* self, const char* constant_method, pte_constant_kind kind) {
  const pte_method_view* method = pte_find_method(self, constant_method);
  return method && method->n_values == 1 && method->values[0].kind == kind ? &method->values[0] : NULL;
}

bool pte_get_int(const pte_file* self, const char* constant_method, int64_t* out) {
  const pte_scalar* scalar = find_scalar(self, constant_method, PTE_INT);
  if (scalar) *out = scalar->as.i;
  return scalar != NULL;
}

const char* pte_get_string(const pte_file* self, const char* constant_method) {
  const pte_scalar* scalar = find_scalar(self, constant_method, PTE_STRING);
  return scalar ? scalar->as.s : NULL;
}
