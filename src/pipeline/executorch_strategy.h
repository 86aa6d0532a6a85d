/* What the executorch strategies share. */
#ifndef GENAI_PIPELINE_EXECUTORCH_STRATEGY_H
#define GENAI_PIPELINE_EXECUTORCH_STRATEGY_H

#include "pipeline/child.h"
#include "pipeline/executorch.h"
#include "runtime/runtime.h"

/* The error for an input that an earlier adapter call should have produced. */
genai_status* executorch_absent(const char* what, const char* producer) GENAI_MUST_USE;

/* Adds what a model of the default loader was read from, by content; another engine's model makes the fingerprint unknown. */
genai_status* executorch_add_checkpoint(const genai_object* object, genai_fingerprint* out) GENAI_MUST_USE;

/* The sampling that a run's options ask for. */
sampling_options executorch_sampling(const genai_options* options);

/* An engine that shares these strategies: the `user` of its registry rows; NULL there is the executorch engine. */
typedef struct engine_parts {
  const char* name;
  genai_status* (*create_compiler)(genai_compiler** out);
  genai_status* (*create_runner)(genai_device_runner** out);
  bool keeps_block_free;   /* prompts may fill the context but for one block of the widest graph */
  child_work probe_runner; /* whether what the runner needs is there, given the libraries' folder (NULL: searched); NULL: nothing more */
} engine_parts;
const engine_parts* engine_of(const void* user);

/* The context's prompts against the model that was prepared, for the host runner of `engine`: what that would refuse once the artifact is there. */
genai_status* executorch_check_prompts(const engine_parts* engine, const genai_context* context,
                                       const genai_model_preparation_output* prepared) GENAI_MUST_USE;

/* Runs `work` on the libraries' folder in a child process where that is possible and this process must stay without the vendor's libraries. */
genai_status* executorch_probe(const genai_context* context, child_work work, text* payload) GENAI_MUST_USE;

#endif
