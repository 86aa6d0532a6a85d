/* Fault injection into whole runs on the `llama` fixture with a small tokenizer: every operation that changes the file system fails once in turn,
 * and so does every allocation of preparation and quantization and of a run that takes everything from the store. A run of the vendor's compiler takes
 * a third of a second, so that of its allocations and of inference's a seeded choice fails. */
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "model_copy.h"
#include "pipeline/executorch.h"
#include "stubs.h"

/* A sanitizer makes everything several times slower, and is there to find leaks: it sees every third failure. */
#ifdef GENAI_SANITIZED
enum { STEP = 3, CHOICES = 10 };
#else
enum { STEP = 1, CHOICES = 25 };
#endif

static char model_path[128], artifact_path[128];

typedef struct setting {
  unsigned skip;
  const char* from;
  const char* mode; /* NULL: hybrid */
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
  if (!status) status = genai_engine_proxy_create(NULL, 0, GENAI_BACKEND_HTP, &proxy);
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
  static char names[1024];
  char line[512];
  snprintf(line, sizeof line, "cd %s 2>/dev/null && find . -type f ! -name .genai.lock | sort | tr '\\n' ' '", artifact_path);
  FILE* pipe = popen(line, "r");
  size_t length = fread(names, 1, sizeof names - 1, pipe);
  names[length] = 0;
  pclose(pipe);
  return names;
}

/* What a failed run may leave: whole files of stages that had finished. A temporary name ends in a point and six letters. */
static void check_files(bool artifacts_allowed, uint64_t number) {
  char copy[1024];
  snprintf(copy, sizeof copy, "%s", files());
  for (char* name = strtok(copy, " "); name; name = strtok(NULL, " ")) {
    size_t length = strlen(name);
    bool known = !strcmp(name, "./tokenizer.json") || !strcmp(name, "./tokenizer_config.json") ||
                 (strstr(name, "./.genai/quantization-") && !strcmp(name + length - 4, ".bin"));
    bool artifact = !strcmp(name, "./model.SM8650.pte") || !strcmp(name, "./model.SM8650.etrecord") ||
                    !strcmp(name, "./model.SM8650.sim.pte") ||
                    (strstr(name, "./.genai/compilation-") && !strcmp(name + length - 5, ".json"));
    if (!known && !(artifact && artifacts_allowed)) fail_msg("operation %llu left %s", (unsigned long long)number, name);
  }
}

/* An error of the disk that names the file and what to do, or a warning that a result could not be kept for later. */
static void every_failed_write(const setting* s, uint64_t least) {
  shell("rm -rf %s", artifact_path);
  uint64_t before = file_operation_count();
  assert_ok(run(s));
  uint64_t operations = file_operation_count() - before, warned = 0;
  assert_true(operations >= least);
  char whole[1024];
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

static void fail_allocation(const setting* s, uint64_t n, uint64_t* harmless) {
  mem_inject_failure(n);
  genai_status* status = run(s);
  mem_inject_failure(0);
  if (status && genai_status_kind(root_of(status)) != GENAI_ERROR_OUT_OF_MEMORY)
    fail_msg("allocation %llu: %s", (unsigned long long)n, genai_status_message(root_of(status)));
  *harmless += !status;
  genai_status_free(status);
}

static void every_failed_allocation(const setting* s) {
  assert_ok(run(s));
  uint64_t before = mem_allocation_count(), harmless = 0;
  assert_ok(run(s));
  uint64_t allocations = mem_allocation_count() - before;
  assert_true(allocations > 100);
  for (uint64_t n = 1; n <= allocations; n += STEP) fail_allocation(s, n, &harmless);
  assert_true(harmless <= allocations / 20); /* giving memory back, such as a document's after parsing, may fail without harm */
  check_files(false, 0);
}

static void every_failed_allocation_of_preparation_and_quantization_is_an_error_and_leaks_nothing(void** state) {
  (void)state;
  shell("rm -rf %s", artifact_path);
  setting calibrating = {.skip = 1u << GENAI_STAGE_COMPILATION | 1u << GENAI_STAGE_INFERENCE, .from = "quantization"};
  every_failed_allocation(&calibrating);
  setting restoring = {.skip = calibrating.skip};
  every_failed_allocation(&restoring);
}

/* splitmix64 */
static uint64_t next_random(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static void failed_allocations_of_compilation_and_inference_are_errors_and_leak_nothing(void** state) {
  (void)state;
  if (!has_libraries()) skip();
  setting compiling = {.from = "compilation"}, stored = {0};
  shell("rm -rf %s", artifact_path);
  assert_ok(run(&stored));
  const setting* const settings[] = {&compiling, &stored}; /* the second one takes artifacts from the store and runs them */
  for (size_t i = 0; i < 2; i++) {
    assert_ok(run(settings[i])); /* what the failures before removed is there again */
    uint64_t before = mem_allocation_count(), seed = 1, harmless = 0;
    assert_ok(run(settings[i]));
    uint64_t allocations = mem_allocation_count() - before;
    for (int choice = 0; choice < CHOICES; choice++) fail_allocation(settings[i], 1 + next_random(&seed) % allocations, &harmless);
    assert_true(harmless <= CHOICES / 5);
  }
  assert_ok(run(&stored));
}

static int begin(void** state) {
  (void)state;
  snprintf(model_path, sizeof model_path, "%s/model", scratch_directory());
  snprintf(artifact_path, sizeof artifact_path, "%s/artifacts", scratch_directory());
  make_model(model_path);
  return 0;
}

static int end(void** state) {
  (void)state;
  shell("rm -rf %s", scratch_directory());
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_failed_write_of_preparation_and_quantization_is_told_and_leaves_nothing),
      cmocka_unit_test(every_failed_write_of_a_run_is_told_and_leaves_nothing),
      cmocka_unit_test(every_failed_allocation_of_preparation_and_quantization_is_an_error_and_leaks_nothing),
      cmocka_unit_test(failed_allocations_of_compilation_and_inference_are_errors_and_leak_nothing),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
