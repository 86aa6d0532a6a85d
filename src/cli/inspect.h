/* Explaining files: shared by the kinds that `genai inspect` knows. */
#ifndef GENAI_CLI_INSPECT_H
#define GENAI_CLI_INSPECT_H

#include "base/json.h"
#include "genai/status.h"
#include "qnn/qnn.h"

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
genai_status* inspect_bundle(inspection* self, const char* config) GENAI_MUST_USE;

/* What wrote a context binary, and what for: the end of a line, and members of an open object. */
genai_status* inspect_print_origin(text* out, const qnn_binary_info* binary) GENAI_MUST_USE;
void inspect_write_origin(json_writer* writer, const qnn_binary_info* binary);
/* The tensors of a graph in a context binary. `direction` is "in" or "out"; a long list is cut unless `all`. */
genai_status* inspect_print_tensors(text* out, const char* direction, const qnn_tensor_info* tensors, uint32_t count,
                                    bool all) GENAI_MUST_USE;
void inspect_write_tensors(json_writer* writer, const char* key, const qnn_tensor_info* tensors, uint32_t count);
/* One line per member; objects are flattened into dotted names. */
genai_status* inspect_print_members(text* out, const char* prefix, json_value object) GENAI_MUST_USE;

#endif
