/* What the benchmark programs do with a failure: say it and end. */
#ifndef GENAI_BENCH_FAIL_H
#define GENAI_BENCH_FAIL_H

#include <stdio.h>
#include <stdlib.h>

#include "genai/status.h"

static inline void fail(genai_status* status) {
  char message[2048];
  if (!status) return;
  genai_status_format(status, message, sizeof message);
  fprintf(stderr, "%s\n", message);
  exit(1);
}

#endif
