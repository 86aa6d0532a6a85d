/* The suites of conformance.h over the adapters that examples/embed.c brings: what a reader copies keeps the rules too. */
#include "fixture.h"

#define main embed_main
#define text embed_text /* a type of src/base here */
#include "../../examples/embed.c"
#undef main
#undef text

static void the_examples_calibration_data_conforms(void** state) {
  (void)state;
  static const genai_calibration_data_vtable vtable = {generate_samples, NULL};
  genai_calibration_data calibration = {&vtable};
  conform_calibration_data(&calibration, NULL, NULL);
}

/* Hands the artifact to the program genai, which is built beside the tests. */
static void the_examples_runner_conforms(void** state) {
  (void)state;
  static const genai_device_runner_vtable vtable = {push, execute, pull, NULL};
  char program[PATH_SIZE];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 16);
  assert_true(length > 0);
  program[length] = 0;
  for (int levels = 0; levels < 2; levels++) *strrchr(program, '/') = 0;
  strcat(program, "/genai");
  skip_unless_file(program);
  skip_without("libQnnHtp.so");
  genai_compiler* compiler;
  lab_runner runner = {{&vtable}, program, ""};
  assert_ok(executorch_compiler_create(&compiler));
  compile_and_run(compiler, &runner.base, "examples", true);
  compiler->vtable->destroy(compiler);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_examples_calibration_data_conforms),
      cmocka_unit_test(the_examples_runner_conforms),
  };
  return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
