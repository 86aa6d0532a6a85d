/* Quantization: recipes, calibration, and giving every tensor of a graph its encoding. */
#ifndef GENAI_QUANTIZE_QUANTIZE_H
#define GENAI_QUANTIZE_QUANTIZE_H

#include "base/log.h"
#include "base/pool.h"
#include "ir/ir.h"
#include "model/model.h"

/* What to quantize and how. Shipped recipes: 16a8w (default), 16a4w, 16a4w_block. */
typedef struct recipe {
  char name[64];
  uint32_t activation_bits; /* 16 */
  uint32_t weight_bits;     /* 8 or 4, symmetric per output channel */
  uint32_t weight_block;    /* 0: per channel; 16, 32, 64, 128: LPBQ blocks along the input */
  uint32_t head_bits;       /* the logits layer: 8 (or 4) */
  uint32_t kv_bits;         /* 8 or 16 */
  uint32_t embedding_bits;  /* 16: one scale for the table; 8: a scale for each token's row */
  bool rotate_residual;     /* rotate the residual stream, folded into the weights (rotate.c) */
  bool rotate_qk;           /* Hadamard rotation of post-RoPE Q and K */
  float range_margin;       /* calibrated 16-bit ranges are widened by this factor (1.1 = a tenth) against text not seen */
  bool split_neurons;       /* outlier neurons of feed-forward blocks get encodings of their own (neurons.c) */
  uint32_t feedback;        /* directions along which rounding a weight passes its errors on (ir/feedback.h); 0: to the nearest */
  bool weight_search;       /* per-channel scale by least squared error instead of the largest magnitude */
} recipe;

size_t recipe_count(void);
const recipe* recipe_at(size_t index);
const recipe* recipe_find(const char* name); /* a shipped one; NULL: none has that name */
/* A shipped recipe's name, or the path of a JSON file (docs/recipes.md). Unknown names: GENAI_ERROR_CONFIG_VALIDATION with the nearest. */
genai_status* recipe_load(const char* name_or_path, recipe* out) GENAI_MUST_USE;
/* Turns off what this model's shape does not allow (a Hadamard rotation needs a head size that is a power of two), with a warning. */
void recipe_adapt(recipe* self, const model* source);
genai_status* recipe_write_json(const recipe* self, text* out) GENAI_MUST_USE;

/* Rotates the residual stream of a float graph by an orthogonal matrix of ir/rotation.h, so that single huge channels spread over all and the
 * function stays the same. Where projections write the stream, they, the embedding and what reads the stream take their part of the rotation,
 * and norms' gammas go into the projections behind them. Where norms stand on both sides of the stream, projections of their own turn it behind
 * the norms that write and back behind those that read (rotate.c). quantize_graph does it when the recipe says so. Other streams (LayerNorm,
 * norms behind the blocks alone) cannot: then nothing changes, `*done` is false and a warning names the operator in the way. */
genai_status* rotate_residual(ir_graph* graph, bool* done) GENAI_MUST_USE;
/* Replaces the embedding's lookup by codes times a scale for each token: Gather of a table whose rows are scaled to [-1, 1] (for 8 bits), Gather
 * of the rows' scales, Multiply. The values stay the same in float. quantize_graph does it when the recipe asks for an 8-bit embedding. */
genai_status* split_embedding(ir_graph* graph, thread_pool* pool) GENAI_MUST_USE;

/* What calibration saw: ranges by tensor name, second moments of the inputs of linear layers, outlier neurons. */
typedef struct calibration calibration;
/* What a float graph must go through before calibration or quantization, as the recipe says: the two passes above, and outlier neurons split
 * off (of which `seen` knows; NULL: none). */
genai_status* recipe_prepare_graph(ir_graph* graph, const recipe* how, const calibration* seen, thread_pool* pool) GENAI_MUST_USE;

typedef struct calibration_options {
  uint32_t max_tokens_per_pass; /* AR length of the calibration graph; 0 = 512 */
  const recipe* how;            /* the recipe that the ranges are for: it says which rotations the graph has */
  thread_pool* pool;
  const progress_sink* progress;
  const cancel_token* cancel;
} calibration_options;
/* Runs the float host executor over each sequence of token ids (full autoregressive attention, never deployed) and observes every tensor. */
genai_status* calibrate(const model* source, const int32_t* const* sequences, const size_t* lengths, size_t n_sequences,
                        const calibration_options* options, calibration** out) GENAI_MUST_USE;
void calibration_destroy(calibration* self); /* accepts NULL */
/* Smallest and largest value seen for a tensor; false when it was not seen. */
bool calibration_range(const calibration* self, const char* tensor, float* low, float* high);
uint64_t calibration_tokens(const calibration* self);
double calibration_seconds(const calibration* self);
/* Everything that quantize_graph takes from a calibration, as bytes for this machine: what comes back gives the same encodings to the bit. Appends
 * to `out`. */
genai_status* calibration_write(const calibration* self, text* out) GENAI_MUST_USE;
/* Bytes that calibration_write did not write are GENAI_ERROR_BAD_FILE. */
genai_status* calibration_read(const void* data, size_t size, calibration** out) GENAI_MUST_USE;

/* Gives every tensor of `graph` an encoding and a storage type. Deterministic; equal values in graphs of different AR length get equal
 * encodings; KV inputs equal KV outputs. */
genai_status* quantize_graph(ir_graph* graph, const calibration* ranges, const recipe* how, thread_pool* pool) GENAI_MUST_USE;
/* The same encodings as `reference`, a quantized graph of the same model and recipe with another AR length, by tensor name: cheap, and
 * equal by construction. Both graphs have cache inputs or neither has. */
genai_status* quantize_graph_like(ir_graph* graph, const ir_graph* reference) GENAI_MUST_USE;

#endif
