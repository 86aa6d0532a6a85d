/* A folder of its own for each test program. */
#ifndef GENAI_TESTS_EXECUTORCH_SCRATCH_H
#define GENAI_TESTS_EXECUTORCH_SCRATCH_H

#include "support.h"

/* A new empty folder per test program, below the current one. */
static char scratch_folder[64];
static int make_scratch(void** state) {
  (void)state;
  snprintf(scratch_folder, sizeof scratch_folder, "genai-pte-XXXXXX");
  return mkdtemp(scratch_folder) ? 0 : -1;
}
static int remove_scratch(void** state) {
  (void)state;
  return rmdir(scratch_folder); /* fails, and so does the test, when a temporary file was left behind */
}
static const char* scratch_path(const char* name) {
  return test_path(scratch_folder, name);
}

#endif
