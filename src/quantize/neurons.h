/* Neurons of gated feed-forward blocks that grow far beyond all others of their layer, and the pass that gives them encodings of their own.
 * Internal to the room.
 *
 * A few such neurons make the "massive activations" that attention sinks need (Sun et al. 2024): in SmolLM2-135M one product of layer 11
 * reaches 3095 on a sequence's first token where the other 1535 stay within 16, and one encoding for all leaves these 8 bits. */
#ifndef GENAI_QUANTIZE_NEURONS_H
#define GENAI_QUANTIZE_NEURONS_H

#include "base/pool.h"
#include "ir/ir.h"

enum { NEURONS_PER_LAYER = 4 };

typedef struct outlier_neuron {
  const char* product; /* name of the tensor activation(gate) * up */
  uint32_t channel;
} outlier_neuron;

/* Whether `tensor` is the product of a gated feed-forward block that the pass can split. */
bool neurons_site(const ir_graph* graph, const ir_tensor* tensor);
/* The channels to split off, given each channel's largest magnitude: the fewest, at most NEURONS_PER_LAYER, that leave the others a range
 * at most an eighth as large (3 bits more); none when there are no such. Returns how many; ascending. */
uint32_t neurons_choose(const float* largest, uint32_t channels, uint32_t chosen[NEURONS_PER_LAYER]);

/* Splits each neuron off its block: y = down(a * up) becomes
 *
 *   y = down'(a * up') + down_c(a_c * up_c)
 *
 * where up' and down' lack the neurons (their weights are zero there) and up_c, down_c are small projections of them alone. The function stays
 * the same. `list` is grouped by product; names that the graph does not have are left out. */
genai_status* neurons_split(ir_graph* graph, const outlier_neuron* list, size_t count, thread_pool* pool) GENAI_MUST_USE;
/* The same neurons as in `reference`, a graph that is split already. */
genai_status* neurons_split_like(ir_graph* graph, const ir_graph* reference) GENAI_MUST_USE;

#endif
