/* A graph as the program of an ETRecord. */
#ifndef GENAI_EXECUTORCH_ETRECORD_PROGRAM_H
#define GENAI_EXECUTORCH_ETRECORD_PROGRAM_H

#include "base/text.h"
#include "ir/ir.h"

/* Appends the graph as torch.export's serialized program (schema 5), one ATen operator for each of ours, with its debug handle. It says what is
 * computed, in float and without weights, which are inputs of it. */
genai_status* etrecord_program(const ir_graph* graph, text* out) GENAI_MUST_USE;

#endif
