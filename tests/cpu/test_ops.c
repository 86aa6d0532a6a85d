/* Every operator, alone and in small graphs, against torch in double precision (tests/tools/make_cpu_ops.py), in float and with encodings
 * rounded in integer arithmetic; the same bits for any number of threads; every allocation failing once. */
#include "ops_file.h"

static json_document* cases;

static int load_cases(void** state) {
  (void)state;
  assert_ok(json_parse_file(test_data("cpu/ops.json"), 64u << 20, &cases));
  return 0;
}

static int drop_cases(void** state) {
  (void)state;
  json_free(cases);
  return 0;
}

static bool is_simulated(json_value json) {
  return text_view_equal_cstr(json_string(json_get(json, "mode")), "simulated");
}

static void check_float(const char* name, const executor_port* port, const float* got, const double* expected, size_t count) {
  double largest = 1e-6;
  for (size_t i = 0; i < count; i++) largest = fmax(largest, fabs(expected[i]));
  for (size_t i = 0; i < count; i++) {
    if (!(fabs((double)got[i] - expected[i]) <= 2e-6 * largest))
      fail_msg("%s: %s[%zu] is %.9g, expected %.9g", name, port->name, i, (double)got[i], expected[i]);
  }
}

/* Float arithmetic may fall on the other side of a tie than exact arithmetic: by one step, and rarely. */
static void check_integers(const char* name, const executor_port* port, const void* got, const double* expected, size_t count) {
  size_t apart = 0;
  for (size_t i = 0; i < count; i++) {
    executor_port raw = *port;
    raw.scale = 1.0f;
    raw.offset = 0;
    double difference = fabs((double)executor_port_read(&raw, got, i) - expected[i]);
    if (difference > 1)
      fail_msg("%s: %s[%zu] is %g, expected %g", name, port->name, i, (double)executor_port_read(&raw, got, i), expected[i]);
    apart += difference > 0;
  }
  if (apart * 25 > count) fail_msg("%s: %zu of %zu integers of %s are one step off", name, apart, count, port->name);
}

static void check_outputs(const char* name, json_value json, const executor* self, const ops_buffers* buffers) {
  for (uint32_t i = 0; i < self->n_outputs; i++) {
    const executor_port* port = &self->outputs[i];
    size_t count;
    double* expected = ops_doubles(json_get(ops_tensor(json, port->name), "expected"), &count);
    assert_int_equal(count, ops_port_elements(port));
    if (port->dtype == IR_F32) {
      check_float(name, port, buffers->outputs[i], expected, count);
    } else {
      check_integers(name, port, buffers->outputs[i], expected, count);
    }
    free(expected);
  }
}

static void run_case(json_value json, thread_pool* pool, uint64_t cache, ops_buffers* keep) {
  char name[96];
  snprintf(name, sizeof name, "%s", ops_name(json_get(json, "name")));
  ir_graph* graph = ops_build(json);
  executor* self;
  cpu_options options = {.mode = is_simulated(json) ? CPU_SIMULATED : CPU_FLOAT, .pool = pool, .weight_cache_bytes = cache};
  assert_ok(cpu_executor_create(graph, &options, &self));
  ops_buffers buffers;
  ops_buffers_make(self, json, &buffers);
  assert_ok(executor_run(self, (const void* const*)buffers.inputs, buffers.outputs));
  check_outputs(name, json, self, &buffers);
  if (keep) {
    for (uint32_t i = 0; i < self->n_outputs; i++) {
      if (keep->outputs[i]) assert_memory_equal(keep->outputs[i], buffers.outputs[i], executor_port_bytes(&self->outputs[i]));
      free(keep->outputs[i]);
      keep->outputs[i] = buffers.outputs[i];
      buffers.outputs[i] = NULL;
    }
  }
  ops_buffers_free(self, &buffers);
  executor_destroy(self);
  ir_graph_destroy(graph);
}

static void test_values(void** state) {
  (void)state;
  json_iterator at = json_iterate(json_get(json_root(cases), "cases"));
  json_value json;
  int count = 0;
  while (json_next(&at, NULL, &json)) {
    run_case(json, NULL, 0, NULL);
    count++;
  }
  assert_in_range(count, 100, 1000);
}

static void test_any_pool_gives_the_same_bits(void** state) {
  (void)state;
  thread_pool* pools[3] = {NULL};
  for (size_t i = 0; i < 3; i++) assert_ok(thread_pool_create(i + 1, &pools[i]));
  json_iterator at = json_iterate(json_get(json_root(cases), "cases"));
  json_value json;
  while (json_next(&at, NULL, &json)) {
    ops_buffers first = {0};
    for (size_t i = 0; i < 3; i++) run_case(json, pools[i], i == 1 ? 1u << 20 : 0, &first);
    for (size_t i = 0; i < 16; i++) free(first.outputs[i]);
  }
  for (size_t i = 0; i < 3; i++) thread_pool_destroy(pools[i]);
}

/* A repeated call sees nothing of the one before, and an unwanted output changes no other. */
static void test_calls_are_independent(void** state) {
  (void)state;
  json_iterator at = json_iterate(json_get(json_root(cases), "cases"));
  json_value json;
  while (json_next(&at, NULL, &json)) {
    ir_graph* graph = ops_build(json);
    executor* self;
    cpu_options options = {.mode = is_simulated(json) ? CPU_SIMULATED : CPU_FLOAT};
    assert_ok(cpu_executor_create(graph, &options, &self));
    ops_buffers buffers;
    ops_buffers_make(self, json, &buffers);
    for (uint32_t wanted = 0; wanted < self->n_outputs; wanted++) {
      void* outputs[16] = {NULL};
      outputs[wanted] = buffers.outputs[wanted];
      assert_ok(executor_run(self, (const void* const*)buffers.inputs, outputs));
    }
    check_outputs(ops_name(json_get(json, "name")), json, self, &buffers);
    ops_buffers_free(self, &buffers);
    executor_destroy(self);
    ir_graph_destroy(graph);
  }
}

static void test_allocation_failures(void** state) {
  (void)state;
  thread_pool* pool;
  assert_ok(thread_pool_create(2, &pool));
  json_iterator at = json_iterate(json_get(json_root(cases), "cases"));
  json_value json;
  while (json_next(&at, NULL, &json)) {
    ir_graph* graph = ops_build(json);
    cpu_options options = {.mode = is_simulated(json) ? CPU_SIMULATED : CPU_FLOAT, .pool = pool, .weight_cache_bytes = 4096};
    executor* self = NULL;
    uint64_t nth = 1;
    for (genai_status* status = genai_status_out_of_memory(); status; nth++) {
      mem_inject_failure(nth);
      status = cpu_executor_create(graph, &options, &self);
      mem_inject_failure(0);
      if (!status) continue;
      if (genai_status_kind(status) != GENAI_ERROR_OUT_OF_MEMORY) assert_ok(status);
      genai_status_free(status);
    }
    assert_in_range(nth, 10, 200);
    ops_buffers buffers;
    ops_buffers_make(self, json, &buffers);
    uint64_t before = mem_allocation_count();
    assert_ok(executor_run(self, (const void* const*)buffers.inputs, buffers.outputs));
    assert_int_equal(mem_allocation_count(), before); /* a call allocates nothing, so none of it can fail */
    ops_buffers_free(self, &buffers);
    executor_destroy(self);
    ir_graph_destroy(graph);
  }
  thread_pool_destroy(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_any_pool_gives_the_same_bits),
      cmocka_unit_test(test_calls_are_independent),
      cmocka_unit_test(test_allocation_failures),
  };
  return cmocka_run_group_tests(tests, load_cases, drop_cases);
}
