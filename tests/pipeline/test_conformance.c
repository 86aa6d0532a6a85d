/* One suite per adapter interface, run over every implementation: the engine's default adapters on the `llama` fixture, and stubs. What needs
 * Qualcomm's libraries is in test_executorch.c. */
#include "base/memory.h"
#include "model_copy.h"
#include "pipeline/executorch.h"
#include "pipeline/executorch_objects.h"
#include "pipeline/qairt.h"
#include "stubs.h"

static const genai_chipset soc = {"SM8650", "Snapdragon 8 Gen 3", 57, 75, 8, 6, true};
static const char* const small_options[][2] = {{"context", "32"}, {"prefill_ar", "8"}, {"threads", "1"}};
static stubs the_stubs;

/* ---- ModelLoader ---- */
static void check_loader(genai_model_loader* loader, const char* path) {
  genai_context* context = make_context(small_options, 3, NULL);
  const genai_options* options = genai_context_options(context);
  genai_object* loaded = NULL;
  genai_object* words = NULL;
  genai_example_inputs* inputs = NULL;
  assert_ok(loader->vtable->load_model(loader, context, path, options, &loaded));
  assert_non_null(loaded);
  assert_ok(loader->vtable->load_tokenizer(loader, context, loaded, &words));
  assert_ok(loader->vtable->get_example_inputs(loader, context, loaded, options, &inputs));
  assert_non_null(inputs);
  assert_int_equal(genai_example_inputs_graph_count(inputs), 2);
  assert_string_equal(genai_example_inputs_graph(inputs, 0), "kv_forward"); /* decode comes first */
  for (size_t i = 0; i < 2; i++) {
    size_t count;
    const genai_tensor_spec* specs = genai_example_inputs_tensors(inputs, i, &count);
    uint32_t ar, length;
    assert_ok(executorch_graph_lengths("g", specs, count, &ar, &length));
    assert_true(ar >= 1 && ar <= length);
  }
  if (words) {
    char* file = NULL;
    assert_ok(loader->vtable->export_tokenizer(loader, context, words, scratch_directory(), &file));
    assert_contains(file, "tokenizer.");
    genai_free(file);
  }
  genai_example_inputs_release(inputs);
  genai_object_release(words);
  genai_object_release(loaded);
  genai_context_destroy(context);
}

static void every_model_loader_conforms(void** state) {
  (void)state;
  genai_model_loader* loader;
  assert_ok(executorch_loader_create(&loader));
  check_loader(loader, test_data("checkpoints/llama"));
  check_loader(loader, test_data("checkpoints/llama")); /* a loader can be used again */
  loader->vtable->destroy(loader);
  stubs_init(&the_stubs);
  check_loader(&the_stubs.loader, "anything");
  stubs_deinit(&the_stubs);
}

static void example_inputs_come_from_the_model(void** state) {
  (void)state;
  genai_model_loader* loader;
  genai_object* loaded;
  genai_example_inputs* inputs;
  genai_context* context = make_context(small_options, 3, NULL);
  const genai_options* options = genai_context_options(context);
  assert_ok(executorch_loader_create(&loader));
  assert_ok(loader->vtable->load_model(loader, context, test_data("checkpoints/llama"), options, &loaded));
  assert_ok(loader->vtable->get_example_inputs(loader, context, loaded, options, &inputs));
  size_t count;
  const genai_tensor_spec* specs = genai_example_inputs_tensors(inputs, 1, &count);
  /* The fixture has 2 layers, 2 key-value heads of 16: tokens, mask, positions, keys, values. */
  assert_int_equal(count, 3 + 2 * 2);
  const struct {
    uint32_t rank, dims[4];
  } expected[] = {{2, {1, 8}},         {4, {1, 1, 8, 32}},  {2, {1, 8}},        {4, {1, 2, 16, 24}},
                  {4, {1, 2, 16, 24}}, {4, {1, 2, 24, 16}}, {4, {1, 2, 24, 16}}};
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(specs[i].rank, expected[i].rank);
    assert_memory_equal(specs[i].dims, expected[i].dims, expected[i].rank * sizeof(uint32_t));
  }
  genai_example_inputs_release(inputs);
  genai_object_release(loaded);
  genai_context_destroy(context);
  loader->vtable->destroy(loader);
}

/* ---- CalibrationData ---- */
static size_t read_stream(genai_sample_stream* stream, int32_t* ids, size_t capacity, size_t* samples, size_t* longest) {
  size_t total = 0;
  *samples = *longest = 0;
  for (bool end = false;;) {
    genai_sample sample;
    assert_ok(genai_sample_stream_next(stream, &sample, &end));
    if (end) break;
    assert_true(sample.n_ids > 0);
    ++*samples;
    if (sample.n_ids > *longest) *longest = sample.n_ids;
    for (size_t i = 0; i < sample.n_ids && total < capacity; i++) ids[total++] = sample.ids[i];
  }
  return total;
}

static void check_calibration(genai_calibration_data* data, genai_object* source, genai_object* words) {
  static int32_t first[100000], second[100000];
  genai_context* context = make_context(NULL, 0, NULL);
  genai_data_request request = {
      .model = source, .tokenizer = words, .n_samples = 3, .sequence_length = 40, .options = genai_context_options(context)};
  genai_sample_stream* stream;
  size_t samples, longest;
  assert_ok(data->vtable->generate(data, context, &request, &stream));
  size_t n = read_stream(stream, first, 100000, &samples, &longest);
  assert_true(n > 0 && samples <= 3 && longest <= 40);
  genai_sample_stream_release(stream);
  assert_ok(data->vtable->generate(data, context, &request, &stream)); /* deterministic */
  assert_int_equal(read_stream(stream, second, 100000, &samples, &longest), n);
  assert_memory_equal(first, second, n * sizeof *first);
  genai_sample_stream_release(stream);
  genai_context_destroy(context);
}

static void every_calibration_source_conforms(void** state) {
  (void)state;
  genai_model_loader* loader;
  genai_calibration_data* data;
  genai_object* loaded;
  genai_context* context = make_context(small_options, 3, NULL);
  assert_ok(executorch_loader_create(&loader));
  assert_ok(executorch_calibration_create(&data));
  assert_ok(loader->vtable->load_model(loader, context, test_data("checkpoints/llama"), genai_context_options(context), &loaded));
  check_calibration(data, loaded, NULL);
  const char* gguf = test_environment("GENAI_MODEL_GGUF");
  if (gguf) {
    genai_object* real;
    genai_object* words;
    assert_ok(loader->vtable->load_model(loader, context, gguf, genai_context_options(context), &real));
    assert_ok(loader->vtable->load_tokenizer(loader, context, real, &words));
    check_calibration(data, real, words);
    genai_object_release(words);
    genai_object_release(real);
  }
  genai_object_release(loaded);
  data->vtable->destroy(data);
  loader->vtable->destroy(loader);
  genai_context_destroy(context);
  stubs_init(&the_stubs);
  the_stubs.calibrating = true;
  check_calibration(&the_stubs.calibration, NULL, NULL);
  stubs_deinit(&the_stubs);
}

/* ---- Quantizer ---- */
static void check_quantizer(genai_quantizer* quantizer, genai_object* source, const genai_example_inputs* inputs, bool checks_order) {
  const genai_quantizer_vtable* v = quantizer->vtable;
  genai_context* context = make_context(small_options, 3, NULL);
  genai_quantizer_request request = {.backend = GENAI_BACKEND_HTP, .soc = &soc, .options = genai_context_options(context)};
  const int32_t ids[] = {1, 2, 3, 4, 5, 6, 7, 8};
  const int32_t* sequences[] = {ids};
  const size_t lengths[] = {8};
  genai_sample_stream* data;
  genai_object* graph = NULL;
  size_t count;
  const genai_tensor_spec* specs = genai_example_inputs_tensors(inputs, 0, &count);
  assert_ok(genai_sample_stream_from_ids(sequences, lengths, 1, &data));
  if (checks_order) {
    assert_fails(v->make_quantizer(quantizer, context, &request), GENAI_ERROR_INVALID_ARGUMENT, "export_model must come first");
    assert_ok(v->export_model(quantizer, context, source, inputs));
    assert_fails(v->prepare(quantizer, context), GENAI_ERROR_INVALID_ARGUMENT, "make_quantizer must come first");
    assert_ok(v->make_quantizer(quantizer, context, &request));
    assert_fails(v->calibrate(quantizer, context, data), GENAI_ERROR_INVALID_ARGUMENT, "prepare must come first");
    assert_ok(v->prepare(quantizer, context));
    assert_fails(v->convert(quantizer, context, "kv_forward", specs, count, &graph), GENAI_ERROR_INVALID_ARGUMENT,
                 "calibrate must come first");
  }
  assert_ok(v->export_model(quantizer, context, source, inputs));
  assert_ok(v->make_quantizer(quantizer, context, &request));
  assert_ok(v->prepare(quantizer, context));
  assert_ok(v->calibrate(quantizer, context, data));
  for (size_t i = 0; i < genai_example_inputs_graph_count(inputs); i++) {
    specs = genai_example_inputs_tensors(inputs, i, &count);
    assert_ok(v->convert(quantizer, context, genai_example_inputs_graph(inputs, i), specs, count, &graph));
    assert_non_null(graph);
    genai_object_release(graph);
  }
  genai_sample_stream_release(data);
  genai_context_destroy(context);
}

typedef struct loaded_fixture {
  genai_model_loader* loader;
  genai_context* context;
  genai_object* model;
  genai_example_inputs* inputs;
} loaded_fixture;

static void load_fixture(loaded_fixture* f) {
  f->context = make_context(small_options, 3, NULL);
  assert_ok(executorch_loader_create(&f->loader));
  assert_ok(
      f->loader->vtable->load_model(f->loader, f->context, test_data("checkpoints/llama"), genai_context_options(f->context), &f->model));
  assert_ok(f->loader->vtable->get_example_inputs(f->loader, f->context, f->model, genai_context_options(f->context), &f->inputs));
}

static void unload_fixture(loaded_fixture* f) {
  genai_example_inputs_release(f->inputs);
  genai_object_release(f->model);
  genai_context_destroy(f->context);
  f->loader->vtable->destroy(f->loader);
}

static void every_quantizer_conforms(void** state) {
  (void)state;
  loaded_fixture f;
  genai_quantizer* quantizer;
  load_fixture(&f);
  assert_ok(executorch_quantizer_create(&quantizer));
  check_quantizer(quantizer, f.model, f.inputs, true);
  check_quantizer(quantizer, f.model, f.inputs, false); /* a quantizer can be used again */
  quantizer->vtable->destroy(quantizer);
  stubs_init(&the_stubs);
  check_quantizer(&the_stubs.quantizer, f.model, f.inputs, false);
  stubs_deinit(&the_stubs);
  unload_fixture(&f);
}

static void kv_outputs_and_inputs_of_all_graphs_have_identical_encodings(void** state) {
  (void)state;
  loaded_fixture f;
  genai_quantizer* quantizer;
  genai_sample_stream* data;
  genai_object* graphs[2];
  const int32_t ids[] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
  const int32_t* sequences[] = {ids};
  const size_t lengths[] = {9};
  genai_quantizer_request request = {.backend = GENAI_BACKEND_HTP, .soc = &soc};
  load_fixture(&f);
  assert_ok(executorch_quantizer_create(&quantizer));
  const genai_quantizer_vtable* v = quantizer->vtable;
  assert_ok(genai_sample_stream_from_ids(sequences, lengths, 1, &data));
  assert_ok(v->export_model(quantizer, f.context, f.model, f.inputs));
  assert_ok(v->make_quantizer(quantizer, f.context, &request));
  assert_ok(v->prepare(quantizer, f.context));
  assert_ok(v->calibrate(quantizer, f.context, data));
  for (size_t i = 0; i < 2; i++) {
    size_t count;
    const genai_tensor_spec* specs = genai_example_inputs_tensors(f.inputs, i, &count);
    assert_ok(v->convert(quantizer, f.context, genai_example_inputs_graph(f.inputs, i), specs, count, &graphs[i]));
  }
  const executorch_graph* decode = genai_object_payload(graphs[0], &executorch_graph_type);
  const executorch_graph* prefill = genai_object_payload(graphs[1], &executorch_graph_type);
  assert_int_equal(decode->graph->ar_length, 1);
  assert_int_equal(prefill->graph->ar_length, 8);
  for (int32_t layer = 0; layer < 2; layer++) {
    static const ir_role roles[2][2] = {{IR_ROLE_KEY_OUT, IR_ROLE_KEY_IN}, {IR_ROLE_VALUE_OUT, IR_ROLE_VALUE_IN}};
    for (size_t r = 0; r < 2; r++) {
      const ir_tensor* reference = ir_graph_find_role(decode->graph, roles[r][0], layer);
      assert_int_equal(reference->encoding.kind, IR_ENCODING_PER_TENSOR);
      assert_true(ir_encoding_equal(&reference->encoding, &ir_graph_find_role(decode->graph, roles[r][1], layer)->encoding));
      assert_true(ir_encoding_equal(&reference->encoding, &ir_graph_find_role(prefill->graph, roles[r][0], layer)->encoding));
      assert_true(ir_encoding_equal(&reference->encoding, &ir_graph_find_role(prefill->graph, roles[r][1], layer)->encoding));
    }
  }
  genai_object_release(graphs[0]);
  genai_object_release(graphs[1]);
  genai_sample_stream_release(data);
  v->destroy(quantizer);
  unload_fixture(&f);
}

static void an_empty_calibration_set_is_an_error_and_an_unknown_model_type_too(void** state) {
  (void)state;
  loaded_fixture f;
  genai_quantizer* quantizer;
  genai_sample_stream* data;
  genai_object* stranger;
  genai_quantizer_request request = {.backend = GENAI_BACKEND_HTP, .soc = &soc};
  load_fixture(&f);
  assert_ok(executorch_quantizer_create(&quantizer));
  const genai_quantizer_vtable* v = quantizer->vtable;
  assert_ok(genai_object_create(&stub_model_type, NULL, &stranger));
  assert_fails(v->export_model(quantizer, f.context, stranger, f.inputs), GENAI_ERROR_INVALID_ARGUMENT, "\"stub.model\"");
  assert_ok(genai_sample_stream_from_ids(NULL, NULL, 0, &data));
  assert_ok(v->export_model(quantizer, f.context, f.model, f.inputs));
  assert_ok(v->make_quantizer(quantizer, f.context, &request));
  assert_ok(v->prepare(quantizer, f.context));
  assert_fails(v->calibrate(quantizer, f.context, data), GENAI_ERROR_INVALID_ARGUMENT, "no sample");
  genai_sample_stream_release(data);
  genai_object_release(stranger);
  v->destroy(quantizer);
  unload_fixture(&f);
}

/* What calibration finds out about `count` samples, as bytes. */
static void calibrated_bytes(const loaded_fixture* f, genai_sample_stream* data, text* out) {
  genai_quantizer* quantizer;
  genai_quantizer_request request = {.backend = GENAI_BACKEND_HTP, .soc = &soc};
  void* bytes;
  size_t size;
  assert_ok(executorch_quantizer_create(&quantizer));
  const genai_quantizer_vtable* v = quantizer->vtable;
  assert_ok(v->export_model(quantizer, f->context, f->model, f->inputs));
  assert_ok(v->make_quantizer(quantizer, f->context, &request));
  assert_ok(v->prepare(quantizer, f->context));
  assert_ok(v->calibrate(quantizer, f->context, data));
  assert_ok(v->save(quantizer, &bytes, &size));
  assert_ok(text_append(out, bytes, size));
  genai_free(bytes);
  genai_sample_stream_release(data);
  v->destroy(quantizer);
}

static void a_sample_longer_than_a_pass_counts_as_its_parts(void** state) {
  (void)state;
  enum { PASS = 256, LENGTH = 600 }; /* the fixture was trained on contexts of 256 */
  loaded_fixture f;
  int32_t ids[LENGTH];
  genai_sample_stream* data;
  text whole = {0}, parts = {0};
  for (int32_t i = 0; i < LENGTH; i++) ids[i] = i * 7 % 320;
  const int32_t* one[] = {ids};
  const int32_t* three[] = {ids, ids + PASS, ids + 2 * PASS};
  const size_t length[] = {LENGTH}, lengths[] = {PASS, PASS, LENGTH - 2 * PASS};
  load_fixture(&f);
  assert_ok(genai_sample_stream_from_ids(one, length, 1, &data));
  calibrated_bytes(&f, data, &whole);
  assert_ok(genai_sample_stream_from_ids(three, lengths, 3, &data));
  calibrated_bytes(&f, data, &parts);
  assert_int_equal(whole.length, parts.length);
  size_t different = 0;
  for (size_t i = 0; i < whole.length; i++) different += whole.data[i] != parts.data[i];
  assert_true(different <= sizeof(double)); /* the time it took */
  text_deinit(&whole);
  text_deinit(&parts);
  unload_fixture(&f);
}

/* With the lengths that both have by default, whatever the model's own. */
static void the_default_quantizer_takes_the_default_calibration_data(void** state) {
  (void)state;
  char directory[128];
  genai_model_loader* loader;
  genai_calibration_data* source;
  genai_sample_stream* data;
  genai_object* words;
  loaded_fixture f = {.context = make_context(small_options, 3, NULL)};
  const genai_options* options = genai_context_options(f.context);
  snprintf(directory, sizeof directory, "%s/model", scratch_directory());
  make_model(directory);
  assert_ok(executorch_loader_create(&loader));
  f.loader = loader;
  assert_ok(loader->vtable->load_model(loader, f.context, directory, options, &f.model));
  assert_ok(loader->vtable->load_tokenizer(loader, f.context, f.model, &words));
  assert_ok(loader->vtable->get_example_inputs(loader, f.context, f.model, options, &f.inputs));
  assert_ok(executorch_calibration_create(&source));
  genai_data_request request = {
      .model = f.model, .tokenizer = words, .n_samples = 4, .sequence_length = GENAI_DEFAULT_SEQUENCE_LENGTH, .options = options};
  assert_ok(source->vtable->generate(source, f.context, &request, &data));
  text bytes = {0};
  calibrated_bytes(&f, data, &bytes);
  assert_true(bytes.length > 0);
  text_deinit(&bytes);
  source->vtable->destroy(source);
  genai_object_release(words);
  unload_fixture(&f);
}

static genai_status* load_and_quantize(const genai_context* context) {
  genai_model_loader* loader = NULL;
  genai_quantizer* quantizer = NULL;
  genai_object* loaded = NULL;
  genai_object* graph = NULL;
  genai_example_inputs* inputs = NULL;
  genai_sample_stream* data = NULL;
  const genai_options* options = genai_context_options(context);
  const int32_t ids[] = {1, 2, 3};
  const int32_t* sequences[] = {ids};
  const size_t lengths[] = {3};
  genai_quantizer_request request = {.backend = GENAI_BACKEND_HTP, .soc = &soc, .options = options};
  genai_status* status = executorch_loader_create(&loader);
  if (!status) status = loader->vtable->load_model(loader, context, test_data("checkpoints/llama"), options, &loaded);
  if (!status) status = loader->vtable->get_example_inputs(loader, context, loaded, options, &inputs);
  if (!status) status = executorch_quantizer_create(&quantizer);
  if (!status) status = genai_sample_stream_from_ids(sequences, lengths, 1, &data);
  if (!status) status = quantizer->vtable->export_model(quantizer, context, loaded, inputs);
  if (!status) status = quantizer->vtable->make_quantizer(quantizer, context, &request);
  if (!status) status = quantizer->vtable->prepare(quantizer, context);
  if (!status) status = quantizer->vtable->calibrate(quantizer, context, data);
  for (size_t i = 0; !status && i < 2; i++) {
    size_t count;
    const genai_tensor_spec* specs = genai_example_inputs_tensors(inputs, i, &count);
    status = quantizer->vtable->convert(quantizer, context, genai_example_inputs_graph(inputs, i), specs, count, &graph);
    if (!status) genai_object_release(graph);
  }
  genai_sample_stream_release(data);
  if (quantizer) quantizer->vtable->destroy(quantizer);
  genai_example_inputs_release(inputs);
  genai_object_release(loaded);
  if (loader) loader->vtable->destroy(loader);
  return status;
}

static void every_failed_allocation_of_the_default_adapters_is_an_error_and_leaks_nothing(void** state) {
  (void)state;
  genai_context* context = make_context(small_options, 3, NULL);
  uint64_t before = mem_allocation_count();
  assert_ok(load_and_quantize(context));
  uint64_t allocations = mem_allocation_count() - before;
  assert_true(allocations > 100);
  uint64_t harmless = 0; /* giving memory back, such as a document's after parsing, may fail without harm */
  for (uint64_t n = 1; n <= allocations; n++) {
    mem_inject_failure(n);
    genai_status* status = load_and_quantize(context);
    mem_inject_failure(0);
    const genai_status* root = status;
    while (genai_status_cause(root)) root = genai_status_cause(root);
    harmless += !status;
    if (status && genai_status_kind(root) != GENAI_ERROR_OUT_OF_MEMORY)
      fail_msg("allocation %llu of %llu: %s", (unsigned long long)n, (unsigned long long)allocations, genai_status_message(root));
    genai_status_free(status);
  }
  assert_true(harmless <= allocations / 20);
  genai_context_destroy(context);
}

/* ---- DeviceRunner ---- */
static void check_runner_order(genai_device_runner* runner) {
  genai_context* context = make_context(NULL, 0, NULL);
  genai_execute_request execute = {0};
  genai_execute_result result = {0};
  genai_string_list files = {0};
  assert_fails(runner->vtable->execute(runner, context, &execute, &result), GENAI_ERROR_INVALID_ARGUMENT, "execute was called before push");
  assert_fails(runner->vtable->pull(runner, context, scratch_directory(), &files), GENAI_ERROR_INVALID_ARGUMENT,
               "pull was called before push");
  genai_context_destroy(context);
}

static void check_runner(genai_device_runner* runner, const char* missing_artifact, const char* suffix) {
  check_runner_order(runner);
  genai_context* context = make_context(NULL, 0, NULL);
  const char* const nothing[] = {"notes.txt"};
  const char* const missing[] = {missing_artifact};
  genai_push_request push = {.artifacts = nothing, .n_artifacts = 1};
  assert_fails(runner->vtable->push(runner, context, &push), GENAI_ERROR_INVALID_ARGUMENT, suffix);
  push.artifacts = missing;
  assert_fails(runner->vtable->push(runner, context, &push), GENAI_ERROR_NOT_FOUND, missing_artifact);
  check_runner_order(runner); /* a failed push leaves nothing there */
  genai_context_destroy(context);
  runner->vtable->destroy(runner);
}

static void execute_or_pull_before_push_is_an_error(void** state) {
  (void)state;
  genai_device_runner* runner;
  assert_ok(executorch_host_runner_create(&runner));
  check_runner(runner, "/nonexistent/a.sim.pte", ".pte");
  assert_ok(qairt_host_runner_create(&runner));
  check_runner(runner, "/nonexistent/a.sim.genie/genie_config.json", "genie");
}

/* ---- Compiler ---- */
static void check_refusals(genai_compiler* compiler) {
  genai_object* stranger;
  genai_context* context = make_context(NULL, 0, NULL);
  assert_ok(genai_object_create(&stub_graph_type, NULL, &stranger));
  genai_compile_graph graph = {.name = "kv_forward", .graph = stranger};
  genai_compile_request request = {.graphs = &graph,
                                   .n_graphs = 1,
                                   .artifact_directory = scratch_directory(),
                                   .file_name = "x",
                                   .soc = &soc,
                                   .backend = GENAI_BACKEND_HTP,
                                   .options = genai_context_options(context)};
  genai_compile_result result = {0};
  assert_fails(compiler->vtable->compile(compiler, context, &request, &result), GENAI_ERROR_INVALID_ARGUMENT, "\"stub.graph\"");
  request.n_graphs = 0;
  assert_fails(compiler->vtable->compile(compiler, context, &request, &result), GENAI_ERROR_INVALID_ARGUMENT, "0 graphs");
  request.n_graphs = 1;
  request.backend = GENAI_BACKEND_LPAI;
  assert_fails(compiler->vtable->compile(compiler, context, &request, &result), GENAI_ERROR_UNSUPPORTED, "not lpai");
  loaded_fixture f;
  load_fixture(&f);
  static const char* const passes[] = {"fold_everything"};
  size_t count;
  const genai_tensor_spec* specs = genai_example_inputs_tensors(f.inputs, 0, &count);
  graph =
      (genai_compile_graph){.name = "kv_forward", .graph = f.model, .inputs = specs, .n_inputs = count, .passes = passes, .n_passes = 1};
  request.backend = GENAI_BACKEND_HTP;
  assert_fails(compiler->vtable->compile(compiler, context, &request, &result), GENAI_ERROR_UNSUPPORTED, "fold_everything");
  unload_fixture(&f);
  genai_object_release(stranger);
  compiler->vtable->destroy(compiler);
  genai_context_destroy(context);
}

static void every_compiler_refuses_what_it_does_not_know(void** state) {
  (void)state;
  genai_compiler* compiler;
  assert_ok(executorch_compiler_create(&compiler));
  check_refusals(compiler);
  assert_ok(qairt_compiler_create(&compiler));
  check_refusals(compiler);
}

static int remove_scratch(void** state) {
  (void)state;
  char line[128];
  snprintf(line, sizeof line, "rm -rf %s", scratch_directory());
  return system(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_model_loader_conforms),
      cmocka_unit_test(example_inputs_come_from_the_model),
      cmocka_unit_test(every_calibration_source_conforms),
      cmocka_unit_test(every_quantizer_conforms),
      cmocka_unit_test(kv_outputs_and_inputs_of_all_graphs_have_identical_encodings),
      cmocka_unit_test(an_empty_calibration_set_is_an_error_and_an_unknown_model_type_too),
      cmocka_unit_test(a_sample_longer_than_a_pass_counts_as_its_parts),
      cmocka_unit_test(the_default_quantizer_takes_the_default_calibration_data),
      cmocka_unit_test(every_failed_allocation_of_the_default_adapters_is_an_error_and_leaks_nothing),
      cmocka_unit_test(execute_or_pull_before_push_is_an_error),
      cmocka_unit_test(every_compiler_refuses_what_it_does_not_know),
  };
  return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
