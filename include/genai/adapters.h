/* Adapters: each wraps one external thing (checkpoint reader, quantizer, vendor compiler, device) behind an interface, so that it can be
 * replaced. Implement one by putting its struct first in your own and pointing `vtable` at your functions.
 *
 * A strategy owns the adapters it made and borrows the ones that were injected: those must outlive the pipeline and are never destroyed by
 * it. Functions set their outputs on success only, and never keep pointers they were given beyond the call unless said so. */
#ifndef GENAI_ADAPTERS_H
#define GENAI_ADAPTERS_H

#include "genai/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Values between stages ---- */

/* A reference-counted value that one adapter makes and another takes (a model, a tokenizer, a quantized graph). What is inside is known to
 * those who share its type. Counting is thread safe. */
typedef struct genai_object genai_object;
typedef struct genai_object_type {
  const char* name; /* such as "executorch.model"; named in errors */
  void (*destroy)(void* payload);
} genai_object_type;
/* Takes the payload on success. `type` must outlive the object. */
GENAI_API genai_status* genai_object_create(const genai_object_type* type, void* payload, genai_object** out) GENAI_MUST_USE;
GENAI_API genai_object* genai_object_retain(genai_object* self);                               /* accepts and returns NULL */
GENAI_API void genai_object_release(genai_object* self);                                       /* accepts NULL */
GENAI_API const char* genai_object_type_name(const genai_object* self);                        /* "" for NULL */
GENAI_API void* genai_object_payload(const genai_object* self, const genai_object_type* type); /* NULL when it is of another type */

typedef enum genai_dtype { GENAI_F32, GENAI_F16, GENAI_I32, GENAI_U8, GENAI_U16 } genai_dtype;

/* An input of a graph: its position, shape and type. The value is zero (empty KV caches). */
typedef struct genai_tensor_spec {
  const char* name;
  genai_dtype dtype;
  uint32_t rank;
  uint32_t dims[5];
} genai_tensor_spec;

/* The inputs of each graph of a model, by graph name, in positional order. They come from the model, never from calibration data. No graph
 * at all is a valid list (a model without positional inputs: one graph, "forward"); an absent list is NULL. */
typedef struct genai_example_inputs genai_example_inputs;
GENAI_API genai_status* genai_example_inputs_create(genai_example_inputs** out) GENAI_MUST_USE;
GENAI_API genai_status* genai_example_inputs_add_graph(genai_example_inputs* self, const char* graph, const genai_tensor_spec* inputs,
                                                       size_t count) GENAI_MUST_USE;
GENAI_API genai_example_inputs* genai_example_inputs_retain(genai_example_inputs* self);
GENAI_API void genai_example_inputs_release(genai_example_inputs* self);
GENAI_API size_t genai_example_inputs_graph_count(const genai_example_inputs* self);
GENAI_API const char* genai_example_inputs_graph(const genai_example_inputs* self, size_t graph);
GENAI_API const genai_tensor_spec* genai_example_inputs_tensors(const genai_example_inputs* self, size_t graph, size_t* count);

/* One sample: token ids, and labels in training data. Valid until the stream's next call. */
typedef struct genai_sample {
  const int32_t* ids;
  size_t n_ids;
  const int32_t* labels;
  size_t n_labels;
} genai_sample;

/* A stream of samples, possibly single-use: whoever tests its presence must not consume it. */
typedef struct genai_sample_stream genai_sample_stream;
typedef struct genai_sample_stream_vtable {
  genai_status* (*next)(void* self, genai_sample* out, bool* end); /* sets `*end` instead of a sample when there is none left */
  void (*destroy)(void* self);                                     /* may be NULL */
} genai_sample_stream_vtable;
GENAI_API genai_status* genai_sample_stream_create(const genai_sample_stream_vtable* vtable, void* self,
                                                   genai_sample_stream** out) GENAI_MUST_USE; /* takes `self` on success */
/* A stream over sequences of ids (copied). */
GENAI_API genai_status* genai_sample_stream_from_ids(const int32_t* const* sequences, const size_t* lengths, size_t count,
                                                     genai_sample_stream** out) GENAI_MUST_USE;
GENAI_API genai_sample_stream* genai_sample_stream_retain(genai_sample_stream* self);
GENAI_API void genai_sample_stream_release(genai_sample_stream* self);
GENAI_API genai_status* genai_sample_stream_next(genai_sample_stream* self, genai_sample* out, bool* end) GENAI_MUST_USE;

/* The graphs of a quantized model, by name, in the order of the example inputs: an object of type genai_graph_set_type. */
GENAI_API extern const genai_object_type genai_graph_set_type;
GENAI_API genai_status* genai_graph_set_create(genai_object** out) GENAI_MUST_USE;
GENAI_API genai_status* genai_graph_set_add(genai_object* self, const char* name, genai_object* graph) GENAI_MUST_USE; /* retains graph */
GENAI_API size_t genai_graph_set_count(const genai_object* self); /* 0 for another type */
GENAI_API const char* genai_graph_set_name(const genai_object* self, size_t index);
GENAI_API genai_object* genai_graph_set_graph(const genai_object* self, size_t index); /* no new reference */

typedef struct genai_named_number {
  char* name;
  double value;
} genai_named_number;

/* A list of measurements. Zero-initialise to start. */
typedef struct genai_statistics {
  size_t count;
  genai_named_number* items;
} genai_statistics;
GENAI_API genai_status* genai_statistics_add(genai_statistics* self, const char* name, double value) GENAI_MUST_USE;
GENAI_API bool genai_statistics_get(const genai_statistics* self, const char* name, double* out);
GENAI_API void genai_statistics_deinit(genai_statistics* self);

typedef enum genai_backend { GENAI_BACKEND_HTP, GENAI_BACKEND_GPU, GENAI_BACKEND_LPAI, GENAI_BACKEND_COUNT } genai_backend;
GENAI_API const char* genai_backend_name(genai_backend backend); /* "htp" */
/* Unknown names: GENAI_ERROR_CONFIG_VALIDATION with the valid ones. */
GENAI_API genai_status* genai_backend_find(const char* name, genai_backend* out) GENAI_MUST_USE;

/* ---- ModelLoader ---- */
typedef struct genai_model_loader genai_model_loader;
typedef struct genai_model_loader_vtable {
  genai_status* (*load_model)(genai_model_loader* self, const genai_context* context, const char* model, const genai_options* options,
                              genai_object** out);
  /* After load_model. A model without a tokenizer gives NULL and success. */
  genai_status* (*load_tokenizer)(genai_model_loader* self, const genai_context* context, genai_object* model, genai_object** out);
  genai_status* (*get_example_inputs)(genai_model_loader* self, const genai_context* context, genai_object* model,
                                      const genai_options* options, genai_example_inputs** out);
  /* Writes the tokenizer for the runtime into `directory` (created when absent) and gives the file's path: tokenizer.json, else
   * tokenizer.model. */
  genai_status* (*export_tokenizer)(genai_model_loader* self, const genai_context* context, genai_object* tokenizer, const char* directory,
                                    char** path);
  /* The tokenizer's own chat template (genai_free), or NULL and success. May be a NULL pointer: there is none. */
  genai_status* (*get_chat_template)(genai_model_loader* self, genai_object* tokenizer, char** source);
  void (*destroy)(genai_model_loader* self); /* called by a strategy that made it; may be NULL */
} genai_model_loader_vtable;
struct genai_model_loader {
  const genai_model_loader_vtable* vtable;
};

/* ---- CalibrationData and TrainingData ---- */
enum { GENAI_DEFAULT_SAMPLES = 128, GENAI_DEFAULT_SEQUENCE_LENGTH = 1024 };
typedef struct genai_data_request {
  genai_object* model;
  genai_object* tokenizer;   /* NULL: the model has none */
  const char* chat_template; /* NULL: none */
  size_t n_samples;          /* at most */
  size_t sequence_length;    /* at most, per sample */
  const genai_options* options;
} genai_data_request;

typedef struct genai_calibration_data genai_calibration_data;
typedef struct genai_calibration_data_vtable {
  /* Deterministic: equal requests give equal samples. */
  genai_status* (*generate)(genai_calibration_data* self, const genai_context* context, const genai_data_request* request,
                            genai_sample_stream** out);
  void (*destroy)(genai_calibration_data* self);
} genai_calibration_data_vtable;
struct genai_calibration_data {
  const genai_calibration_data_vtable* vtable;
};

/* Samples carry labels. Asked for when quantization-aware training is (option `qat`) and the context brings no training data. */
typedef struct genai_training_data genai_training_data;
typedef struct genai_training_data_vtable {
  genai_status* (*generate)(genai_training_data* self, const genai_context* context, const genai_data_request* request,
                            genai_sample_stream** out);
  void (*destroy)(genai_training_data* self);
} genai_training_data_vtable;
struct genai_training_data {
  const genai_training_data_vtable* vtable;
};

/* ---- Quantizer ---- */
typedef struct genai_quantizer_request {
  genai_backend backend;
  const genai_chipset* soc;
  const char* dtype;  /* NULL: the quantizer's own default */
  const char* recipe; /* NULL: the quantizer's own default */
  const genai_options* options;
} genai_quantizer_request;

/* One model at a time, in this order: export_model, make_quantizer, prepare, calibrate, train where that is asked for, then convert once per
 * graph. Another order is GENAI_ERROR_INVALID_ARGUMENT. export_model may be called again to start over. */
typedef struct genai_quantizer genai_quantizer;
typedef struct genai_quantizer_vtable {
  /* Takes the model as it will be calibrated: full autoregressive attention, never deployed. Keeps a reference. */
  genai_status* (*export_model)(genai_quantizer* self, const genai_context* context, genai_object* model,
                                const genai_example_inputs* example_inputs);
  genai_status* (*make_quantizer)(genai_quantizer* self, const genai_context* context, const genai_quantizer_request* request);
  genai_status* (*prepare)(genai_quantizer* self, const genai_context* context);                              /* inserts observers */
  genai_status* (*calibrate)(genai_quantizer* self, const genai_context* context, genai_sample_stream* data); /* consumes the stream */
  /* The deployed graph `name` with the calibrated encodings; KV outputs of one graph and KV inputs of another get the same ones. */
  genai_status* (*convert)(genai_quantizer* self, const genai_context* context, const char* name, const genai_tensor_spec* inputs,
                           size_t n_inputs, genai_object** out);
  void (*destroy)(genai_quantizer* self);
  /* Both may be NULL: a run that was interrupted calibrates again. */
  genai_status* (*save)(genai_quantizer* self, void** data, size_t* size); /* what calibrate found out (genai_alloc) */
  genai_status* (*restore)(genai_quantizer* self, const genai_context* context, const void* data,
                           size_t size); /* in place of calibrate; bytes of another model or recipe are never given */
  /* Quantization-aware training (option `qat`), after calibrate; consumes the stream. NULL, as in genai's own quantizer: post-training
   * quantization is all it does, and `qat` is refused before any stage runs. */
  genai_status* (*train)(genai_quantizer* self, const genai_context* context, genai_sample_stream* data);
} genai_quantizer_vtable;
struct genai_quantizer {
  const genai_quantizer_vtable* vtable;
};

/* ---- Compiler ---- */
typedef enum genai_value_kind { GENAI_VALUE_INTEGER, GENAI_VALUE_BOOL, GENAI_VALUE_DOUBLE, GENAI_VALUE_STRING } genai_value_kind;
typedef struct genai_value {
  genai_value_kind kind;
  union {
    int64_t i;
    bool b;
    double d;
    const char* s;
  } as;
} genai_value;
/* A method of the artifact that takes nothing and returns these values. */
typedef struct genai_constant_method {
  const char* name;
  size_t count;
  const genai_value* values;
} genai_constant_method;

typedef struct genai_compile_graph {
  const char* name;
  genai_object* graph; /* a quantized graph, or the prepared model when quantization was skipped */
  const genai_tensor_spec* inputs;
  size_t n_inputs;
  const genai_options* specs; /* compile specs of this graph; NULL: none */
  const char* const* passes;  /* names of passes to run on it */
  size_t n_passes;
} genai_compile_graph;

typedef struct genai_compile_request {
  const genai_compile_graph* graphs; /* one artifact for all of them, sharing weights */
  size_t n_graphs;
  const genai_constant_method* constants;
  size_t n_constants;
  const char* artifact_directory;
  const char* file_name;         /* stem: the compiler adds SoC and suffix */
  const char* runtime_tokenizer; /* path; recorded in the artifact; NULL: none */
  const genai_chipset* soc;
  genai_backend backend;
  const genai_options* options; /* only options that are meant for compilation */
} genai_compile_request;

typedef struct genai_compile_result {
  genai_string_list artifacts;
  char* etrecord;              /* path, or NULL */
  genai_statistics statistics; /* such as seconds inside the vendor's calls */
} genai_compile_result;
GENAI_API void genai_compile_result_deinit(genai_compile_result* self);

typedef struct genai_compiler genai_compiler;
typedef struct genai_compiler_vtable {
  /* Artifacts appear whole or not at all. */
  genai_status* (*compile)(genai_compiler* self, const genai_context* context, const genai_compile_request* request,
                           genai_compile_result* out);
  void (*destroy)(genai_compiler* self);
} genai_compiler_vtable;
struct genai_compiler {
  const genai_compiler_vtable* vtable;
};

/* ---- DeviceRunner ---- */
typedef struct genai_push_request {
  const char* const* artifacts;
  size_t n_artifacts;
  const char* const* inputs; /* input files */
  size_t n_inputs;
  const char* const* extra_files;
  size_t n_extra_files;
  const genai_chipset* soc;
  const genai_options* options;
} genai_push_request;

typedef struct genai_metrics {
  double load_seconds;
  double ttft_seconds; /* from the call to the first token */
  double prefill_seconds;
  double decode_seconds;  /* from the first token to the last */
  double execute_seconds; /* inside the graphs */
  uint64_t prompt_tokens;
  uint64_t new_tokens;
  uint64_t peak_memory_bytes; /* of the process that ran the graphs; 0: unknown */
  bool simulated;             /* speed says nothing about a device */
} genai_metrics;

typedef struct genai_generation {
  char* prompt; /* as the user gave it; NULL for ids */
  char* text;   /* decoded text; NULL when there is no tokenizer or the adapter does not decode */
  int32_t* ids; /* new ids, without the stop token; NULL when unknown */
  size_t n_ids;
  const char* end; /* why it ended, a literal: "stop token", "token limit", "context full" ... */
  genai_metrics metrics;
} genai_generation;

typedef struct genai_execute_request {
  genai_object* tokenizer;       /* NULL: the runtime tokenizer file alone */
  const char* runtime_tokenizer; /* path; NULL: none, prompts must be ids */
  const char* chat_template;     /* NULL: the one that came with the artifact, if any */
  const genai_options* options;
} genai_execute_request;

typedef struct genai_execute_result {
  size_t n_generations;
  genai_generation* generations; /* empty when the adapter does not own decoding: results are then the pulled files */
  genai_metrics metrics;         /* sums over the prompts */
  genai_statistics evaluation;
  char* etdump; /* path, or NULL */
} genai_execute_result;
GENAI_API void genai_execute_result_deinit(genai_execute_result* self);

/* push, then execute (any number of times), then pull. execute or pull before push is GENAI_ERROR_INVALID_ARGUMENT. */
typedef struct genai_device_runner genai_device_runner;
typedef struct genai_device_runner_vtable {
  genai_status* (*push)(genai_device_runner* self, const genai_context* context, const genai_push_request* request);
  /* Runs the context's prompts. Encoding, chat template, begin token, padding, KV cache and decoding are the runner's. */
  genai_status* (*execute)(genai_device_runner* self, const genai_context* context, const genai_execute_request* request,
                           genai_execute_result* out);
  /* Brings the files the device produced into `directory`; appends their paths there. */
  genai_status* (*pull)(genai_device_runner* self, const genai_context* context, const char* directory, genai_string_list* out);
  void (*destroy)(genai_device_runner* self);
} genai_device_runner_vtable;
struct genai_device_runner {
  const genai_device_runner_vtable* vtable;
};

/* What replaces a stage's own adapters; NULL members keep the engine's. All borrowed. */
typedef struct genai_adapters {
  genai_model_loader* model_loader;         /* model_preparation */
  genai_calibration_data* calibration_data; /* model_preparation */
  genai_training_data* training_data;       /* quantization */
  genai_quantizer* quantizer;               /* quantization */
  genai_compiler* compiler;                 /* compilation */
  genai_device_runner* runner;              /* inference */
} genai_adapters;

#ifdef __cplusplus
}
#endif
#endif
