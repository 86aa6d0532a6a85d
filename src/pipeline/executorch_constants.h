/* The constant methods of an artifact: what its model says about itself. */
#ifndef GENAI_PIPELINE_EXECUTORCH_CONSTANTS_H
#define GENAI_PIPELINE_EXECUTORCH_CONSTANTS_H

#include "base/memory.h"
#include "base/text.h"
#include "genai/adapters.h"

typedef struct executorch_constants {
  size_t count;
  genai_constant_method* methods;
  arena memory;
} executorch_constants;

/* Reads them off the graphs, the first of which (decode) is authoritative. Graphs of another engine's types give none. */
genai_status* executorch_constants_gather(const genai_compile_graph* graphs, size_t count, executorch_constants* out) GENAI_MUST_USE;
void executorch_constants_deinit(executorch_constants* self);

/* What can be checked of the default compiler before any stage runs: backend, architecture, libraries. `engine` names the engine in errors. Appends the libraries' build id. */
genai_status* executorch_compiler_validate(const char* engine, const genai_context* context, const genai_chipset* soc,
                                           genai_backend backend, text* build_id) GENAI_MUST_USE;

#endif
