/* SmolLM2-135M-Instruct from its GGUF file on the host executor in float, against what transformers computes from the same dequantized
 * weights (recorded by tests/tools/make_model_smollm2.py). */
#include "recorded.h"

static void test_smollm2(void** state) {
  (void)state;
  skip_unless_file(test_environment("GENAI_MODEL_GGUF"));
  recorded_check("smollm2", test_environment("GENAI_MODEL_GGUF"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_smollm2)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
