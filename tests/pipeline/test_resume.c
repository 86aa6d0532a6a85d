/* Resuming: preparation and quantization are the engine's own, on a copy of the `llama` fixture with a tokenizer of 26 letters; compilation is
 * an engine of this test, which writes what it was given and counts. The real compiler is resumed in tests/interop/test_resume.py. */
#include <sys/stat.h>
#include <utime.h>

#include "base/file.h"
#include "base/memory.h"
#include "model_copy.h"
#include "pipeline/executorch_objects.h"
#include "stubs.h"

static struct {
  int compiled;
  const char* library; /* the version that the compiler claims */
} fake = {0, "1.0"};

/* ---- The compilation of this test ---- */
static genai_status* compile(genai_strategy* self, const genai_context* context, const genai_compilation_input* input,
                             genai_compilation_output* output) {
  (void)self, (void)context;
  char *path, *second;
  text content = {0};
  const executorch_graph* graph = genai_object_payload(genai_graph_set_graph(input->quantized_model, 0), &executorch_graph_type);
  fake.compiled++;
  assert_non_null(graph);
  for (uint32_t i = 0; i < graph->graph->n_tensors; i++) {
    const ir_tensor* tensor = graph->graph->tensors[i];
    assert_ok(text_printf(&content, "%s %a %d\n", tensor->name, (double)tensor->encoding.scale, tensor->encoding.offset));
  }
  assert_ok(path_join(input->artifact_directory, "part0.pte", &path));
  assert_ok(path_join(input->artifact_directory, "part1.pte", &second));
  assert_ok(file_write_atomic(path, content.data, content.length));
  assert_ok(file_write_atomic(second, "x", 1));
  assert_ok(genai_string_list_add(&output->artifacts, path));
  assert_ok(genai_string_list_add(&output->artifacts, second));
  assert_ok(genai_statistics_add(&output->statistics, "graphs", 2));
  mem_free(path);
  mem_free(second);
  text_deinit(&content);
  return NULL;
}

static genai_status* fingerprint(genai_strategy* self, const genai_context* context, const genai_fingerprint_request* request,
                                 genai_fingerprint* out) {
  (void)self, (void)context;
  GENAI_TRY(genai_fingerprint_add(out, "library", fake.library));
  return genai_fingerprint_add(out, "soc", request->soc->name);
}

static genai_status* create(void* user, const genai_adapters* adapters, genai_strategy** out) {
  static const genai_strategy_vtable vtable = {
      .stage = GENAI_STAGE_COMPILATION, .engine = "fake", .compile = compile, .fingerprint = fingerprint};
  static genai_strategy strategy = {&vtable};
  (void)user, (void)adapters;
  *out = &strategy;
  return NULL;
}

/* ---- One run ---- */
typedef struct setting {
  const char* extra[4][2]; /* options */
  const char* soc;
  genai_calibration_data* calibration; /* injected */
  genai_sample_stream* data;           /* given by the caller */
  unsigned skip;
} setting;

static char model_path[128], artifact_path[128], recipe_path[128], calibration_path[128];

static genai_status* invoke(const setting* s, genai_pipeline_report* report) {
  genai_context_builder* builder;
  genai_context* context;
  genai_engine_proxy* proxy;
  genai_registry* registry;
  genai_pipeline* pipeline;
  genai_adapters adapters = {.calibration_data = s->calibration};
  const genai_engine_choice choice = {"compilation", "fake"};
  const char* const options[][2] = {
      {"context", "32"}, {"prefill_ar", "8"}, {"threads", "1"}, {"recipe", recipe_path}, {"calibration_file", calibration_path}};
  assert_ok(genai_registry_create(true, &registry));
  assert_ok(genai_registry_register(registry, GENAI_STAGE_COMPILATION, "fake", create, NULL, NULL));
  genai_pipeline_options how = {.skip_stages = 1u << GENAI_STAGE_INFERENCE | s->skip, .registry = registry, .adapters = {&adapters}};
  assert_ok(genai_context_builder_create(&builder));
  assert_ok(genai_context_builder_set_model(builder, model_path));
  assert_ok(genai_context_builder_set_soc(builder, s->soc ? s->soc : "SM8650"));
  assert_ok(genai_context_builder_set_no_inference(builder));
  assert_ok(genai_context_builder_set_artifact_directory(builder, artifact_path));
  assert_ok(genai_context_builder_set_calibration_data(builder, s->data));
  for (size_t i = 0; i < 5; i++) assert_ok(genai_context_builder_set_option(builder, options[i][0], options[i][1]));
  for (size_t i = 0; i < 4 && s->extra[i][0]; i++) assert_ok(genai_context_builder_set_option(builder, s->extra[i][0], s->extra[i][1]));
  assert_ok(genai_context_builder_build(builder, &context));
  assert_ok(genai_engine_proxy_create(&choice, 1, GENAI_BACKEND_HTP, &proxy));
  assert_ok(genai_pipeline_from_proxy(proxy, &how, &pipeline));
  genai_status* status = genai_pipeline_invoke(pipeline, context, NULL, report);
  genai_pipeline_destroy(pipeline);
  genai_engine_proxy_destroy(proxy);
  genai_context_destroy(context);
  genai_context_builder_destroy(builder);
  genai_registry_destroy(registry);
  return status;
}

/* What quantization and compilation did, as "reused reused", "completed completed" ... */
static const char* run(const setting* s) {
  static const char* const names[] = {"skipped", "not reached", "completed", "failed", "reused"};
  static char result[64];
  static const setting plain;
  genai_pipeline_report report = {0};
  assert_ok(invoke(s ? s : &plain, &report));
  snprintf(result, sizeof result, "%s %s", names[report.stages[1].state], names[report.stages[2].state]);
  for (size_t i = 0; i < GENAI_STAGE_COUNT; i++)
    assert_int_equal(report.stages[i].reused_from != NULL, report.stages[i].state == GENAI_STAGE_REUSED);
  if (report.stages[2].state >= GENAI_STAGE_COMPLETED) {
    double graphs = 0;
    assert_int_equal(report.artifacts.count, 2);
    assert_contains(report.artifacts.items[0], "/part0.pte");
    assert_true(genai_statistics_get(&report.statistics, "graphs", &graphs) && graphs == 2);
  }
  genai_pipeline_report_deinit(&report);
  return result;
}

/* ---- Files ---- */
static const char* model_file(const char* name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", model_path, name);
  return path;
}

/* Replaces the first `from` of a file by `to`, of the same length unless the file is text. */
static void edit(const char* path, const char* from, const char* to) {
  text content = {0}, edited = {0};
  assert_ok(file_read_all(path, 64 << 20, &content));
  char* place = memmem(content.data, content.length, from, strlen(from));
  assert_non_null(place);
  assert_ok(text_append(&edited, content.data, (size_t)(place - content.data)));
  assert_ok(text_append_cstr(&edited, to));
  assert_ok(text_append(&edited, place + strlen(from), content.length - (size_t)(place - content.data) - strlen(from)));
  assert_ok(file_write_atomic(path, edited.data, edited.length));
  text_deinit(&content);
  text_deinit(&edited);
}

/* Turns over one bit of the last byte. */
static void damage(const char* path) {
  FILE* file = fopen(path, "r+b");
  assert_non_null(file);
  assert_int_equal(fseek(file, -1, SEEK_END), 0);
  int byte = fgetc(file);
  assert_int_equal(fseek(file, -1, SEEK_END), 0);
  fputc(byte ^ 1, file);
  fclose(file);
}

/* Everything as at first, and nothing stored. */
static int begin(void** state) {
  static int number;
  (void)state;
  number++;
  snprintf(model_path, sizeof model_path, "%s/model%d", scratch_directory(), number);
  snprintf(artifact_path, sizeof artifact_path, "%s/artifacts%d", scratch_directory(), number);
  snprintf(recipe_path, sizeof recipe_path, "%s/recipe%d.json", scratch_directory(), number);
  snprintf(calibration_path, sizeof calibration_path, "%s/text%d", scratch_directory(), number);
  make_model(model_path);
  recipe how;
  text content = {0};
  assert_ok(recipe_load("16a8w", &how));
  assert_ok(recipe_write_json(&how, &content));
  assert_ok(file_write_atomic(recipe_path, content.data, content.length));
  text_deinit(&content);
  assert_ok(file_write_atomic(calibration_path, "the quick brown fox jumps over the lazy dog", 43));
  fake.compiled = 0;
  fake.library = "1.0";
  return 0;
}

static int end(void** state) {
  (void)state;
  char line[128];
  snprintf(line, sizeof line, "rm -rf %s/*", scratch_directory());
  return system(line);
}

/* The only stored file of a stage. */
static const char* record_of(const char* stage) {
  static char path[512];
  char line[256];
  snprintf(line, sizeof line, "ls %s/.genai/%s-*", artifact_path, stage);
  FILE* pipe = popen(line, "r");
  assert_non_null(fgets(path, sizeof path, pipe));
  path[strcspn(path, "\n")] = 0;
  char more[8];
  assert_null(fgets(more, sizeof more, pipe));
  pclose(pipe);
  return path;
}

static char* read_artifact(void) {
  char path[256];
  text content = {0};
  snprintf(path, sizeof path, "%s/part0.pte", artifact_path);
  assert_ok(file_read_all(path, 1 << 20, &content));
  return content.data;
}

/* ---- Rules ---- */
static void a_finished_stage_is_reused_when_inputs_options_and_versions_are_equal(void** state) {
  (void)state;
  assert_string_equal(run(NULL), "completed completed");
  log_begin();
  assert_string_equal(run(NULL), "reused reused");
  assert_logged("[GenAIPipeline] CompilationStage reused: inputs, options and versions equal those of \"");
  assert_logged(record_of("compilation"));
  log_end();
  assert_int_equal(fake.compiled, 1);
  /* Times and places do not count: what files hold does. */
  struct utimbuf old = {1, 1};
  assert_int_equal(utime(model_file("model.safetensors"), &old), 0);
  char moved[160];
  snprintf(moved, sizeof moved, "%s.moved", recipe_path);
  copy_file(recipe_path, moved);
  setting s = {.extra = {{"recipe", moved}}};
  assert_string_equal(run(&s), "reused reused");
  assert_int_equal(fake.compiled, 1);
}

static void a_stored_calibration_gives_the_same_artifact_without_calibrating(void** state) {
  (void)state;
  assert_string_equal(run(NULL), "completed completed");
  char* first = read_artifact();
  assert_int_equal(unlink(record_of("compilation")), 0);
  log_begin();
  assert_string_equal(run(NULL), "reused completed");
  assert_logged("QuantizationStage took the calibration stored in \"");
  assert_null(strstr(log_lines.data, "calibrated on"));
  log_end();
  char* second = read_artifact();
  assert_string_equal(first, second);
  assert_true(strlen(first) > 1000);
  mem_free(first);
  mem_free(second);
}

static void what_a_stage_depends_on_invalidates_it(void** state) {
  (void)state;
  static const setting options[] = {{.extra = {{"calibration_length", "16"}}},
                                    {.extra = {{"context", "64"}}},
                                    {.extra = {{"mode", "kv"}}},
                                    {.extra = {{"dtype", "16a8w"}}}};
  assert_string_equal(run(NULL), "completed completed");
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
    assert_string_equal(run(&options[i]), "completed completed");
    assert_string_equal(run(&options[i]), "reused reused");
  }
  assert_string_equal(run(NULL), "reused completed"); /* its calibration is still there, its artifact was written over */
  edit(recipe_path, "\"kv_bits\": 16", "\"kv_bits\": 8");
  assert_string_equal(run(NULL), "completed completed");
  edit(calibration_path, "fox", "cat");
  assert_string_equal(run(NULL), "completed completed");
  edit(model_file("tokenizer.json"), "\"q\":19,", "\"q\":50,");
  assert_string_equal(run(NULL), "completed completed");
  edit(model_file("config.json"), "1e-06", "2e-06");
  assert_string_equal(run(NULL), "completed completed");
  damage(model_file("model.safetensors"));
  assert_string_equal(run(NULL), "completed completed");
  assert_string_equal(run(NULL), "reused reused");
}

static void what_compilation_alone_depends_on_leaves_the_calibration(void** state) {
  (void)state;
  setting other_soc = {.soc = "SM8550"};
  assert_string_equal(run(NULL), "completed completed");
  assert_string_equal(run(&other_soc), "reused completed");
  fake.library = "1.1";
  assert_string_equal(run(&other_soc), "reused completed");
  assert_string_equal(run(&other_soc), "reused reused");
}

static void what_is_damaged_is_noticed_and_computed_again(void** state) {
  (void)state;
  char path[256];
  assert_string_equal(run(NULL), "completed completed");
  snprintf(path, sizeof path, "%s/part0.pte", artifact_path);
  damage(path);
  log_begin();
  assert_string_equal(run(NULL), "reused completed");
  assert_logged("part0.pte\" is not what was written then (its hash differs)");
  unlink(path);
  assert_string_equal(run(NULL), "reused completed");
  assert_logged("part0.pte\" is not there any more");
  unlink(record_of("compilation"));
  damage(record_of("quantization"));
  assert_string_equal(run(NULL), "completed completed");
  assert_logged("its hash differs");
  unlink(record_of("compilation"));
  assert_int_equal(truncate(record_of("quantization"), 50), 0);
  assert_string_equal(run(NULL), "completed completed");
  assert_logged("cut short");
  assert_int_equal(truncate(record_of("compilation"), 50), 0);
  assert_string_equal(run(NULL), "reused completed");
  log_end();
  assert_string_equal(run(NULL), "reused reused");
}

static void without_reuse_every_stage_runs(void** state) {
  (void)state;
  setting s = {.extra = {{"reuse", "false"}}};
  assert_string_equal(run(NULL), "completed completed");
  assert_string_equal(run(&s), "completed completed");
  assert_string_equal(run(NULL), "reused reused"); /* what it gave was stored */
}

static void from_a_stage_takes_what_came_before_and_runs_the_rest(void** state) {
  (void)state;
  setting from_compilation = {.extra = {{"from", "compilation"}}}, from_quantization = {.extra = {{"from", "quantization"}}};
  assert_fails(invoke(&from_compilation, NULL), GENAI_ERROR_CONFIG_VALIDATION, "holds no result of quantization for these inputs");
  assert_int_equal(fake.compiled, 0);
  assert_string_equal(run(&from_quantization), "completed completed");
  assert_string_equal(run(&from_compilation), "reused completed");
  assert_string_equal(run(&from_quantization), "completed completed");
  assert_int_equal(fake.compiled, 3);
  setting contradiction = {.extra = {{"from", "compilation"}, {"reuse", "false"}}};
  assert_fails(invoke(&contradiction, NULL), GENAI_ERROR_CONFIG_VALIDATION, "give one of the two");
  setting nowhere = {.extra = {{"from", "nowhere"}}};
  assert_fails(invoke(&nowhere, NULL), GENAI_ERROR_CONFIG_VALIDATION, "expected one of model_preparation|");
}

static void until_quantization_the_calibration_is_what_is_stored(void** state) {
  (void)state;
  setting s = {.skip = 1u << GENAI_STAGE_COMPILATION};
  assert_string_equal(run(&s), "completed skipped");
  assert_string_equal(run(&s), "reused skipped");
  assert_string_equal(run(NULL), "reused completed");
}

static void what_the_caller_brings_is_never_taken_from_the_store(void** state) {
  (void)state;
  stubs s;
  stubs_init(&s);
  setting own_adapter = {.calibration = &s.calibration};
  assert_string_equal(run(&own_adapter), "completed completed");
  assert_string_equal(run(&own_adapter), "completed completed");
  const int32_t ids[] = {4, 5, 6};
  const int32_t* sequences[] = {ids};
  const size_t lengths[] = {3};
  for (size_t i = 0; i < 2; i++) {
    setting own_data = {0};
    assert_ok(genai_sample_stream_from_ids(sequences, lengths, 1, &own_data.data));
    assert_string_equal(run(&own_data), "completed completed");
    genai_sample_stream_release(own_data.data);
  }
  setting from = {.calibration = &s.calibration, .extra = {{"from", "compilation"}}};
  assert_fails(invoke(&from, NULL), GENAI_ERROR_CONFIG_VALIDATION, "is never stored (an adapter of model_preparation is the caller's own)");
  stubs_deinit(&s);
}

static void an_artifact_directory_may_be_moved(void** state) {
  (void)state;
  char moved[160];
  assert_string_equal(run(NULL), "completed completed");
  snprintf(moved, sizeof moved, "%s.moved", artifact_path);
  assert_int_equal(rename(artifact_path, moved), 0);
  strcpy(artifact_path, moved);
  assert_string_equal(run(NULL), "reused reused");
}

static size_t count_records(const char* suffix) {
  char line[256];
  size_t count = 0;
  snprintf(line, sizeof line, "ls %s/.genai | grep -c '%s$'", artifact_path, suffix);
  FILE* pipe = popen(line, "r");
  if (fscanf(pipe, "%zu", &count) != 1) count = 0;
  pclose(pipe);
  return count;
}

static void the_store_does_not_grow_without_end(void** state) {
  (void)state;
  for (int i = 0; i < 10; i++) {
    char length[8];
    snprintf(length, sizeof length, "%d", i + 16);
    setting s = {.extra = {{"calibration_length", length}}};
    assert_string_equal(run(&s), "completed completed");
  }
  assert_int_equal(count_records(".bin"), 8);
  assert_int_equal(count_records(".json"), 1); /* all the others' artifacts were written over */
}

static void leftovers_in_the_store_are_removed(void** state) {
  (void)state;
  char path[256];
  assert_string_equal(run(NULL), "completed completed");
  snprintf(path, sizeof path, "%s/.genai/quantization-0123456789abcdef.bin.genai-tmp.AbC123", artifact_path);
  assert_ok(file_write_atomic(path, "x", 1));
  assert_string_equal(run(NULL), "reused reused");
  assert_false(file_exists(path));
}

int main(void) {
#define rule(test) cmocka_unit_test_setup_teardown(test, begin, end)
  const struct CMUnitTest tests[] = {
      rule(a_finished_stage_is_reused_when_inputs_options_and_versions_are_equal),
      rule(a_stored_calibration_gives_the_same_artifact_without_calibrating),
      rule(what_a_stage_depends_on_invalidates_it),
      rule(what_compilation_alone_depends_on_leaves_the_calibration),
      rule(what_is_damaged_is_noticed_and_computed_again),
      rule(without_reuse_every_stage_runs),
      rule(from_a_stage_takes_what_came_before_and_runs_the_rest),
      rule(until_quantization_the_calibration_is_what_is_stored),
      rule(what_the_caller_brings_is_never_taken_from_the_store),
      rule(an_artifact_directory_may_be_moved),
      rule(the_store_does_not_grow_without_end),
      rule(leftovers_in_the_store_are_removed),
  };
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rmdir(scratch_directory());
  return failed;
}
