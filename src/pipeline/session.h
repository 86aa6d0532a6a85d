/* A decoder ready to run, with everything under it: executors over graphs on the host, or over a .pte on the simulator. */
#ifndef GENAI_PIPELINE_SESSION_H
#define GENAI_PIPELINE_SESSION_H

#include "cpu/cpu.h"
#include "pipeline/provenance.h"
#include "qnn/qnn.h"
#include "runtime/runtime.h"

typedef struct session session;

/* Opens an artifact: checks what its provenance says against the libraries, opens the context, and gives every port its role by the
 * contract's positions (tokens, mask[, sliding mask], positions, keys, values; logits, keys, values). Files of the upstream flow have no
 * provenance and open, too. A weight-shared binary, which the simulator cannot load, is refused with the name of the file that can. */
genai_status* session_open_pte(const char* path, const char* qnn_dir, session** out) GENAI_MUST_USE;

/* Over graphs on the host executor. `graphs` are borrowed. */
typedef struct session_host_options {
  cpu_mode mode;
  thread_pool* pool;
  uint32_t sliding_window;
  const cancel_token* cancel;
} session_host_options;
genai_status* session_open_graphs(const ir_graph* const* graphs, size_t count, const session_host_options* options,
                                  session** out) GENAI_MUST_USE;

void session_close(session* self); /* accepts NULL */
decoder* session_decoder(session* self);
const provenance* session_provenance(const session* self); /* NULL: none */
double session_load_seconds(const session* self);

#endif
