/* Files that ExecuTorch's own serializer wrote (tests/tools/make_pte_samples.py): layouts that pte_write does not produce, and programs that
 * are well-formed flatbuffers but break one rule each. */
#include "executorch/pte.h"
#include "support.h"

static void assert_qnn_method(const pte_file* file, const char* name, int64_t signature, const char* binary, const uint32_t outputs[2]) {
  const pte_method_view* method = pte_find_method(file, name);
  assert_non_null(method);
  assert_true(method->is_delegate);
  assert_string_equal(method->delegate_id, "QnnBackend");
  assert_int_equal(method->signature, signature);
  assert_int_equal(method->context_binary_size, strlen(binary));
  assert_memory_equal(method->context_binary, binary, strlen(binary));
  assert_int_equal(method->options.soc_model, 69);
  assert_int_equal(method->options.htp_arch, 79);
  assert_true(method->options.weight_sharing);
  assert_int_equal(method->n_inputs, 2);
  assert_int_equal(method->n_outputs, 2);
  assert_int_equal(method->inputs[0].dtype, IR_I32);
  assert_int_equal(method->inputs[1].dtype, IR_U16);
  assert_int_equal(method->inputs[1].dims[3], 16);
  assert_string_equal(method->inputs[1].name, "value 1");
  assert_int_equal(method->outputs[0].dtype, IR_U16);
  assert_int_equal(method->outputs[0].dims[2], 32);
  assert_int_equal(method->outputs[1].dtype, IR_U8);
  assert_memory_equal(method->delegate_outputs, outputs, 2 * sizeof *outputs);
}

static void check_two_binaries(const char* name) {
  pte_file* file;
  assert_ok(pte_open(test_data(name), &file));
  assert_int_equal(pte_method_count(file), 5);
  /* delegate arguments 1 0 2 3 and 0 1 3 2 of plans whose inputs are values 0 1 and outputs values 3 2 */
  assert_qnn_method(file, "prefill_forward", 11, "first binary", (const uint32_t[]){1, 0});
  assert_qnn_method(file, "kv_forward", 22, "second, longer binary", (const uint32_t[]){0, 1});
  assert_int_equal(pte_find_method(file, "prefill_forward")->delegate_inputs[0], 1);
  assert_int_equal(pte_find_method(file, "kv_forward")->delegate_inputs[0], 0);

  const pte_method_view* kernels = pte_find_method(file, "kernels");
  assert_false(kernels->is_delegate);
  assert_int_equal(kernels->n_inputs, 1);
  assert_null(kernels->inputs);
  assert_int_equal(kernels->n_values, 0);
  const pte_method_view* other = pte_find_method(file, "other_backend");
  assert_true(other->is_delegate);
  assert_string_equal(other->delegate_id, "XnnpackBackend");
  assert_null(other->inputs);
  assert_null(other->context_binary);

  const pte_method_view* mixed = pte_find_method(file, "get_mixed");
  assert_int_equal(mixed->n_values, 4);
  assert_int_equal(mixed->values[0].as.i, -7);
  assert_string_equal(mixed->values[1].as.s, "x");
  assert_true(mixed->values[2].as.d == 0.5);
  assert_true(mixed->values[3].as.b);
  pte_close(file);
}

static void test_segment_per_method(void** state) {
  (void)state;
  check_two_binaries("pte/segments.pte");
}

/* No extended header either: the whole file is flatbuffer. */
static void test_inlined_payloads(void** state) {
  (void)state;
  check_two_binaries("pte/inline.pte");
}

static void test_defects(void** state) {
  (void)state;
  static const struct {
    const char* name;
    genai_error_kind kind;
    const char* message;
  } cases[] = {
      {"bad_argument_count", GENAI_ERROR_BAD_FILE, "3 arguments"},
      {"bad_argument_negative", GENAI_ERROR_BAD_FILE, "argument value -1, but there are 4"},
      {"bad_argument_range", GENAI_ERROR_BAD_FILE, "argument value 4, but there are 4"},
      {"bad_argument_twice", GENAI_ERROR_BAD_FILE, "argument value 1 of its delegate call"},
      {"bad_delegate_index", GENAI_ERROR_BAD_FILE, "delegate 1, but there are 1"},
      {"bad_input_index", GENAI_ERROR_BAD_FILE, "input value 9, but there are 4"},
      {"bad_output_index", GENAI_ERROR_BAD_FILE, "output value -3, but there are 4"},
      {"bad_no_options", GENAI_ERROR_BAD_FILE, "qnn_compile_spec"},
      {"bad_options", GENAI_ERROR_BAD_FILE, "option block (32 bytes)"},
      {"bad_payload_short", GENAI_ERROR_BAD_FILE, "payload of 100 bytes"},
      {"bad_payload_magic", GENAI_ERROR_BAD_FILE, "0x21434c44"},
      {"bad_payload_size", GENAI_ERROR_BAD_FILE, "context binary of 6 bytes, expected the 10"},
      {"bad_shared_lists", GENAI_ERROR_BAD_FILE, "more elements than the file has bytes for"},
      {"bad_size", GENAI_ERROR_BAD_FILE, "-2 elements in dimension 1"},
      {"bad_size_overflow", GENAI_ERROR_BAD_FILE, "2147483647 elements in dimension 2"},
      {"unsupported_dim_order", GENAI_ERROR_UNSUPPORTED, "value 2 is not stored row by row"},
      {"unsupported_dynamic", GENAI_ERROR_UNSUPPORTED, "shape dynamism 1"},
      {"unsupported_gpu", GENAI_ERROR_UNSUPPORTED, "QNN backend 1"},
      {"unsupported_offset", GENAI_ERROR_UNSUPPORTED, "storage offset 4"},
      {"unsupported_online_prepare", GENAI_ERROR_UNSUPPORTED, "preparation on the device"},
      {"unsupported_rank", GENAI_ERROR_UNSUPPORTED, "rank 6"},
      {"unsupported_type", GENAI_ERROR_UNSUPPORTED, "scalar type 4"},
      {"unsupported_version", GENAI_ERROR_UNSUPPORTED, "schema version 1"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char name[64];
    snprintf(name, sizeof name, "pte/%s.pte", cases[i].name);
    pte_file* file;
    assert_fails(pte_open(test_data(name), &file), cases[i].kind, cases[i].message);
    assert_fails(pte_open(test_data(name), &file), cases[i].kind, name);
  }
}

/* A method without any list of arguments; found by the fuzzer (src/executorch/pte_fuzz.c). */
static void test_no_arguments(void** state) {
  (void)state;
  pte_file* file;
  assert_fails(pte_open(test_data("fuzz/pte_fuzz/no_arguments.pte"), &file), GENAI_ERROR_BAD_FILE, "no_arguments.pte");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_segment_per_method),
      cmocka_unit_test(test_inlined_payloads),
      cmocka_unit_test(test_defects),
      cmocka_unit_test(test_no_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
