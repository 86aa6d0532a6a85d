/* The executorch strategies over stub adapters: the contract's sections "Input and output of each stage" and "Stages". */
#include "pipeline/executorch.h"
#include "stubs.h"

static const genai_chipset soc = {"SM8650", "Snapdragon 8 Gen 3", 57, 75, 8, 6, true};
static const genai_backend backend = GENAI_BACKEND_HTP;

static genai_stage* make_stage(genai_stage_kind kind, const stubs* s) {
  genai_stage* stage;
  assert_ok(genai_registry_create_stage(genai_registry_default(), kind, "executorch", &s->adapters, &stage));
  return stage;
}

static genai_status* prepare(const stubs* s, const genai_context* context, genai_model_preparation_output* out) {
  genai_stage* stage = make_stage(GENAI_STAGE_MODEL_PREPARATION, s);
  genai_model_preparation_input input = {"a model", &soc, genai_context_options(context)};
  genai_status* status = genai_model_preparation_invoke(stage, context, &input, out);
  genai_stage_destroy(stage);
  return status;
}

static void preparation_calls_its_adapters_in_order(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  genai_model_preparation_output out;
  assert_ok(prepare(&s, context, &out));
  assert_string_equal(stubs_trace(&s), "load_model;load_tokenizer;get_example_inputs;get_chat_template;export_tokenizer;generate;");
  assert_non_null(out.model);
  assert_non_null(out.tokenizer);
  assert_int_equal(genai_example_inputs_graph_count(out.example_inputs), 2);
  assert_string_equal(out.runtime_tokenizer, "tokenizer.json");
  assert_null(out.chat_template);
  genai_model_preparation_output_deinit(&out);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void preparation_requires_model_and_soc(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  genai_stage* stage = make_stage(GENAI_STAGE_MODEL_PREPARATION, &s);
  genai_model_preparation_output out;
  genai_model_preparation_input no_model = {NULL, &soc, NULL}, no_soc = {"m", NULL, NULL};
  assert_fails(genai_model_preparation_invoke(stage, context, &no_model, &out), GENAI_ERROR_STAGE, "model is missing");
  assert_fails(genai_model_preparation_invoke(stage, context, &no_soc, &out), GENAI_ERROR_STAGE, "SoC is missing");
  assert_string_equal(stubs_trace(&s), "");
  genai_stage_destroy(stage);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void the_tokenizers_own_chat_template_wins_over_the_option(void** state) {
  (void)state;
  static const char* const options[][2] = {{"chat_template", "from the options"}};
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(options, 1, NULL);
  genai_model_preparation_output out;
  assert_ok(prepare(&s, context, &out));
  assert_string_equal(out.chat_template, "from the options");
  assert_string_equal(s.template, "from the options");
  genai_model_preparation_output_deinit(&out);
  s.own_template = true;
  assert_ok(prepare(&s, context, &out));
  assert_string_equal(out.chat_template, "own template");
  genai_model_preparation_output_deinit(&out);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void a_model_without_a_tokenizer_has_no_runtime_tokenizer(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  s.no_tokenizer = true;
  genai_context* context = make_context(NULL, 0, NULL);
  genai_model_preparation_output out;
  assert_ok(prepare(&s, context, &out));
  assert_null(out.tokenizer);
  assert_null(out.runtime_tokenizer);
  assert_string_equal(stubs_trace(&s), "load_model;load_tokenizer;get_example_inputs;generate;");
  genai_model_preparation_output_deinit(&out);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void caller_supplied_calibration_data_wins_over_a_generated_set(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  const int32_t ids[] = {7};
  const int32_t* sequences[] = {ids};
  const size_t lengths[] = {1};
  genai_sample_stream* mine;
  genai_context_builder* builder;
  genai_context* context;
  assert_ok(genai_sample_stream_from_ids(sequences, lengths, 1, &mine));
  assert_ok(genai_context_builder_create(&builder));
  assert_ok(genai_context_builder_set_model(builder, "m"));
  assert_ok(genai_context_builder_set_soc(builder, "SM8650"));
  assert_ok(genai_context_builder_set_prompt(builder, "p"));
  assert_ok(genai_context_builder_set_calibration_data(builder, mine));
  assert_ok(genai_context_builder_build(builder, &context));
  genai_context_builder_destroy(builder);
  genai_model_preparation_output out;
  assert_ok(prepare(&s, context, &out));
  assert_ptr_equal(out.calibration_data, mine);
  assert_null(strstr(stubs_trace(&s), "generate"));
  genai_model_preparation_output_deinit(&out);
  genai_sample_stream_release(mine);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void what_an_adapter_should_have_produced_is_named_when_it_is_absent(void** state) {
  (void)state;
  static const struct {
    const char* call;
    const char* name;
  } cases[] = {{"load_model", "ModelLoader.load_model"},
               {"get_example_inputs", "ModelLoader.get_example_inputs"},
               {"export_tokenizer", "ModelLoader.export_tokenizer"},
               {"generate", "CalibrationData.generate"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    stubs s;
    stubs_init(&s);
    s.absent = cases[i].call;
    genai_context* context = make_context(NULL, 0, NULL);
    genai_model_preparation_output out;
    assert_fails(prepare(&s, context, &out), GENAI_ERROR_STAGE, cases[i].name);
    assert_null(out.model); /* a failed stage gives nothing */
    genai_context_destroy(context);
    stubs_deinit(&s);
  }
}

/* ---- Quantization ---- */
typedef struct quantization_case {
  genai_model_preparation_output prepared;
  genai_quantization_input input;
} quantization_case;

static void quantization_case_init(quantization_case* c, const stubs* s, const genai_context* context) {
  assert_ok(prepare(s, context, &c->prepared));
  c->input = (genai_quantization_input){.model = c->prepared.model,
                                        .example_inputs = c->prepared.example_inputs,
                                        .calibration_data = c->prepared.calibration_data,
                                        .soc = &soc,
                                        .backend = &backend,
                                        .options = genai_context_options(context)};
  text_clear(&stub_state->trace);
}

static genai_status* quantize(const stubs* s, const genai_context* context, const genai_quantization_input* input,
                              genai_quantization_output* out) {
  genai_stage* stage = make_stage(GENAI_STAGE_QUANTIZATION, s);
  genai_status* status = genai_quantization_invoke(stage, context, input, out);
  genai_stage_destroy(stage);
  return status;
}

static void quantization_follows_export_make_prepare_calibrate_convert(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  quantization_case c;
  genai_quantization_output out;
  quantization_case_init(&c, &s, context);
  assert_ok(quantize(&s, context, &c.input, &out));
  assert_string_equal(stubs_trace(&s), "export_model;make_quantizer;prepare;calibrate;convert;convert;");
  assert_int_equal(genai_graph_set_count(out.model), 2);
  assert_string_equal(genai_graph_set_name(out.model, 0), "kv_forward");
  assert_string_equal(genai_graph_set_name(out.model, 1), "prefill_forward");
  genai_quantization_output_deinit(&out);
  genai_model_preparation_output_deinit(&c.prepared);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void without_dtype_and_recipe_the_quantizers_defaults_apply(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  quantization_case c;
  genai_quantization_output out;
  quantization_case_init(&c, &s, context);
  assert_ok(quantize(&s, context, &c.input, &out));
  assert_string_equal(s.dtype, "NULL");
  assert_string_equal(s.recipe, "NULL");
  genai_quantization_output_deinit(&out);
  genai_model_preparation_output_deinit(&c.prepared);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void an_absent_input_of_quantization_is_an_error(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  quantization_case c;
  genai_quantization_output out;
  quantization_case_init(&c, &s, context);
  genai_quantization_input input = c.input;
  input.model = NULL;
  assert_fails(quantize(&s, context, &input, &out), GENAI_ERROR_STAGE, "ModelLoader.load_model");
  input = c.input;
  input.example_inputs = NULL;
  assert_fails(quantize(&s, context, &input, &out), GENAI_ERROR_STAGE, "ModelLoader.get_example_inputs");
  input = c.input;
  input.calibration_data = NULL;
  assert_fails(quantize(&s, context, &input, &out), GENAI_ERROR_STAGE, "CalibrationData.generate");
  input = c.input;
  input.soc = NULL;
  assert_fails(quantize(&s, context, &input, &out), GENAI_ERROR_STAGE, "SoC");
  input = c.input;
  input.backend = NULL;
  assert_fails(quantize(&s, context, &input, &out), GENAI_ERROR_STAGE, "backend");
  assert_string_equal(stubs_trace(&s), "");
  genai_model_preparation_output_deinit(&c.prepared);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void an_empty_list_of_example_inputs_is_valid(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  s.empty_example_inputs = true;
  genai_context* context = make_context(NULL, 0, NULL);
  quantization_case c;
  genai_quantization_output out;
  quantization_case_init(&c, &s, context);
  assert_int_equal(genai_example_inputs_graph_count(c.prepared.example_inputs), 0);
  assert_ok(quantize(&s, context, &c.input, &out));
  assert_int_equal(genai_graph_set_count(out.model), 1);
  assert_string_equal(genai_graph_set_name(out.model, 0), "forward");
  genai_quantization_output_deinit(&out);
  genai_model_preparation_output_deinit(&c.prepared);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void presence_of_calibration_data_is_tested_without_consuming_it(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  quantization_case c;
  genai_quantization_output out;
  quantization_case_init(&c, &s, context);
  assert_false(s.stream_consumed);
  assert_ok(quantize(&s, context, &c.input, &out));
  assert_true(s.stream_consumed);
  assert_false(s.stream_consumed_before_calibrate);
  genai_quantization_output_deinit(&out);
  genai_model_preparation_output_deinit(&c.prepared);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void training_data_is_never_made_up_when_qat_is_asked_for(void** state) {
  (void)state;
  static const char* const options[][2] = {{"qat", "true"}};
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(options, 1, NULL);
  quantization_case c;
  genai_quantization_output out;
  quantization_case_init(&c, &s, context);
  assert_fails(quantize(&s, context, &c.input, &out), GENAI_ERROR_STAGE, "training data");
  assert_string_equal(stubs_trace(&s), "");
  genai_model_preparation_output_deinit(&c.prepared);
  genai_context_destroy(context);
  /* And the orchestrator refuses it before any stage runs. */
  context = make_context(options, 1, NULL);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  assert_fails(genai_pipeline_validate(pipeline, context), GENAI_ERROR_CONFIG_VALIDATION, "training data");
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

/* Quantization with a quantizer that trains. */
typedef struct training_case {
  stubs s;
  genai_context* context;
  quantization_case c;
  genai_quantization_output out;
} training_case;

static void training_case_init(training_case* t, const char* qat) {
  const char* const options[][2] = {{"qat", qat}};
  stubs_init(&t->s);
  stubs_train(&t->s);
  t->context = make_context(options, 1, NULL);
  quantization_case_init(&t->c, &t->s, t->context);
}

static void training_case_deinit(training_case* t) {
  genai_model_preparation_output_deinit(&t->c.prepared);
  genai_context_destroy(t->context);
  stubs_deinit(&t->s);
}

static void training_follows_calibration_with_the_adapters_data(void** state) {
  (void)state;
  training_case t;
  training_case_init(&t, "true");
  assert_ok(quantize(&t.s, t.context, &t.c.input, &t.out));
  assert_string_equal(stubs_trace(&t.s), "generate_training;export_model;make_quantizer;prepare;calibrate;train;convert;convert;");
  assert_int_equal(t.s.n_trained, 6);
  genai_quantization_output_deinit(&t.out);
  training_case_deinit(&t);
}

static void the_callers_training_data_wins_over_the_adapters(void** state) {
  (void)state;
  const int32_t ids[] = {5};
  const int32_t* sequences[] = {ids};
  const size_t lengths[] = {1};
  training_case t;
  training_case_init(&t, "true");
  assert_ok(genai_sample_stream_from_ids(sequences, lengths, 1, &t.c.input.training_data));
  assert_ok(quantize(&t.s, t.context, &t.c.input, &t.out));
  assert_string_equal(stubs_trace(&t.s), "export_model;make_quantizer;prepare;calibrate;train;convert;convert;");
  assert_int_equal(t.s.n_trained, 0);
  genai_sample_stream_release(t.c.input.training_data);
  genai_quantization_output_deinit(&t.out);
  training_case_deinit(&t);
}

static void training_data_that_is_absent_or_fails_is_an_error_that_names_the_call(void** state) {
  (void)state;
  training_case t;
  training_case_init(&t, "true");
  t.s.absent = "generate_training";
  assert_fails(quantize(&t.s, t.context, &t.c.input, &t.out), GENAI_ERROR_STAGE, "TrainingData.generate");
  t.s.fail_at = "generate_training";
  assert_fails(quantize(&t.s, t.context, &t.c.input, &t.out), GENAI_ERROR_STAGE, "generate_training was told to fail");
  t.s.absent = NULL;
  t.s.fail_at = "train";
  assert_fails(quantize(&t.s, t.context, &t.c.input, &t.out), GENAI_ERROR_STAGE, "train was told to fail");
  training_case_deinit(&t);
}

static void a_quantizer_that_cannot_train_is_refused_before_any_stage_runs(void** state) {
  (void)state;
  training_case t;
  training_case_init(&t, "true");
  t.s.adapters.quantizer = NULL; /* the engine's own */
  genai_pipeline* pipeline = make_pipeline(&t.s, 0);
  assert_fails(genai_pipeline_validate(pipeline, t.context), GENAI_ERROR_CONFIG_VALIDATION, "only does post-training quantization");
  assert_fails(quantize(&t.s, t.context, &t.c.input, &t.out), GENAI_ERROR_STAGE, "only does post-training quantization");
  assert_string_equal(stubs_trace(&t.s), "");
  genai_pipeline_destroy(pipeline);
  t.s.adapters.quantizer = &t.s.quantizer;
  pipeline = make_pipeline(&t.s, 0);
  assert_ok(genai_pipeline_validate(pipeline, t.context));
  genai_pipeline_destroy(pipeline);
  training_case_deinit(&t);
}

static void a_training_adapter_without_qat_is_warned_about_and_not_called(void** state) {
  (void)state;
  training_case t;
  training_case_init(&t, "false");
  log_begin();
  assert_ok(quantize(&t.s, t.context, &t.c.input, &t.out));
  assert_logged("2 training data was given, but only post-training quantization is done");
  log_end();
  assert_string_equal(stubs_trace(&t.s), "export_model;make_quantizer;prepare;calibrate;convert;convert;");
  genai_quantization_output_deinit(&t.out);
  training_case_deinit(&t);
}

static void training_data_given_to_a_strategy_that_only_does_ptq_is_warned_about(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  quantization_case c;
  genai_quantization_output out;
  quantization_case_init(&c, &s, context);
  c.input.training_data = c.prepared.calibration_data;
  log_begin();
  assert_ok(quantize(&s, context, &c.input, &out));
  assert_logged("2 training data was given, but only post-training quantization is done");
  log_end();
  genai_quantization_output_deinit(&out);
  genai_model_preparation_output_deinit(&c.prepared);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

/* ---- Compilation ---- */
static genai_status* compile(const stubs* s, const genai_context* context, const genai_compilation_input* input,
                             genai_compilation_output* out) {
  genai_stage* stage = make_stage(GENAI_STAGE_COMPILATION, s);
  genai_status* status = genai_compilation_invoke(stage, context, input, out);
  genai_stage_destroy(stage);
  return status;
}

static void the_compiler_gets_the_quantized_model_else_the_prepared_one_never_nothing(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  quantization_case c;
  genai_quantization_output quantized;
  genai_compilation_output out;
  quantization_case_init(&c, &s, context);
  assert_ok(quantize(&s, context, &c.input, &quantized));
  genai_compilation_input input = {.quantized_model = quantized.model,
                                   .prepared_model = c.prepared.model,
                                   .example_inputs = c.prepared.example_inputs,
                                   .soc = &soc,
                                   .backend = &backend,
                                   .options = genai_context_options(context)};
  assert_ok(compile(&s, context, &input, &out));
  assert_string_equal(s.compiled_type, "stub.graph");
  assert_int_equal(s.n_graphs, 2);
  genai_compilation_output_deinit(&out);
  input.quantized_model = NULL;
  assert_ok(compile(&s, context, &input, &out));
  assert_string_equal(s.compiled_type, "stub.model");
  assert_int_equal(s.n_graphs, 2);
  genai_compilation_output_deinit(&out);
  input.prepared_model = NULL;
  assert_fails(compile(&s, context, &input, &out), GENAI_ERROR_STAGE, "the model to compile is absent");
  genai_quantization_output_deinit(&quantized);
  genai_model_preparation_output_deinit(&c.prepared);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void only_compile_options_reach_the_compiler(void** state) {
  (void)state;
  static const char* const options[][2] = {
      {"recipe", "16a8w"}, {"optimization_level", "2"}, {"temperature", "1"}, {"vtcm_mb", "4"}, {"max_new_tokens", "3"}};
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(options, 5, NULL);
  quantization_case c;
  genai_compilation_output out;
  quantization_case_init(&c, &s, context);
  genai_compilation_input input = {.prepared_model = c.prepared.model,
                                   .example_inputs = c.prepared.example_inputs,
                                   .soc = &soc,
                                   .backend = &backend,
                                   .options = genai_context_options(context)};
  assert_ok(compile(&s, context, &input, &out));
  assert_string_equal(s.options, "optimization_level=2;vtcm_mb=4;");
  genai_compilation_output_deinit(&out);
  genai_model_preparation_output_deinit(&c.prepared);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void artifact_paths_stay_a_list(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  s.n_artifacts = 3;
  genai_context* context = make_context(NULL, 0, NULL);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  genai_pipeline_report report = {0};
  assert_ok(genai_pipeline_invoke(pipeline, context, NULL, &report));
  assert_int_equal(report.artifacts.count, 3);
  assert_string_equal(s.artifacts, "part0.pte;part1.pte;part2.pte;");
  genai_pipeline_report_deinit(&report);
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void a_compiler_that_gives_no_artifact_is_an_error(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  s.n_artifacts = 0;
  genai_context* context = make_context(NULL, 0, NULL);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  assert_fails(genai_pipeline_invoke(pipeline, context, NULL, NULL), GENAI_ERROR_STAGE, "Compiler.compile");
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

/* ---- Inference ---- */
static genai_status* infer(const stubs* s, const genai_context* context, size_t n_artifacts, genai_inference_output* out) {
  static const char* const artifacts[] = {"a.pte", "b.pte"};
  genai_stage* stage = make_stage(GENAI_STAGE_INFERENCE, s);
  genai_inference_input input = {
      .soc = &soc, .artifacts = artifacts, .n_artifacts = n_artifacts, .options = genai_context_options(context)};
  genai_status* status = genai_inference_invoke(stage, context, &input, out);
  genai_stage_destroy(stage);
  return status;
}

static void inference_pushes_executes_and_pulls_in_that_order(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  genai_inference_output out;
  assert_ok(infer(&s, context, 2, &out));
  assert_string_equal(stubs_trace(&s), "push;execute;pull;");
  assert_int_equal(out.run.n_generations, 1);
  assert_string_equal(out.run.generations[0].text, "Paris");
  genai_inference_output_deinit(&out);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void without_text_the_pulled_files_are_the_results(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  s.gives_text = false;
  genai_context* context = make_context(NULL, 0, NULL);
  genai_inference_output out;
  assert_ok(infer(&s, context, 1, &out));
  assert_int_equal(out.run.n_generations, 0);
  assert_int_equal(out.files.count, 1);
  assert_string_equal(out.files.items[0], "outputs/result_0.raw");
  genai_inference_output_deinit(&out);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

static void inference_requires_artifacts(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  genai_context* context = make_context(NULL, 0, NULL);
  genai_inference_output out;
  assert_fails(infer(&s, context, 0, &out), GENAI_ERROR_STAGE, "no artifact to run");
  assert_string_equal(stubs_trace(&s), "");
  genai_context_destroy(context);
  stubs_deinit(&s);
}

/* ---- Failures ---- */
static void any_failing_adapter_call_becomes_a_stage_error_that_keeps_its_cause(void** state) {
  (void)state;
  static const struct {
    const char* call;
    const char* stage;
  } cases[] = {{"load_model", "model_preparation"},
               {"load_tokenizer", "model_preparation"},
               {"get_example_inputs", "model_preparation"},
               {"get_chat_template", "model_preparation"},
               {"export_tokenizer", "model_preparation"},
               {"generate", "model_preparation"},
               {"export_model", "quantization"},
               {"make_quantizer", "quantization"},
               {"prepare", "quantization"},
               {"calibrate", "quantization"},
               {"convert", "quantization"},
               {"compile", "compilation"},
               {"push", "inference"},
               {"execute", "inference"},
               {"pull", "inference"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    stubs s;
    stubs_init(&s);
    s.fail_at = cases[i].call;
    genai_context* context = make_context(NULL, 0, NULL);
    genai_pipeline* pipeline = make_pipeline(&s, 0);
    genai_inference_output out;
    genai_status* status = genai_pipeline_invoke(pipeline, context, &out, NULL);
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_STAGE);
    assert_string_equal(genai_status_stage(status), cases[i].stage);
    /* Wrapped once: the cause is the adapter's own status. */
    const genai_status* cause = genai_status_cause(status);
    assert_int_equal(genai_status_kind(cause), GENAI_ERROR_VENDOR);
    assert_contains(genai_status_message(cause), cases[i].call);
    assert_null(genai_status_cause(cause));
    assert_int_equal(out.run.n_generations, 0);
    genai_status_free(status);
    genai_pipeline_destroy(pipeline);
    genai_context_destroy(context);
    stubs_deinit(&s);
  }
}

static void a_stage_error_from_an_adapter_passes_unchanged(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  s.fail_at = "compile";
  s.fail_kind = GENAI_ERROR_STAGE;
  genai_context* context = make_context(NULL, 0, NULL);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  genai_status* status = genai_pipeline_invoke(pipeline, context, NULL, NULL);
  assert_string_equal(genai_status_message(status), "compile was told to fail");
  assert_null(genai_status_cause(status));
  genai_status_free(status);
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  stubs_deinit(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(preparation_calls_its_adapters_in_order),
      cmocka_unit_test(preparation_requires_model_and_soc),
      cmocka_unit_test(the_tokenizers_own_chat_template_wins_over_the_option),
      cmocka_unit_test(a_model_without_a_tokenizer_has_no_runtime_tokenizer),
      cmocka_unit_test(caller_supplied_calibration_data_wins_over_a_generated_set),
      cmocka_unit_test(what_an_adapter_should_have_produced_is_named_when_it_is_absent),
      cmocka_unit_test(quantization_follows_export_make_prepare_calibrate_convert),
      cmocka_unit_test(without_dtype_and_recipe_the_quantizers_defaults_apply),
      cmocka_unit_test(an_absent_input_of_quantization_is_an_error),
      cmocka_unit_test(an_empty_list_of_example_inputs_is_valid),
      cmocka_unit_test(presence_of_calibration_data_is_tested_without_consuming_it),
      cmocka_unit_test(training_data_is_never_made_up_when_qat_is_asked_for),
      cmocka_unit_test(training_follows_calibration_with_the_adapters_data),
      cmocka_unit_test(the_callers_training_data_wins_over_the_adapters),
      cmocka_unit_test(training_data_that_is_absent_or_fails_is_an_error_that_names_the_call),
      cmocka_unit_test(a_quantizer_that_cannot_train_is_refused_before_any_stage_runs),
      cmocka_unit_test(a_training_adapter_without_qat_is_warned_about_and_not_called),
      cmocka_unit_test(training_data_given_to_a_strategy_that_only_does_ptq_is_warned_about),
      cmocka_unit_test(the_compiler_gets_the_quantized_model_else_the_prepared_one_never_nothing),
      cmocka_unit_test(only_compile_options_reach_the_compiler),
      cmocka_unit_test(artifact_paths_stay_a_list),
      cmocka_unit_test(a_compiler_that_gives_no_artifact_is_an_error),
      cmocka_unit_test(inference_pushes_executes_and_pulls_in_that_order),
      cmocka_unit_test(without_text_the_pulled_files_are_the_results),
      cmocka_unit_test(inference_requires_artifacts),
      cmocka_unit_test(any_failing_adapter_call_becomes_a_stage_error_that_keeps_its_cause),
      cmocka_unit_test(a_stage_error_from_an_adapter_passes_unchanged),
  };
  return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
