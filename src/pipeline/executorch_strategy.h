/* What the executorch strategies share. */
#ifndef GENAI_PIPELINE_EXECUTORCH_STRATEGY_H
#define GENAI_PIPELINE_EXECUTORCH_STRATEGY_H

#include "pipeline/executorch.h"
#include "runtime/runtime.h"

/* The error for an input that an earlier adapter call should have produced. */
genai_status* executorch_absent(const char* what, const char* producer) GENAI_MUST_USE;

/* Adds what a model of the default loader was read from, by content; another engine's model makes the fingerprint unknown. */
genai_status* executorch_add_checkpoint(const genai_object* object, genai_fingerprint* out) GENAI_MUST_USE;

/* The sampling that a run's options ask for. */
sampling_options executorch_sampling(const genai_options* options);

#endif
