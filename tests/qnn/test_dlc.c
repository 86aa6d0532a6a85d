/* Graphs written as DLCs. What such a file means is asked of Qualcomm's own reader: libQnnSystem.so composes it into a context of the HTP
 * backend, as a device's delegate composes it into one of the GPU's, the simulator executes it in half precision, and the float host executor
 * says what should come out. */

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "cpu/cpu.h"
#include "model/model.h"
#include "qnn/dlc.h"
#include "qnn/qnn_internal.h"
#include "qnn/qnn_support.h"

enum { CONTEXT = 16, MAX_PORTS = 8 };

static char path[64];

static int start(void** state) {
  strcpy(path, "/tmp/genai.XXXXXX");
  int descriptor = mkstemp(path);
  if (descriptor < 0) return -1;
  close(descriptor);
  return open_test_library(state);
}

static int stop(void** state) {
  unlink(path);
  return close_test_library(state);
}

typedef struct fixture {
  checkpoint* file;
  model* source;
  ir_graph* graph;
} fixture;

static void open_fixture(fixture* self) {
  const model_graph_options options = {.name = "kv_forward", .ar_length = 1, .context_length = CONTEXT};
  assert_ok(checkpoint_open(test_data("checkpoints/llama"), &self->file));
  assert_ok(model_open(self->file, &self->source));
  assert_ok(model_build_graph(self->source, &options, &self->graph));
}

static void close_fixture(fixture* self) {
  ir_graph_destroy(self->graph);
  model_close(self->source);
  checkpoint_close(self->file);
}

static void a_dlc_is_written(void** state) {
  (void)state;
  need_library();
  fixture self;
  mapped_file file;
  text build = {0};
  open_fixture(&self);
  const qnn_dlc_options options = {.directory = test_environment("GENAI_QNN_DIR")};
  assert_ok(qnn_dlc_probe(options.directory, &build));
  assert_memory_equal(build.data, "v2.", 3);
  assert_ok(qnn_dlc_write(self.graph, &options, path));
  assert_ok(mapped_file_open(path, &file));
  assert_memory_equal(file.data, "PK\3\4", 4);
  assert_true(file.size > 4 * 100000); /* the fixture has 127,232 weights of four bytes, less what ties */
  mapped_file_close(&file);
  cancel_token cancelled = {.requested = true};
  const qnn_dlc_options stopped = {.directory = options.directory, .cancel = &cancelled};
  assert_fails(qnn_dlc_write(self.graph, &stopped, path), GENAI_ERROR_CANCELLED, "");
  text_deinit(&build);
  close_fixture(&self);
}

static void what_is_missing_is_named(void** state) {
  (void)state;
  char* folder;
  text searched = {0};
  assert_fails(qnn_dlc_probe("/nonexistent", NULL), GENAI_ERROR_ENGINE_NOT_AVAILABLE, "libQnnIr.so");
  assert_fails(qnn_dlc_probe("/nonexistent", NULL), GENAI_ERROR_ENGINE_NOT_AVAILABLE, "/nonexistent");
  assert_ok(qnn_find_library("/nonexistent", "libQnnLpai.so", &folder, &searched));
  assert_null(folder);
  assert_string_equal(searched.data, "/nonexistent");
  text_deinit(&searched);
}

/* ---- Composing ---- */
/* The system library's table from index 8 on, and the interface that it takes by value: its size is API 2.38's. */
typedef struct whole_interface {
  uint8_t bytes[616];
} whole_interface;
typedef uint64_t (*dlc_from_file)(void* log, const char* file, void** out);
typedef uint64_t (*dlc_compose)(void* dlc, const void** configurations, uint32_t n, void* backend, void* context, whole_interface interface,
                                uint32_t version, void** graphs, uint32_t* n_graphs);
enum { DLC_CREATE_FROM_FILE = 8, DLC_COMPOSE = 10, TABLE_OFFSET = 32 };

typedef struct graph_info { /* version 1 */
  uint32_t version;
  const char* name;
  uint32_t n_inputs;
  qnn_api_tensor* inputs;
  uint32_t n_outputs;
  qnn_api_tensor* outputs;
} graph_info;

static const graph_info* compose(qnn_api_handle* graph) {
  void* functions[DLC_COMPOSE + 1];
  dlc_from_file from_file;
  dlc_compose composing;
  whole_interface interface;
  void *dlc = NULL, *graphs = NULL;
  uint32_t count = 0;
  qnn_api_handle device, context;
  memcpy(functions, (const char*)test_library->system_api + TABLE_OFFSET, sizeof functions);
  memcpy(&from_file, &functions[DLC_CREATE_FROM_FILE], sizeof from_file);
  memcpy(&composing, &functions[DLC_COMPOSE], sizeof composing);
  memcpy(&interface, test_library->api, sizeof interface);
  assert_int_equal(from_file(NULL, path, &dlc), 0);
  assert_ok(qnn_device_create(test_library, test_soc()->model, &device));
  assert_int_equal(test_library->api->context_create(test_library->backend, device, NULL, &context), 0);
  assert_int_equal(composing(dlc, NULL, 0, test_library->backend, context, interface, 1, &graphs, &count), 0);
  assert_int_equal(count, 1);
  const graph_info* info = graphs;
  assert_string_equal(info->name, "kv_forward");
  assert_int_equal(test_library->api->graph_retrieve(context, info->name, graph), 0);
  qnn_quiet_begin(STDOUT_FILENO);
  uint64_t code = test_library->api->graph_finalize(*graph, NULL, NULL);
  qnn_quiet_end(STDOUT_FILENO);
  assert_int_equal(code, 0);
  return info;
}

static void fill_inputs(const executor* exec, void** inputs) {
  uint64_t seed = 7;
  for (uint32_t i = 0; i < exec->n_inputs; i++) {
    const executor_port* port = &exec->inputs[i];
    size_t bytes = executor_port_bytes(port);
    inputs[i] = mem_calloc(1, bytes);
    if (port->dtype == IR_I32) {
      *(int32_t*)inputs[i] = port->role == IR_ROLE_TOKENS ? 17 : 5;
      continue;
    }
    for (size_t j = 0; j < bytes / sizeof(float); j++) /* five tokens lie in the cache; the new one is in the last column */
      ((float*)inputs[i])[j] = port->role != IR_ROLE_MASK ? test_random(&seed) : j < 5 || j == CONTEXT - 1 ? 0.0f : -100.0f;
  }
}

static double decibels(const float* reference, const float* test, size_t count) {
  double signal = 0, noise = 0;
  for (size_t i = 0; i < count; i++) {
    signal += (double)reference[i] * (double)reference[i];
    noise += ((double)reference[i] - (double)test[i]) * ((double)reference[i] - (double)test[i]);
  }
  return 10 * log10(signal / noise);
}

static void qualcomms_reader_composes_what_was_meant(void** state) {
  (void)state;
  need_library();
  if (test_library->api->core.minor != 38) skip(); /* the interface that is passed by value has another size */
  fixture self;
  executor* exec;
  void *inputs[MAX_PORTS], *expected[MAX_PORTS], *got[MAX_PORTS];
  uint32_t order[MAX_PORTS];
  open_fixture(&self);
  const qnn_dlc_options options = {.directory = test_environment("GENAI_QNN_DIR")};
  assert_ok(qnn_dlc_write(self.graph, &options, path));
  assert_ok(cpu_executor_create(self.graph, &(cpu_options){.mode = CPU_FLOAT}, &exec));
  fill_inputs(exec, inputs);
  for (uint32_t i = 0; i < exec->n_outputs; i++) {
    expected[i] = mem_calloc(1, executor_port_bytes(&exec->outputs[i]));
    got[i] = mem_calloc(1, executor_port_bytes(&exec->outputs[i]));
  }
  assert_ok(executor_run(exec, (const void* const*)inputs, expected));

  qnn_api_handle graph;
  const graph_info* info = compose(&graph);
  assert_int_equal(info->n_inputs, self.graph->n_inputs);
  assert_int_equal(info->n_outputs, self.graph->n_outputs);
  qnn_dlc_output_order(self.graph, order);
  for (uint32_t i = 0; i < info->n_inputs; i++) {
    int position = atoi(info->inputs[i].as.v1.name + strlen("input_"));
    info->inputs[i].as.v1.buffer = (qnn_api_client_buffer){inputs[position], (uint32_t)executor_port_bytes(&exec->inputs[position])};
  }
  for (uint32_t i = 0; i < info->n_outputs; i++) {
    int position = atoi(info->outputs[i].as.v1.name + strlen("output_"));
    assert_int_equal(position, order[i]); /* the delegate binds outputs in this order */
    info->outputs[i].as.v1.buffer = (qnn_api_client_buffer){got[position], (uint32_t)executor_port_bytes(&exec->outputs[position])};
  }
  assert_int_equal(test_library->api->graph_execute(graph, info->inputs, info->n_inputs, info->outputs, info->n_outputs, NULL, NULL), 0);
  for (uint32_t i = 0; i < exec->n_outputs; i++) {
    double quality = decibels(expected[i], got[i], executor_port_bytes(&exec->outputs[i]) / sizeof(float));
    if (!(quality > 40)) fail_msg("output %u: %.1f dB", i, quality); /* half precision */
  }
  for (uint32_t i = 0; i < exec->n_inputs; i++) mem_free(inputs[i]);
  for (uint32_t i = 0; i < exec->n_outputs; i++) {
    mem_free(expected[i]);
    mem_free(got[i]);
  }
  executor_destroy(exec);
  close_fixture(&self);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_dlc_is_written),
      cmocka_unit_test(what_is_missing_is_named),
      cmocka_unit_test(qualcomms_reader_composes_what_was_meant),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
