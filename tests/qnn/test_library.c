/* Finding and loading Qualcomm's libraries: what is searched, what is said when they are missing or broken, and that nothing is printed. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/log.h"
#include "qnn/qnn_support.h"

static void opens_and_tells_versions(void** state) {
  (void)state;
  need_library();
  qnn_library_info info;
  qnn_library_get_info(test_library, &info);
  assert_int_equal(info.core_major, 2);
  assert_true(info.core_minor >= 36); /* QAIRT 2.47 */
  assert_int_equal(info.backend_major, 5);
  assert_true(info.backend_minor == info.core_minor + 11); /* true of all five known versions */
  assert_true(strncmp(info.build_id, "v2.", 3) == 0);
  assert_non_null(strstr(info.directory, "/"));
#if defined(__x86_64__)
  assert_true(info.is_simulator);
#endif
}

static void missing_folder_lists_what_was_searched(void** state) {
  (void)state;
  qnn_library* library;
  assert_fails(qnn_library_open("/nonexistent/qnn", &library), GENAI_ERROR_ENGINE_NOT_AVAILABLE,
               "/nonexistent/qnn (the given folder): no such folder");
  assert_fails(qnn_library_open("/nonexistent/qnn", &library), GENAI_ERROR_ENGINE_NOT_AVAILABLE, "make setup");
}

/* A folder of the test's own in the folder the tests run in, with a file of this content. */
static void make_file(const char* folder, const char* name, const char* content) {
  char path[512];
  mkdir(folder, 0755);
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "w");
  assert_non_null(file);
  fputs(content, file);
  fclose(file);
}

static void set_search(const char* named, const char* sdk, const char* cache) {
  named ? setenv("GENAI_QNN_DIR", named, 1) : unsetenv("GENAI_QNN_DIR");
  sdk ? setenv("QNN_SDK_ROOT", sdk, 1) : unsetenv("QNN_SDK_ROOT");
  cache ? setenv("XDG_CACHE_HOME", cache, 1) : unsetenv("XDG_CACHE_HOME");
}

static int keep_environment(void** state) {
  static char saved[512];
  const char* named = test_environment("GENAI_QNN_DIR");
  snprintf(saved, sizeof saved, "%s", named ? named : "");
  *state = saved;
  return 0;
}

static int restore_environment(void** state) {
  const char* saved = *state;
  set_search(*saved ? saved : NULL, NULL, NULL);
  return 0;
}

static void searches_in_order(void** state) {
  (void)state;
  char root[] = "qnn-search-XXXXXX";
  assert_non_null(mkdtemp(root));
  char folder[256];
  snprintf(folder, sizeof folder, "%s/genai", root);
  mkdir(folder, 0755);
  snprintf(folder, sizeof folder, "%s/genai/qnn", root);
  mkdir(folder, 0755);
  const char* const names[] = {"2.10.0", "2.5.0", "2.7.0"};
  for (int i = 0; i < 3; ++i) {
    snprintf(folder, sizeof folder, "%s/genai/qnn/%s", root, names[i]);
    mkdir(folder, 0755);
    strcat(folder, "/onnxruntime_qnn");
    make_file(folder, "libQnnHtp.so", "");
  }
  set_search("/nonexistent/named", "/nonexistent/sdk", root);
  text listing = {0};
  assert_ok(qnn_library_describe_search(&listing));
  const char* const expected[] = {"/nonexistent/named ($GENAI_QNN_DIR): no such folder\n",
                                  "/nonexistent/sdk/lib/",
                                  "/genai/qnn (the cache of `make setup`): no libQnnHtp.so\n",
                                  "/2.5.0/onnxruntime_qnn (the cache of `make setup`): libQnnHtp.so found\n",
                                  "/2.10.0/onnxruntime_qnn (the cache of `make setup`): libQnnHtp.so found\n",
                                  "/2.7.0/onnxruntime_qnn (the cache of `make setup`): libQnnHtp.so found\n",
                                  "the loader's path"};
  const char* at = listing.data;
  for (size_t i = 0; i < sizeof expected / sizeof *expected; ++i) {
    const char* found = strstr(at, expected[i]);
    if (!found) fail_msg("\"%s\" is not, or not in this order, in:\n%s", expected[i], listing.data);
    at = found;
  }
  text_deinit(&listing);

  /* The first folder that has the file wins, even if it does not load; the loader's reason is told. */
  qnn_library* library;
  set_search(NULL, NULL, root);
  assert_fails(qnn_library_open(NULL, &library), GENAI_ERROR_ENGINE_NOT_AVAILABLE, "2.5.0/onnxruntime_qnn/libQnnHtp.so does not load: ");
  assert_fails(qnn_library_open(NULL, &library), GENAI_ERROR_ENGINE_NOT_AVAILABLE, "file too short");
  char command[256];
  snprintf(command, sizeof command, "rm -r %s", root);
  assert_int_equal(system(command), 0);
}

/* What a process prints on both its streams while it runs `body`. */
static void capture(void (*body)(void), char* out, size_t capacity) {
  char path[] = "qnn-output-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  unlink(path);
  fflush(stdout);
  fflush(stderr);
  int saved_out = dup(1), saved_err = dup(2);
  dup2(file, 1);
  dup2(file, 2);
  printf("buffered "); /* stays the caller's, in its place */
  body();
  printf("after");
  fflush(stdout);
  dup2(saved_out, 1);
  dup2(saved_err, 2);
  close(saved_out);
  close(saved_err);
  ssize_t got = pread(file, out, capacity - 1, 0);
  out[got > 0 ? got : 0] = 0;
  close(file);
}

static genai_status* capture_status; /* asserting while the streams are captured would hide the message */

static genai_status* compile_and_run(void) {
  ir_graph* graph;
  assert_ok(ir_graph_create("quiet", &graph));
  ir_tensor* x = add_encoded(graph, "x", IR_INPUT, IR_U16, -1, 1, DIMS(1, 4, 32));
  ir_tensor* y = add_encoded(graph, "y", IR_OUTPUT, IR_U16, -2, 2, DIMS(1, 4, 32));
  add_op(graph, IR_ADD, "add", y, INPUTS(x, x));
  const qnn_compile_options options = {.soc = test_soc()};
  qnn_binary binary = {0};
  qnn_context* context = NULL;
  executor* run = NULL;
  uint16_t in[128] = {0}, out[128];
  genai_status* status = qnn_compile(test_library, (const ir_graph* const*)&graph, 1, &options, &binary);
  if (!status) status = qnn_context_open(test_library, binary.data, binary.size, &context);
  if (!status) status = qnn_context_executor(context, "quiet", &run);
  for (int i = 0; !status && i < 2; ++i) status = executor_run(run, (const void*[]){in}, (void*[]){out});
  executor_destroy(run);
  qnn_context_close(context);
  qnn_binary_deinit(&binary);
  ir_graph_destroy(graph);
  return status;
}

static void do_everything(void) {
  qnn_library* again;
  qnn_library_info info;
  qnn_library_get_info(test_library, &info);
  capture_status = qnn_library_open(info.directory, &again);
  if (!capture_status) qnn_library_close(again);
  if (!capture_status) capture_status = compile_and_run();
}

static void nothing_is_printed(void** state) {
  (void)state;
  need_library();
  char printed[4096];
  capture(do_everything, printed, sizeof printed);
  assert_ok(capture_status);
  assert_string_equal(printed, "buffered after");
}

static unsigned logged_lines;
static void count_lines(void* user, log_level level, const char* message) {
  (void)user;
  (void)level;
  if (strncmp(message, "QNN ", 4) == 0) ++logged_lines;
}

static void prints_go_to_the_debug_log(void** state) {
  (void)state;
  need_library();
  logged_lines = 0;
  log_set_sink(count_lines, NULL, LOG_DEBUG);
  char printed[4096];
  capture(do_everything, printed, sizeof printed);
  log_set_sink(NULL, NULL, LOG_ERROR);
  assert_ok(capture_status);
  assert_string_equal(printed, "buffered after");
  qnn_library_info info;
  qnn_library_get_info(test_library, &info);
  if (info.core_minor <= 38) assert_true(logged_lines > 5); /* the stages that QAIRT 2.47 to 2.49 print */
}

static void a_second_version_is_refused(void** state) {
  (void)state;
  need_library();
  const char* versions = test_environment("GENAI_QNN_VERSIONS_DIR");
  skip_unless_file(versions);
  qnn_library_info info;
  qnn_library_get_info(test_library, &info);
  const char* other = test_path(versions, info.core_minor == 36 ? "2.4.0/onnxruntime_qnn" : "2.3.0/onnxruntime_qnn");
  skip_unless_file(other);
  qnn_library* library;
  assert_fails(qnn_library_open(other, &library), GENAI_ERROR_ENGINE_NOT_AVAILABLE, "this process already uses");
  /* The same folder again is fine. */
  assert_ok(qnn_library_open(info.directory, &library));
  qnn_library_close(library);
}

static void every_allocation_failure_is_reported(void** state) {
  (void)state;
  need_library();
  qnn_library_info info;
  qnn_library_get_info(test_library, &info);
  uint64_t begun = mem_allocation_count();
  qnn_library* library;
  assert_ok(qnn_library_open(info.directory, &library));
  uint64_t count = mem_allocation_count() - begun;
  qnn_library_close(library);
  assert_true(count > 3);
  for (uint64_t n = 1; n <= count; ++n) {
    mem_inject_failure(n);
    genai_status* status = qnn_library_open(info.directory, &library);
    mem_inject_failure(0);
    if (!status) { /* a dependency's name that could not be kept, and was not needed */
      qnn_library_close(library);
      continue;
    }
    genai_error_kind kind = genai_status_kind(status);
    genai_status_free(status);
    assert_true(kind == GENAI_ERROR_OUT_OF_MEMORY || kind == GENAI_ERROR_ENGINE_NOT_AVAILABLE);
  }
}

int main(void) {
  const struct CMUnitTest searching[] = {
      /* while no library is loaded */
      cmocka_unit_test(missing_folder_lists_what_was_searched),
      cmocka_unit_test_setup_teardown(searches_in_order, keep_environment, restore_environment),
  };
  const struct CMUnitTest loaded[] = {
      cmocka_unit_test(opens_and_tells_versions),
      cmocka_unit_test(nothing_is_printed),
      cmocka_unit_test(prints_go_to_the_debug_log),
      cmocka_unit_test(a_second_version_is_refused),
      cmocka_unit_test(every_allocation_failure_is_reported),
  };
  int failed = cmocka_run_group_tests(searching, NULL, NULL);
  return failed + cmocka_run_group_tests(loaded, open_test_library, close_test_library);
}
