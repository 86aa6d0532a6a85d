/* The compilation strategy: fans a model out into its graphs, gathers what the artifact says about itself, and hands both to the compiler.
 * Lowering and files are the compiler adapter's business. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "pipeline/executorch_constants.h"
#include "pipeline/executorch_strategy.h"
#include "pipeline/internal.h"

enum { LONGEST_NAME = 128 }; /* bytes; with what is added a file system's 255 are not exceeded */

typedef struct compilation {
  genai_strategy base;
  genai_strategy_vtable vtable; /* with the engine's name */
  const engine_parts* engine;
  genai_compiler* compiler;
  genai_compiler* own_compiler;
  text build_id; /* of the vendor's libraries, once validated */
} compilation;

static genai_status* validate(genai_strategy* base, const genai_context* context, const genai_chipset* soc, genai_backend backend) {
  compilation* self = (compilation*)base;
  if (self->compiler != self->own_compiler) return NULL;
  const genai_options* options = genai_context_options(context);
  const char* name = genai_options_get(options, "name");
  if (name && (!*name || strchr(name, '/')))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "option name is \"%s\", expected the first part of a file name, without \"/\"", name);
  if (name && strlen(name) > LONGEST_NAME)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "option name has %zu bytes, expected at most %d: SoC and suffixes follow it",
                               strlen(name), LONGEST_NAME);
  int64_t vtcm = genai_options_integer(options, "vtcm_mb", 0);
  if (vtcm > soc->vtcm_mb)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "option vtcm_mb is %lld, but %s has %u MB", (long long)vtcm, soc->name,
                               soc->vtcm_mb);
  text_clear(&self->build_id);
  return executorch_compiler_validate(self->engine->name, context, soc, backend, &self->build_id);
}

static genai_status* check_input(const genai_compilation_input* input) {
  if (!input->quantized_model && !input->prepared_model)
    return executorch_absent("the model to compile is",
                             "Quantizer.convert (stage quantization) or ModelLoader.load_model (stage model_preparation)");
  if (!input->example_inputs)
    return executorch_absent("the list of example inputs is", "ModelLoader.get_example_inputs (stage model_preparation)");
  if (!input->soc) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the SoC is missing from the input");
  if (!input->backend) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the backend type is missing from the input");
  return NULL;
}

/* The stem of artifact names: the model's last path component without its suffix, every character that could trouble a file system or a
 * shell replaced. */
static void file_stem(const char* model, char stem[128]) {
  size_t end = strlen(model);
  while (end > 1 && model[end - 1] == '/') end--;
  size_t begin = end;
  while (begin > 0 && model[begin - 1] != '/') begin--;
  size_t length = end - begin;
  static const char* const suffixes[] = {".gguf", ".bin", ".safetensors"};
  for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
    size_t suffix = strlen(suffixes[i]);
    if (length > suffix && !memcmp(model + end - suffix, suffixes[i], suffix)) length -= suffix;
  }
  if (length > 120) length = 120;
  for (size_t i = 0; i < length; i++) {
    char c = model[begin + i];
    bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || (c == '.' && i);
    stem[i] = safe ? c : '_';
  }
  stem[length] = 0;
  if (!length) strcpy(stem, "model");
}

genai_status* executorch_artifact_path(const char* directory, const char* name, const char* model, const char* soc, const char* suffix,
                                       char** out) {
  char stem[128];
  file_stem(model, stem);
  text file = {0};
  genai_status* status = text_printf(&file, "%s.%s%s", name ? name : stem, soc, suffix);
  if (!status) status = path_join(directory, file.data, out);
  text_deinit(&file);
  return status;
}

/* The graph of one set of example inputs: its quantized form, or the prepared model itself. */
static genai_status* find_graph(const genai_compilation_input* input, const char* name, genai_object** out) {
  if (!input->quantized_model) {
    *out = input->prepared_model;
    return NULL;
  }
  size_t count = genai_graph_set_count(input->quantized_model);
  for (size_t i = 0; i < count; i++) {
    if (strcmp(genai_graph_set_name(input->quantized_model, i), name)) continue;
    *out = genai_graph_set_graph(input->quantized_model, i);
    return NULL;
  }
  if (!count) { /* an object of the adapters' own: it goes through as it is */
    *out = input->quantized_model;
    return NULL;
  }
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the quantized model has no graph \"%s\", which the example inputs name", name);
}

static genai_status* gather_graphs(const genai_compilation_input* input, genai_compile_graph* graphs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    genai_compile_graph* graph = &graphs[i];
    bool named = genai_example_inputs_graph_count(input->example_inputs) > 0;
    graph->name = named ? genai_example_inputs_graph(input->example_inputs, i) : "forward";
    if (named) graph->inputs = genai_example_inputs_tensors(input->example_inputs, i, &graph->n_inputs);
    GENAI_TRY(find_graph(input, graph->name, &graph->graph));
  }
  return NULL;
}

static genai_status* run_compiler(compilation* self, const genai_context* context, const genai_compilation_input* input,
                                  genai_compile_graph* graphs, size_t count, genai_compilation_output* output) {
  GENAI_TRY(gather_graphs(input, graphs, count));
  executorch_constants constants = {0};
  genai_options* options = NULL;
  genai_status* status = executorch_constants_gather(graphs, count, &constants);
  if (!status)
    status = genai_options_filter(input->options, executorch_option_table, EXECUTORCH_OPTION_COUNT, GENAI_STAGE_COMPILATION, &options);
  if (!status) {
    char stem[128];
    file_stem(genai_context_model(context), stem);
    genai_compile_request request = {
        .graphs = graphs,
        .n_graphs = count,
        .constants = constants.methods,
        .n_constants = constants.count,
        .artifact_directory = input->artifact_directory ? input->artifact_directory : genai_context_artifact_directory(context),
        .file_name = genai_options_text(options, "name", stem),
        .runtime_tokenizer = input->runtime_tokenizer,
        .soc = input->soc,
        .backend = *input->backend,
        .options = options};
    genai_compile_result result = {0};
    status = self->compiler->vtable->compile(self->compiler, context, &request, &result);
    if (!status && !result.artifacts.count) status = executorch_absent("the list of artifacts is", "Compiler.compile");
    if (!status) {
      *output = (genai_compilation_output){result.artifacts, result.etrecord, result.statistics};
    } else {
      genai_compile_result_deinit(&result);
    }
  }
  genai_options_destroy(options);
  executorch_constants_deinit(&constants);
  return status;
}

static genai_status* compile(genai_strategy* base, const genai_context* context, const genai_compilation_input* input,
                             genai_compilation_output* output) {
  compilation* self = (compilation*)base;
  genai_status* status = check_input(input);
  if (!status) {
    size_t count = genai_example_inputs_graph_count(input->example_inputs);
    if (!count) count = 1;
    genai_compile_graph* graphs = mem_calloc(count, sizeof *graphs);
    status = graphs ? run_compiler(self, context, input, graphs, count, output) : genai_status_out_of_memory();
    mem_free(graphs);
  }
  return status ? genai_status_wrap_stage(status, genai_stage_name(GENAI_STAGE_COMPILATION), "cannot compile the model") : NULL;
}

static genai_status* add_number(genai_fingerprint* out, const char* name, uint64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
  return genai_fingerprint_add(out, name, digits);
}

static genai_status* fingerprint(genai_strategy* base, const genai_context* context, const genai_fingerprint_request* request,
                                 genai_fingerprint* out) {
  static const char* const by_build_id[] = {"qnn_dir", NULL};
  const compilation* self = (const compilation*)base;
  if (self->compiler != self->own_compiler) {
    genai_fingerprint_set_unknown(out, "the compiler is the caller's own");
    return NULL;
  }
  if (!self->build_id.length) {
    genai_fingerprint_set_unknown(out, "the vendor's libraries do not name their build");
    return NULL;
  }
  char stem[128];
  file_stem(genai_context_model(context), stem);
  GENAI_TRY(genai_fingerprint_add(out, "engine", self->engine->name));
  GENAI_TRY(genai_fingerprint_add(out, "libraries", self->build_id.data));
  GENAI_TRY(genai_fingerprint_add(out, "stem", stem));
  GENAI_TRY(genai_fingerprint_add(out, "backend", genai_backend_name(request->backend)));
  GENAI_TRY(genai_fingerprint_add(out, "soc", request->soc->name));
  GENAI_TRY(add_number(out, "soc_id", request->soc->soc_id));
  GENAI_TRY(add_number(out, "htp_arch", request->soc->htp_arch));
  GENAI_TRY(add_number(out, "soc_vtcm_mb", request->soc->vtcm_mb));
  return genai_fingerprint_add_options(out, genai_context_options(context), executorch_option_table, EXECUTORCH_OPTION_COUNT,
                                       GENAI_STAGE_COMPILATION, by_build_id);
}

static void destroy(genai_strategy* base) {
  compilation* self = (compilation*)base;
  text_deinit(&self->build_id);
  if (self->own_compiler && self->own_compiler->vtable->destroy) self->own_compiler->vtable->destroy(self->own_compiler);
  mem_free(self);
}

genai_status* executorch_compilation_strategy(void* user, const genai_adapters* adapters, genai_strategy** out) {
  const engine_parts* engine = engine_of(user);
  static const genai_strategy_vtable vtable = {.stage = GENAI_STAGE_COMPILATION,
                                               .options = executorch_option_table,
                                               .n_options = EXECUTORCH_OPTION_COUNT,
                                               .validate = validate,
                                               .compile = compile,
                                               .destroy = destroy,
                                               .fingerprint = fingerprint};
  compilation* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->vtable = vtable;
  self->vtable.engine = engine->name;
  self->base.vtable = &self->vtable;
  self->engine = engine;
  self->compiler = adapters ? adapters->compiler : NULL;
  if (!self->compiler) {
    genai_status* status = engine->create_compiler(&self->own_compiler);
    if (status) {
      mem_free(self);
      return status;
    }
    self->compiler = self->own_compiler;
  }
  *out = &self->base;
  return NULL;
}
