/* Backends besides the HTP: graphs for the GPU, which a device prepares, and what is missing for LPAI. */
#ifndef GENAI_PIPELINE_EXECUTORCH_GPU_H
#define GENAI_PIPELINE_EXECUTORCH_GPU_H

#include "pipeline/executorch_artifact.h"
#include "qnn/dlc.h"

#define GPU_ARTIFACT_SUFFIX ".gpu.pte"

/* Before anything runs: NULL when `engine` can compile for this backend here, else what exactly is missing and what to do. */
genai_status* executorch_backend_validate(const char* engine, const genai_context* context, const genai_chipset* soc, genai_backend backend,
                                          text* build_id) GENAI_MUST_USE;
/* One float graph as a .pte for the GPU: a DLC that the delegate composes and finalizes on the device. Written whole or not at all. The
 * request's library is not used. */
genai_status* gpu_artifact_write(const char* path, const ir_graph* graph, const artifact_request* request, const qnn_dlc_options* options,
                                 genai_string_list* files) GENAI_MUST_USE;

#endif
