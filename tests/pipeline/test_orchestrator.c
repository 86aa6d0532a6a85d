/* Registry, engine proxy and orchestrator: the contract's sections "Stages, engines, strategies, adapters" and "Orchestrator". */
#include <fcntl.h>
#include <pthread.h>
#include <regex.h>
#include <sys/file.h>

#include "base/file.h"
#include "base/memory.h"
#include "stubs.h"

static void assert_matches(const char* string, const char* pattern) {
  regex_t compiled;
  assert_int_equal(regcomp(&compiled, pattern, REG_EXTENDED | REG_NEWLINE | REG_NOSUB), 0);
  int result = regexec(&compiled, string, 0, NULL, 0);
  regfree(&compiled);
  if (result) fail_msg("/%s/ does not match:\n%s", pattern, string);
}

/* ---- EngineProxy ---- */
static void an_unknown_stage_is_refused_with_the_valid_names(void** state) {
  (void)state;
  genai_engine_proxy* proxy;
  genai_engine_choice choice = {"compile", "executorch"};
  genai_status* status = genai_engine_proxy_create(&choice, 1, GENAI_BACKEND_HTP, &proxy);
  assert_int_equal(genai_status_kind(status), GENAI_ERROR_CONFIG_VALIDATION);
  assert_contains(genai_status_message(status), "model_preparation, quantization, compilation, inference");
  genai_status_free(status);
  choice = (genai_engine_choice){"compilation", " "};
  assert_fails(genai_engine_proxy_create(&choice, 1, GENAI_BACKEND_HTP, &proxy), GENAI_ERROR_CONFIG_VALIDATION, "blank");
  assert_fails(genai_engine_proxy_create(NULL, 0, (genai_backend)7, &proxy), GENAI_ERROR_CONFIG_VALIDATION, "htp, gpu or lpai");
}

static void stages_not_mentioned_use_executorch(void** state) {
  (void)state;
  genai_engine_proxy* proxy;
  genai_engine_choice choice = {"inference", "another"};
  assert_ok(genai_engine_proxy_create(&choice, 1, GENAI_BACKEND_GPU, &proxy));
  assert_string_equal(genai_engine_proxy_engine(proxy, GENAI_STAGE_INFERENCE), "another");
  assert_string_equal(genai_engine_proxy_engine(proxy, GENAI_STAGE_COMPILATION), "executorch");
  assert_int_equal(genai_engine_proxy_backend(proxy), GENAI_BACKEND_GPU);
  genai_engine_proxy_destroy(proxy);
}

static void backend_names_are_checked(void** state) {
  (void)state;
  genai_backend backend;
  assert_ok(genai_backend_find("lpai", &backend));
  assert_int_equal(backend, GENAI_BACKEND_LPAI);
  assert_fails(genai_backend_find("cpu", &backend), GENAI_ERROR_CONFIG_VALIDATION, "htp, gpu, lpai");
}

/* ---- Registry ---- */
static void a_missing_pair_names_stage_and_engine(void** state) {
  (void)state;
  genai_engine_proxy* proxy;
  genai_pipeline* pipeline;
  genai_engine_choice choice = {"compilation", "tvm"};
  assert_ok(genai_engine_proxy_create(&choice, 1, GENAI_BACKEND_HTP, &proxy));
  genai_status* status = genai_pipeline_from_proxy(proxy, NULL, &pipeline);
  assert_int_equal(genai_status_kind(status), GENAI_ERROR_ENGINE_NOT_AVAILABLE);
  assert_contains(genai_status_message(status), "\"tvm\"");
  assert_contains(genai_status_message(status), "stage compilation");
  assert_contains(genai_status_message(status), "executorch");
  genai_status_free(status);
  genai_engine_proxy_destroy(proxy);
}

/* An engine of the test's own for one stage. */
static int own_constructions, own_destructions;
static genai_status* own_infer(genai_strategy* self, const genai_context* context, const genai_inference_input* input,
                               genai_inference_output* output) {
  (void)self, (void)context, (void)input;
  return genai_string_list_add(&output->files, "made by the own engine");
}
static void own_destroy(genai_strategy* self) {
  own_destructions++;
  genai_free(self);
}
static genai_status* own_strategy(void* user, const genai_adapters* adapters, genai_strategy** out) {
  static const genai_option_spec options[] = {{"own_option", GENAI_OPTION_TEXT, 1u << GENAI_STAGE_INFERENCE, 0, 0, NULL, NULL, ""}};
  static const genai_strategy_vtable vtable = {
      .stage = GENAI_STAGE_INFERENCE, .engine = "own", .options = options, .n_options = 1, .infer = own_infer, .destroy = own_destroy};
  (void)adapters;
  ++*(int*)user;
  *out = genai_alloc(1, sizeof **out);
  (*out)->vtable = &vtable;
  return NULL;
}

static void callers_can_register_pairs_in_a_private_registry(void** state) {
  (void)state;
  genai_registry* registry;
  genai_engine_proxy* proxy;
  genai_pipeline* pipeline;
  genai_engine_choice choice = {"inference", "own"};
  own_constructions = own_destructions = 0;
  assert_ok(genai_registry_create(false, &registry));
  assert_false(genai_registry_has(registry, GENAI_STAGE_INFERENCE, "executorch"));
  assert_ok(genai_registry_register(registry, GENAI_STAGE_INFERENCE, "own", own_strategy, NULL, &own_constructions));
  assert_false(genai_registry_has(genai_registry_default(), GENAI_STAGE_INFERENCE, "own"));
  assert_ok(genai_engine_proxy_create(&choice, 1, GENAI_BACKEND_HTP, &proxy));
  genai_pipeline_options how = {.registry = registry, .skip_stages = 7};
  assert_ok(genai_pipeline_from_proxy(proxy, &how, &pipeline));
  assert_int_equal(own_constructions, 1);
  static const char* const options[][2] = {{"own_option", "x"}};
  genai_context* context = make_context(options, 1, NULL);
  genai_inference_output out;
  assert_ok(genai_pipeline_invoke(pipeline, context, &out, NULL));
  assert_string_equal(out.files.items[0], "made by the own engine");
  genai_inference_output_deinit(&out);
  genai_context_destroy(context);
  genai_pipeline_destroy(pipeline);
  assert_int_equal(own_destructions, 1);
  /* Without the rest of the engines, the other stages are missing. */
  how.skip_stages = 0;
  assert_fails(genai_pipeline_from_proxy(proxy, &how, &pipeline), GENAI_ERROR_ENGINE_NOT_AVAILABLE, "model_preparation");
  genai_engine_proxy_destroy(proxy);
  genai_registry_destroy(registry);
}

static genai_status* refuse_what_was_prepared(genai_strategy* self, const genai_context* context,
                                              const genai_fingerprint_request* request) {
  (void)self, (void)context;
  assert_non_null(request->prepared->model);
  assert_string_equal(request->soc->name, "SM8650");
  return genai_status_create(GENAI_ERROR_LIMIT, "too long for it");
}
static genai_status* own_refusing_strategy(void* user, const genai_adapters* adapters, genai_strategy** out) {
  static const genai_strategy_vtable vtable = {.stage = GENAI_STAGE_INFERENCE,
                                               .engine = "own",
                                               .infer = own_infer,
                                               .destroy = own_destroy,
                                               .check_prepared = refuse_what_was_prepared};
  (void)user, (void)adapters;
  *out = genai_alloc(1, sizeof **out);
  (*out)->vtable = &vtable;
  return NULL;
}

static void what_the_prepared_model_rules_out_is_said_before_the_stages_that_take_long(void** state) {
  (void)state;
  stubs s;
  genai_registry* registry;
  genai_engine_proxy* proxy;
  genai_pipeline* pipeline;
  genai_engine_choice choice = {"inference", "own"};
  stubs_init(&s);
  assert_ok(genai_registry_create(true, &registry));
  assert_ok(genai_registry_register(registry, GENAI_STAGE_INFERENCE, "own", own_refusing_strategy, NULL, NULL));
  assert_ok(genai_engine_proxy_create(&choice, 1, GENAI_BACKEND_HTP, &proxy));
  genai_pipeline_options how = {.registry = registry, .adapters = {&s.adapters, &s.adapters, &s.adapters, NULL}};
  assert_ok(genai_pipeline_from_proxy(proxy, &how, &pipeline));
  genai_context* context = make_context(NULL, 0, NULL);
  genai_pipeline_report report = {0};
  genai_status* status = genai_pipeline_invoke(pipeline, context, NULL, &report);
  assert_int_equal(genai_status_kind(status), GENAI_ERROR_STAGE);
  assert_string_equal(genai_status_stage(status), "inference");
  assert_int_equal(genai_status_kind(genai_status_cause(status)), GENAI_ERROR_LIMIT);
  assert_int_equal(report.stages[GENAI_STAGE_MODEL_PREPARATION].state, GENAI_STAGE_COMPLETED);
  for (unsigned i = GENAI_STAGE_QUANTIZATION; i < GENAI_STAGE_COUNT; i++) assert_int_equal(report.stages[i].state, GENAI_STAGE_NOT_REACHED);
  genai_status_free(status);
  genai_pipeline_report_deinit(&report);
  genai_context_destroy(context);
  genai_pipeline_destroy(pipeline);
  genai_engine_proxy_destroy(proxy);
  genai_registry_destroy(registry);
  stubs_deinit(&s);
}

static void a_registry_row_can_be_replaced(void** state) {
  (void)state;
  genai_registry* registry;
  genai_stage* stage;
  int first = 0, second = 0;
  assert_ok(genai_registry_create(false, &registry));
  assert_ok(genai_registry_register(registry, GENAI_STAGE_INFERENCE, "own", own_strategy, NULL, &first));
  assert_ok(genai_registry_register(registry, GENAI_STAGE_INFERENCE, "own", own_strategy, NULL, &second));
  assert_ok(genai_registry_create_stage(registry, GENAI_STAGE_INFERENCE, "own", NULL, &stage));
  assert_int_equal(first, 0);
  assert_int_equal(second, 1);
  genai_stage_destroy(stage);
  genai_registry_destroy(registry);
}

static void a_stage_refuses_a_strategy_of_another_stage(void** state) {
  (void)state;
  genai_strategy* strategy;
  genai_stage* stage;
  assert_ok(own_strategy(&own_constructions, NULL, &strategy));
  assert_fails(genai_stage_create(GENAI_STAGE_COMPILATION, strategy, &stage), GENAI_ERROR_INVALID_ARGUMENT, "a strategy for inference");
  own_destroy(strategy);
}

/* ---- Orchestrator ---- */
static void stages_run_in_order_and_the_inference_output_comes_out(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  genai_inference_output out;
  assert_ok(genai_pipeline_invoke(pipeline, context, &out, NULL));
  assert_string_equal(stubs_trace(&s),
                      "load_model;load_tokenizer;get_example_inputs;get_chat_template;export_tokenizer;generate;"
                      "export_model;make_quantizer;prepare;calibrate;convert;convert;compile;push;execute;pull;");
  assert_string_equal(out.run.generations[0].text, "Paris");
  genai_inference_output_deinit(&out);
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void adapters_are_injected_per_stage(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  /* Only the inference stage gets the stub runner; the compilation stage is skipped, so that no default adapter runs. */
  genai_engine_proxy* proxy;
  genai_pipeline* pipeline;
  genai_pipeline_options how = {.skip_stages = 7, .adapters = {[GENAI_STAGE_INFERENCE] = &s.adapters}};
  assert_ok(genai_engine_proxy_create(NULL, 0, GENAI_BACKEND_HTP, &proxy));
  assert_ok(genai_pipeline_from_proxy(proxy, &how, &pipeline));
  genai_engine_proxy_destroy(proxy);
  genai_context_builder* builder;
  genai_context* context;
  assert_ok(genai_context_builder_create(&builder));
  assert_ok(genai_context_builder_set_model(builder, "m"));
  assert_ok(genai_context_builder_set_soc(builder, "SM8650"));
  assert_ok(genai_context_builder_set_prompt(builder, "p"));
  assert_ok(genai_context_builder_add_artifact(builder, __FILE__)); /* exists */
  assert_ok(genai_context_builder_build(builder, &context));
  genai_context_builder_destroy(builder);
  assert_ok(genai_pipeline_invoke(pipeline, context, NULL, NULL));
  assert_string_equal(stubs_trace(&s), "push;execute;pull;");
  assert_contains(s.artifacts, __FILE__);
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void a_skipped_stage_has_no_output_and_the_next_one_decides(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  /* Without quantization the prepared model is compiled. */
  genai_pipeline* pipeline = make_pipeline(&s, 1u << GENAI_STAGE_QUANTIZATION);
  assert_ok(genai_pipeline_invoke(pipeline, context, NULL, NULL));
  assert_string_equal(s.compiled_type, "stub.model");
  genai_pipeline_destroy(pipeline);
  /* Without preparation quantization cannot run, and says what is absent. */
  pipeline = make_pipeline(&s, 1u << GENAI_STAGE_MODEL_PREPARATION);
  assert_fails(genai_pipeline_invoke(pipeline, context, NULL, NULL), GENAI_ERROR_STAGE, "ModelLoader.load_model");
  genai_pipeline_destroy(pipeline);
  /* Without compilation there is nothing to run. */
  pipeline = make_pipeline(&s, 1u << GENAI_STAGE_COMPILATION);
  assert_fails(genai_pipeline_invoke(pipeline, context, NULL, NULL), GENAI_ERROR_STAGE, "no artifact");
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void stages_can_be_given_directly_any_of_them_absent(void** state) {
  (void)state;
  genai_stage* stages[GENAI_STAGE_COUNT] = {0};
  genai_strategy* strategy;
  genai_pipeline* pipeline;
  assert_ok(own_strategy(&own_constructions, NULL, &strategy));
  assert_ok(genai_stage_create(GENAI_STAGE_INFERENCE, strategy, &stages[GENAI_STAGE_INFERENCE]));
  genai_stage* wrong[GENAI_STAGE_COUNT] = {stages[GENAI_STAGE_INFERENCE], NULL, NULL, NULL};
  assert_fails(genai_pipeline_from_stages(wrong, GENAI_BACKEND_HTP, &pipeline), GENAI_ERROR_INVALID_ARGUMENT,
               "inference stage stands where");
  assert_ok(genai_pipeline_from_stages(stages, GENAI_BACKEND_HTP, &pipeline));
  genai_context* context = make_context(NULL, 0, NULL);
  genai_inference_output out;
  assert_ok(genai_pipeline_invoke(pipeline, context, &out, NULL));
  assert_int_equal(out.files.count, 1);
  genai_inference_output_deinit(&out);
  genai_context_destroy(context);
  genai_pipeline_destroy(pipeline);
}

static void log_lines_tell_start_end_and_times(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  log_begin();
  assert_ok(genai_pipeline_invoke(pipeline, context, NULL, NULL));
  assert_logged("3 [GenAIPipeline] pipeline started\n");
  assert_logged("3 [GenAIPipeline] ModelPreparationStage started\n");
  assert_logged("3 [GenAIPipeline] CompilationStage started\n");
  assert_matches(log_lines.data, "^3 \\[GenAIPipeline\\] CompilationStage completed in [0-9]+\\.[0-9]+s$");
  assert_matches(log_lines.data, "^3 \\[GenAIPipeline\\] pipeline completed in 0\\.[0-9]{3,6}s$");
  log_end();
  s.fail_at = "compile";
  log_begin();
  assert_fails(genai_pipeline_invoke(pipeline, context, NULL, NULL), GENAI_ERROR_STAGE, "");
  assert_matches(log_lines.data, "^1 \\[GenAIPipeline\\] CompilationStage failed after 0\\.[0-9]{3,6}s$");
  assert_matches(log_lines.data, "^1 \\[GenAIPipeline\\] pipeline failed after 0\\.[0-9]{3,6}s$");
  assert_null(strstr(log_lines.data, "InferenceStage"));
  log_end();
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void timings_are_in_the_result_also_for_a_failing_stage(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  s.fail_at = "compile";
  genai_context* context = make_context(NULL, 0, NULL);
  genai_pipeline* pipeline = make_pipeline(&s, 1u << GENAI_STAGE_QUANTIZATION);
  genai_pipeline_report report = {0};
  assert_fails(genai_pipeline_invoke(pipeline, context, NULL, &report), GENAI_ERROR_STAGE, "compile");
  assert_int_equal(report.stages[GENAI_STAGE_MODEL_PREPARATION].state, GENAI_STAGE_COMPLETED);
  assert_int_equal(report.stages[GENAI_STAGE_QUANTIZATION].state, GENAI_STAGE_SKIPPED);
  assert_int_equal(report.stages[GENAI_STAGE_COMPILATION].state, GENAI_STAGE_FAILED);
  assert_int_equal(report.stages[GENAI_STAGE_INFERENCE].state, GENAI_STAGE_NOT_REACHED);
  assert_true(report.stages[GENAI_STAGE_COMPILATION].seconds > 0);
  assert_true(report.stages[GENAI_STAGE_COMPILATION].seconds < report.seconds);
  assert_true(report.stages[GENAI_STAGE_COMPILATION].peak_memory_bytes > 0);
  assert_string_equal(report.runtime_tokenizer, "tokenizer.json");
  s.fail_at = NULL;
  assert_ok(genai_pipeline_invoke(pipeline, context, NULL, &report)); /* a report can be used again */
  assert_int_equal(report.stages[GENAI_STAGE_INFERENCE].state, GENAI_STAGE_COMPLETED);
  assert_int_equal(report.artifacts.count, 1);
  double graphs;
  assert_true(genai_statistics_get(&report.statistics, "graphs", &graphs));
  assert_int_equal((int)graphs, 2);
  genai_pipeline_report_deinit(&report);
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

/* What is wrong with a run's options is found before any adapter is called. */
static void expect_refused(const char* soc, const char* key, const char* value, const char* needle) {
  stubs s;
  stubs_init(&s);
  genai_context_builder* builder;
  genai_context* context;
  assert_ok(genai_context_builder_create(&builder));
  assert_ok(genai_context_builder_set_model(builder, "m"));
  assert_ok(genai_context_builder_set_soc(builder, soc));
  assert_ok(genai_context_builder_set_prompt(builder, "p"));
  if (key) assert_ok(genai_context_builder_set_option(builder, key, value));
  assert_ok(genai_context_builder_build(builder, &context));
  genai_context_builder_destroy(builder);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  assert_fails(genai_pipeline_invoke(pipeline, context, NULL, NULL), GENAI_ERROR_CONFIG_VALIDATION, needle);
  assert_string_equal(stubs_trace(&s), "");
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void everything_that_can_be_validated_before_the_first_stage_is(void** state) {
  (void)state;
  expect_refused("SM8560", NULL, NULL, "SM8650");
  expect_refused("SM8650", "recepie", "16a8w", "did you mean \"recipe\"");
  expect_refused("SM8650", "context", "1", "from 2 to");
  expect_refused("SM8650", "prefill_ar", "512", "smaller than the context");
  expect_refused("SM8650", "mode", "lookahead", "kv|hybrid");
  expect_refused("SM8650", "calibration_file", "/nonexistent/text", "not a file");
  expect_refused("SM8650", "qat", "true", "training data");
}

static void the_default_adapters_check_model_and_recipe_before_the_first_stage(void** state) {
  (void)state;
  genai_engine_proxy* proxy;
  genai_pipeline* pipeline;
  genai_pipeline_options how = {.skip_stages = 1u << GENAI_STAGE_COMPILATION | 1u << GENAI_STAGE_INFERENCE};
  assert_ok(genai_engine_proxy_create(NULL, 0, GENAI_BACKEND_HTP, &proxy));
  assert_ok(genai_pipeline_from_proxy(proxy, &how, &pipeline));
  genai_context* context = make_context(NULL, 0, NULL);
  assert_fails(genai_pipeline_invoke(pipeline, context, NULL, NULL), GENAI_ERROR_CONFIG_VALIDATION, "\"a model\" does not exist");
  genai_context_destroy(context);
  genai_pipeline_destroy(pipeline);
  how.skip_stages = 0xd;
  assert_ok(genai_pipeline_from_proxy(proxy, &how, &pipeline));
  static const char* const options[][2] = {{"recipe", "16a8v"}};
  context = make_context(options, 1, NULL);
  assert_fails(genai_pipeline_invoke(pipeline, context, NULL, NULL), GENAI_ERROR_CONFIG_VALIDATION, "16a8w");
  genai_context_destroy(context);
  genai_pipeline_destroy(pipeline);
  genai_engine_proxy_destroy(proxy);
}

static void a_prompt_is_needed_when_inference_runs(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context_builder* builder;
  genai_context* context;
  assert_ok(genai_context_builder_create(&builder));
  assert_ok(genai_context_builder_set_model(builder, "m"));
  assert_ok(genai_context_builder_set_soc(builder, "SM8650"));
  assert_ok(genai_context_builder_set_no_inference(builder));
  assert_ok(genai_context_builder_set_artifact_directory(builder, scratch_directory()));
  assert_ok(genai_context_builder_build(builder, &context));
  genai_context_builder_destroy(builder);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  assert_fails(genai_pipeline_invoke(pipeline, context, NULL, NULL), GENAI_ERROR_CONFIG_VALIDATION, "no prompt");
  genai_pipeline_destroy(pipeline);
  pipeline = make_pipeline(&s, 1u << GENAI_STAGE_INFERENCE);
  assert_ok(genai_pipeline_invoke(pipeline, context, NULL, NULL));
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

/* ---- Cancellation and the lock ---- */
static void a_cancelled_run_has_cancelled_in_its_chain(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_cancel* cancel;
  assert_ok(genai_cancel_create(&cancel));
  genai_context* context = make_context(NULL, 0, cancel);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  s.cancel_at_convert = cancel;
  genai_status* status = genai_pipeline_invoke(pipeline, context, NULL, NULL);
  assert_int_equal(genai_status_kind(status), GENAI_ERROR_STAGE);
  assert_string_equal(genai_status_stage(status), "quantization");
  assert_int_equal(genai_status_kind(genai_status_cause(status)), GENAI_ERROR_CANCELLED);
  genai_status_free(status);
  assert_null(strstr(stubs_trace(&s), "compile"));
  /* Set before the run: the first stage does not begin. */
  text_clear(&s.trace);
  status = genai_pipeline_invoke(pipeline, context, NULL, NULL);
  assert_int_equal(genai_status_kind(genai_status_cause(status)), GENAI_ERROR_CANCELLED);
  assert_string_equal(stubs_trace(&s), "");
  genai_status_free(status);
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  genai_cancel_destroy(cancel);
  stubs_deinit(&s);
}

static void two_runs_in_one_directory_do_not_collide(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  char path[128];
  snprintf(path, sizeof path, "%s/.genai.lock", scratch_directory());
  int other = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
  assert_fails(genai_pipeline_invoke(pipeline, context, NULL, NULL), GENAI_ERROR_IO, "in use by another run");
  assert_string_equal(stubs_trace(&s), "");
  close(other);
  assert_ok(genai_pipeline_invoke(pipeline, context, NULL, NULL));
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void leftovers_of_a_killed_run_are_removed(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  enum { LEFT_BEHIND = 3, COUNT = 8 };
  static const char* const names[COUNT] = {"model.SM8650.pte.genai-tmp.a1B2c3",
                                           "tokenizer.json.genai-tmp.XyZ123",
                                           "model.SM8650.genie/model.bin.genai-tmp.abc123",
                                           "model.SM8650.pte",
                                           "model.SM8650.pte.backup", /* a user's own, and as long as mkstemp's */
                                           "tokenizer.json.before",
                                           "notes.txt.abcdef",
                                           "x.pte.genai-tmp.abc"};
  char paths[COUNT][128];
  snprintf(paths[0], sizeof paths[0], "%s/model.SM8650.genie", scratch_directory());
  assert_ok(directory_create(paths[0]));
  for (size_t i = 0; i < COUNT; i++) {
    snprintf(paths[i], sizeof paths[i], "%s/%s", scratch_directory(), names[i]);
    assert_ok(file_write_atomic(paths[i], "x", 1));
  }
  genai_context* context = make_context(NULL, 0, NULL);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  assert_ok(genai_pipeline_invoke(pipeline, context, NULL, NULL));
  for (size_t i = 0; i < LEFT_BEHIND; i++) assert_false(file_exists(paths[i]));
  for (size_t i = LEFT_BEHIND; i < COUNT; i++) {
    assert_true(file_exists(paths[i]));
    unlink(paths[i]);
  }
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void an_artifact_directory_that_cannot_be_made_is_an_error(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context_builder* builder;
  genai_context* context;
  assert_ok(genai_context_builder_create(&builder));
  assert_ok(genai_context_builder_set_model(builder, "m"));
  assert_ok(genai_context_builder_set_soc(builder, "SM8650"));
  assert_ok(genai_context_builder_set_prompt(builder, "p"));
  assert_ok(genai_context_builder_set_artifact_directory(builder, "/proc/nothing/here"));
  assert_ok(genai_context_builder_build(builder, &context));
  genai_context_builder_destroy(builder);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  genai_status* status = genai_pipeline_invoke(pipeline, context, NULL, NULL);
  assert_non_null(status);
  assert_contains(genai_status_message(status), "/proc/nothing");
  assert_string_equal(stubs_trace(&s), "");
  genai_status_free(status);
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

/* ---- Memory ---- */
static genai_status* whole_run(const stubs* s) {
  genai_context_builder* builder;
  genai_context* context = NULL;
  genai_engine_proxy* proxy = NULL;
  genai_pipeline* pipeline = NULL;
  genai_inference_output out = {0};
  genai_pipeline_report report = {0};
  genai_pipeline_options options = {.adapters = {&s->adapters, &s->adapters, &s->adapters, &s->adapters}};
  GENAI_TRY(genai_context_builder_create(&builder));
  genai_status* status = genai_context_builder_set_model(builder, "m");
  if (!status) status = genai_context_builder_set_soc(builder, "SM8650");
  if (!status) status = genai_context_builder_set_prompt(builder, "p");
  if (!status) status = genai_context_builder_set_artifact_directory(builder, scratch_directory());
  if (!status) status = genai_context_builder_build(builder, &context);
  genai_context_builder_destroy(builder);
  if (!status) status = genai_engine_proxy_create(NULL, 0, GENAI_BACKEND_HTP, &proxy);
  if (!status) status = genai_pipeline_from_proxy(proxy, &options, &pipeline);
  if (!status) status = genai_pipeline_invoke(pipeline, context, &out, &report);
  genai_inference_output_deinit(&out);
  genai_pipeline_report_deinit(&report);
  genai_pipeline_destroy(pipeline);
  genai_engine_proxy_destroy(proxy);
  genai_context_destroy(context);
  return status;
}

static void every_failed_allocation_of_a_run_is_an_error_and_leaks_nothing(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  s.no_tokenizer = true; /* stubs themselves do not check what they duplicate */
  s.gives_text = false;
  assert_ok(whole_run(&s)); /* grows the trace once and for all */
  text_clear(&s.trace);
  uint64_t before = mem_allocation_count();
  assert_ok(whole_run(&s));
  uint64_t allocations = mem_allocation_count() - before;
  assert_true(allocations > 30);
  uint64_t failures = 0;
  for (uint64_t n = 1; n <= allocations; n++) {
    text_clear(&s.trace);
    mem_inject_failure(n);
    genai_status* status = whole_run(&s);
    mem_inject_failure(0);
    failures += status != NULL;
    for (const genai_status* c = status; c; c = genai_status_cause(c)) {
      if (!genai_status_cause(c)) assert_int_equal(genai_status_kind(c), GENAI_ERROR_OUT_OF_MEMORY);
    }
    genai_status_free(status);
  }
  assert_int_equal(failures, allocations);
  stubs_deinit(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_unknown_stage_is_refused_with_the_valid_names),
      cmocka_unit_test(stages_not_mentioned_use_executorch),
      cmocka_unit_test(backend_names_are_checked),
      cmocka_unit_test(a_missing_pair_names_stage_and_engine),
      cmocka_unit_test(callers_can_register_pairs_in_a_private_registry),
      cmocka_unit_test(what_the_prepared_model_rules_out_is_said_before_the_stages_that_take_long),
      cmocka_unit_test(a_registry_row_can_be_replaced),
      cmocka_unit_test(a_stage_refuses_a_strategy_of_another_stage),
      cmocka_unit_test(stages_run_in_order_and_the_inference_output_comes_out),
      cmocka_unit_test(adapters_are_injected_per_stage),
      cmocka_unit_test(a_skipped_stage_has_no_output_and_the_next_one_decides),
      cmocka_unit_test(stages_can_be_given_directly_any_of_them_absent),
      cmocka_unit_test(log_lines_tell_start_end_and_times),
      cmocka_unit_test(timings_are_in_the_result_also_for_a_failing_stage),
      cmocka_unit_test(everything_that_can_be_validated_before_the_first_stage_is),
      cmocka_unit_test(the_default_adapters_check_model_and_recipe_before_the_first_stage),
      cmocka_unit_test(a_prompt_is_needed_when_inference_runs),
      cmocka_unit_test(a_cancelled_run_has_cancelled_in_its_chain),
      cmocka_unit_test(two_runs_in_one_directory_do_not_collide),
      cmocka_unit_test(leftovers_of_a_killed_run_are_removed),
      cmocka_unit_test(an_artifact_directory_that_cannot_be_made_is_an_error),
      cmocka_unit_test(every_failed_allocation_of_a_run_is_an_error_and_leaks_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
