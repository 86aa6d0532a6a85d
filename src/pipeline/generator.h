/* What the host runner needs of an opened artifact: prompt ids in, new ids out. Each engine has one over its own artifacts. */
#ifndef GENAI_PIPELINE_GENERATOR_H
#define GENAI_PIPELINE_GENERATOR_H

#include "genai/adapters.h"
#include "pipeline/provenance.h"
#include "runtime/runtime.h"

typedef struct generator generator;
typedef struct generator_vtable {
  /* As `generate` of runtime.h, each time from an empty cache. */
  genai_status* (*generate)(generator* self, const int32_t* prompt, size_t count, const generate_options* options,
                            generate_token_sink on_token, void* user, generate_result* out);
  void (*destroy)(generator* self);
} generator_vtable;
struct generator {
  const generator_vtable* vtable;
  const provenance* record; /* NULL: the artifact has none */
  uint32_t context_length, vocab_size;
  uint32_t longest_prompt;
  double load_seconds;
};

/* How a host runner finds and opens the artifacts of one engine. */
typedef struct runner_format {
  const char* what;        /* "a .pte file" */
  const char* suffixes[2]; /* of the simulator's artifact, preferred, and of any */
  genai_status* (*open)(const char* path, const genai_options* options, generator** out);
} runner_format;

/* A host runner over artifacts of `format`, which must outlive it. */
genai_status* host_runner_create(const runner_format* format, genai_device_runner** out) GENAI_MUST_USE;

#endif
