/* The suites of conformance.h over the qairt engine's compiler and runner. Skips without Qualcomm's libraries. */
#include "fixture.h"
#include "pipeline/qairt.h"

/* Genie copies its keys with memcpy between ranges that overlap, which AddressSanitizer would end the test for. */
__attribute__((visibility("default"))) const char* __asan_default_options(void);
const char* __asan_default_options(void) {
  return "replace_intrin=0";
}

static void qairts_compiler_and_runner_conform(void** state) {
  (void)state;
  genai_compiler* compiler;
  genai_device_runner* runner;
  skip_without("libGenie.so");
  assert_ok(qairt_compiler_create(&compiler));
  assert_ok(qairt_host_runner_create(&runner));
  compile_and_run(compiler, runner, "qairt", true);
  compiler->vtable->destroy(compiler);
  runner->vtable->destroy(runner);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(qairts_compiler_and_runner_conform),
  };
  return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
