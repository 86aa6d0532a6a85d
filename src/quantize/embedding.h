/* The embedding as the passes see it. Internal to the room. */
#ifndef GENAI_QUANTIZE_EMBEDDING_H
#define GENAI_QUANTIZE_EMBEDDING_H

#include "quantize/quantize.h"

/* Names that the split embedding gives its tensors. */
#define EMBEDDING_CODES "embedding.codes"
#define EMBEDDING_SCALES "embedding.scales"

/* The operator that looks tokens up; NULL when there is none. */
ir_op* embedding_lookup(const ir_graph* graph);
/* split_embedding with the scales of `reference`, a graph of the same model that is split already. */
genai_status* split_embedding_like(ir_graph* graph, const ir_graph* reference) GENAI_MUST_USE;

#endif
