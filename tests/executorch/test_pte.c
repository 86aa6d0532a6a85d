/* What is written reads back, the bytes outside the flatbuffer are where docs/formats/pte.md says, and the upstream file reads as ExecuTorch's
 * own deserializer reads it (tests/tools/make_pte_reference.py recorded tests/data/pte/stories260k.json). */
#include "base/json.h"
#include "fake_program.h"

/* ---- Written and read back ---- */

static void assert_ports_equal(const executor_port* a, const executor_port* b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(a[i].dtype, b[i].dtype);
    assert_int_equal(a[i].rank, b[i].rank);
    assert_memory_equal(a[i].dims, b[i].dims, a[i].rank * sizeof a[i].dims[0]);
    assert_int_equal(b[i].role, IR_ROLE_NONE);
    assert_true(b[i].scale == 1 && b[i].offset == 0);
    assert_memory_equal(b[i].name, "value ", 6);
  }
}

static void assert_scalar_equal(const pte_scalar* a, const pte_scalar* b) {
  assert_int_equal(a->kind, b->kind);
  switch (a->kind) {
    case PTE_INT:
      assert_int_equal(a->as.i, b->as.i);
      break;
    case PTE_BOOL:
      assert_int_equal(a->as.b, b->as.b);
      break;
    case PTE_DOUBLE:
      assert_true(a->as.d == b->as.d);
      break;
    case PTE_STRING:
      assert_string_equal(a->as.s, b->as.s);
      break;
  }
}

static void test_round_trip(void** state) {
  (void)state;
  const pte_program program = fake_program();
  const char* path = scratch_path("a.pte");
  assert_ok(pte_write(path, &program));
  pte_file* file;
  assert_ok(pte_open(path, &file));
  assert_int_equal(pte_method_count(file), COUNT(fake_methods) + COUNT(fake_constants));
  assert_null(pte_method_at(file, pte_method_count(file)));
  for (size_t m = 0; m < COUNT(fake_methods); m++) {
    const pte_method* wrote = &fake_methods[m];
    const pte_method_view* read = pte_find_method(file, wrote->name);
    assert_non_null(read);
    assert_true(read->is_delegate);
    assert_string_equal(read->delegate_id, "QnnBackend");
    assert_int_equal(read->n_inputs, wrote->n_inputs);
    assert_int_equal(read->n_outputs, wrote->n_outputs);
    assert_ports_equal(wrote->inputs, read->inputs, wrote->n_inputs);
    assert_ports_equal(wrote->outputs, read->outputs, wrote->n_outputs);
    for (uint32_t i = 0; i < wrote->n_inputs; i++) {
      assert_int_equal(read->delegate_inputs[i], wrote->binary_input_order ? wrote->binary_input_order[i] : i);
    }
    for (uint32_t i = 0; i < wrote->n_outputs; i++) {
      assert_int_equal(read->delegate_outputs[i], wrote->binary_output_order ? wrote->binary_output_order[i] : i);
    }
    assert_int_equal(read->context_binary_size, sizeof fake_binary);
    assert_memory_equal(read->context_binary, fake_binary, sizeof fake_binary);
    assert_ptr_equal(read->context_binary, pte_method_at(file, 0)->context_binary); /* stored once */
    assert_true(read->signature > 0);
  }
  for (size_t c = 0; c < COUNT(fake_constants); c++) {
    const pte_method_view* read = pte_find_method(file, fake_constants[c].method);
    assert_non_null(read);
    assert_false(read->is_delegate);
    assert_null(read->delegate_id);
    assert_int_equal(read->n_values, fake_constants[c].count);
    for (size_t v = 0; v < read->n_values; v++) assert_scalar_equal(&fake_constants[c].values[v], &read->values[v]);
  }
  pte_close(file);
  unlink(path);
}

static void test_getters(void** state) {
  (void)state;
  const pte_program program = fake_program();
  const char* path = scratch_path("a.pte");
  assert_ok(pte_write(path, &program));
  pte_file* file;
  assert_ok(pte_open(path, &file));
  int64_t layers = 7;
  assert_true(pte_get_int(file, "get_n_layers", &layers));
  assert_int_equal(layers, 30);
  assert_false(pte_get_int(file, "get_use_kv_cache", &layers));           /* a bool */
  assert_false(pte_get_int(file, "get_kv_output_0_quant_attr", &layers)); /* several values */
  assert_false(pte_get_int(file, "kv_forward", &layers));
  assert_false(pte_get_int(file, "absent", &layers));
  assert_int_equal(layers, 30);
  assert_string_equal(pte_get_string(file, PTE_PROVENANCE_METHOD), "{\"soc\": \"SM8650\"}");
  assert_null(pte_get_string(file, "get_n_layers"));
  assert_null(pte_get_string(file, "absent"));
  assert_null(pte_find_method(file, "absent"));
  pte_close(file);
  pte_close(NULL);
  unlink(path);
}

/* Options that differ from the defaults of the format in every field, so that a field in the wrong place shows. */
static void test_options_round_trip(void** state) {
  (void)state;
  const pte_delegate_options cases[] = {
      {.soc_model = 69, .htp_arch = 79, .vtcm_mb = 4, .fp16 = true, .weight_sharing = false, .shared_buffer = true, .performance_mode = 3},
      {.soc_model = 1, .htp_arch = 2, .vtcm_mb = 3, .fp16 = false, .weight_sharing = true, .shared_buffer = false, .performance_mode = 8},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    pte_program program = fake_program();
    program.options = cases[i];
    const char* path = scratch_path("a.pte");
    assert_ok(pte_write(path, &program));
    pte_file* file;
    assert_ok(pte_open(path, &file));
    const pte_delegate_options* read = &pte_method_at(file, 0)->options;
    assert_int_equal(read->soc_model, cases[i].soc_model);
    assert_int_equal(read->htp_arch, cases[i].htp_arch);
    assert_int_equal(read->vtcm_mb, cases[i].vtcm_mb);
    assert_int_equal(read->fp16, cases[i].fp16);
    assert_int_equal(read->weight_sharing, cases[i].weight_sharing);
    assert_int_equal(read->shared_buffer, cases[i].shared_buffer);
    assert_int_equal(read->performance_mode, cases[i].performance_mode);
    pte_close(file);
    unlink(path);
  }
}

static uint64_t read_u64(const char* at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

/* The byte tables of the format, as ExecuTorch's schema/extended_header and QNN delegate define them. */
static void test_layout(void** state) {
  (void)state;
  const pte_program program = fake_program();
  const char* path = scratch_path("a.pte");
  assert_ok(pte_write(path, &program));
  text file = {0};
  assert_ok(file_read_all(path, 1 << 20, &file));
  assert_memory_equal(file.data + 4, "ET12eh00\x20\0\0\0", 12);
  const uint64_t program_size = read_u64(file.data + 16), base = read_u64(file.data + 24), segments = read_u64(file.data + 32);
  assert_true(base >= program_size && base < program_size + 128 && base % 128 == 0);
  for (uint64_t i = program_size; i < base; i++) assert_int_equal(file.data[i], 0);
  assert_int_equal(segments, 256 + sizeof fake_binary);
  assert_int_equal(file.length, base + segments);
  const char* payload = file.data + base;
  assert_memory_equal(payload, "\xcd\xab\x78\x56", 4);
  assert_int_equal(read_u64(payload + 12), sizeof fake_binary);
  for (size_t i = 20; i < 256; i++) assert_int_equal(payload[i], 0);
  assert_memory_equal(payload + 256, fake_binary, sizeof fake_binary);
  text_deinit(&file);
  unlink(path);
}

static int64_t signature_written(const pte_program* program) {
  const char* path = scratch_path("signature.pte");
  assert_ok(pte_write(path, program));
  pte_file* file;
  assert_ok(pte_open(path, &file));
  const int64_t signature = pte_method_at(file, 0)->signature;
  pte_close(file);
  unlink(path);
  return signature;
}

static void test_equal_programs_give_equal_bytes(void** state) {
  (void)state;
  const pte_program program = fake_program();
  text first = {0}, second = {0};
  assert_ok(pte_write(scratch_path("a.pte"), &program));
  assert_ok(pte_write(scratch_path("b.pte"), &program));
  assert_ok(file_read_all(scratch_path("a.pte"), 1 << 20, &first));
  assert_ok(file_read_all(scratch_path("b.pte"), 1 << 20, &second));
  assert_int_equal(first.length, second.length);
  assert_memory_equal(first.data, second.data, first.length);
  text_deinit(&first);
  text_deinit(&second);
  unlink(scratch_path("a.pte"));
  unlink(scratch_path("b.pte"));

  /* The delegate reuses a loaded context by signature, so another binary must get another one. */
  const int64_t before = signature_written(&program);
  fake_binary[500] ^= 1;
  assert_int_not_equal(before, signature_written(&program));
}

static void test_bad_programs(void** state) {
  (void)state;
  const char* path = scratch_path("a.pte");
  pte_program program = fake_program();
  program.n_methods = 0;
  assert_fails(pte_write(path, &program), GENAI_ERROR_INVALID_ARGUMENT, "0 methods");

  program = fake_program();
  program.context_binary_size = 0;
  assert_fails(pte_write(path, &program), GENAI_ERROR_INVALID_ARGUMENT, "context binary");

  pte_method methods[COUNT(fake_methods)];
  memcpy(methods, fake_methods, sizeof methods);
  program = fake_program();
  program.methods = methods;
  methods[1].name = "get_n_layers";
  assert_fails(pte_write(path, &program), GENAI_ERROR_INVALID_ARGUMENT, "get_n_layers");
  methods[1].name = "";
  assert_fails(pte_write(path, &program), GENAI_ERROR_INVALID_ARGUMENT, "no name");
  methods[1] = fake_methods[1];

  const uint32_t twice[] = {0, 1, 1}, beyond[] = {0, 1, 3};
  methods[0].binary_output_order = twice;
  assert_fails(pte_write(path, &program), GENAI_ERROR_INVALID_ARGUMENT, "order of its outputs");
  methods[0] = fake_methods[0];
  methods[0].binary_input_order = beyond;
  assert_fails(pte_write(path, &program), GENAI_ERROR_INVALID_ARGUMENT, "order of its inputs");
  methods[0] = fake_methods[0];

  executor_port port = fake_decode_inputs[0];
  methods[1].inputs = &port;
  methods[1].n_inputs = 1;
  port.rank = 0;
  assert_fails(pte_write(path, &program), GENAI_ERROR_INVALID_ARGUMENT, "rank 0");
  port.rank = IR_MAX_RANK + 1;
  assert_fails(pte_write(path, &program), GENAI_ERROR_INVALID_ARGUMENT, "rank 6");
  port = fake_decode_inputs[0];
  port.dims[2] = 0;
  assert_fails(pte_write(path, &program), GENAI_ERROR_INVALID_ARGUMENT, "dimension 2");
  port.dims[2] = (uint32_t)INT32_MAX + 1;
  assert_fails(pte_write(path, &program), GENAI_ERROR_INVALID_ARGUMENT, "dimension 2");

  pte_constant empty = {"get_nothing", 0, NULL};
  program = fake_program();
  program.constants = &empty;
  program.n_constants = 1;
  assert_fails(pte_write(path, &program), GENAI_ERROR_INVALID_ARGUMENT, "get_nothing");
  const pte_scalar null_string = {PTE_STRING, {.s = NULL}};
  empty = (pte_constant){"get_null", 1, &null_string};
  assert_fails(pte_write(path, &program), GENAI_ERROR_INVALID_ARGUMENT, "get_null");
  assert_false(file_exists(path));
}

/* ---- The upstream file ---- */

static int64_t integer_of(json_value object, const char* key) {
  assert_int_equal(json_type_of(json_get(object, key)), JSON_INTEGER);
  return json_integer(json_get(object, key), 0);
}

static void assert_ports_as_recorded(json_value recorded, const executor_port* ports, uint32_t count) {
  assert_int_equal(json_count(recorded), count);
  json_iterator iterator = json_iterate(recorded);
  json_value port;
  for (uint32_t i = 0; json_next(&iterator, NULL, &port); i++) {
    const int64_t code = integer_of(port, "scalar_type");
    assert_int_equal(ports[i].dtype, code == 27 ? IR_U16 : code == 3 ? IR_I32 : IR_U8);
    const json_value sizes = json_get(port, "sizes");
    assert_int_equal(json_count(sizes), ports[i].rank);
    json_iterator dimensions = json_iterate(sizes);
    json_value size;
    for (uint32_t d = 0; json_next(&dimensions, NULL, &size); d++) assert_int_equal(json_integer(size, -1), ports[i].dims[d]);
  }
}

static void assert_order_as_recorded(json_value recorded, const uint32_t* order, uint32_t count) {
  assert_int_equal(json_count(recorded), count);
  json_iterator iterator = json_iterate(recorded);
  json_value place;
  for (uint32_t i = 0; json_next(&iterator, NULL, &place); i++) assert_int_equal(json_integer(place, -1), order[i]);
}

static void assert_delegate_as_recorded(json_value recorded, const pte_method_view* method) {
  assert_true(text_view_equal_cstr(json_string(json_get(recorded, "delegate_id")), method->delegate_id));
  assert_ports_as_recorded(json_get(recorded, "inputs"), method->inputs, method->n_inputs);
  assert_ports_as_recorded(json_get(recorded, "outputs"), method->outputs, method->n_outputs);
  assert_order_as_recorded(json_get(recorded, "delegate_inputs"), method->delegate_inputs, method->n_inputs);
  assert_order_as_recorded(json_get(recorded, "delegate_outputs"), method->delegate_outputs, method->n_outputs);
  const json_value options = json_get(recorded, "options");
  assert_int_equal(integer_of(options, "soc_model"), method->options.soc_model);
  assert_int_equal(integer_of(options, "htp_arch"), method->options.htp_arch);
  assert_int_equal(integer_of(options, "vtcm_mb"), method->options.vtcm_mb);
  assert_int_equal(integer_of(options, "performance_mode"), method->options.performance_mode);
  assert_int_equal(json_bool(json_get(options, "fp16"), true), method->options.fp16);
  assert_int_equal(json_bool(json_get(options, "weight_sharing"), true), method->options.weight_sharing);
  assert_int_equal(json_bool(json_get(options, "shared_buffer"), true), method->options.shared_buffer);
  const json_value payload = json_get(recorded, "payload");
  assert_int_equal(integer_of(payload, "signature"), method->signature);
  assert_int_equal(integer_of(payload, "binary_size"), method->context_binary_size);
  char hex[65];
  sha256_hex(method->context_binary, method->context_binary_size, hex);
  assert_true(text_view_equal_cstr(json_string(json_get(payload, "binary_sha256")), hex));
}

static void assert_values_as_recorded(json_value recorded, const pte_method_view* method) {
  assert_int_equal(json_count(recorded), method->n_values);
  json_iterator iterator = json_iterate(recorded);
  json_value entry;
  for (size_t i = 0; json_next(&iterator, NULL, &entry); i++) {
    const pte_scalar* scalar = &method->values[i];
    const text_view kind = json_string(json_get(entry, "kind"));
    const json_value value = json_get(entry, "value");
    if (text_view_equal_cstr(kind, "Int")) {
      assert_int_equal(scalar->kind, PTE_INT);
      assert_int_equal(scalar->as.i, json_integer(value, -1));
    } else if (text_view_equal_cstr(kind, "Bool")) {
      assert_int_equal(scalar->kind, PTE_BOOL);
      assert_int_equal(scalar->as.b, json_bool(value, false));
    } else if (text_view_equal_cstr(kind, "Double")) {
      assert_int_equal(scalar->kind, PTE_DOUBLE);
      assert_true(scalar->as.d == json_number(value, -1));
    } else {
      assert_true(text_view_equal_cstr(kind, "String"));
      assert_int_equal(scalar->kind, PTE_STRING);
      assert_true(text_view_equal_cstr(json_string(value), scalar->as.s));
    }
  }
}

static void test_upstream_file(void** state) {
  (void)state;
  const char* path = shared_file("fixtures/pte/stories260k_hybrid_llama_qnn.pte");
  skip_unless_file(path);
  json_document* reference;
  assert_ok(json_parse_file(test_data("pte/stories260k.json"), 1 << 20, &reference));
  pte_file* file;
  assert_ok(pte_open(path, &file));
  const json_value methods = json_get(json_root(reference), "methods");
  assert_int_equal(json_count(methods), pte_method_count(file));
  assert_int_equal(pte_method_count(file), 29);
  json_iterator iterator = json_iterate(methods);
  json_value recorded;
  for (size_t i = 0; json_next(&iterator, NULL, &recorded); i++) {
    const pte_method_view* method = pte_method_at(file, i);
    assert_true(text_view_equal_cstr(json_string(json_get(recorded, "name")), method->name));
    assert_int_equal(method->is_delegate, json_type_of(json_get(recorded, "delegate_id")) == JSON_STRING);
    if (method->is_delegate) assert_delegate_as_recorded(recorded, method);
    assert_values_as_recorded(json_get(recorded, "values"), method);
  }
  pte_close(file);
  json_free(reference);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_getters),
      cmocka_unit_test(test_options_round_trip),
      cmocka_unit_test(test_layout),
      cmocka_unit_test(test_equal_programs_give_equal_bytes),
      cmocka_unit_test(test_bad_programs),
      cmocka_unit_test(test_upstream_file),
  };
  return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
