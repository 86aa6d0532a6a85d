/* Every supported version of Qualcomm's libraries compiles and runs the same small block, loads its own binary in a fresh process and older
 * binaries too, and says so when a binary is newer than itself. GENAI_QNN_VERSIONS_DIR holds one unpacked wheel per version (folders 2.3.0
 * to 2.7.0); absent ones are skipped. Two versions in one process disturb each other, so each step is a process of its own: this program
 * again, with the arguments ACTION LIBRARY_FOLDER BINARY. Expected values: reference.h. */
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "qnn/reference.h"

static const char* const versions[] = {"2.3.0", "2.4.0", "2.5.0", "2.6.0", "2.7.0"};
enum { VERSION_COUNT = sizeof versions / sizeof *versions, ROWS = 8, WIDTH = 64 };

static ir_tensor* encoded_constants(ir_graph* graph, const char* name, double low, double high, float first, float step) {
  float values[WIDTH];
  for (int i = 0; i < WIDTH; ++i) values[i] = first + step * (float)i;
  ir_tensor* tensor = add_constants(graph, name, DIMS(WIDTH), WIDTH, 1, values);
  encode_range(tensor, IR_U16, low, high);
  return tensor;
}

/* A norm, a linear layer, a softmax over its rows, and a product with bytes. */
static ir_graph* block_graph(void) {
  ir_graph* graph;
  assert_ok(ir_graph_create("block", &graph));
  ir_tensor* x = add_encoded(graph, "x", IR_INPUT, IR_U16, -2, 2, DIMS(1, 1, ROWS, WIDTH));
  ir_tensor* v = add_plain(graph, "v", IR_INPUT, IR_U8, DIMS(1, 1, WIDTH, WIDTH));
  v->encoding = (ir_encoding){.kind = IR_ENCODING_PER_TENSOR, .bits = 8, .scale = 1.0f / 127, .offset = -128};
  ir_tensor* gamma = encoded_constants(graph, "gamma", 0, 2, 0.5f, 0.02f);
  ir_tensor* beta = encoded_constants(graph, "beta", -1, 1, 0, 0);
  ir_tensor* normed = add_encoded(graph, "normed", IR_INTERMEDIATE, IR_U16, -4, 4, DIMS(1, 1, ROWS, WIDTH));
  add_op(graph, IR_RMS_NORM, "norm", normed, INPUTS(x, gamma, beta))->attr.epsilon = 1e-5f;
  float weights[WIDTH * WIDTH];
  uint64_t random = 11;
  for (int i = 0; i < WIDTH * WIDTH; ++i) weights[i] = 0.3f * test_random(&random);
  ir_tensor* w = add_constants(graph, "w", DIMS(1, 1, WIDTH, WIDTH), WIDTH, WIDTH, weights);
  float* scales = arena_calloc(&graph->memory, WIDTH, sizeof *scales);
  for (int i = 0; i < WIDTH; ++i) scales[i] = 0.3f / 127;
  w->dtype = IR_S8;
  w->encoding = (ir_encoding){.kind = IR_ENCODING_PER_CHANNEL, .bits = 8, .axis = 3, .channels = WIDTH, .scales = scales};
  ir_tensor* linear = add_encoded(graph, "linear", IR_INTERMEDIATE, IR_U16, -6, 6, DIMS(1, 1, ROWS, WIDTH));
  add_op(graph, IR_CONV2D, "conv", linear, INPUTS(normed, w));
  ir_tensor* weight = add_encoded(graph, "weight", IR_INTERMEDIATE, IR_U16, 0, 1, DIMS(1, 1, ROWS, WIDTH));
  add_op(graph, IR_SOFTMAX, "softmax", weight, INPUTS(linear));
  add_op(graph, IR_MATMUL, "mix", add_encoded(graph, "y", IR_OUTPUT, IR_U16, -1, 1, DIMS(1, 1, ROWS, WIDTH)), INPUTS(weight, v));
  return graph;
}

static void run_and_compare(const void* data, size_t size) {
  qnn_context* context;
  executor* run;
  assert_ok(qnn_context_open(test_library, data, size, &context));
  assert_ok(qnn_context_executor(context, "block", &run));
  static uint16_t x[ROWS * WIDTH], y[ROWS * WIDTH];
  static uint8_t v[WIDTH * WIDTH];
  uint64_t random = 5;
  for (int i = 0; i < ROWS * WIDTH; ++i) x[i] = (uint16_t)(32767 + 32767 * test_random(&random));
  for (int i = 0; i < WIDTH * WIDTH; ++i) v[i] = (uint8_t)(128 + 127 * test_random(&random));
  assert_ok(executor_run(run, (const void*[]){x, v}, (void*[]){y}));
  ir_graph* graph = block_graph();
  double* values[32] = {0};
  assert_true(graph->n_tensors <= 32);
  values[graph->inputs[0]] = mem_calloc(ROWS * WIDTH, sizeof(double));
  values[graph->inputs[1]] = mem_calloc(WIDTH * WIDTH, sizeof(double));
  for (size_t i = 0; i < ROWS * WIDTH; ++i) values[graph->inputs[0]][i] = (double)executor_port_read(&run->inputs[0], x, i);
  for (size_t i = 0; i < WIDTH * WIDTH; ++i) values[graph->inputs[1]][i] = (double)executor_port_read(&run->inputs[1], v, i);
  reference_run(graph, values);
  double largest = 0;
  for (size_t i = 0; i < ROWS * WIDTH; ++i) {
    largest = fmax(largest, fabs((double)executor_port_read(&run->outputs[0], y, i) - values[graph->outputs[0]][i]));
  }
  assert_true(largest < 20 * (double)run->outputs[0].scale); /* four roundings to 16 bits, in steps of the last */
  for (int i = 0; i < 32; ++i) mem_free(values[i]);
  ir_graph_destroy(graph);
  executor_destroy(run);
  qnn_context_close(context);
}

static const char* child_binary;

static void child_compile(void** state) {
  (void)state;
  ir_graph* graph = block_graph();
  const qnn_compile_options options = {.soc = test_soc()};
  qnn_binary binary;
  assert_ok(qnn_compile(test_library, (const ir_graph* const*)&graph, 1, &options, &binary));
  run_and_compare(binary.data, binary.size);
  assert_ok(file_write_atomic(child_binary, binary.data, binary.size));
  qnn_binary_deinit(&binary);
  ir_graph_destroy(graph);
}

static void child_load(void** state) {
  (void)state;
  mapped_file file;
  assert_ok(mapped_file_open(child_binary, &file));
  run_and_compare(file.data, file.size);
  mapped_file_close(&file);
}

static void child_refuse(void** state) {
  (void)state;
  mapped_file file;
  assert_ok(mapped_file_open(child_binary, &file));
  qnn_context* context;
  genai_status* status = qnn_context_open(test_library, file.data, file.size, &context);
  assert_non_null(status);
  char message[2048];
  genai_status_format(status, message, sizeof message);
  genai_status_free(status);
  assert_non_null(strstr(message, "newer"));
  mapped_file_close(&file);
}

/* Runs this program again; true when it succeeded. Its output is shown when it failed. */
static bool run_child(const char* action, const char* folder, const char* binary) {
  char log[] = "qnn-version-XXXXXX";
  int output = mkstemp(log);
  assert_true(output >= 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, output, 2);
  char* arguments[] = {(char*)"test_versions", (char*)(uintptr_t)action, (char*)(uintptr_t)folder, (char*)(uintptr_t)binary, NULL};
  pid_t child;
  assert_int_equal(posix_spawn(&child, "/proc/self/exe", &actions, NULL, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  int status;
  assert_true(waitpid(child, &status, 0) == child);
  bool succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!succeeded) {
    char output_text[4096];
    ssize_t got = pread(output, output_text, sizeof output_text - 1, 0);
    output_text[got > 0 ? got : 0] = 0;
    print_error("%s with %s ended with status %d:\n%s\n", action, folder, status, output_text);
  }
  close(output);
  unlink(log);
  return succeeded;
}

static void all_versions(void** state) {
  (void)state;
  const char* root = test_environment("GENAI_QNN_VERSIONS_DIR");
  skip_unless_file(root);
  char folders[VERSION_COUNT][512], binaries[VERSION_COUNT][64];
  int present[VERSION_COUNT], count = 0;
  for (int i = 0; i < VERSION_COUNT; ++i) {
    snprintf(folders[i], sizeof folders[i], "%s/%s", root, versions[i]);
    snprintf(binaries[i], sizeof binaries[i], "qnn-block-%d-%s.bin", (int)getpid(), versions[i]);
    if (access(folders[i], R_OK) != 0) {
      print_message("skipped: %s is absent\n", folders[i]);
      continue;
    }
    present[count++] = i;
    assert_true(run_child("compile", folders[i], binaries[i]));
    assert_true(run_child("load", folders[i], binaries[i]));
  }
  if (count > 1) {
    int oldest = present[0], newest = present[count - 1];
    assert_true(run_child("load", folders[newest], binaries[oldest]));
    assert_true(run_child("refuse", folders[oldest], binaries[newest]));
  }
  for (int i = 0; i < count; ++i) unlink(binaries[present[i]]);
  if (!count) skip();
}

int main(int argc, char** argv) {
  if (argc == 4) {
    setenv("GENAI_QNN_DIR", argv[2], 1);
    child_binary = argv[3];
    const struct CMUnitTest compile[] = {cmocka_unit_test(child_compile)};
    const struct CMUnitTest load[] = {cmocka_unit_test(child_load)};
    const struct CMUnitTest refuse[] = {cmocka_unit_test(child_refuse)};
    if (strcmp(argv[1], "compile") == 0) return cmocka_run_group_tests(compile, open_test_library, close_test_library);
    if (strcmp(argv[1], "load") == 0) return cmocka_run_group_tests(load, open_test_library, close_test_library);
    return cmocka_run_group_tests(refuse, open_test_library, close_test_library);
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_versions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
