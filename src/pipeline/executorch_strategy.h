/* What the executorch strategies share. */
#ifndef GENAI_PIPELINE_EXECUTORCH_STRATEGY_H
#define GENAI_PIPELINE_EXECUTORCH_STRATEGY_H

#include "pipeline/executorch.h"
#include "runtime/runtime.h"

/* The error for an input that an earlier adapter call should have produced. */
genai_status* executorch_absent(const char* what, const char* producer) GENAI_MUST_USE;

/* The sampling that a run's options ask for. */
sampling_options executorch_sampling(const genai_options* options);

#endif
