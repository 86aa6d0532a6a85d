/* The orchestrator: runs the stages in order, times them, and hands each output on. */
#ifndef GENAI_PIPELINE_H
#define GENAI_PIPELINE_H

#include "genai/registry.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct genai_pipeline genai_pipeline;

typedef struct genai_pipeline_options {
  unsigned skip_stages;           /* bit 1 << genai_stage_kind for each stage that does not run */
  const genai_registry* registry; /* NULL: the process default */
  /* Injected adapters per stage; NULL: none. A stage sees the entry of its kind alone. */
  const genai_adapters* adapters[GENAI_STAGE_COUNT];
} genai_pipeline_options;

/* Builds each stage that is not skipped from the registry. `options` may be NULL. The proxy is not kept. */
GENAI_API genai_status* genai_pipeline_from_proxy(const genai_engine_proxy* proxy, const genai_pipeline_options* options,
                                                  genai_pipeline** out) GENAI_MUST_USE;
/* From given stages, any of them NULL. Takes the stages on success. A stage in the wrong place is refused. */
GENAI_API genai_status* genai_pipeline_from_stages(genai_stage* const stages[GENAI_STAGE_COUNT], genai_backend backend,
                                                   genai_pipeline** out) GENAI_MUST_USE;
GENAI_API void genai_pipeline_destroy(genai_pipeline* self);
GENAI_API genai_stage* genai_pipeline_stage(const genai_pipeline* self, genai_stage_kind kind); /* NULL when absent; borrowed */

typedef enum genai_stage_state {
  GENAI_STAGE_SKIPPED,
  GENAI_STAGE_NOT_REACHED,
  GENAI_STAGE_COMPLETED,
  GENAI_STAGE_FAILED,
  GENAI_STAGE_REUSED /* its output, or that of a later stage, was found stored */
} genai_stage_state;

typedef struct genai_stage_timing {
  genai_stage_state state;
  double seconds;             /* monotonic clock; also for a failed stage */
  uint64_t peak_memory_bytes; /* of the process when the stage ended */
  char* reused_from;          /* GENAI_STAGE_REUSED: the path of what was stored */
} genai_stage_timing;

/* What happened, also after a failure. Zero-initialise; free with genai_pipeline_report_deinit. */
typedef struct genai_pipeline_report {
  genai_stage_timing stages[GENAI_STAGE_COUNT];
  double seconds;
  genai_string_list artifacts; /* what compilation wrote */
  char* etrecord;              /* of compilation; NULL: none was asked for */
  char* runtime_tokenizer;     /* what preparation wrote; NULL: nothing */
  genai_statistics statistics; /* of compilation */
} genai_pipeline_report;
GENAI_API void genai_pipeline_report_deinit(genai_pipeline_report* self);

/* Checks everything that can be checked before any stage runs (options, SoC, recipe, numbers, files): invoke does this first. */
GENAI_API genai_status* genai_pipeline_validate(const genai_pipeline* self, const genai_context* context) GENAI_MUST_USE;

/* The options of every pipeline, besides those of its strategies: `reuse` (true: a stage whose inputs, options and versions equal those of a
 * stored result is not run again; false: all stages run and store what they give) and `from` (a stage's name: earlier ones must be stored, this
 * one and later ones run), and `soc_file`. model_preparation always runs when it is not skipped: it only opens files. */
enum { GENAI_PIPELINE_OPTION_COUNT = 3 };
GENAI_API extern const genai_option_spec genai_pipeline_option_table[GENAI_PIPELINE_OPTION_COUNT];

/* Runs the stages in order and gives the inference output (zeroed when inference does not run). `output` and `report` may be NULL.
 * Validation failures are GENAI_ERROR_CONFIG_VALIDATION or GENAI_ERROR_ENGINE_NOT_AVAILABLE; a failing stage is GENAI_ERROR_STAGE. A
 * cancelled run has GENAI_ERROR_CANCELLED in its chain. One pipeline runs one context at a time; different pipelines may run at once. */
GENAI_API genai_status* genai_pipeline_invoke(genai_pipeline* self, const genai_context* context, genai_inference_output* output,
                                              genai_pipeline_report* report) GENAI_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
