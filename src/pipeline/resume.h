/* What of a run is stored already: keys of the stages, and what an earlier run kept under them. */
#ifndef GENAI_PIPELINE_RESUME_H
#define GENAI_PIPELINE_RESUME_H

#include "genai/pipeline.h"

typedef struct resume {
  const char* directory;
  bool reads; /* stored results may be used */
  bool has_from;
  genai_stage_kind from;            /* earlier stages must be stored, this one and later ones run */
  const char* unknown;              /* why keys are missing; NULL: none is */
  char keys[GENAI_STAGE_COUNT][65]; /* of quantization and compilation; "": not known */
  char* records[GENAI_STAGE_COUNT]; /* paths of what was found; NULL: nothing */
  void* calibration;                /* found for quantization */
  size_t calibration_size;
  genai_compilation_output compiled; /* found for compilation; moved out by whoever uses it */
} resume;

/* Reads the options; contradictions are GENAI_ERROR_CONFIG_VALIDATION. */
genai_status* resume_init(const genai_context* context, resume* out) GENAI_MUST_USE;
void resume_deinit(resume* self);

/* Works out the keys and looks for what is stored, once model_preparation has run. `stages` are the pipeline's. */
genai_status* resume_look(resume* self, genai_stage* const stages[GENAI_STAGE_COUNT], const genai_context* context,
                          const genai_fingerprint_request* request) GENAI_MUST_USE;

/* Keeps what a stage gave, when its key is known. What cannot be written is a warning; only a lack of memory is an error. */
genai_status* resume_keep_quantization(const resume* self, const genai_quantization_output* output) GENAI_MUST_USE;
genai_status* resume_keep_compilation(const resume* self, const genai_compilation_output* output) GENAI_MUST_USE;

#endif
