/* Explaining files: shared by the two kinds that `genai inspect` knows. */
#ifndef GENAI_CLI_INSPECT_H
#define GENAI_CLI_INSPECT_H

#include "base/json.h"
#include "genai/status.h"

typedef struct inspection {
  const char* path;
  const char* qnn_dir;
  bool all;
  bool json; /* `writer` gets one object; else `out` gets lines */
  json_writer writer;
  text* out;
} inspection;

genai_status* inspect_program(inspection* self) GENAI_MUST_USE;
genai_status* inspect_checkpoint(inspection* self) GENAI_MUST_USE;

#endif
