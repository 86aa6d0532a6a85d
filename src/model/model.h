/* A decoder model: hyper-parameters read from a checkpoint through its family's row, and the builder that turns both into a graph. */
#ifndef GENAI_MODEL_MODEL_H
#define GENAI_MODEL_MODEL_H

#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "ir/ir.h"

typedef struct model model; /* hyper-parameters and family; see model_internal.h for the fields */

/* Reads hyper-parameters and checks that every tensor the family needs exists with the right shape. The checkpoint must outlive the model. */
genai_status* model_open(const checkpoint* file, model** out) GENAI_MUST_USE;
void model_close(model* self); /* accepts NULL */

typedef struct model_info {
  const char* family; /* "llama" ... */
  const char* name;   /* from metadata, or the path's last part */
  uint32_t layers, hidden, heads, kv_heads, head_dim, feed_forward, vocab;
  uint32_t trained_context; /* 0 when unknown */
  uint64_t parameters;
  uint32_t sliding_window; /* 0: none */
  bool tied_embeddings;
} model_info;
void model_get_info(const model* self, model_info* out);

/* Appends what hyper-parameters do not say: rotary rule, windows, caps; one fact a line, the last without a line end. */
genai_status* model_describe(const model* self, text* out) GENAI_MUST_USE;

/* End-of-text ids that config.json, generation_config.json or GGUF metadata name (the tokenizer knows more: unite the two). */
size_t model_stop_ids(const model* self, int32_t* ids, size_t capacity);

#define MODEL_HADAMARD_WEIGHT "hadamard.weight" /* the static that rotate_qk multiplies by */

typedef struct model_graph_options {
  const char* name;        /* graph and method name: "kv_forward", "prefill_forward" */
  uint32_t ar_length;      /* tokens per call, >= 1 */
  uint32_t context_length; /* C; equal to ar_length: no caches in, plain causal attention (calibration, reference) */
  uint32_t positions;      /* rows of the rotary tables: position ids are below it; 0: context_length */
  bool last_logits_only;   /* logits of the last row alone, [1, 1, V] */
  bool rotate_qk;          /* multiply post-RoPE Q and K by a normalised Hadamard matrix (head_dim a power of two) */
} model_graph_options;

/* Builds the float graph: boundary tensors in the order and with the roles of ir.h. Tensor names are equal across options. */
genai_status* model_build_graph(const model* self, const model_graph_options* options, ir_graph** out) GENAI_MUST_USE;

/* The families genai knows. */
size_t model_family_count(void);
const char* model_family_name(size_t index);
const char* model_family_note(size_t index); /* models it covers, for people */
/* The names it goes by in files (model_type in config.json, general.architecture in GGUF); NULL after the last. */
const char* model_family_type(size_t index, size_t nth);
/* Appends what sets the family apart, in words. */
genai_status* model_family_describe(size_t index, text* out) GENAI_MUST_USE;

#endif
