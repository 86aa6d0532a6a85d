/* Graphs as DLC files, for backends that prepare them on the device: Qualcomm's libQnnIr.so writes down what it is given. */
#ifndef GENAI_QNN_DLC_H
#define GENAI_QNN_DLC_H

#include "base/log.h"
#include "base/pool.h"
#include "base/text.h"
#include "ir/ir.h"

typedef struct qnn_dlc_options {
  const char* directory; /* of the libraries; NULL: searched as qnn_library_open does */
  thread_pool* pool;
  const cancel_token* cancel;
} qnn_dlc_options;

/* Whether libQnnIr.so is there; appends its build id (may be NULL). GENAI_ERROR_ENGINE_NOT_AVAILABLE says where it was looked for. */
genai_status* qnn_dlc_probe(const char* directory, text* build_id) GENAI_MUST_USE;
/* Writes one float graph to `path`. A DLC holds one graph. */
genai_status* qnn_dlc_write(const ir_graph* graph, const qnn_dlc_options* options, const char* path) GENAI_MUST_USE;
/* A DLC lists outputs in the order in which operators give them: order[i] is the position of its output i in the graph's list. */
void qnn_dlc_output_order(const ir_graph* graph, uint32_t* order);

/* A library that genai does not drive, such as libQnnLpai.so: the folder that has it, NULL when none has, and where it was looked for. */
genai_status* qnn_find_library(const char* directory, const char* file, char** folder, text* searched) GENAI_MUST_USE;

#endif
