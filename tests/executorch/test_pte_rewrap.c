/* Takes the context binary and the methods out of the upstream file and writes them with pte_write: what is read from the new file is what
 * was read from the old one. With GENAI_REWRAP_INPUT and GENAI_REWRAP_OUTPUT set it does this for any file and keeps the result, which
 * tests/interop/test_pte.py then executes with stock ExecuTorch. */
#include "executorch/pte.h"
#include "scratch.h"

enum { MAX_METHODS = 256 };

typedef struct rewrapped {
  pte_method methods[MAX_METHODS];
  pte_constant constants[MAX_METHODS];
  pte_program program;
} rewrapped;

static void describe(const pte_file* file, rewrapped* out) {
  *out = (rewrapped){.program = {.methods = out->methods, .constants = out->constants}};
  assert_in_range(pte_method_count(file), 1, MAX_METHODS);
  for (size_t i = 0; i < pte_method_count(file); i++) {
    const pte_method_view* view = pte_method_at(file, i);
    if (!view->is_delegate) {
      out->constants[out->program.n_constants++] = (pte_constant){view->name, view->n_values, view->values};
      continue;
    }
    assert_non_null(view->context_binary);
    /* pte_write stores one binary for all methods. */
    if (out->program.context_binary) assert_ptr_equal(out->program.context_binary, view->context_binary);
    out->program.context_binary = view->context_binary;
    out->program.context_binary_size = view->context_binary_size;
    out->program.options = view->options;
    out->methods[out->program.n_methods++] = (pte_method){.name = view->name,
                                                          .n_inputs = view->n_inputs,
                                                          .n_outputs = view->n_outputs,
                                                          .inputs = view->inputs,
                                                          .outputs = view->outputs,
                                                          .binary_output_order = view->delegate_outputs,
                                                          .binary_input_order = view->delegate_inputs};
  }
}

static void assert_views_equal(const pte_method_view* a, const pte_method_view* b) {
  assert_int_equal(a->is_delegate, b->is_delegate);
  assert_int_equal(a->n_inputs, b->n_inputs);
  assert_int_equal(a->n_outputs, b->n_outputs);
  assert_int_equal(a->n_values, b->n_values);
  if (!a->is_delegate) return;
  assert_memory_equal(a->delegate_inputs, b->delegate_inputs, a->n_inputs * sizeof *a->delegate_inputs);
  assert_memory_equal(a->delegate_outputs, b->delegate_outputs, a->n_outputs * sizeof *a->delegate_outputs);
  for (uint32_t i = 0; i < a->n_inputs; i++) assert_memory_equal(a->inputs[i].dims, b->inputs[i].dims, sizeof a->inputs[i].dims);
  for (uint32_t i = 0; i < a->n_outputs; i++) assert_memory_equal(a->outputs[i].dims, b->outputs[i].dims, sizeof a->outputs[i].dims);
  assert_int_equal(a->context_binary_size, b->context_binary_size);
  assert_memory_equal(a->context_binary, b->context_binary, a->context_binary_size);
  assert_int_equal(a->options.soc_model, b->options.soc_model);
  assert_int_equal(a->options.weight_sharing, b->options.weight_sharing);
}

static void test_rewrap(void** state) {
  (void)state;
  const char* input = test_environment("GENAI_REWRAP_INPUT");
  const char* kept = test_environment("GENAI_REWRAP_OUTPUT");
  if (!input) input = shared_file("fixtures/pte/stories260k_hybrid_llama_qnn.pte");
  skip_unless_file(input);
  const char* output = kept ? kept : scratch_path("rewrapped.pte");
  pte_file *before, *after;
  assert_ok(pte_open(input, &before));
  static rewrapped content;
  describe(before, &content);
  assert_ok(pte_write(output, &content.program));
  assert_ok(pte_open(output, &after));
  assert_int_equal(pte_method_count(before), pte_method_count(after));
  for (size_t i = 0; i < pte_method_count(before); i++) {
    const pte_method_view* view = pte_method_at(before, i);
    const pte_method_view* again = pte_find_method(after, view->name);
    assert_non_null(again);
    assert_views_equal(view, again);
  }
  pte_close(after);
  pte_close(before);
  if (!kept) unlink(output);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rewrap)};
  return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
