/* Writing a .pte: checks the program, lays its methods out as plans, and streams header, flatbuffer, padding, delegate payload header and
 * context binary into one file that appears whole or not at all. The flatbuffer itself is built in pte_schema.cpp. */
#include <string.h>

#include "executorch/pte_format.h"
#include "executorch/pte_schema.h"

/* ---- Checks ---- */

/* A flatbuffer stays below 2 GiB, and its builder aborts beyond; everything that can be large is bounded here. */
enum { MAX_METHODS = 4096, MAX_PORTS = 65536, MAX_TEXT = 64 << 20 };

static genai_status* check_ports(const char* method, const char* side, const executor_port* ports, uint32_t count) {
  if (count > MAX_PORTS) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "method %s: %u %ss, at most %d are possible", method, count, side, MAX_PORTS);
  }
  for (uint32_t i = 0; i < count; i++) {
    const executor_port* port = &ports[i];
    if (port->rank < 1 || port->rank > IR_MAX_RANK || pte_scalar_type_of(port->dtype) < 0) {
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "method %s: %s %u has rank %u and type %s; a .pte takes rank 1 to %d",
                                 method, side, i, port->rank, ir_dtype_name(port->dtype), IR_MAX_RANK);
    }
    for (uint32_t d = 0; d < port->rank; d++) {
      if (port->dims[d] < 1 || port->dims[d] > INT32_MAX) {
        return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "method %s: %s %u has %u elements in dimension %u, expected 1 to %d",
                                   method, side, i, port->dims[d], d, INT32_MAX);
      }
    }
  }
  return NULL;
}

/* `order` (NULL: the identity) must name each of 0..count-1 once. */
static genai_status* check_order(const char* method, const char* side, const uint32_t* order, uint32_t count, arena* memory) {
  if (!order) return NULL;
  bool* seen = arena_calloc(memory, count, sizeof *seen);
  if (!seen) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < count; i++) {
    if (order[i] >= count || seen[order[i]]) {
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT,
                                 "method %s: the order of its %ss names %u at place %u; each of 0 to %u is due once", method, side,
                                 order[i], i, count - 1);
    }
    seen[order[i]] = true;
  }
  return NULL;
}

static const char* method_name(const pte_program* program, size_t index) {
  return index < program->n_methods ? program->methods[index].name : program->constants[index - program->n_methods].method;
}

static genai_status* check_names(const pte_program* program) {
  const size_t count = program->n_methods + program->n_constants;
  for (size_t i = 0; i < count; i++) {
    const char* name = method_name(program, i);
    if (!name || !*name) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "method %zu of the program has no name", i);
    for (size_t j = 0; j < i; j++) {
      if (!strcmp(name, method_name(program, j))) {
        return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "two methods of the program are named %s; names must differ", name);
      }
    }
  }
  return NULL;
}

static genai_status* check_constants(const pte_program* program) {
  size_t total = 0;
  for (size_t i = 0; i < program->n_constants; i++) {
    const pte_constant* constant = &program->constants[i];
    if (constant->count < 1 || constant->count > MAX_PORTS) {
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "constant method %s returns %zu values, expected 1 to %d", constant->method,
                                 constant->count, MAX_PORTS);
    }
    for (size_t v = 0; v < constant->count; v++) {
      if (constant->values[v].kind != PTE_STRING) continue;
      if (!constant->values[v].as.s) {
        return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "constant method %s: value %zu is a NULL string", constant->method, v);
      }
      total += strnlen(constant->values[v].as.s, MAX_TEXT + 1);
      if (total > MAX_TEXT) {
        return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT,
                                   "constant methods up to %s hold more than %d bytes of text; store less in them", constant->method,
                                   MAX_TEXT);
      }
    }
  }
  return NULL;
}

static genai_status* check_program(const pte_program* program, arena* memory) {
  if (program->n_methods < 1 || program->n_methods > MAX_METHODS || program->n_constants > MAX_METHODS) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT,
                               "a program of %zu methods and %zu constant methods; expected 1 to %d and up to %d", program->n_methods,
                               program->n_constants, MAX_METHODS, MAX_METHODS);
  }
  if (!program->context_binary || !program->context_binary_size) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the program has no context binary; compile its graphs first");
  }
  if (program->options.gpu && program->n_methods != 1) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "a program for the GPU of %zu methods; a DLC holds the graph of one",
                               program->n_methods);
  }
  GENAI_TRY(check_names(program));
  for (size_t i = 0; i < program->n_methods; i++) {
    const pte_method* method = &program->methods[i];
    GENAI_TRY(check_ports(method->name, "input", method->inputs, method->n_inputs));
    GENAI_TRY(check_ports(method->name, "output", method->outputs, method->n_outputs));
    GENAI_TRY(check_order(method->name, "input", method->binary_input_order, method->n_inputs, memory));
    GENAI_TRY(check_order(method->name, "output", method->binary_output_order, method->n_outputs, memory));
  }
  return check_constants(program);
}

/* ---- Plans ---- */

static const char leaf[] = "{\"type\": null, \"context\": null, \"children_spec\": []}";

/* One node of the pytree notation of torch.utils._pytree (protocol 1) with `count` leaves. */
static genai_status* append_node(text* out, const char* type, size_t count) {
  GENAI_TRY(text_printf(out, "{\"type\": \"builtins.%s\", \"context\": \"null\", \"children_spec\": [", type));
  for (size_t i = 0; i < count; i++) GENAI_TRY(text_printf(out, "%s%s", i ? ", " : "", leaf));
  return text_append_cstr(out, "]}");
}

/* Moves `scratch` into the arena, clearing it. */
static genai_status* keep_text(text* scratch, arena* memory, const char** out) {
  *out = arena_strdup(memory, scratch->data);
  text_clear(scratch);
  return *out ? NULL : genai_status_out_of_memory();
}

/* The trees of a call f(x0, x1, ...) that returns a tuple, or of a constant that returns a value or a list. */
static genai_status* describe_method(pte_raw_plan* plan, arena* memory, text* scratch) {
  GENAI_TRY(text_append_cstr(scratch, "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": ["));
  GENAI_TRY(append_node(scratch, "tuple", plan->n_inputs));
  GENAI_TRY(text_append_cstr(scratch, ", {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]"));
  GENAI_TRY(keep_text(scratch, memory, &plan->input_tree));
  GENAI_TRY(text_append_cstr(scratch, "[1, "));
  GENAI_TRY(append_node(scratch, "tuple", plan->n_outputs));
  GENAI_TRY(text_append_cstr(scratch, "]"));
  return keep_text(scratch, memory, &plan->output_tree);
}

static genai_status* describe_constant(pte_raw_plan* plan, arena* memory, text* scratch) {
  plan->input_tree = "";
  GENAI_TRY(text_append_cstr(scratch, "[1, "));
  GENAI_TRY(plan->n_outputs == 1 ? text_append_cstr(scratch, leaf) : append_node(scratch, "list", plan->n_outputs));
  GENAI_TRY(text_append_cstr(scratch, "]"));
  return keep_text(scratch, memory, &plan->output_tree);
}

static const uint8_t contiguous[IR_MAX_RANK] = {0, 1, 2, 3, 4};

static void set_tensor(pte_raw_value* value, const executor_port* port) {
  value->kind = PTE_RAW_TENSOR;
  value->as.tensor = (pte_raw_tensor){.scalar_type = pte_scalar_type_of(port->dtype),
                                      .rank = port->rank,
                                      .sizes = (const int32_t*)port->dims, /* check_ports: none is above INT32_MAX */
                                      .n_dim_order = port->rank,
                                      .dim_order = contiguous};
}

/* Values are the inputs in plan order, then the outputs in the binary's order, so that the call's outputs count up. */
static genai_status* plan_method(const pte_method* method, const text* options, arena* memory, text* scratch, pte_raw_plan* plan) {
  const uint32_t n_inputs = method->n_inputs, n_outputs = method->n_outputs, n_values = n_inputs + n_outputs;
  int32_t* inputs = arena_calloc(memory, n_inputs, sizeof *inputs);
  int32_t* outputs = arena_calloc(memory, n_outputs, sizeof *outputs);
  int32_t* args = arena_calloc(memory, n_values, sizeof *args);
  pte_raw_value* values = arena_calloc(memory, n_values, sizeof *values);
  pte_raw_delegate* delegate = arena_calloc(memory, 1, sizeof *delegate);
  pte_raw_instruction* call = arena_calloc(memory, 1, sizeof *call);
  if (!inputs || !outputs || !args || !values || !delegate || !call) return genai_status_out_of_memory();

  for (uint32_t i = 0; i < n_inputs; i++) {
    inputs[i] = (int32_t)i;
    args[i] = (int32_t)(method->binary_input_order ? method->binary_input_order[i] : i);
    set_tensor(&values[i], &method->inputs[i]);
  }
  for (uint32_t i = 0; i < n_outputs; i++) {
    const uint32_t plan_index = method->binary_output_order ? method->binary_output_order[i] : i;
    args[n_inputs + i] = (int32_t)(n_inputs + i);
    outputs[plan_index] = (int32_t)(n_inputs + i);
    set_tensor(&values[n_inputs + i], &method->outputs[plan_index]);
  }
  *delegate = (pte_raw_delegate){
      .id = PTE_QNN_DELEGATE, .in_segment = true, .index = 1, .options = (const uint8_t*)options->data, .options_size = options->length};
  *call = (pte_raw_instruction){.is_delegate_call = true, .delegate = 0, .n_args = n_values, .args = args};
  *plan = (pte_raw_plan){.name = method->name,
                         .n_values = n_values,
                         .values = values,
                         .n_inputs = n_inputs,
                         .inputs = inputs,
                         .n_outputs = n_outputs,
                         .outputs = outputs,
                         .n_delegates = 1,
                         .delegates = delegate,
                         .n_instructions = 1,
                         .instructions = call,
                         .n_buffer_sizes = 2};
  return describe_method(plan, memory, scratch);
}

static genai_status* plan_constant(const pte_constant* constant, arena* memory, text* scratch, pte_raw_plan* plan) {
  const uint32_t count = (uint32_t)constant->count;
  pte_raw_value* values = arena_calloc(memory, count, sizeof *values);
  int32_t* outputs = arena_calloc(memory, count, sizeof *outputs);
  if (!values || !outputs) return genai_status_out_of_memory();
  for (uint32_t i = 0; i < count; i++) {
    values[i].kind = PTE_RAW_SCALAR;
    values[i].as.scalar = constant->values[i];
    outputs[i] = (int32_t)i;
  }
  *plan = (pte_raw_plan){
      .name = constant->method, .n_values = count, .values = values, .n_outputs = count, .outputs = outputs, .n_buffer_sizes = 1};
  return describe_constant(plan, memory, scratch);
}

/* ---- The file ---- */

/* Positive, so that it reads the same whatever a tool takes it for. */
static int64_t signature_of(const pte_program* program, const text* options) {
  sha256 hash;
  uint8_t digest[32];
  sha256_init(&hash);
  sha256_update(&hash, options->data, options->length);
  sha256_update(&hash, program->context_binary, program->context_binary_size);
  sha256_final(&hash, digest);
  int64_t signature;
  memcpy(&signature, digest, sizeof signature);
  signature &= INT64_MAX;
  return signature ? signature : 1;
}

static genai_status* build_program(const pte_program* program, const text* options, uint64_t payload_size, arena* memory, text* scratch,
                                   text* out) {
  const uint32_t n_plans = (uint32_t)(program->n_methods + program->n_constants);
  pte_raw_plan* plans = arena_calloc(memory, n_plans, sizeof *plans);
  if (!plans) return genai_status_out_of_memory();
  for (size_t i = 0; i < program->n_methods; i++) GENAI_TRY(plan_method(&program->methods[i], options, memory, scratch, &plans[i]));
  for (size_t i = 0; i < program->n_constants; i++) {
    GENAI_TRY(plan_constant(&program->constants[i], memory, scratch, &plans[program->n_methods + i]));
  }
  /* Segment 0 is the empty constant segment that the format expects; one payload serves all methods. */
  pte_raw_segment segments[] = {{0, 0}, {0, payload_size}};
  return pte_schema_write(&(pte_raw_program){.n_plans = n_plans, .plans = plans, .n_segments = 2, .segments = segments}, out);
}

/* The flatbuffer's first 8 bytes, the extended header, the rest of the flatbuffer, and zeros up to the segments. The header lies inside
 * the flatbuffer, so the root offset, which counts from the start, grows by its size; all other offsets are relative. */
static genai_status* write_head(atomic_file* file, text* flatbuffer, uint64_t payload_size) {
  static const uint8_t zeros[PTE_SEGMENT_ALIGNMENT];
  const uint64_t program_size = flatbuffer->length + PTE_EXTENDED_HEADER_SIZE;
  const uint64_t base = (program_size + PTE_SEGMENT_ALIGNMENT - 1) / PTE_SEGMENT_ALIGNMENT * PTE_SEGMENT_ALIGNMENT;
  uint8_t header[PTE_EXTENDED_HEADER_SIZE];
  pte_layout_encode(&(pte_layout){program_size, base, payload_size}, header);
  uint32_t root;
  memcpy(&root, flatbuffer->data, sizeof root);
  root += PTE_EXTENDED_HEADER_SIZE;
  memcpy(flatbuffer->data, &root, sizeof root);
  GENAI_TRY(atomic_file_write(file, flatbuffer->data, PTE_ROOT_SIZE));
  GENAI_TRY(atomic_file_write(file, header, sizeof header));
  GENAI_TRY(atomic_file_write(file, flatbuffer->data + PTE_ROOT_SIZE, flatbuffer->length - PTE_ROOT_SIZE));
  return atomic_file_write(file, zeros, (size_t)(base - program_size));
}

static genai_status* write_file(const char* path, const pte_program* program, const text* options, text* flatbuffer,
                                uint64_t payload_size) {
  atomic_file file = {0};
  GENAI_TRY(atomic_file_create(path, &file));
  uint8_t payload_header[PTE_PAYLOAD_HEADER_SIZE];
  pte_payload_encode(signature_of(program, options), program->context_binary_size, payload_header);
  genai_status* status = write_head(&file, flatbuffer, payload_size);
  /* The runtime takes a payload without the header for a DLC. */
  if (!status && !program->options.gpu) status = atomic_file_write(&file, payload_header, sizeof payload_header);
  if (!status) status = atomic_file_write(&file, program->context_binary, program->context_binary_size);
  if (!status) return atomic_file_commit(&file);
  atomic_file_abort(&file);
  return status;
}

genai_status* pte_write(const char* path, const pte_program* program) {
  arena memory = {0};
  text options = {0}, scratch = {0}, flatbuffer = {0};
  uint64_t payload_size;
  genai_status* status;
  GENAI_TRY_GOTO(status, check_program(program, &memory), done);
  GENAI_TRY_GOTO(status, pte_options_write(&program->options, &options), done);
  payload_size = (program->options.gpu ? 0 : PTE_PAYLOAD_HEADER_SIZE) + (uint64_t)program->context_binary_size;
  GENAI_TRY_GOTO(status, build_program(program, &options, payload_size, &memory, &scratch, &flatbuffer), done);
  status = write_file(path, program, &options, &flatbuffer, payload_size);
done:
  text_deinit(&flatbuffer);
  text_deinit(&scratch);
  text_deinit(&options);
  arena_deinit(&memory);
  return status;
}
