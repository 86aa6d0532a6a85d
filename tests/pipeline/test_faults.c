/* Fault injection into whole runs on the `llama` fixture with a small tokenizer, for both engines: every operation that changes the file system
 * fails once in turn, and so does every allocation. The compiler runs for one graph (mode kv), which takes a third of a second each time; with two
 * graphs and a twin for the simulator (mode hybrid) a seeded choice of allocations fails. */
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "model_copy.h"
#include "pipeline/executorch.h"
#include "stubs.h"

/* A sanitizer makes everything several times slower, and is there to find leaks: it sees every third failure, and every 17th with the compiler. */
#ifdef GENAI_SANITIZED
enum { STEP = 3, COMPILING_STEP = 17, CHOICES = 10 };
#else
enum { STEP = 1, COMPILING_STEP = 1, CHOICES = 25 };
#endif

static char model_path[128], artifact_path[128];

typedef struct setting {
  unsigned skip;
  const char* from;
  const char* mode;   /* NULL: hybrid */
  const char* engine; /* of compilation and inference; NULL: executorch */
  genai_backend backend;
} setting;

static genai_status* fill(genai_context_builder* builder, const setting* s) {
  static const int32_t ids[] = {4, 5, 6, 7, 8};
  static const char* const options[][2] = {{"context", "32"},       {"prefill_ar", "8"},          {"threads", "1"},
                                           {"max_new_tokens", "2"}, {"calibration_samples", "1"}, {"calibration_length", "16"},
                                           {"etrecord", "true"}};
  GENAI_TRY(genai_context_builder_set_model(builder, model_path));
  GENAI_TRY(genai_context_builder_set_soc(builder, "SM8650"));
  GENAI_TRY(genai_context_builder_add_prompt_ids(builder, ids, 5));
  GENAI_TRY(genai_context_builder_set_artifact_directory(builder, artifact_path));
  if (s->from) GENAI_TRY(genai_context_builder_set_option(builder, "from", s->from));
  if (s->mode) GENAI_TRY(genai_context_builder_set_option(builder, "mode", s->mode));
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
    GENAI_TRY(genai_context_builder_set_option(builder, options[i][0], options[i][1]));
  return NULL;
}

/* Context, proxy, registry and pipeline too: all that a program does. */
static genai_status* run(const setting* s) {
  genai_context_builder* builder = NULL;
  genai_context* context = NULL;
  genai_engine_proxy* proxy = NULL;
  genai_registry* registry = NULL;
  genai_pipeline* pipeline = NULL;
  genai_inference_output output = {0};
  genai_pipeline_report report = {0};
  genai_pipeline_options how = {.skip_stages = s->skip};
  genai_status* status = genai_context_builder_create(&builder);
  if (!status) status = fill(builder, s);
  if (!status) status = genai_context_builder_build(builder, &context);
  if (!status) status = genai_registry_create(true, &registry);
  how.registry = registry;
  const genai_engine_choice engines[] = {{"compilation", s->engine}, {"inference", s->engine}};
  if (!status) status = genai_engine_proxy_create(engines, s->engine ? 2 : 0, s->backend, &proxy);
  if (!status) status = genai_pipeline_from_proxy(proxy, &how, &pipeline);
  if (!status) status = genai_pipeline_invoke(pipeline, context, &output, &report);
  genai_pipeline_report_deinit(&report);
  genai_inference_output_deinit(&output);
  genai_pipeline_destroy(pipeline);
  genai_registry_destroy(registry);
  genai_engine_proxy_destroy(proxy);
  genai_context_destroy(context);
  genai_context_builder_destroy(builder);
  return status;
}

static const genai_status* root_of(const genai_status* status) {
  while (genai_status_cause(status)) status = genai_status_cause(status);
  return status;
}

static void shell(const char* format, const char* argument) {
  char line[512];
  snprintf(line, sizeof line, format, argument);
  assert_int_equal(system(line), 0);
}

/* The names of all files below the artifact directory but the lock, sorted, on one line. */
static const char* files(void) {
  static char names[2048];
  char line[512];
  snprintf(line, sizeof line, "cd %s 2>/dev/null && find . -type f ! -name .genai.lock | sort | tr '\\n' ' '", artifact_path);
  FILE* pipe = popen(line, "r");
  size_t length = fread(names, 1, sizeof names - 1, pipe);
  names[length] = 0;
  pclose(pipe);
  return names;
}

/* What a failed run may leave: whole files of stages that had finished. */
static void check_files(bool artifacts_allowed, uint64_t number) {
  char copy[2048];
  snprintf(copy, sizeof copy, "%s", files());
  for (char* name = strtok(copy, " "); name; name = strtok(NULL, " ")) {
    bool known = !strcmp(name, "./tokenizer.json") || !strcmp(name, "./tokenizer_config.json") || strstr(name, "./.genai/quantization-");
    bool artifact = strstr(name, "./model.SM8650.") || strstr(name, "./.genai/compilation-");
    if ((!known && !(artifact && artifacts_allowed)) || strstr(name, ".genai-tmp."))
      fail_msg("failure %llu left %s", (unsigned long long)number, name);
  }
  if (!artifacts_allowed) shell("! ls -d %s/*.genie 2>/dev/null", artifact_path); /* no empty folders either */
}

/* An error of the disk that names the file and what to do, or a warning that a result could not be kept for later. */
static void every_failed_write(const setting* s, uint64_t least) {
  shell("rm -rf %s", artifact_path);
  uint64_t before = file_operation_count();
  assert_ok(run(s));
  uint64_t operations = file_operation_count() - before, warned = 0;
  assert_true(operations >= least);
  char whole[2048];
  snprintf(whole, sizeof whole, "%s", files());
  for (uint64_t n = 1; n <= operations; n += STEP) {
    shell("rm -rf %s", artifact_path);
    log_begin();
    file_inject_failure(n);
    genai_status* status = run(s);
    file_inject_failure(0);
    if (status) {
      const genai_status* root = root_of(status);
      char message[1024];
      genai_status_format(status, message, sizeof message);
      if (genai_status_kind(root) != GENAI_ERROR_IO || !strstr(message, "\"/tmp"))
        fail_msg("operation %llu: %s", (unsigned long long)n, message);
      if (!strstr(message, "No space left on device")) fail_msg("operation %llu: %s", (unsigned long long)n, message);
    } else {
      assert_logged("2 a later run will have to repeat this stage: cannot ");
      warned++;
    }
    check_files(!status, n);
    genai_status_free(status);
    log_end();
  }
  assert_true(warned > 0 && warned < operations / 2);
  assert_ok(run(s)); /* and the next run mends it */
  assert_string_equal(files(), whole);
}

static void every_failed_write_of_preparation_and_quantization_is_told_and_leaves_nothing(void** state) {
  (void)state;
  setting s = {.skip = 1u << GENAI_STAGE_COMPILATION | 1u << GENAI_STAGE_INFERENCE};
  every_failed_write(&s, 15);
}

static bool has_libraries(void) {
  char library[1024];
  const char* folder = test_environment("GENAI_QNN_DIR");
  snprintf(library, sizeof library, "%s/libQnnHtp.so", folder ? folder : "");
  if (folder && file_exists(library)) return true;
  print_message("skipped: %s is absent\n", library);
  return false;
}

static void every_failed_write_of_a_run_is_told_and_leaves_nothing(void** state) {
  (void)state;
  if (!has_libraries()) skip();
  setting s = {.skip = 1u << GENAI_STAGE_INFERENCE, .mode = "kv"}; /* one graph: as many files in half the time */
  every_failed_write(&s, 30);
}

static void every_failed_write_of_a_genie_bundle_is_told_and_leaves_nothing(void** state) {
  (void)state;
  if (!has_libraries()) skip();
  setting s = {.skip = 1u << GENAI_STAGE_INFERENCE, .mode = "kv", .engine = "qairt"};
  every_failed_write(&s, 60);
}

static const setting for_the_gpu = {
    .skip = 1u << GENAI_STAGE_QUANTIZATION | 1u << GENAI_STAGE_INFERENCE, .mode = "kv", .backend = GENAI_BACKEND_GPU};

static void every_failed_write_of_a_program_for_the_gpu_is_told_and_leaves_nothing(void** state) {
  (void)state;
  if (!has_libraries()) skip();
  every_failed_write(&for_the_gpu, 20);
}

/* Not the pipeline, which writes down what the compiler made. */
static bool failed_in_the_compiler(const genai_status* status) {
  char message[1024] = "";
  if (status) genai_status_format(status, message, sizeof message);
  return strstr(message, "cannot compile the model");
}

static void remove_artifacts(void) {
  shell("cd %s && rm -rf model.* .genai/compilation-*", artifact_path);
}

static void fail_allocation(const setting* s, uint64_t n, uint64_t* harmless) {
  mem_inject_failure(n);
  genai_status* status = run(s);
  mem_inject_failure(0);
  if (status && genai_status_kind(root_of(status)) != GENAI_ERROR_OUT_OF_MEMORY)
    fail_msg("allocation %llu: %s", (unsigned long long)n, genai_status_message(root_of(status)));
  bool compiles = s->from && !strcmp(s->from, "compilation");
  check_files(!compiles || !failed_in_the_compiler(status), n);
  if (compiles) remove_artifacts();
  *harmless += !status;
  genai_status_free(status);
}

static void every_failed_allocation(const setting* s, uint64_t step) {
  assert_ok(run(s));
  uint64_t before = mem_allocation_count(), harmless = 0, tried = 0;
  assert_ok(run(s));
  uint64_t allocations = mem_allocation_count() - before;
  assert_true(allocations > 100);
  if (s->from && !strcmp(s->from, "compilation")) remove_artifacts();
  for (uint64_t n = 1; n <= allocations; n += step, tried++) fail_allocation(s, n, &harmless);
  assert_true(harmless <= tried / 10 + 1); /* giving memory back, such as a document's after parsing, may fail without harm */
}

static void every_failed_allocation_of_preparation_and_quantization_is_an_error_and_leaks_nothing(void** state) {
  (void)state;
  shell("rm -rf %s", artifact_path);
  setting calibrating = {.skip = 1u << GENAI_STAGE_COMPILATION | 1u << GENAI_STAGE_INFERENCE, .from = "quantization"};
  every_failed_allocation(&calibrating, STEP);
  setting restoring = {.skip = calibrating.skip};
  every_failed_allocation(&restoring, STEP);
  check_files(false, 0);
}

/* Compiles and runs, then takes the artifact from the store and runs that. */
static void every_failed_allocation_of_engine(const char* engine) {
  shell("rm -rf %s", artifact_path);
  setting stored = {.mode = "kv", .engine = engine}, compiling = {.from = "compilation", .mode = "kv", .engine = engine};
  assert_ok(run(&stored));
  every_failed_allocation(&compiling, COMPILING_STEP);
  every_failed_allocation(&stored, STEP);
}

static void every_failed_allocation_of_compilation_and_inference_is_an_error_and_leaks_nothing(void** state) {
  (void)state;
  if (!has_libraries()) skip();
  every_failed_allocation_of_engine(NULL);
}

static void every_failed_allocation_of_a_genie_bundle_and_its_run_is_an_error_and_leaks_nothing(void** state) {
  (void)state;
  if (!has_libraries()) skip();
  every_failed_allocation_of_engine("qairt");
}

static void every_failed_allocation_of_a_program_for_the_gpu_is_an_error_and_leaks_nothing(void** state) {
  (void)state;
  if (!has_libraries()) skip();
  setting compiling = for_the_gpu;
  compiling.from = "compilation";
  shell("rm -rf %s", artifact_path);
  every_failed_allocation(&compiling, COMPILING_STEP);
}

/* splitmix64 */
static uint64_t next_random(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static void failed_allocations_with_two_graphs_are_errors_and_leak_nothing(void** state) {
  (void)state;
  if (!has_libraries()) skip();
  setting compiling = {.from = "compilation"}, stored = {0};
  shell("rm -rf %s", artifact_path);
  assert_ok(run(&stored));
  uint64_t before = mem_allocation_count(), seed = 1, harmless = 0;
  assert_ok(run(&compiling));
  uint64_t allocations = mem_allocation_count() - before;
  remove_artifacts();
  for (int choice = 0; choice < CHOICES; choice++) fail_allocation(&compiling, 1 + next_random(&seed) % allocations, &harmless);
  assert_true(harmless <= CHOICES / 5);
  every_failed_allocation(&stored, STEP);
}

static int begin(void** state) {
  (void)state;
  snprintf(model_path, sizeof model_path, "%s/model", scratch_directory());
  snprintf(artifact_path, sizeof artifact_path, "%s/artifacts", scratch_directory());
  make_model(model_path);
  return 0;
}

int main(int argc, char** argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_failed_write_of_preparation_and_quantization_is_told_and_leaves_nothing),
      cmocka_unit_test(every_failed_write_of_a_run_is_told_and_leaves_nothing),
      cmocka_unit_test(every_failed_write_of_a_genie_bundle_is_told_and_leaves_nothing),
      cmocka_unit_test(every_failed_write_of_a_program_for_the_gpu_is_told_and_leaves_nothing),
      cmocka_unit_test(every_failed_allocation_of_preparation_and_quantization_is_an_error_and_leaks_nothing),
      cmocka_unit_test(every_failed_allocation_of_compilation_and_inference_is_an_error_and_leaks_nothing),
      cmocka_unit_test(every_failed_allocation_of_a_genie_bundle_and_its_run_is_an_error_and_leaks_nothing),
      cmocka_unit_test(every_failed_allocation_of_a_program_for_the_gpu_is_an_error_and_leaks_nothing),
      cmocka_unit_test(failed_allocations_with_two_graphs_are_errors_and_leak_nothing),
  };
  return cmocka_run_group_tests(tests, begin, remove_scratch);
}
