/* The four stages: their names, the records that go in and out, strategies, and stage objects.
 *
 * A stage object only delegates to its strategy, the engine-specific recipe of that stage: it validates its input, calls its adapters in
 * order, and turns any failure into a stage error that keeps its cause.
 *
 * In every record a NULL pointer means "absent", which is not the same as empty. Inputs are borrowed for the call; outputs are owned by the
 * caller, zero-initialised before the call and freed by the record's `_deinit`. */
#ifndef GENAI_STAGE_H
#define GENAI_STAGE_H

#include "genai/adapters.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum genai_stage_kind {
  GENAI_STAGE_MODEL_PREPARATION,
  GENAI_STAGE_QUANTIZATION,
  GENAI_STAGE_COMPILATION,
  GENAI_STAGE_INFERENCE,
  GENAI_STAGE_COUNT
} genai_stage_kind; /* they run in this order */

GENAI_API const char* genai_stage_name(genai_stage_kind stage);       /* "model_preparation"; NULL out of range */
GENAI_API const char* genai_stage_class_name(genai_stage_kind stage); /* as log lines say it: "ModelPreparationStage" */
/* Unknown names: GENAI_ERROR_CONFIG_VALIDATION with the valid ones. */
GENAI_API genai_status* genai_stage_find(const char* name, genai_stage_kind* out) GENAI_MUST_USE;

/* ---- Records ---- */
typedef struct genai_model_preparation_input {
  const char* model;        /* required */
  const genai_chipset* soc; /* required */
  const genai_options* options;
} genai_model_preparation_input;

typedef struct genai_model_preparation_output {
  genai_object* model;
  genai_object* tokenizer; /* NULL: the model has none */
  genai_example_inputs* example_inputs;
  genai_sample_stream* calibration_data;
  char* runtime_tokenizer; /* path of a file */
  char* chat_template;     /* source text */
} genai_model_preparation_output;
GENAI_API void genai_model_preparation_output_deinit(genai_model_preparation_output* self);

typedef struct genai_quantization_input {
  genai_object* model;                        /* required */
  const genai_example_inputs* example_inputs; /* required; may be empty */
  genai_sample_stream* calibration_data;      /* required; may be empty */
  const genai_chipset* soc;                   /* required */
  const genai_backend* backend;               /* required */
  const char* recipe;
  genai_sample_stream* training_data;
  const genai_options* options;
  const void* stored; /* `to_store` of an earlier run with equal inputs, to be used in place of calibrating; NULL: none */
  size_t stored_size;
  genai_object* tokenizer; /* for training data; NULL: the model has none */
  const char* chat_template;
} genai_quantization_input;

typedef struct genai_quantization_output {
  genai_object* model;
  void* to_store; /* what a later run may use in place of calibrating (genai_alloc); NULL: nothing */
  size_t to_store_size;
  bool reused; /* `stored` was used */
} genai_quantization_output;
GENAI_API void genai_quantization_output_deinit(genai_quantization_output* self);

typedef struct genai_compilation_input {
  genai_object* quantized_model;              /* used when present, */
  genai_object* prepared_model;               /* else this one; one of the two is required */
  const genai_example_inputs* example_inputs; /* required; may be empty */
  const genai_chipset* soc;                   /* required */
  const genai_backend* backend;               /* required */
  const char* artifact_directory;
  const char* runtime_tokenizer; /* recorded in the artifact; NULL: none */
  const genai_options* options;  /* unfiltered: the strategy lets through what it knows */
} genai_compilation_input;

typedef struct genai_compilation_output {
  genai_string_list artifacts; /* a model may be split over several files */
  char* etrecord;
  genai_statistics statistics;
} genai_compilation_output;
GENAI_API void genai_compilation_output_deinit(genai_compilation_output* self);

typedef struct genai_inference_input {
  const genai_chipset* soc;     /* required */
  const char* const* artifacts; /* required, at least one */
  size_t n_artifacts;
  genai_object* tokenizer;
  const char* runtime_tokenizer;
  const char* chat_template;
  const char* artifact_directory; /* where pulled files go */
  const genai_options* options;
} genai_inference_input; /* prompts come with the context */

typedef struct genai_inference_output {
  genai_execute_result run; /* texts, metrics, evaluation, ETDump */
  genai_string_list files;  /* what was pulled; these are the results when `run` has no texts */
} genai_inference_output;
GENAI_API void genai_inference_output_deinit(genai_inference_output* self);

/* ---- Fingerprints ---- */
/* Everything that a stage's output depends on. A finished stage is reused when a later run gives the same one. Paths and times do not belong
 * here; what the files hold does. */
typedef struct genai_fingerprint genai_fingerprint;
GENAI_API genai_status* genai_fingerprint_add(genai_fingerprint* self, const char* name, const char* value) GENAI_MUST_USE; /* copied */
GENAI_API genai_status* genai_fingerprint_add_file(genai_fingerprint* self, const char* name,
                                                   const char* path) GENAI_MUST_USE; /* content */
/* The pairs of `options` that `specs` gives to `stage`, but for those that `except` (NULL-terminated; may be NULL) names. */
GENAI_API genai_status* genai_fingerprint_add_options(genai_fingerprint* self, const genai_options* options, const genai_option_spec* specs,
                                                      size_t count, unsigned stage, const char* const* except) GENAI_MUST_USE;
/* The output depends on something that cannot be told, such as a caller's own adapter: the stage and those after it always run. */
GENAI_API void genai_fingerprint_set_unknown(genai_fingerprint* self, const char* why); /* a literal */

typedef struct genai_fingerprint_request {
  const genai_chipset* soc;
  genai_backend backend;
  const genai_model_preparation_output* prepared; /* what model_preparation gave in this run */
} genai_fingerprint_request;

/* ---- Strategies ---- */
typedef struct genai_strategy genai_strategy;
typedef struct genai_strategy_vtable {
  genai_stage_kind stage;
  const char* engine;
  const genai_option_spec* options; /* every option the engine takes in this stage; others are refused before any stage runs */
  size_t n_options;
  /* Everything that can be checked before the first stage runs. May be NULL. */
  genai_status* (*validate)(genai_strategy* self, const genai_context* context, const genai_chipset* soc, genai_backend backend);
  /* Exactly the one of the four that belongs to `stage` is set. */
  genai_status* (*prepare)(genai_strategy* self, const genai_context* context, const genai_model_preparation_input* input,
                           genai_model_preparation_output* output);
  genai_status* (*quantize)(genai_strategy* self, const genai_context* context, const genai_quantization_input* input,
                            genai_quantization_output* output);
  genai_status* (*compile)(genai_strategy* self, const genai_context* context, const genai_compilation_input* input,
                           genai_compilation_output* output);
  genai_status* (*infer)(genai_strategy* self, const genai_context* context, const genai_inference_input* input,
                         genai_inference_output* output);
  void (*destroy)(genai_strategy* self); /* may be NULL */
  /* Adds what the output of this stage depends on besides what went into the stages before it. Called after `validate` and after
   * model_preparation ran. May be NULL: the stage and those after it always run. */
  genai_status* (*fingerprint)(genai_strategy* self, const genai_context* context, const genai_fingerprint_request* request,
                               genai_fingerprint* out);
  /* What can be checked once model_preparation ran and before what takes long, such as prompts against the context length. May be NULL. */
  genai_status* (*check_prepared)(genai_strategy* self, const genai_context* context, const genai_fingerprint_request* request);
} genai_strategy_vtable;
struct genai_strategy {
  const genai_strategy_vtable* vtable;
};

/* ---- Stages ---- */
typedef struct genai_stage genai_stage;
/* Takes the strategy on success (destroyed with the stage). A strategy of another stage is refused. */
GENAI_API genai_status* genai_stage_create(genai_stage_kind kind, genai_strategy* strategy, genai_stage** out) GENAI_MUST_USE;
GENAI_API void genai_stage_destroy(genai_stage* self);
GENAI_API genai_stage_kind genai_stage_kind_of(const genai_stage* self);
GENAI_API const char* genai_stage_engine(const genai_stage* self);
GENAI_API genai_strategy* genai_stage_strategy(const genai_stage* self); /* borrowed */

/* invoke(context, input) -> output. Failures are stage errors (GENAI_ERROR_STAGE) and leave `output` zeroed. */
GENAI_API genai_status* genai_model_preparation_invoke(genai_stage* self, const genai_context* context,
                                                       const genai_model_preparation_input* input,
                                                       genai_model_preparation_output* output) GENAI_MUST_USE;
GENAI_API genai_status* genai_quantization_invoke(genai_stage* self, const genai_context* context, const genai_quantization_input* input,
                                                  genai_quantization_output* output) GENAI_MUST_USE;
GENAI_API genai_status* genai_compilation_invoke(genai_stage* self, const genai_context* context, const genai_compilation_input* input,
                                                 genai_compilation_output* output) GENAI_MUST_USE;
GENAI_API genai_status* genai_inference_invoke(genai_stage* self, const genai_context* context, const genai_inference_input* input,
                                               genai_inference_output* output) GENAI_MUST_USE;

#ifdef __cplusplus
}
#endif
#endif
