/* The check of graphs against what a SoC can compute; the rules themselves are declared in qnn/soc.h. */
#ifndef GENAI_QNN_RULES_H
#define GENAI_QNN_RULES_H

#include "ir/ir.h"
#include "qnn/soc.h"

/* GENAI_ERROR_CONFIG_VALIDATION that names the operator, what it needs, and what to do instead. */
genai_status* qnn_check_graph(const qnn_soc* soc, const ir_graph* graph) GENAI_MUST_USE;

#endif
