/* What every C test needs: cmocka with its prerequisites, paths of test data, and assertions on statuses. */
#ifndef GENAI_TESTS_SUPPORT_H
#define GENAI_TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* After its prerequisites; the comment keeps the formatter from sorting it before them. */
#include <cmocka.h>

#include "genai/status.h"

/* Fails the test with the status's whole text when it is not OK. */
#define assert_ok(expression)                            \
  do {                                                   \
    genai_status* status_ = (expression);                \
    if (status_) {                                       \
      char text_[2048];                                  \
      genai_status_format(status_, text_, sizeof text_); \
      genai_status_free(status_);                        \
      fail_msg("%s: %s", #expression, text_);            \
    }                                                    \
  } while (0)

/* Expects a failure of this kind whose whole text contains `needle` ("" for any). */
#define assert_fails(expression, kind, needle)                                                          \
  do {                                                                                                  \
    genai_status* status_ = (expression);                                                               \
    if (!status_) fail_msg("%s: expected a failure", #expression);                                      \
    char text_[2048];                                                                                   \
    genai_status_format(status_, text_, sizeof text_);                                                  \
    genai_error_kind kind_ = genai_status_kind(status_);                                                \
    genai_status_free(status_);                                                                         \
    if (kind_ != (kind)) fail_msg("%s: kind %s: %s", #expression, genai_error_kind_name(kind_), text_); \
    if (!strstr(text_, (needle))) fail_msg("%s: \"%s\" not in: %s", #expression, (needle), text_);      \
  } while (0)

/* tests/data/NAME, or ../shared/NAME; the result lives until the next few calls. */
static inline const char* test_path(const char* base, const char* name) {
  static char paths[8][1024];
  static int next;
  char* path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", base, name);
  return path;
}
static inline const char* test_data(const char* name) {
  return test_path(GENAI_TEST_DATA, name);
}
static inline const char* shared_file(const char* name) {
  return test_path(GENAI_SHARED, name);
}

/* The file that an environment variable names (the Makefile sets GENAI_MODEL_GGUF, GENAI_QNN_DIR ...), or NULL. */
static inline const char* test_environment(const char* variable) {
  const char* value = getenv(variable);
  return value && *value ? value : NULL;
}

/* Skips the running test, saying why, when `path` is not there. */
#define skip_unless_file(path)                                             \
  do {                                                                     \
    const char* path_ = (path);                                            \
    if (!path_ || access(path_, R_OK) != 0) {                              \
      print_message("skipped: %s is absent\n", path_ ? path_ : "(unset)"); \
      skip();                                                              \
    }                                                                      \
  } while (0)

#endif
