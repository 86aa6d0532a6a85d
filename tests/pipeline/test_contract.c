/* Rules of the pipeline contract that the other files here do not have by name: delegation, absent inputs of the later stages, what passes through,
 * errors of a missing engine, and what a library must never do to its caller's process. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "model_copy.h"
#include "pipeline/executorch.h"
#include "stubs.h"

static const genai_chipset soc = {"SM8650", "Snapdragon 8 Gen 3", 57, 75, 8, 6, true};
static const genai_backend backend = GENAI_BACKEND_HTP;

/* ---- A stage has a name and only delegates ---- */
static struct {
  const void* input;
  const genai_context* context;
  int destroyed;
} seen;

#define remember()          \
  do {                      \
    seen.input = input;     \
    seen.context = context; \
  } while (0)

static genai_status* own_prepare(genai_strategy* self, const genai_context* context, const genai_model_preparation_input* input,
                                 genai_model_preparation_output* output) {
  (void)self;
  remember();
  output->chat_template = genai_strdup("prepared");
  return NULL;
}
static genai_status* own_quantize(genai_strategy* self, const genai_context* context, const genai_quantization_input* input,
                                  genai_quantization_output* output) {
  (void)self;
  remember();
  return genai_graph_set_create(&output->model);
}
static genai_status* own_compile(genai_strategy* self, const genai_context* context, const genai_compilation_input* input,
                                 genai_compilation_output* output) {
  (void)self;
  remember();
  output->etrecord = genai_strdup("e.etrecord");
  return genai_string_list_add(&output->artifacts, "a.pte");
}
static genai_status* own_infer(genai_strategy* self, const genai_context* context, const genai_inference_input* input,
                               genai_inference_output* output) {
  (void)self;
  remember();
  output->run.etdump = genai_strdup("e.etdump");
  return genai_statistics_add(&output->run.evaluation, "perplexity", 12.5);
}
static void own_destroy(genai_strategy* self) {
  (void)self;
  seen.destroyed++;
}

static const genai_strategy_vtable own_vtables[GENAI_STAGE_COUNT] = {
    {.stage = GENAI_STAGE_MODEL_PREPARATION, .engine = "own", .prepare = own_prepare, .destroy = own_destroy},
    {.stage = GENAI_STAGE_QUANTIZATION, .engine = "own", .quantize = own_quantize, .destroy = own_destroy},
    {.stage = GENAI_STAGE_COMPILATION, .engine = "own", .compile = own_compile, .destroy = own_destroy},
    {.stage = GENAI_STAGE_INFERENCE, .engine = "own", .infer = own_infer, .destroy = own_destroy}};
static genai_strategy own_strategies[GENAI_STAGE_COUNT] = {{&own_vtables[0]}, {&own_vtables[1]}, {&own_vtables[2]}, {&own_vtables[3]}};

static void make_own_stages(genai_stage* stages[GENAI_STAGE_COUNT]) {
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++) assert_ok(genai_stage_create((genai_stage_kind)i, &own_strategies[i], &stages[i]));
}

static void a_stage_has_a_name_and_only_delegates_to_its_strategy(void** state) {
  (void)state;
  static const char* const names[] = {"model_preparation", "quantization", "compilation", "inference"};
  genai_context* context = make_context(NULL, 0, NULL);
  genai_stage* stages[GENAI_STAGE_COUNT];
  make_own_stages(stages);
  memset(&seen, 0, sizeof seen);
  genai_model_preparation_input prepare_input = {0};
  genai_model_preparation_output prepared;
  assert_ok(genai_model_preparation_invoke(stages[0], context, &prepare_input, &prepared)); /* what is missing, the strategy judges */
  assert_ptr_equal(seen.input, &prepare_input);
  assert_ptr_equal(seen.context, context);
  assert_string_equal(prepared.chat_template, "prepared");
  genai_quantization_input quantize_input = {0};
  genai_quantization_output quantized;
  assert_ok(genai_quantization_invoke(stages[1], context, &quantize_input, &quantized));
  assert_ptr_equal(seen.input, &quantize_input);
  assert_non_null(quantized.model);
  genai_compilation_input compile_input = {0};
  genai_compilation_output compiled;
  assert_ok(genai_compilation_invoke(stages[2], context, &compile_input, &compiled));
  assert_ptr_equal(seen.input, &compile_input);
  assert_int_equal(compiled.artifacts.count, 1);
  genai_inference_input infer_input = {0};
  genai_inference_output inferred;
  assert_ok(genai_inference_invoke(stages[3], context, &infer_input, &inferred));
  assert_ptr_equal(seen.input, &infer_input);
  genai_model_preparation_output_deinit(&prepared);
  genai_quantization_output_deinit(&quantized);
  genai_compilation_output_deinit(&compiled);
  genai_inference_output_deinit(&inferred);
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++) {
    assert_string_equal(genai_stage_name(genai_stage_kind_of(stages[i])), names[i]);
    assert_string_equal(genai_stage_engine(stages[i]), "own");
    assert_ptr_equal(genai_stage_strategy(stages[i]), &own_strategies[i]);
    genai_stage_destroy(stages[i]);
  }
  assert_int_equal(seen.destroyed, 4);
  genai_context_destroy(context);
}

static void etrecord_etdump_and_evaluation_come_out_as_the_strategies_gave_them(void** state) {
  (void)state;
  genai_stage* stages[GENAI_STAGE_COUNT];
  genai_pipeline* pipeline;
  genai_compilation_output compiled;
  genai_compilation_input input = {0};
  genai_inference_output out;
  double perplexity = 0;
  genai_context* context = make_context(NULL, 0, NULL);
  make_own_stages(stages);
  assert_ok(genai_compilation_invoke(stages[2], context, &input, &compiled));
  assert_string_equal(compiled.etrecord, "e.etrecord");
  genai_compilation_output_deinit(&compiled);
  assert_ok(genai_pipeline_from_stages(stages, GENAI_BACKEND_HTP, &pipeline));
  assert_ok(genai_pipeline_invoke(pipeline, context, &out, NULL));
  assert_string_equal(out.run.etdump, "e.etdump");
  assert_true(genai_statistics_get(&out.run.evaluation, "perplexity", &perplexity) && perplexity == 12.5);
  genai_inference_output_deinit(&out);
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
}

/* ---- Inputs ---- */
static void an_absent_input_of_compilation_is_an_error_that_names_the_adapter_call(void** state) {
  (void)state;
  stubs s;
  genai_stage* stage;
  genai_object* prepared;
  genai_example_inputs* inputs;
  genai_compilation_output out;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  assert_ok(genai_registry_create_stage(genai_registry_default(), GENAI_STAGE_COMPILATION, "executorch", &s.adapters, &stage));
  assert_ok(genai_object_create(&stub_model_type, NULL, &prepared));
  assert_ok(genai_example_inputs_create(&inputs)); /* empty, which is allowed */
  const genai_compilation_input whole = {.prepared_model = prepared, .example_inputs = inputs, .soc = &soc, .backend = &backend};
  assert_ok(genai_compilation_invoke(stage, context, &whole, &out));
  genai_compilation_output_deinit(&out);
  text_clear(&s.trace);
  genai_compilation_input input = whole;
  input.prepared_model = NULL;
  assert_fails(genai_compilation_invoke(stage, context, &input, &out), GENAI_ERROR_STAGE, "Quantizer.convert");
  input = whole;
  input.example_inputs = NULL;
  assert_fails(genai_compilation_invoke(stage, context, &input, &out), GENAI_ERROR_STAGE, "ModelLoader.get_example_inputs");
  input = whole;
  input.soc = NULL;
  assert_fails(genai_compilation_invoke(stage, context, &input, &out), GENAI_ERROR_STAGE, "the SoC is missing");
  input = whole;
  input.backend = NULL;
  assert_fails(genai_compilation_invoke(stage, context, &input, &out), GENAI_ERROR_STAGE, "the backend type is missing");
  assert_string_equal(stubs_trace(&s), "");
  genai_example_inputs_release(inputs);
  genai_object_release(prepared);
  genai_stage_destroy(stage);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void inference_requires_the_soc(void** state) {
  (void)state;
  stubs s;
  genai_stage* stage;
  genai_inference_output out;
  static const char* const artifacts[] = {"a.pte"};
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  assert_ok(genai_registry_create_stage(genai_registry_default(), GENAI_STAGE_INFERENCE, "executorch", &s.adapters, &stage));
  genai_inference_input input = {.artifacts = artifacts, .n_artifacts = 1};
  assert_fails(genai_inference_invoke(stage, context, &input, &out), GENAI_ERROR_STAGE, "the SoC is missing");
  input.soc = &soc;
  assert_ok(genai_inference_invoke(stage, context, &input, &out));
  genai_inference_output_deinit(&out);
  genai_stage_destroy(stage);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void the_runtime_tokenizer_is_a_file_of_a_preferred_name(void** state) {
  (void)state;
  char directory[128], *path;
  genai_model_loader* loader;
  genai_object *loaded, *words;
  genai_context* context = make_context(NULL, 0, NULL);
  snprintf(directory, sizeof directory, "%s/model", scratch_directory());
  make_model(directory);
  assert_ok(executorch_loader_create(&loader));
  assert_ok(loader->vtable->load_model(loader, context, directory, genai_context_options(context), &loaded));
  assert_ok(loader->vtable->load_tokenizer(loader, context, loaded, &words));
  snprintf(directory, sizeof directory, "%s/new/folder", scratch_directory());
  assert_ok(loader->vtable->export_tokenizer(loader, context, words, directory, &path));
  assert_string_equal(path_base_name(path), "tokenizer.json");
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  assert_true(S_ISREG(info.st_mode) && info.st_size > 0);
  genai_free(path);
  genai_object_release(words);
  genai_object_release(loaded);
  loader->vtable->destroy(loader);
  genai_context_destroy(context);
}

/* ---- Errors ---- */
static void an_engine_without_its_libraries_says_what_was_searched_where_and_how_to_get_it(void** state) {
  (void)state;
  char directory[128];
  stubs s;
  stubs_init(&s);
  s.adapters.compiler = NULL; /* the engine's own */
  snprintf(directory, sizeof directory, "%s/nothing here", scratch_directory());
  assert_ok(directory_create(directory));
  const char* const options[][2] = {{"qnn_dir", directory}};
  genai_context* context = make_context(options, 1, NULL);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  genai_status* status = genai_pipeline_invoke(pipeline, context, NULL, NULL);
  assert_int_equal(genai_status_kind(status), GENAI_ERROR_ENGINE_NOT_AVAILABLE);
  assert_contains(genai_status_message(status), "libQnnHtp.so");
  assert_contains(genai_status_message(status), directory);
  assert_contains(genai_status_message(status), "make setup");
  assert_string_equal(stubs_trace(&s), ""); /* before any stage */
  genai_status_free(status);
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

/* ---- The caller's process ---- */
static size_t count_entries(const char* directory) {
  size_t count = 0;
  DIR* entries = opendir(directory);
  while (readdir(entries)) count++;
  closedir(entries);
  return count;
}

/* Preparation and quantization for real, which use threads; then a failure. */
static genai_status* prepare_and_quantize(const char* model, const char* calibration_samples) {
  genai_context_builder* builder;
  genai_context* context = NULL;
  genai_engine_proxy* proxy = NULL;
  genai_pipeline* pipeline = NULL;
  const char* const options[][2] = {{"threads", "4"}, {"reuse", "false"}, {"calibration_samples", calibration_samples}};
  genai_pipeline_options how = {.skip_stages = 1u << GENAI_STAGE_COMPILATION | 1u << GENAI_STAGE_INFERENCE};
  GENAI_TRY(genai_context_builder_create(&builder));
  genai_status* status = genai_context_builder_set_model(builder, model);
  if (!status) status = genai_context_builder_set_soc(builder, "SM8650");
  if (!status) status = genai_context_builder_set_no_inference(builder);
  if (!status) status = genai_context_builder_set_artifact_directory(builder, scratch_directory());
  for (size_t i = 0; !status && i < 3; i++) status = genai_context_builder_set_option(builder, options[i][0], options[i][1]);
  if (!status) status = genai_context_builder_build(builder, &context);
  if (!status) status = genai_engine_proxy_create(NULL, 0, GENAI_BACKEND_HTP, &proxy);
  if (!status) status = genai_pipeline_from_proxy(proxy, &how, &pipeline);
  if (!status) status = genai_pipeline_invoke(pipeline, context, NULL, NULL);
  genai_pipeline_destroy(pipeline);
  genai_engine_proxy_destroy(proxy);
  genai_context_destroy(context);
  genai_context_builder_destroy(builder);
  return status;
}

static void no_call_prints_or_leaves_a_thread_or_an_open_file_behind(void** state) {
  (void)state;
  char said[128];
  struct stat info;
  snprintf(said, sizeof said, "%s/said", scratch_directory());
  assert_ok(prepare_and_quantize(test_data("checkpoints/llama"), "1")); /* libraries below start what they keep */
  size_t threads = count_entries("/proc/self/task"), descriptors = count_entries("/proc/self/fd");
  fflush(stdout);
  fflush(stderr);
  int out = dup(STDOUT_FILENO), error = dup(STDERR_FILENO), file = open(said, O_RDWR | O_CREAT | O_TRUNC, 0600);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  genai_status* good = prepare_and_quantize(test_data("checkpoints/llama"), "1");
  genai_status* missing = prepare_and_quantize("/nonexistent", "1");
  genai_status* wrong = prepare_and_quantize(test_data("checkpoints/llama"), "none");
  genai_status* damaged = prepare_and_quantize(test_data("checkpoints/llama/config.json"), "1"); /* not a checkpoint */
  fflush(stdout);
  fflush(stderr);
  dup2(out, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  assert_int_equal(fstat(file, &info), 0);
  assert_int_equal(info.st_size, 0);
  close(out);
  close(error);
  close(file);
  assert_ok(good);
  assert_fails(missing, GENAI_ERROR_CONFIG_VALIDATION, "/nonexistent");
  assert_fails(wrong, GENAI_ERROR_CONFIG_VALIDATION, "calibration_samples");
  assert_fails(damaged, GENAI_ERROR_STAGE, "cannot prepare");
  assert_int_equal(count_entries("/proc/self/task"), threads);
  assert_int_equal(count_entries("/proc/self/fd"), descriptors);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_stage_has_a_name_and_only_delegates_to_its_strategy),
      cmocka_unit_test(etrecord_etdump_and_evaluation_come_out_as_the_strategies_gave_them),
      cmocka_unit_test(an_absent_input_of_compilation_is_an_error_that_names_the_adapter_call),
      cmocka_unit_test(inference_requires_the_soc),
      cmocka_unit_test(the_runtime_tokenizer_is_a_file_of_a_preferred_name),
      cmocka_unit_test(an_engine_without_its_libraries_says_what_was_searched_where_and_how_to_get_it),
      cmocka_unit_test(no_call_prints_or_leaves_a_thread_or_an_open_file_behind),
  };
  return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
