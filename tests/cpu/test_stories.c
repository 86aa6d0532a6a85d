/* stories260K in llama2.c's format on the host executor in float, against transformers with the same weights (recorded by
 * tests/tools/make_model_stories.py). */
#include "recorded.h"

static void test_stories(void** state) {
  (void)state;
  skip_unless_file(shared_file("fixtures/checkpoints/stories260K.bin"));
  recorded_check("stories260k", shared_file("fixtures/checkpoints/stories260K.bin"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_stories)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
