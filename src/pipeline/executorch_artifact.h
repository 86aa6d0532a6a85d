/* One context binary, with what the artifact says about itself, as a file: a .pte, or another engine's format. */
#ifndef GENAI_PIPELINE_EXECUTORCH_ARTIFACT_H
#define GENAI_PIPELINE_EXECUTORCH_ARTIFACT_H

#include "genai/adapters.h"
#include "pipeline/provenance.h"
#include "qnn/qnn.h"
#include "tokenizer/tokenizer.h"

typedef struct artifact_request {
  qnn_library* library;
  const genai_constant_method* constants;
  size_t n_constants;
  const provenance* record; /* library_build_id and simulator are filled here */
  const qnn_soc* soc;
  bool weight_sharing, float16, simulator;
  bool profile;               /* the runtime notes what each operator takes */
  const tokenizer* words;     /* NULL: the model has none */
  const char* tokenizer_file; /* path of the runtime tokenizer; NULL: none */
} artifact_request;

/* What an engine makes of a context binary. */
typedef struct artifact_format {
  const char* engine;
  const char* device_suffix; /* after DIRECTORY/NAME.SOC */
  const char* simulator_suffix;
  void (*name_boundary)(const ir_tensor* tensor, char name[QNN_NAME_SIZE]); /* as in qnn_compile_options */
  genai_status* (*check_graph)(const ir_graph* graph);                      /* what the format cannot hold; NULL: nothing */
  /* Writes the artifact whole or not at all, and adds its files. */
  genai_status* (*write)(const char* path, const void* binary, size_t size, const artifact_request* request, genai_string_list* files);
} artifact_format;

/* The default compiler, giving artifacts of `format`, which must outlive it. */
genai_status* artifact_compiler_create(const artifact_format* format, genai_compiler** out) GENAI_MUST_USE;

/* Writes `path` whole or not at all. Ports and their order are read back from the binary, so that the file says what the binary is. */
genai_status* artifact_write(const char* path, const void* binary, size_t size, const artifact_request* request) GENAI_MUST_USE;

/* Adds a file that was just written to the list; when that fails, removes the file, which nobody would know of. */
genai_status* artifact_list_file(genai_string_list* files, const char* path) GENAI_MUST_USE;

/* The request's constant methods and the record's, in `memory`: n_constants + 1. */
genai_status* artifact_constants(arena* memory, const artifact_request* request, const char* record, pte_constant** out) GENAI_MUST_USE;

#endif
