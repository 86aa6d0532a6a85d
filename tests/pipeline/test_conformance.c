/* The suites of conformance.h over genai's own adapters, stubs, and adapters that only tests have; and what genai's own promise beyond. Those of
 * the examples and of Genie are in files of their own. What needs Qualcomm's libraries skips without them. */
#include "fixture.h"
#include "model_copy.h"
#include "pipeline/executorch_objects.h"
#include "pipeline/qairt.h"

static stubs the_stubs;

/* ---- ModelLoader ---- */
static void every_model_loader_conforms(void** state) {
  (void)state;
  char directory[128];
  genai_model_loader* loader;
  assert_ok(executorch_loader_create(&loader));
  conform_model_loader(loader, test_data("checkpoints/llama"), "/nonexistent/model", true); /* without a tokenizer */
  snprintf(directory, sizeof directory, "%s/with_tokenizer", scratch_directory());
  make_model(directory);
  conform_model_loader(loader, directory, "/nonexistent/model", true);
  loader->vtable->destroy(loader);
  stubs_init(&the_stubs);
  conform_model_loader(&the_stubs.loader, "anything", NULL, false);
  stubs_deinit(&the_stubs);
}

/* What the executorch engine's strategies need of a signature. */
static void the_graphs_are_decode_and_prefill(void** state) {
  (void)state;
  loaded_fixture f;
  load_fixture(&f);
  assert_int_equal(genai_example_inputs_graph_count(f.inputs), 2);
  assert_string_equal(genai_example_inputs_graph(f.inputs, 0), "kv_forward"); /* decode comes first */
  for (size_t i = 0; i < 2; i++) {
    size_t count;
    const genai_tensor_spec* specs = genai_example_inputs_tensors(f.inputs, i, &count);
    uint32_t ar, length;
    assert_ok(executorch_graph_lengths("g", specs, count, &ar, &length));
    assert_int_equal(ar, i ? 8 : 1);
    assert_int_equal(length, 32);
  }
  unload_fixture(&f);
}

static void example_inputs_come_from_the_model(void** state) {
  (void)state;
  genai_model_loader* loader;
  genai_object* loaded;
  genai_example_inputs* inputs;
  genai_context* context = conformance_context(NULL);
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
static void every_calibration_source_conforms(void** state) {
  (void)state;
  genai_model_loader* loader;
  genai_calibration_data* data;
  genai_object* loaded;
  genai_context* context = conformance_context(NULL);
  assert_ok(executorch_loader_create(&loader));
  assert_ok(executorch_calibration_create(&data));
  assert_ok(loader->vtable->load_model(loader, context, test_data("checkpoints/llama"), genai_context_options(context), &loaded));
  conform_calibration_data(data, loaded, NULL);
  const char* gguf = test_environment("GENAI_MODEL_GGUF");
  if (gguf) {
    genai_object* real;
    genai_object* words;
    assert_ok(loader->vtable->load_model(loader, context, gguf, genai_context_options(context), &real));
    assert_ok(loader->vtable->load_tokenizer(loader, context, real, &words));
    conform_calibration_data(data, real, words);
    genai_object_release(words);
    genai_object_release(real);
  }
  genai_object_release(loaded);
  data->vtable->destroy(data);
  loader->vtable->destroy(loader);
  genai_context_destroy(context);
  stubs_init(&the_stubs);
  the_stubs.calibrating = true;
  conform_calibration_data(&the_stubs.calibration, NULL, NULL);
  stubs_deinit(&the_stubs);
}

/* ---- TrainingData ---- */
/* What a caller may write: windows of a text, each id labelled with the next one. */
typedef struct next_token_data {
  genai_training_data base;
  const char* words;
} next_token_data;
typedef struct next_token_stream {
  int32_t* ids;
  size_t count, at, window, left;
} next_token_stream;

static genai_status* next_window(void* user, genai_sample* out, bool* end) {
  next_token_stream* self = user;
  size_t rest = self->count - self->at;
  *end = !self->left || rest < 2;
  if (*end) return NULL;
  size_t length = rest - 1 < self->window ? rest - 1 : self->window;
  *out = (genai_sample){self->ids + self->at, length, self->ids + self->at + 1, length};
  self->at += length;
  self->left--;
  return NULL;
}

static void close_windows(void* user) {
  genai_free(((next_token_stream*)user)->ids);
  genai_free(user);
}

static genai_status* generate_windows(genai_training_data* base, const genai_context* context, const genai_data_request* request,
                                      genai_sample_stream** out) {
  static const genai_sample_stream_vtable vtable = {next_window, close_windows};
  (void)context;
  next_token_stream* self = genai_alloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  *self = (next_token_stream){.window = request->sequence_length, .left = request->n_samples};
  genai_status* status = genai_tokenizer_encode(request->tokenizer, ((next_token_data*)base)->words, true, &self->ids, &self->count);
  if (!status) status = genai_sample_stream_create(&vtable, self, out);
  if (status) close_windows(self);
  return status;
}

static void every_source_of_training_data_conforms(void** state) {
  (void)state;
  static const genai_training_data_vtable vtable = {generate_windows, NULL};
  next_token_data own = {{&vtable}, "the water moves around the earth in a cycle that never ends"};
  char path[128];
  genai_object* words;
  snprintf(path, sizeof path, "%s/letters.json", scratch_directory());
  write_letter_tokenizer(path);
  assert_ok(genai_tokenizer_open(path, &words));
  conform_training_data(&own.base, NULL, words);
  genai_object_release(words);
  stubs_init(&the_stubs);
  stubs_train(&the_stubs);
  conform_training_data(&the_stubs.training, NULL, NULL);
  stubs_deinit(&the_stubs);
}

/* ---- Quantizer ---- */
static void every_quantizer_conforms(void** state) {
  (void)state;
  loaded_fixture f;
  genai_quantizer* quantizer;
  load_fixture(&f);
  assert_ok(executorch_quantizer_create(&quantizer));
  conform_quantizer(quantizer, f.model, f.inputs, true);
  quantizer->vtable->destroy(quantizer);
  stubs_init(&the_stubs);
  conform_quantizer(&the_stubs.quantizer, f.model, f.inputs, false);
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
  genai_quantizer_request request = {.backend = GENAI_BACKEND_HTP, .soc = &conformance_soc};
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
  genai_quantizer_request request = {.backend = GENAI_BACKEND_HTP, .soc = &conformance_soc};
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
  genai_quantizer_request request = {.backend = GENAI_BACKEND_HTP, .soc = &conformance_soc};
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
  loaded_fixture f = {.context = conformance_context(NULL)};
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
  genai_quantizer_request request = {.backend = GENAI_BACKEND_HTP, .soc = &conformance_soc, .options = options};
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
  genai_context* context = conformance_context(NULL);
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
static void check_push(genai_device_runner* runner, const char* missing_artifact, const char* suffix) {
  conform_runner_order(runner);
  genai_context* context = make_context(NULL, 0, NULL);
  const char* const nothing[] = {"notes.txt"};
  const char* const missing[] = {missing_artifact};
  genai_push_request push = {.artifacts = nothing, .n_artifacts = 1};
  assert_fails(runner->vtable->push(runner, context, &push), GENAI_ERROR_INVALID_ARGUMENT, suffix);
  push.artifacts = missing;
  assert_fails(runner->vtable->push(runner, context, &push), GENAI_ERROR_NOT_FOUND, missing_artifact);
  conform_runner_order(runner); /* a failed push leaves nothing there */
  genai_context_destroy(context);
  runner->vtable->destroy(runner);
}

static void a_push_that_fails_leaves_nothing_on_the_device(void** state) {
  (void)state;
  genai_device_runner* runner;
  assert_ok(executorch_host_runner_create(&runner));
  check_push(runner, "/nonexistent/a.sim.pte", ".pte");
  assert_ok(qairt_host_runner_create(&runner));
  check_push(runner, "/nonexistent/a.sim.genie/genie_config.json", "genie");
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
                                   .soc = &conformance_soc,
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

/* ---- Compilers and runners, with what the one gives the other ---- */
static void executorchs_compiler_and_runner_conform(void** state) {
  (void)state;
  genai_compiler* compiler;
  genai_device_runner* runner;
  skip_without("libQnnHtp.so");
  assert_ok(executorch_compiler_create(&compiler));
  assert_ok(executorch_host_runner_create(&runner));
  compile_and_run(compiler, runner, "executorch", true);
  compiler->vtable->destroy(compiler);
  runner->vtable->destroy(runner);
}

static void the_stubs_compiler_and_runner_conform(void** state) {
  (void)state;
  for (int gives = 0; gives < 2; gives++) { /* a runner may leave decoding to the caller: the pulled files are the results then */
    stubs_init(&the_stubs);
    the_stubs.gives_text = gives;
    compile_and_run(&the_stubs.compiler, &the_stubs.runner, "stubs", false);
    stubs_deinit(&the_stubs);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_model_loader_conforms),
      cmocka_unit_test(the_graphs_are_decode_and_prefill),
      cmocka_unit_test(example_inputs_come_from_the_model),
      cmocka_unit_test(every_calibration_source_conforms),
      cmocka_unit_test(every_source_of_training_data_conforms),
      cmocka_unit_test(every_quantizer_conforms),
      cmocka_unit_test(kv_outputs_and_inputs_of_all_graphs_have_identical_encodings),
      cmocka_unit_test(an_empty_calibration_set_is_an_error_and_an_unknown_model_type_too),
      cmocka_unit_test(a_sample_longer_than_a_pass_counts_as_its_parts),
      cmocka_unit_test(the_default_quantizer_takes_the_default_calibration_data),
      cmocka_unit_test(every_failed_allocation_of_the_default_adapters_is_an_error_and_leaks_nothing),
      cmocka_unit_test(a_push_that_fails_leaves_nothing_on_the_device),
      cmocka_unit_test(every_compiler_refuses_what_it_does_not_know),
      cmocka_unit_test(executorchs_compiler_and_runner_conform),
      cmocka_unit_test(the_stubs_compiler_and_runner_conform),
  };
  return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
