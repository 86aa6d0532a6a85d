/* One context binary, with what the artifact says about itself, as a .pte. */
#ifndef GENAI_PIPELINE_EXECUTORCH_ARTIFACT_H
#define GENAI_PIPELINE_EXECUTORCH_ARTIFACT_H

#include "genai/adapters.h"
#include "pipeline/provenance.h"
#include "qnn/qnn.h"

typedef struct artifact_request {
  qnn_library* library;
  const genai_constant_method* constants;
  size_t n_constants;
  const provenance* record; /* library_build_id and simulator are filled here */
  const qnn_soc* soc;
  bool weight_sharing, float16, simulator;
} artifact_request;

/* Writes `path` whole or not at all. Ports and their order are read back from the binary, so that the file says what the binary is. */
genai_status* artifact_write(const char* path, const void* binary, size_t size, const artifact_request* request) GENAI_MUST_USE;

#endif
