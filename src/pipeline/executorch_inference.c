/* The inference strategy: push, execute, pull, in that order. It never converts results. */
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "pipeline/executorch_strategy.h"
#include "pipeline/internal.h"
#include "runtime/runtime.h"

typedef struct inference {
  genai_strategy base;
  genai_strategy_vtable vtable; /* with the engine's name */
  const engine_parts* engine;
  genai_device_runner* runner;
  genai_device_runner* own_runner;
} inference;

sampling_options executorch_sampling(const genai_options* options) {
  return (sampling_options){.temperature = (float)genai_options_number(options, "temperature", 0),
                            .top_k = (uint32_t)genai_options_integer(options, "top_k", 0),
                            .top_p = (float)genai_options_number(options, "top_p", 1),
                            .repetition_penalty = (float)genai_options_number(options, "repetition_penalty", 1),
                            .seed = (uint64_t)genai_options_integer(options, "seed", 0)};
}

static genai_status* validate(genai_strategy* base, const genai_context* context, const genai_chipset* soc, genai_backend backend) {
  const inference* self = (const inference*)base;
  (void)soc;
  for (size_t i = 0; i < genai_context_artifact_count(context); i++) {
    const char* path = genai_context_artifact(context, i);
    if (!file_exists(path))
      return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "artifact \"%s\" does not exist; compile it first (genai run)", path);
  }
  if (self->runner != self->own_runner) return NULL;
  if (backend != GENAI_BACKEND_HTP)
    return genai_status_create(GENAI_ERROR_ENGINE_NOT_AVAILABLE,
                               "engine %s runs artifacts for backend htp on this host, not %s: that needs a device; stop before "
                               "inference (--until compilation) and copy the artifact",
                               self->engine->name, genai_backend_name(backend));
  sampling_options sampling = executorch_sampling(genai_context_options(context));
  GENAI_TRY(sampling_validate(&sampling));
  if (!self->engine->probe_runner) return NULL;
  text nothing = {0};
  genai_status* status = executorch_probe(context, self->engine->probe_runner, &nothing);
  text_deinit(&nothing);
  return status;
}

/* An artifact that the context brings has lengths of its own. */
static genai_status* check_prepared(genai_strategy* base, const genai_context* context, const genai_fingerprint_request* request) {
  const inference* self = (const inference*)base;
  if (self->runner != self->own_runner || genai_context_artifact_count(context)) return NULL;
  return executorch_check_prompts(self->engine, context, request->prepared);
}

static genai_status* check_input(const genai_inference_input* input) {
  if (!input->soc) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the SoC is missing from the input");
  if (!input->n_artifacts)
    return genai_status_create(
        GENAI_ERROR_INVALID_ARGUMENT,
        "there is no artifact to run: Compiler.compile (stage compilation) should have produced one, or give one with "
        "genai_context_builder_add_artifact");
  return NULL;
}

static genai_status* run_device(inference* self, const genai_context* context, const genai_inference_input* input,
                                genai_inference_output* output) {
  const genai_device_runner_vtable* runner = self->runner->vtable;
  const char* extra[] = {input->runtime_tokenizer};
  genai_push_request push = {.artifacts = input->artifacts,
                             .n_artifacts = input->n_artifacts,
                             .extra_files = extra,
                             .n_extra_files = input->runtime_tokenizer ? 1 : 0,
                             .soc = input->soc,
                             .options = input->options};
  GENAI_TRY(runner->push(self->runner, context, &push));
  GENAI_TRY(genai_context_check_cancelled(context));
  genai_execute_request execute = {.tokenizer = input->tokenizer,
                                   .runtime_tokenizer = input->runtime_tokenizer,
                                   .chat_template = input->chat_template,
                                   .options = input->options};
  GENAI_TRY(runner->execute(self->runner, context, &execute, &output->run));
  const char* directory = input->artifact_directory ? input->artifact_directory : genai_context_artifact_directory(context);
  return runner->pull(self->runner, context, directory, &output->files);
}

static genai_status* infer(genai_strategy* base, const genai_context* context, const genai_inference_input* input,
                           genai_inference_output* output) {
  inference* self = (inference*)base;
  genai_status* status = check_input(input);
  if (!status) status = run_device(self, context, input, output);
  return status ? genai_status_wrap_stage(status, genai_stage_name(GENAI_STAGE_INFERENCE), "cannot run the artifact") : NULL;
}

static void destroy(genai_strategy* base) {
  inference* self = (inference*)base;
  if (self->own_runner && self->own_runner->vtable->destroy) self->own_runner->vtable->destroy(self->own_runner);
  mem_free(self);
}

genai_status* executorch_inference_strategy(void* user, const genai_adapters* adapters, genai_strategy** out) {
  const engine_parts* engine = engine_of(user);
  static const genai_strategy_vtable vtable = {.stage = GENAI_STAGE_INFERENCE,
                                               .options = executorch_option_table,
                                               .n_options = EXECUTORCH_OPTION_COUNT,
                                               .validate = validate,
                                               .infer = infer,
                                               .destroy = destroy,
                                               .check_prepared = check_prepared};
  inference* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->vtable = vtable;
  self->vtable.engine = engine->name;
  self->base.vtable = &self->vtable;
  self->engine = engine;
  self->runner = adapters ? adapters->runner : NULL;
  if (!self->runner) {
    genai_status* status = engine->create_runner(&self->own_runner);
    if (status) {
      mem_free(self);
      return status;
    }
    self->runner = self->own_runner;
  }
  *out = &self->base;
  return NULL;
}
