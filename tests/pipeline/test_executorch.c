/* The executorch engine end to end on the `llama` fixture: real compiler, real simulator. Skips without Qualcomm's libraries. */
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "pipeline/executorch.h"
#include "pipeline/session.h"
#include "stubs.h"

#define skip_without_libraries()                                                  \
  do {                                                                            \
    const char* folder_ = test_environment("GENAI_QNN_DIR");                      \
    char library_[1024] = "";                                                     \
    if (folder_) snprintf(library_, sizeof library_, "%s/libQnnHtp.so", folder_); \
    skip_unless_file(folder_ ? library_ : NULL);                                  \
  } while (0)

/* 8-bit cache: the smallest artifact that exercises every path. */
static const char* recipe_path(void) {
  static char path[128];
  if (!*path) {
    recipe how;
    text content = {0};
    assert_ok(recipe_load("16a8w", &how));
    strcpy(how.name, "test");
    how.kv_bits = 8;
    assert_ok(recipe_write_json(&how, &content));
    snprintf(path, sizeof path, "%s/recipe.json", scratch_directory());
    assert_ok(file_write_atomic(path, content.data, content.length));
    text_deinit(&content);
  }
  return path;
}

typedef struct run_settings {
  const char* directory;
  const char* soc;
  unsigned skip;
  const char* twin;
  const char* mode;
  const char* artifact;
  const int32_t* ids;
  size_t n_ids;
  const char* prompt;
  genai_cancel* cancel;
  genai_progress_callback progress;
  void* progress_user;
} run_settings;

static const int32_t default_ids[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static genai_status* run_fixture(const run_settings* s, genai_inference_output* out, genai_pipeline_report* report) {
  genai_context_builder* builder;
  genai_context* context;
  genai_engine_proxy* proxy;
  genai_pipeline* pipeline;
  genai_pipeline_options how = {.skip_stages = s->skip};
  assert_ok(genai_context_builder_create(&builder));
  assert_ok(genai_context_builder_set_model(builder, test_data("checkpoints/llama")));
  assert_ok(genai_context_builder_set_soc(builder, s->soc ? s->soc : "SM8650"));
  if (s->prompt) {
    assert_ok(genai_context_builder_set_prompt(builder, s->prompt));
  } else {
    assert_ok(genai_context_builder_add_prompt_ids(builder, s->ids ? s->ids : default_ids, s->ids ? s->n_ids : 11));
  }
  assert_ok(genai_context_builder_set_artifact_directory(builder, s->directory));
  assert_ok(genai_context_builder_set_cancel(builder, s->cancel));
  assert_ok(genai_context_builder_set_progress(builder, s->progress, s->progress_user));
  if (s->artifact) assert_ok(genai_context_builder_add_artifact(builder, s->artifact));
  const char* const options[][2] = {{"context", "32"},
                                    {"prefill_ar", "8"},
                                    {"threads", "1"},
                                    {"recipe", recipe_path()},
                                    {"max_new_tokens", "5"},
                                    {"calibration_samples", "1"},
                                    {"mode", s->mode ? s->mode : "hybrid"},
                                    {"simulator_twin", s->twin ? s->twin : "inline"}};
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
    assert_ok(genai_context_builder_set_option(builder, options[i][0], options[i][1]));
  assert_ok(genai_context_builder_build(builder, &context));
  genai_context_builder_destroy(builder);
  assert_ok(genai_engine_proxy_create(NULL, 0, GENAI_BACKEND_HTP, &proxy));
  assert_ok(genai_pipeline_from_proxy(proxy, &how, &pipeline));
  genai_engine_proxy_destroy(proxy);
  genai_status* status = genai_pipeline_invoke(pipeline, context, out, report);
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  return status;
}

static char* path_in_scratch(const char* name) {
  char* path;
  assert_ok(path_join(scratch_directory(), name, &path));
  return path;
}

/* Logits of every position of the default ids, [11][320]. */
static genai_status* keep_row(void* user, uint32_t position, const float* logits) {
  memcpy((float*)user + (size_t)position * 320, logits, 320 * sizeof *logits);
  return NULL;
}

static float* artifact_logits(const char* name) {
  session* opened;
  char* path = path_in_scratch(name);
  float* rows = calloc(11 * 320, sizeof *rows);
  assert_ok(session_open_pte(path, NULL, &opened));
  assert_ok(decoder_run(session_decoder(opened), default_ids, 11, true, keep_row, rows, NULL));
  session_close(opened);
  mem_free(path);
  return rows;
}

/* The child must come before this process loads the vendor's libraries: first in the list of tests. */
static void a_pipeline_built_from_the_registry_alone_runs_end_to_end(void** state) {
  (void)state;
  skip_without_libraries();
  genai_inference_output out;
  genai_pipeline_report report = {0};
  char* directory = path_in_scratch("process");
  run_settings s = {.directory = directory, .twin = "process"};
  assert_ok(run_fixture(&s, &out, &report));
  assert_int_equal(report.artifacts.count, 2);
  assert_contains(report.artifacts.items[0], "/llama.SM8650.pte");
  assert_contains(report.artifacts.items[1], "/llama.SM8650.sim.pte");
  for (size_t i = 0; i < GENAI_STAGE_COUNT; i++) assert_int_equal(report.stages[i].state, GENAI_STAGE_COMPLETED);
  double twin_memory;
  assert_true(genai_statistics_get(&report.statistics, "twin.peak_memory_bytes", &twin_memory)); /* a child compiled it */
  assert_int_equal(out.run.n_generations, 1);
  assert_int_equal(out.run.generations[0].n_ids, 5);
  assert_null(out.run.generations[0].text); /* no tokenizer */
  assert_true(out.run.metrics.simulated);
  assert_int_equal(out.run.metrics.prompt_tokens, 11);
  genai_inference_output_deinit(&out);
  genai_pipeline_report_deinit(&report);
  mem_free(directory);
}

/* The vendor numbers operators per process, so that a second compilation in one process gives other bytes: what counts is what they compute. */
static void the_twin_computes_the_same_whether_a_child_compiles_it_or_not(void** state) {
  (void)state;
  skip_without_libraries();
  genai_pipeline_report report = {0};
  genai_inference_output out;
  char* directory = path_in_scratch("inline");
  run_settings s = {.directory = directory};
  assert_ok(run_fixture(&s, &out, &report));
  genai_inference_output_deinit(&out);
  genai_pipeline_report_deinit(&report);
  mem_free(directory);
  float* process = artifact_logits("process/llama.SM8650.sim.pte");
  float* inline_ = artifact_logits("inline/llama.SM8650.sim.pte");
  assert_memory_equal(process, inline_, 11 * 320 * sizeof(float));
  float largest = 0;
  for (size_t i = 0; i < 11 * 320; i++) largest = process[i] > largest ? process[i] : largest;
  assert_true(largest > 0);
  free(process);
  free(inline_);
}

static void the_artifact_says_what_it_is(void** state) {
  (void)state;
  skip_without_libraries();
  session* opened;
  char* path = path_in_scratch("inline/llama.SM8650.sim.pte");
  assert_ok(session_open_pte(path, NULL, &opened));
  const provenance* record = session_provenance(opened);
  assert_non_null(record);
  assert_string_equal(record->soc, "SM8650");
  assert_string_equal(record->mode, "hybrid");
  assert_int_equal(record->context_length, 32);
  assert_int_equal(record->n_graphs, 2);
  assert_string_equal(record->graphs[0].name, "kv_forward");
  assert_int_equal(record->graphs[1].ar_length, 8);
  assert_string_equal(record->recipe_name, "test");
  assert_int_equal(record->n_kv, 2);
  assert_true(record->n_stop_ids >= 1);
  assert_int_equal(decoder_context_length(session_decoder(opened)), 32);
  assert_int_equal(decoder_vocab_size(session_decoder(opened)), 320);
  session_close(opened);
  mem_free(path);
}

static void inference_reads_the_file_that_an_earlier_run_wrote(void** state) {
  (void)state;
  skip_without_libraries();
  genai_inference_output first, second;
  char* directory = path_in_scratch("inline");
  char* artifact = path_in_scratch("inline/llama.SM8650.sim.pte");
  run_settings s = {.directory = directory, .skip = 7, .artifact = artifact};
  assert_ok(run_fixture(&s, &first, NULL));
  assert_ok(run_fixture(&s, &second, NULL));
  assert_int_equal(first.run.generations[0].n_ids, 5);
  assert_memory_equal(first.run.generations[0].ids, second.run.generations[0].ids, 5 * sizeof(int32_t));
  genai_inference_output_deinit(&first);
  genai_inference_output_deinit(&second);
  mem_free(artifact);
  mem_free(directory);
}

static void a_device_artifact_is_refused_with_the_name_of_the_other(void** state) {
  (void)state;
  skip_without_libraries();
  genai_inference_output out;
  char* directory = path_in_scratch("inline");
  char* artifact = path_in_scratch("inline/llama.SM8650.pte");
  run_settings s = {.directory = directory, .skip = 7, .artifact = artifact};
  assert_fails(run_fixture(&s, &out, NULL), GENAI_ERROR_STAGE, "llama.SM8650.sim.pte");
  mem_free(artifact);
  mem_free(directory);
}

static void what_cannot_run_is_an_error_that_says_why(void** state) {
  (void)state;
  skip_without_libraries();
  genai_inference_output out;
  char* directory = path_in_scratch("inline");
  char* artifact = path_in_scratch("inline/llama.SM8650.sim.pte");
  run_settings s = {.directory = directory, .skip = 7, .artifact = artifact, .soc = "SM8550"};
  assert_fails(run_fixture(&s, &out, NULL), GENAI_ERROR_STAGE, "was compiled for SM8650, this run is for SM8550");
  int32_t many[40];
  for (size_t i = 0; i < 40; i++) many[i] = (int32_t)i;
  s = (run_settings){.directory = directory, .skip = 7, .artifact = artifact, .ids = many, .n_ids = 33};
  assert_fails(run_fixture(&s, &out, NULL), GENAI_ERROR_STAGE, "33 tokens, but the context length of the artifact is 32");
  s.n_ids = 32;
  assert_ok(run_fixture(&s, &out, NULL));
  assert_int_equal(out.run.generations[0].n_ids, 1);
  assert_string_equal(out.run.generations[0].end, "context full");
  genai_inference_output_deinit(&out);
  const int32_t outside[] = {1, 320};
  s = (run_settings){.directory = directory, .skip = 7, .artifact = artifact, .ids = outside, .n_ids = 2};
  assert_fails(run_fixture(&s, &out, NULL), GENAI_ERROR_STAGE, "id 320 at position 1");
  s = (run_settings){.directory = directory, .skip = 7, .artifact = artifact, .prompt = "words"};
  assert_fails(run_fixture(&s, &out, NULL), GENAI_ERROR_STAGE, "no tokenizer");
  mem_free(artifact);
  mem_free(directory);
}

static void without_quantization_the_prepared_model_is_compiled_in_half_precision(void** state) {
  (void)state;
  skip_without_libraries();
  genai_inference_output half, quantized;
  char* directory = path_in_scratch("half");
  char* artifact = path_in_scratch("inline/llama.SM8650.sim.pte");
  run_settings s = {.directory = directory, .skip = 1u << GENAI_STAGE_QUANTIZATION};
  assert_ok(run_fixture(&s, &half, NULL));
  s = (run_settings){.directory = directory, .skip = 7, .artifact = artifact};
  assert_ok(run_fixture(&s, &quantized, NULL));
  assert_int_equal(half.run.generations[0].ids[0], quantized.run.generations[0].ids[0]);
  genai_inference_output_deinit(&half);
  genai_inference_output_deinit(&quantized);
  mem_free(artifact);
  mem_free(directory);
}

static void mode_kv_needs_no_twin_compiled(void** state) {
  (void)state;
  skip_without_libraries();
  genai_inference_output out;
  genai_pipeline_report report = {0};
  double unused;
  char* directory = path_in_scratch("kv");
  run_settings s = {.directory = directory, .mode = "kv"};
  assert_ok(run_fixture(&s, &out, &report));
  assert_int_equal(report.artifacts.count, 2);
  assert_false(genai_statistics_get(&report.statistics, "twin.finalize_seconds", &unused));
  assert_int_equal(out.run.generations[0].n_ids, 5);
  genai_inference_output_deinit(&out);
  genai_pipeline_report_deinit(&report);
  mem_free(directory);
}

/* Cancels at the first progress event of a step. */
typedef struct canceller {
  genai_cancel* cancel;
  const char* step;
  bool seen;
} canceller;

static void cancel_at(void* user, const genai_progress* event) {
  canceller* self = user;
  if (!strstr(event->step, self->step)) return;
  self->seen = true;
  genai_cancel_request(self->cancel);
}

static size_t count_files(const char* directory) {
  char line[256];
  snprintf(line, sizeof line, "ls %s | wc -l", directory);
  FILE* pipe = popen(line, "r");
  size_t count = 0;
  if (fscanf(pipe, "%zu", &count) != 1) count = 0;
  pclose(pipe);
  return count;
}

static void cancelling_in_any_stage_leaves_nothing_half_written(void** state) {
  (void)state;
  skip_without_libraries();
  static const struct {
    const char* step;
    const char* stage;
    size_t files; /* left in the directory */
  } cases[] = {{"calibrating", "quantization", 0}, {"compiling", "compilation", 0}, {"prefill", "inference", 2}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    genai_inference_output out;
    canceller c = {.step = cases[i].step};
    char* directory = path_in_scratch(cases[i].step);
    assert_ok(genai_cancel_create(&c.cancel));
    run_settings s = {.directory = directory, .cancel = c.cancel, .progress = cancel_at, .progress_user = &c};
    genai_status* status = run_fixture(&s, &out, NULL);
    assert_true(c.seen);
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_STAGE);
    assert_string_equal(genai_status_stage(status), cases[i].stage);
    bool cancelled = false;
    for (const genai_status* s2 = status; s2; s2 = genai_status_cause(s2)) cancelled |= genai_status_kind(s2) == GENAI_ERROR_CANCELLED;
    assert_true(cancelled);
    assert_int_equal(count_files(directory), cases[i].files);
    genai_status_free(status);
    genai_cancel_destroy(c.cancel);
    mem_free(directory);
  }
}

/* Executed from the upstream reference file: no provenance, upstream's names and order of tensors. What stock ExecuTorch gives is compared in
 * tests/interop/test_runner.py. */
static void the_upstream_reference_file_opens_and_runs(void** state) {
  (void)state;
  skip_without_libraries();
  const char* path = shared_file("fixtures/pte/stories260k_hybrid_llama_qnn.pte");
  skip_unless_file(path);
  session* opened;
  assert_ok(session_open_pte(path, NULL, &opened));
  assert_null(session_provenance(opened));
  assert_int_equal(decoder_context_length(session_decoder(opened)), 128);
  assert_int_equal(decoder_vocab_size(session_decoder(opened)), 512);
  session_close(opened);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_pipeline_built_from_the_registry_alone_runs_end_to_end),
      cmocka_unit_test(the_twin_computes_the_same_whether_a_child_compiles_it_or_not),
      cmocka_unit_test(the_artifact_says_what_it_is),
      cmocka_unit_test(inference_reads_the_file_that_an_earlier_run_wrote),
      cmocka_unit_test(a_device_artifact_is_refused_with_the_name_of_the_other),
      cmocka_unit_test(what_cannot_run_is_an_error_that_says_why),
      cmocka_unit_test(without_quantization_the_prepared_model_is_compiled_in_half_precision),
      cmocka_unit_test(mode_kv_needs_no_twin_compiled),
      cmocka_unit_test(cancelling_in_any_stage_leaves_nothing_half_written),
      cmocka_unit_test(the_upstream_reference_file_opens_and_runs),
  };
  return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
