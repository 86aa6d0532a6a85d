/* ETRecord: what ExecuTorch's inspector takes beside a profile, to say which operator of the model an event belongs to. Format and limits:
 * docs/formats/etrecord.md. */
#ifndef GENAI_EXECUTORCH_ETRECORD_H
#define GENAI_EXECUTORCH_ETRECORD_H

#include "ir/ir.h"

/* Writes the record of a program whose methods are these graphs, whole or not at all. Operators have the same name in each of them; debug
 * handles are the positions of names in the first graph, from 1. */
genai_status* etrecord_write(const char* path, const ir_graph* const* graphs, size_t count) GENAI_MUST_USE;

#endif
