/* The shared library through dlopen alone: a program that finds it at run time, calls it, lets it go, and takes it again. */
#include <dlfcn.h>
#include <stdbool.h>

#include "genai/genai.h"
#include "support.h"

/* ISO C has no conversion from an object's pointer to a function's; POSIX promises that this one works. */
#define function_of(library, name, variable)             \
  do {                                                   \
    void* address_ = dlsym((library), (name));           \
    if (!address_) fail_msg("%s is not exported", name); \
    memcpy(&(variable), &address_, sizeof address_);     \
  } while (0)

static void call_it(void* library) {
  const char* (*version)(void);
  genai_registry* (*registry)(void);
  bool (*has)(const genai_registry*, genai_stage_kind, const char*);
  genai_status* (*find_chipset)(const char*, genai_chipset*);
  genai_error_kind (*kind)(const genai_status*);
  void (*free_status)(genai_status*);
  function_of(library, "genai_version", version);
  function_of(library, "genai_registry_default", registry);
  function_of(library, "genai_registry_has", has);
  function_of(library, "genai_chipset_find", find_chipset);
  function_of(library, "genai_status_kind", kind);
  function_of(library, "genai_status_free", free_status);
  assert_string_equal(version(), GENAI_EXPECTED_VERSION);
  assert_true(has(registry(), GENAI_STAGE_COMPILATION, "executorch"));
  genai_chipset chip;
  assert_null(find_chipset("SM8650", &chip));
  assert_int_equal(chip.htp_arch, 75); /* v75: Qualcomm's table of Snapdragon 8 Gen 3 */
  genai_status* unknown = find_chipset("SM865O", &chip);
  assert_int_equal(kind(unknown), GENAI_ERROR_CONFIG_VALIDATION);
  free_status(unknown);
}

static void the_library_opens_answers_and_closes_twice(void** state) {
  (void)state;
  for (int round = 0; round < 2; round++) {
    void* library = dlopen(GENAI_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    call_it(library);
    assert_int_equal(dlclose(library), 0);
    assert_null(dlopen(GENAI_LIBRARY, RTLD_NOW | RTLD_NOLOAD)); /* really gone: nothing in it keeps it */
  }
}

/* dlsym looks through dependencies as well, so that dladdr has to say whose symbol was found. */
static void only_the_public_interface_can_be_found(void** state) {
  (void)state;
  static const char* const inner[] = {"status_create", "mem_alloc", "json_parse", "executorch_register", "qnn_library_open", "model_open"};
  void* library = dlopen(GENAI_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
    void* address = dlsym(library, inner[i]);
    Dl_info where;
    if (address && dladdr(address, &where) && strstr(where.dli_fname, "libgenai")) fail_msg("%s is exported", inner[i]);
  }
  dlclose(library);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_library_opens_answers_and_closes_twice),
      cmocka_unit_test(only_the_public_interface_can_be_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
