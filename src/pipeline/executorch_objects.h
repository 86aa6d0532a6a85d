/* What the executorch engine's objects hold. */
#ifndef GENAI_PIPELINE_EXECUTORCH_OBJECTS_H
#define GENAI_PIPELINE_EXECUTORCH_OBJECTS_H

#include "base/pool.h"
#include "genai/adapters.h"
#include "model/model.h"
#include "quantize/quantize.h"
#include "tokenizer/tokenizer.h"

/* "executorch.model": a float decoder, ready to build graphs of. */
typedef struct executorch_model {
  genai_object* file; /* executorch_checkpoint_type: outlives the model */
  model* decoder;
  thread_pool* pool;
  genai_object* tokenizer; /* once load_tokenizer ran; NULL: none */
  char fingerprint[65];    /* SHA-256 of the checkpoint; "" until asked for */
} executorch_model;
extern const genai_object_type executorch_model_type;
extern const genai_object_type executorch_checkpoint_type; /* payload: checkpoint* */

/* "executorch.tokenizer" */
typedef struct executorch_tokenizer {
  genai_object* file; /* keeps the checkpoint mapped; NULL for a tokenizer from a file of its own */
  tokenizer* tokenizer;
} executorch_tokenizer;
extern const genai_object_type executorch_tokenizer_type;

/* "executorch.graph": a quantized graph. */
typedef struct executorch_graph {
  genai_object* model; /* executorch_model_type: the statics' reals live in its checkpoint */
  ir_graph* graph;
  recipe how;
} executorch_graph;
extern const genai_object_type executorch_graph_type;
genai_status* executorch_graph_create(genai_object* model, ir_graph* graph, const recipe* how, genai_object** out) GENAI_MUST_USE;

/* Lengths of a deployed graph out of its example inputs: AR from the tokens [1, AR], context from the mask [1, 1, AR, C]. */
genai_status* executorch_graph_lengths(const char* name, const genai_tensor_spec* inputs, size_t count, uint32_t* ar,
                                       uint32_t* context) GENAI_MUST_USE;

/* The SHA-256 of the model's checkpoint, computed on first use. */
genai_status* executorch_model_fingerprint(executorch_model* self, const char** hex) GENAI_MUST_USE;

/* Ids that end a turn: what the checkpoint and the tokenizer name, each once. */
enum { EXECUTORCH_MAX_STOP_IDS = 64 };
size_t executorch_stop_ids(const executorch_model* self, int32_t ids[EXECUTORCH_MAX_STOP_IDS]);

#endif
