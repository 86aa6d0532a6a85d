/* The `llama` fixture, loaded and quantized by the executorch engine's own adapters: what compilers and runners conform on. */
#ifndef GENAI_TESTS_PIPELINE_FIXTURE_H
#define GENAI_TESTS_PIPELINE_FIXTURE_H

#include "conformance.h"
#include "pipeline/executorch.h"

typedef struct loaded_fixture {
  genai_model_loader* loader;
  genai_context* context;
  genai_object* model;
  genai_example_inputs* inputs;
} loaded_fixture;

static inline void load_fixture(loaded_fixture* f) {
  f->context = conformance_context(NULL);
  assert_ok(executorch_loader_create(&f->loader));
  assert_ok(
      f->loader->vtable->load_model(f->loader, f->context, test_data("checkpoints/llama"), genai_context_options(f->context), &f->model));
  assert_ok(f->loader->vtable->get_example_inputs(f->loader, f->context, f->model, genai_context_options(f->context), &f->inputs));
}

static inline void unload_fixture(loaded_fixture* f) {
  genai_example_inputs_release(f->inputs);
  genai_object_release(f->model);
  genai_context_destroy(f->context);
  f->loader->vtable->destroy(f->loader);
}

/* Compiles the quantized fixture, and runs what came of it. `files`: the adapters write what they say they write. */
static inline void compile_and_run(genai_compiler* compiler, genai_device_runner* runner, const char* name, bool files) {
  enum { GRAPHS = 2 };
  loaded_fixture f;
  genai_quantizer* quantizer;
  genai_sample_stream* data;
  genai_compile_graph graphs[GRAPHS] = {{0}};
  genai_compile_result result = {0};
  char directory[128];
  static const int32_t ids[] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
  static const int32_t* const sequences[] = {ids};
  static const size_t lengths[] = {9};
  genai_quantizer_request request = {.backend = GENAI_BACKEND_HTP, .soc = &conformance_soc};
  load_fixture(&f);
  assert_ok(executorch_quantizer_create(&quantizer));
  assert_ok(genai_sample_stream_from_ids(sequences, lengths, 1, &data));
  assert_ok(quantizer->vtable->export_model(quantizer, f.context, f.model, f.inputs));
  assert_ok(quantizer->vtable->make_quantizer(quantizer, f.context, &request));
  assert_ok(quantizer->vtable->prepare(quantizer, f.context));
  assert_ok(quantizer->vtable->calibrate(quantizer, f.context, data));
  for (size_t i = 0; i < GRAPHS; i++) {
    graphs[i].name = genai_example_inputs_graph(f.inputs, i);
    graphs[i].inputs = genai_example_inputs_tensors(f.inputs, i, &graphs[i].n_inputs);
    assert_ok(quantizer->vtable->convert(quantizer, f.context, graphs[i].name, graphs[i].inputs, graphs[i].n_inputs, &graphs[i].graph));
  }
  snprintf(directory, sizeof directory, "%s/%s", scratch_directory(), name);
  conform_compiler(compiler, graphs, GRAPHS, directory, files, &result);
  conform_runner(runner, &result.artifacts, files);
  genai_compile_result_deinit(&result);
  for (size_t i = 0; i < GRAPHS; i++) genai_object_release(graphs[i].graph);
  genai_sample_stream_release(data);
  quantizer->vtable->destroy(quantizer);
  unload_fixture(&f);
}

static inline void skip_without(const char* library) {
  char path[1024] = "";
  const char* folder = test_environment("GENAI_QNN_DIR");
  if (folder) snprintf(path, sizeof path, "%s/%s", folder, library);
  skip_unless_file(folder ? path : NULL);
}

#endif
