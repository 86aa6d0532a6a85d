/* What the tests of src/qnn share: the library of the test run, small quantized graphs, and running them in the simulator. */
#ifndef GENAI_TESTS_QNN_SUPPORT_H
#define GENAI_TESTS_QNN_SUPPORT_H

#include <math.h>

#include "ir/executor.h"
#include "qnn/qnn.h"
#include "support.h"

/* The vendor's libraries keep allocations until the process ends. */
const char* __lsan_default_suppressions(void);
const char* __lsan_default_suppressions(void) {
  return "leak:libQnnHtp.so\nleak:libQnnSystem.so\nleak:libGenie.so\nleak:libc++\nleak:dlopen\nleak:_dl_\n";
}

static qnn_library* test_library; /* NULL: the tests that need it skip */

static inline int open_test_library(void** state) {
  (void)state;
  const char* directory = test_environment("GENAI_QNN_DIR");
  if (!directory) return 0;
  genai_status* status = qnn_library_open(directory, &test_library);
  if (status) {
    char message[2048];
    genai_status_format(status, message, sizeof message);
    print_error("%s\n", message);
    genai_status_free(status);
    return -1;
  }
  return 0;
}

static inline int close_test_library(void** state) {
  (void)state;
  qnn_library_close(test_library);
  test_library = NULL;
  return 0;
}

#define need_library()                                                                         \
  do {                                                                                         \
    if (!test_library) {                                                                       \
      print_message("skipped: GENAI_QNN_DIR names no folder with Qualcomm's QNN libraries\n"); \
      skip();                                                                                  \
    }                                                                                          \
  } while (0)

static inline const qnn_soc* test_soc(void) {
  const qnn_soc* soc;
  assert_ok(qnn_soc_find("SM8650", &soc));
  return soc;
}

/* ---- Graphs ---- */
/* Deterministic values in [-1, 1). */
static inline float test_random(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (float)((double)(*state >> 40) / 8388608.0 - 1.0);
}

#define DIMS(...)                                                         \
  (uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / 4), (const uint32_t[]) { \
    __VA_ARGS__                                                           \
  }

static inline ir_tensor* add_plain(ir_graph* graph, const char* name, ir_tensor_kind kind, ir_dtype dtype, uint32_t rank,
                                   const uint32_t* dims) {
  ir_tensor* tensor;
  assert_ok(ir_graph_add_tensor(graph, name, kind, dtype, rank, dims, &tensor));
  return tensor;
}

/* An activation of type U8, U16, S8 or S16 whose encoding covers [low, high]; symmetric for signed types. */
static inline void encode_range(ir_tensor* tensor, ir_dtype dtype, double low, double high) {
  bool is_signed = dtype == IR_S8 || dtype == IR_S16;
  uint32_t bits = (uint32_t)ir_dtype_size(dtype) * 8;
  double levels = (double)(1u << bits) - 1;
  tensor->dtype = dtype;
  tensor->encoding.kind = IR_ENCODING_PER_TENSOR;
  tensor->encoding.bits = (uint8_t)bits;
  if (is_signed) {
    double reach = fmax(fabs(low), fabs(high));
    tensor->encoding.scale = (float)(reach / (double)((1u << (bits - 1)) - 1));
    tensor->encoding.offset = 0;
  } else {
    if (low > 0) low = 0;
    if (high < 0) high = 0;
    tensor->encoding.scale = (float)((high - low) / levels);
    tensor->encoding.offset = (int32_t)lrint(low / tensor->encoding.scale);
  }
}

static inline ir_tensor* add_encoded(ir_graph* graph, const char* name, ir_tensor_kind kind, ir_dtype dtype, double low, double high,
                                     uint32_t rank, const uint32_t* dims) {
  ir_tensor* tensor = add_plain(graph, name, kind, dtype, rank, dims);
  encode_range(tensor, dtype, low, high);
  return tensor;
}

/* A static of float meaning from constants (copied); [rows, cols] is its logical matrix. No encoding yet. */
static inline ir_tensor* add_constants(ir_graph* graph, const char* name, uint32_t rank, const uint32_t* dims, uint64_t rows, uint64_t cols,
                                       const float* values) {
  ir_static source = {.rows = rows, .cols = cols, .scale = 1, .add = 0};
  source.constants = arena_dup(&graph->memory, values, (size_t)(rows * cols) * sizeof *values);
  ir_tensor* tensor;
  assert_ok(ir_graph_add_static(graph, name, rank, dims, &source, &tensor));
  return tensor;
}

static inline ir_op* add_op(ir_graph* graph, ir_op_kind kind, const char* name, ir_tensor* output, uint32_t n, ir_tensor* const* inputs) {
  int32_t ids[8];
  for (uint32_t i = 0; i < n; ++i) ids[i] = inputs[i]->id;
  ir_op* op;
  assert_ok(ir_graph_add_op(graph, kind, name, ids, n, output->id, &op));
  return op;
}
#define INPUTS(...)                                                                      \
  (uint32_t)(sizeof((ir_tensor*[]){__VA_ARGS__}) / sizeof(ir_tensor*)), (ir_tensor*[]) { \
    __VA_ARGS__                                                                          \
  }

/* ---- Running ---- */
typedef struct test_run {
  qnn_binary binary;
  qnn_context* context;
  executor* executor;
  void* inputs[16];
  void* outputs[16];
} test_run;

static inline void run_prepare(test_run* run, const ir_graph* graph, bool float16) {
  const qnn_compile_options options = {.soc = test_soc(), .float16 = float16};
  assert_ok(qnn_compile(test_library, &graph, 1, &options, &run->binary));
  assert_ok(qnn_context_open(test_library, run->binary.data, run->binary.size, &run->context));
  assert_ok(qnn_context_executor(run->context, graph->name, &run->executor));
  assert_int_equal(run->executor->n_inputs, graph->n_inputs);
  assert_int_equal(run->executor->n_outputs, graph->n_outputs);
  for (uint32_t i = 0; i < graph->n_inputs; ++i) run->inputs[i] = mem_calloc(1, executor_port_bytes(&run->executor->inputs[i]));
  for (uint32_t i = 0; i < graph->n_outputs; ++i) run->outputs[i] = mem_calloc(1, executor_port_bytes(&run->executor->outputs[i]));
}

static inline void run_execute(test_run* run) {
  assert_ok(executor_run(run->executor, (const void* const*)run->inputs, run->outputs));
}

static inline void run_destroy(test_run* run) {
  for (int i = 0; i < 16; ++i) {
    mem_free(run->inputs[i]);
    mem_free(run->outputs[i]);
  }
  executor_destroy(run->executor);
  qnn_context_close(run->context);
  qnn_binary_deinit(&run->binary);
  *run = (test_run){0};
}

#endif
