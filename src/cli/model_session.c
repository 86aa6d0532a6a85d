/* Opening a model for logits: the default adapters in order, then a session over the graphs or over the artifact. */
#include "cli/model_session.h"

#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/pipeline_run.h"
#include "cli/temporary_folder.h"
#include "pipeline/executorch.h"
#include "pipeline/executorch_objects.h"
#include "pipeline/internal.h"

struct model_session {
  genai_context* context;
  genai_object* model;
  genai_object* words;
  genai_object* quantized[2];
  ir_graph* floats[2];
  tokenizer* file_words; /* of an artifact */
  session* session;
};

const cancel_token* cli_cancel_token(const cli* app) {
  return &app->cancel->token;
}

session* model_session_get(model_session* self) {
  return self->session;
}

const tokenizer* model_session_tokenizer(const model_session* self) {
  const executorch_tokenizer* words = genai_object_payload(self->words, &executorch_tokenizer_type);
  return words ? words->tokenizer : self->file_words;
}

void model_session_close(model_session* self) {
  if (!self) return;
  session_close(self->session);
  for (size_t i = 0; i < 2; i++) {
    genai_object_release(self->quantized[i]);
    ir_graph_destroy(self->floats[i]);
  }
  tokenizer_close(self->file_words);
  genai_object_release(self->words);
  genai_object_release(self->model);
  genai_context_destroy(self->context);
  mem_free(self);
}

static genai_status* fill_context(cli* app, const arguments* given, const char* directory, genai_context_builder* builder) {
  static const option_mapping mappings[] = {{"--recipe", "recipe"},
                                            {"--prefill-ar", "prefill_ar"},
                                            {"--context", "context"},
                                            {"--calibration", "calibration_file"},
                                            {"--threads", "threads"}};
  const char* soc = argument_value(given, "--soc");
  GENAI_TRY(genai_context_builder_set_model(builder, given->positionals[0]));
  GENAI_TRY(genai_context_builder_set_soc(builder, soc ? soc : "SM8650"));
  GENAI_TRY(genai_context_builder_set_no_inference(builder));
  if (directory) GENAI_TRY(genai_context_builder_set_artifact_directory(builder, directory));
  GENAI_TRY(genai_context_builder_set_option(builder, "simulator_twin", "process"));
  GENAI_TRY(cli_map_options(given, mappings, sizeof mappings / sizeof mappings[0], builder));
  return run_set_generation(app, given, builder);
}

static genai_status* build_context(cli* app, const arguments* given, const char* directory, genai_context** out) {
  genai_context_builder* builder;
  GENAI_TRY(genai_context_builder_create(&builder));
  genai_status* status = fill_context(app, given, directory, builder);
  if (!status) status = genai_context_builder_build(builder, out);
  genai_context_builder_destroy(builder);
  return status;
}

/* ---- On the host ---- */
static genai_status* load(model_session* self, genai_example_inputs** inputs) {
  genai_model_loader* loader;
  const genai_options* options = genai_context_options(self->context);
  GENAI_TRY(executorch_loader_create(&loader));
  genai_status* status = loader->vtable->load_model(loader, self->context, genai_context_model(self->context), options, &self->model);
  if (!status) status = loader->vtable->load_tokenizer(loader, self->context, self->model, &self->words);
  if (!status) status = loader->vtable->get_example_inputs(loader, self->context, self->model, options, inputs);
  loader->vtable->destroy(loader);
  return status;
}

static genai_status* calibration_stream(model_session* self, genai_sample_stream** out) {
  genai_calibration_data* source_data;
  char* template = NULL;
  GENAI_TRY(executorch_calibration_create(&source_data));
  const tokenizer* words = model_session_tokenizer(self);
  text_view source = words ? tokenizer_chat_template(words) : (text_view){NULL, 0};
  const genai_options* options = genai_context_options(self->context);
  const char* fallback = genai_options_get(options, "chat_template");
  genai_status* status = NULL;
  if (source.data && !(template = mem_strndup(source.data, source.length))) status = genai_status_out_of_memory();
  /* As in a run: what is measured here is what a run compiles. */
  genai_data_request request = executorch_calibration_request(self->model, self->words, template ? template : fallback, options);
  if (!status) status = source_data->vtable->generate(source_data, self->context, &request, out);
  source_data->vtable->destroy(source_data);
  mem_free(template);
  return status;
}

static genai_status* quantize(model_session* self, const genai_example_inputs* inputs, const ir_graph** graphs, size_t count) {
  genai_chipset soc;
  GENAI_TRY(genai_context_chipset(self->context, &soc));
  genai_quantizer* quantizer;
  genai_sample_stream* stream = NULL;
  GENAI_TRY(executorch_quantizer_create(&quantizer));
  const genai_quantizer_vtable* vtable = quantizer->vtable;
  const genai_options* options = genai_context_options(self->context);
  genai_quantizer_request request = {GENAI_BACKEND_HTP, &soc, genai_options_get(options, "dtype"), genai_options_get(options, "recipe"),
                                     options};
  genai_status* status = vtable->export_model(quantizer, self->context, self->model, inputs);
  if (!status) status = vtable->make_quantizer(quantizer, self->context, &request);
  if (!status) status = vtable->prepare(quantizer, self->context);
  if (!status) status = calibration_stream(self, &stream);
  if (!status) status = vtable->calibrate(quantizer, self->context, stream);
  for (size_t i = 0; !status && i < count; i++) {
    size_t n_inputs;
    const genai_tensor_spec* specs = genai_example_inputs_tensors(inputs, i, &n_inputs);
    status = vtable->convert(quantizer, self->context, genai_example_inputs_graph(inputs, i), specs, n_inputs, &self->quantized[i]);
    if (status) break;
    const executorch_graph* graph = genai_object_payload(self->quantized[i], &executorch_graph_type);
    graphs[i] = graph->graph;
  }
  genai_sample_stream_release(stream);
  vtable->destroy(quantizer);
  return status;
}

static genai_status* build_floats(model_session* self, const genai_example_inputs* inputs, const ir_graph** graphs, size_t count) {
  const executorch_model* loaded = genai_object_payload(self->model, &executorch_model_type);
  for (size_t i = 0; i < count; i++) {
    size_t n_inputs;
    const genai_tensor_spec* specs = genai_example_inputs_tensors(inputs, i, &n_inputs);
    model_graph_options options = {.name = genai_example_inputs_graph(inputs, i)};
    GENAI_TRY(executorch_graph_lengths(options.name, specs, n_inputs, &options.ar_length, &options.context_length));
    GENAI_TRY(model_build_graph(loaded->decoder, &options, &self->floats[i]));
    graphs[i] = self->floats[i];
  }
  return NULL;
}

static genai_status* open_on_host(cli* app, model_session* self, bool simulated) {
  genai_example_inputs* inputs = NULL;
  const ir_graph* graphs[2];
  genai_status* status = load(self, &inputs);
  size_t count = inputs ? genai_example_inputs_graph_count(inputs) : 0;
  if (!status) status = simulated ? quantize(self, inputs, graphs, count) : build_floats(self, inputs, graphs, count);
  if (!status) {
    const executorch_model* loaded = genai_object_payload(self->model, &executorch_model_type);
    model_info info;
    model_get_info(loaded->decoder, &info);
    session_host_options options = {simulated ? CPU_SIMULATED : CPU_FLOAT, loaded->pool, info.sliding_window, cli_cancel_token(app)};
    status = session_open_graphs(graphs, count, &options, &self->session);
  }
  genai_example_inputs_release(inputs);
  return status;
}

/* ---- On the HTP ---- */
static genai_status* compile_into(model_session* self, genai_string_list* artifacts) {
  genai_pipeline_options how = {.skip_stages = 1u << GENAI_STAGE_INFERENCE};
  genai_engine_proxy* proxy;
  genai_pipeline* pipeline = NULL;
  genai_pipeline_report report = {0};
  GENAI_TRY(genai_engine_proxy_create(NULL, 0, GENAI_BACKEND_HTP, &proxy));
  genai_status* status = genai_pipeline_from_proxy(proxy, &how, &pipeline);
  genai_engine_proxy_destroy(proxy);
  if (!status) status = genai_pipeline_invoke(pipeline, self->context, NULL, &report);
  if (!status) {
    *artifacts = report.artifacts;
    report.artifacts = (genai_string_list){0};
  }
  genai_pipeline_report_deinit(&report);
  genai_pipeline_destroy(pipeline);
  return status;
}

static genai_status* open_artifact(model_session* self, const char* path, const char* qnn_dir) {
  GENAI_TRY(session_open_pte(path, qnn_dir, &self->session));
  char* directory = mem_strndup(path, (size_t)(path_base_name(path) - path));
  if (!directory) return genai_status_out_of_memory();
  char* words = NULL;
  genai_status* status = path_join(*directory ? directory : ".", "tokenizer.json", &words);
  if (!status && file_exists(words)) status = tokenizer_open(words, &self->file_words);
  mem_free(words);
  mem_free(directory);
  return status;
}

static genai_status* open_on_htp(model_session* self, const arguments* given, const char* directory) {
  const char* qnn_dir = argument_value(given, "--qnn-dir");
  const char* path = given->positionals[0];
  if (!directory) return open_artifact(self, path, qnn_dir);
  genai_string_list artifacts = {0};
  genai_status* status = compile_into(self, &artifacts);
  for (size_t i = 0; !status && i < artifacts.count; i++) {
    size_t length = strlen(artifacts.items[i]);
    if (length > 8 && !strcmp(artifacts.items[i] + length - 8, ".sim.pte")) status = open_artifact(self, artifacts.items[i], qnn_dir);
  }
  genai_string_list_deinit(&artifacts);
  return status;
}

static bool is_pte(const char* path) {
  size_t length = strlen(path);
  return length > 4 && !strcmp(path + length - 4, ".pte");
}

genai_status* model_session_open_context(cli* app, genai_context* context, bool simulated, model_session** out) {
  model_session* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->context = context;
  genai_status* status = open_on_host(app, self, simulated);
  if (status) {
    self->context = NULL;
    model_session_close(self);
    return status;
  }
  *out = self;
  return NULL;
}

const executorch_model* model_session_model(const model_session* self) {
  return genai_object_payload(self->model, &executorch_model_type);
}

const ir_graph* model_session_graph(const model_session* self, size_t index) {
  if (index >= 2) return NULL;
  const executorch_graph* graph = genai_object_payload(self->quantized[index], &executorch_graph_type);
  return graph ? graph->graph : self->floats[index];
}

genai_status* model_session_open(cli* app, const arguments* given, model_session** out) {
  const char* where = argument_value(given, "--on");
  const char* path = given->positionals[0];
  if (!where) where = is_pte(path) ? "htp" : "float";
  bool htp = !strcmp(where, "htp"), simulated = !strcmp(where, "simulated");
  if (!htp && !simulated && strcmp(where, "float"))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "--on is \"%s\", expected float, simulated or htp", where);
  if (is_pte(path) && !htp)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "\"%s\" is an artifact: it runs on htp only; give the checkpoint for --on %s",
                               path, where);
  model_session* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  char* directory = NULL;
  genai_status* status = htp && !is_pte(path) ? temporary_folder_create(&directory) : NULL;
  if (!status) status = build_context(app, given, directory, &self->context);
  if (!status) status = htp ? open_on_htp(self, given, directory) : open_on_host(app, self, simulated);
  temporary_folder_remove(directory); /* maps of its files stay valid */
  mem_free(directory);
  if (status) {
    model_session_close(self);
    return status;
  }
  *out = self;
  return NULL;
}
