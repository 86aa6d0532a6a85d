/* The simulator's twin: the same graphs compiled without weight sharing, because the x86-64 simulator cannot load a shared binary. It is
 * compiled after the device's binary or, beside it, in a forked child (child.h). */
#ifndef GENAI_PIPELINE_EXECUTORCH_TWIN_H
#define GENAI_PIPELINE_EXECUTORCH_TWIN_H

#include "pipeline/child.h"
#include "qnn/qnn.h"

typedef struct twin_request {
  const char* qnn_dir;
  const ir_graph* const* graphs;
  size_t n_graphs;
  qnn_compile_options options; /* of the device's binary */
  const char* directory;       /* for an unnamed file that carries the binary from the child */
} twin_request;

typedef struct twin {
  child_process child;
  int descriptor; /* the unnamed file */
  twin_request request;
} twin;

/* What became of it. */
typedef struct twin_result {
  const void* data;
  size_t size;
  double build_seconds, finalize_seconds, serialize_seconds;
  uint64_t peak_memory_bytes; /* of the child; 0 when there was none */
  qnn_binary binary;          /* compiled in this process */
  void* map;                  /* compiled in the child */
} twin_result;

/* Whether a child can compile: not when this process has loaded the vendor's libraries already, whose threads a fork would not copy. */
bool twin_child_possible(void);
/* Starts the child. `out` must stay where it is until twin_finish or twin_cancel. */
genai_status* twin_start(const twin_request* request, twin* out) GENAI_MUST_USE;
genai_status* twin_finish(twin* self, twin_result* out) GENAI_MUST_USE;
void twin_cancel(twin* self); /* accepts a finished one */
/* Compiles in this process. */
genai_status* twin_compile(qnn_library* library, const twin_request* request, twin_result* out) GENAI_MUST_USE;
void twin_result_deinit(twin_result* self);

#endif
