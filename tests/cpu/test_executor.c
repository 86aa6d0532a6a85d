/* The executor around its operators: memory reuse, observers, cancellation, bad calls, and work large enough to be split among threads. */
#include <math.h>

#include "cpu/internal.h"
#include "support.h"

static ir_tensor* add_tensor(ir_graph* graph, const char* name, ir_tensor_kind kind, uint32_t rank, const uint32_t* dims) {
  ir_tensor* tensor;
  assert_ok(ir_graph_add_tensor(graph, name, kind, IR_F32, rank, dims, &tensor));
  return tensor;
}

static ir_op* add_op(ir_graph* graph, ir_op_kind kind, const ir_tensor* a, const ir_tensor* b, const ir_tensor* out) {
  int32_t inputs[2] = {a->id, b ? b->id : -1};
  char name[80];
  snprintf(name, sizeof name, "make.%s", out->name);
  ir_op* op;
  assert_ok(ir_graph_add_op(graph, kind, name, inputs, b ? 2 : 1, out->id, &op));
  return op;
}

static ir_tensor* add_static(ir_graph* graph, const char* name, uint32_t rank, const uint32_t* dims, uint64_t rows, const float* values) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < rank; i++) count *= dims[i];
  ir_static source = {.constants = values, .rows = rows, .cols = count / rows, .scale = 1.0f};
  ir_tensor* tensor;
  assert_ok(ir_graph_add_static(graph, name, rank, dims, &source, &tensor));
  return tensor;
}

static ir_graph* new_graph(void) {
  ir_graph* graph;
  assert_ok(ir_graph_create("test", &graph));
  graph->ar_length = graph->context_length = 1;
  return graph;
}

/* input -> tanh -> sigmoid -> tanh ..., each value read once */
static ir_graph* chain(uint32_t length, bool residual) {
  static const uint32_t dims[] = {1, 1024};
  ir_graph* graph = new_graph();
  ir_tensor* last = add_tensor(graph, "x", IR_INPUT, 2, dims);
  ir_tensor* before = last;
  for (uint32_t i = 0; i < length; i++) {
    char name[16];
    snprintf(name, sizeof name, "t%u", i);
    ir_tensor* next = add_tensor(graph, name, IR_INTERMEDIATE, 2, dims);
    if (residual && i % 2) {
      add_op(graph, IR_ADD, last, before, next);
      before = next;
    } else {
      add_op(graph, i % 3 ? IR_TANH : IR_SIGMOID, last, NULL, next);
    }
    last = next;
  }
  assert_ok(ir_graph_mark_output(graph, last, IR_ROLE_NONE, -1));
  return graph;
}

static void test_memory_is_reused(void** state) {
  (void)state;
  for (int residual = 0; residual < 2; residual++) {
    ir_graph* graph = chain(50, residual);
    cpu_plan plan;
    assert_ok(cpu_plan_create(graph, CPU_FLOAT, &plan));
    assert_in_range(plan.elements, 1024, (size_t)(residual ? 3 : 2) * 1024);
    cpu_plan_deinit(&plan);
    ir_graph_destroy(graph);
  }
}

typedef struct seen {
  int count;
  const char* names[8];
  float first[8];
  size_t counts[8];
  int fail_at;
  cancel_token* cancel;
} seen;

static genai_status* observe(void* user, const ir_tensor* tensor, const float* values, size_t count) {
  seen* s = user;
  if (s->fail_at && s->count + 1 == s->fail_at) return genai_status_create(GENAI_ERROR_INTERNAL, "observer says no");
  if (s->count < 8) {
    s->names[s->count] = tensor->name;
    s->first[s->count] = values[0];
    s->counts[s->count] = count;
  }
  s->count++;
  if (s->cancel) atomic_store(&s->cancel->requested, true);
  return NULL;
}

static void test_observer_and_cancellation(void** state) {
  (void)state;
  ir_graph* graph = chain(3, false);
  seen s = {0};
  cancel_token cancel = {false};
  cpu_options options = {.observer = observe, .observer_user = &s, .cancel = &cancel};
  executor* self;
  assert_ok(cpu_executor_create(graph, &options, &self));
  float x[1024] = {0.5f}, y[1024];
  const void* inputs[] = {x};
  void* outputs[] = {y};
  assert_ok(executor_run(self, inputs, outputs));
  assert_int_equal(s.count, 4);
  static const char* const names[] = {"x", "t0", "t1", "t2"};
  double value = 0.5;
  for (int i = 0; i < 4; i++) {
    if (i) value = i == 1 ? 1 / (1 + exp(-value)) : tanh(value);
    assert_string_equal(s.names[i], names[i]);
    assert_int_equal(s.counts[i], 1024);
    assert_true(fabs((double)s.first[i] - value) < 1e-6);
  }
  s = (seen){.fail_at = 3};
  assert_fails(executor_run(self, inputs, outputs), GENAI_ERROR_INTERNAL, "observer says no");
  s = (seen){.cancel = &cancel};
  assert_fails(executor_run(self, inputs, outputs), GENAI_ERROR_CANCELLED, "");
  assert_int_equal(s.count, 1); /* the input alone: no operator ran */
  executor_destroy(self);
  ir_graph_destroy(graph);
}

static void test_value_range(void** state) {
  (void)state;
  enum { COUNT = 100003 };
  float* values = malloc(COUNT * sizeof *values);
  thread_pool* pool;
  assert_ok(thread_pool_create(3, &pool));
  for (size_t where = 0; where < COUNT; where += 7919) {
    float low, high;
    for (size_t i = 0; i < COUNT; i++) values[i] = (float)(i % 1000) - 500.0f;
    values[where] = 1e6f;
    values[COUNT - 1 - where] = -1e-3f - 600.0f;
    assert_true(cpu_value_range(pool, values, COUNT, &low, &high));
    assert_true(low == -1e-3f - 600.0f && high == 1e6f);
    for (size_t i = 0; i < COUNT; i++) values[i] = -1.5f - (float)i;
    assert_true(cpu_value_range(where % 2 ? pool : NULL, values, where + 1, &low, &high));
    assert_true(low == -1.5f - (float)where && high == -1.5f);
    values[where] = where % 2 ? NAN : INFINITY;
    assert_false(cpu_value_range(pool, values, COUNT, &low, &high));
  }
  thread_pool_destroy(pool);
  free(values);
}

static void test_bad_calls(void** state) {
  (void)state;
  static const uint32_t table_dims[] = {7, 4}, index_dims[] = {2}, out_dims[] = {2, 4};
  float values[28] = {0};
  ir_graph* graph = new_graph();
  ir_tensor *table = add_static(graph, "table", 2, table_dims, 7, values), *indices;
  assert_ok(ir_graph_add_tensor(graph, "ids", IR_INPUT, IR_I32, 1, index_dims, &indices));
  ir_tensor* rows = add_tensor(graph, "rows", IR_INTERMEDIATE, 2, out_dims);
  add_op(graph, IR_GATHER, table, indices, rows);
  assert_ok(ir_graph_mark_output(graph, rows, IR_ROLE_NONE, -1));
  executor* self;
  cpu_options options = {.mode = CPU_FLOAT};
  assert_ok(cpu_executor_create(graph, &options, &self));
  float y[8];
  void* outputs[] = {y};
  int32_t ids[2] = {3, 7};
  const void* inputs[] = {ids};
  assert_fails(executor_run(self, inputs, outputs), GENAI_ERROR_INVALID_ARGUMENT, "ids[1] is 7");
  ids[1] = -1;
  assert_fails(executor_run(self, inputs, outputs), GENAI_ERROR_INVALID_ARGUMENT, "ids[1] is -1");
  inputs[0] = NULL;
  assert_fails(executor_run(self, inputs, outputs), GENAI_ERROR_INVALID_ARGUMENT, "no buffer for input ids");
  executor_destroy(self);
  ir_tensor* other = add_tensor(graph, "sum", IR_INTERMEDIATE, 1, index_dims);
  other->dtype = IR_I32;
  add_op(graph, IR_ADD, indices, indices, other);
  assert_fails(cpu_executor_create(graph, &options, &self), GENAI_ERROR_UNSUPPORTED, "is i32");
  ir_graph_destroy(graph);
}

/* ---- large enough to be split ---- */

enum { M = 70, K = 200, N = 330, HEADS = 3, D = 40 };

static float pattern(size_t i) {
  return (float)((i * 2654435761u >> 7) % 2001) / 1000.0f - 1.0f;
}

static float* filled(size_t count) {
  float* values = malloc(count * sizeof *values);
  for (size_t i = 0; i < count; i++) values[i] = pattern(i);
  return values;
}

/* x -> linear with bias -> split heads -> scores -> softmax -> values, with a norm and activations on the way */
static ir_graph* wide_graph(const float* weight, const float* bias, const float* gamma, const float* beta) {
  ir_graph* graph = new_graph();
  ir_tensor* x = add_tensor(graph, "x", IR_INPUT, 4, (uint32_t[]){1, 1, M, K});
  ir_tensor* w = add_static(graph, "w", 4, (uint32_t[]){1, 1, K, N}, N, weight);
  ir_tensor* b = add_static(graph, "b", 1, (uint32_t[]){N}, 1, bias);
  ir_tensor* g = add_static(graph, "g", 1, (uint32_t[]){N}, 1, gamma);
  ir_tensor* z = add_static(graph, "z", 1, (uint32_t[]){N}, 1, beta);
  ir_tensor* y = add_tensor(graph, "y", IR_INTERMEDIATE, 4, (uint32_t[]){1, 1, M, N});
  ir_op* op;
  assert_ok(ir_graph_add_op(graph, IR_CONV2D, "linear", (int32_t[]){x->id, w->id, b->id}, 3, y->id, &op));
  assert_ok(ir_graph_mark_output(graph, y, IR_ROLE_NONE, -1));
  ir_tensor* n = add_tensor(graph, "n", IR_INTERMEDIATE, 4, (uint32_t[]){1, 1, M, N});
  assert_ok(ir_graph_add_op(graph, IR_RMS_NORM, "norm", (int32_t[]){y->id, g->id, z->id}, 3, n->id, &op));
  op->attr.epsilon = 1e-6f;
  ir_tensor* s = add_tensor(graph, "s", IR_INTERMEDIATE, 4, (uint32_t[]){1, 1, M, N});
  add_op(graph, IR_GELU, n, NULL, s);
  ir_tensor* q = add_tensor(graph, "q", IR_INTERMEDIATE, 4, (uint32_t[]){1, 1, M, HEADS * D});
  op = add_op(graph, IR_SLICE, s, NULL, q);
  memcpy(op->attr.slice.end, (uint32_t[]){1, 1, M, HEADS * D}, 4 * sizeof(uint32_t));
  ir_tensor* split = add_tensor(graph, "split", IR_INTERMEDIATE, 4, (uint32_t[]){1, M, HEADS, D});
  add_op(graph, IR_RESHAPE, q, NULL, split);
  ir_tensor* heads = add_tensor(graph, "heads", IR_INTERMEDIATE, 4, (uint32_t[]){1, HEADS, M, D});
  op = add_op(graph, IR_TRANSPOSE, split, NULL, heads);
  memcpy(op->attr.perm, (uint32_t[]){0, 2, 1, 3}, 4 * sizeof(uint32_t));
  ir_tensor* keys = add_tensor(graph, "keys", IR_INTERMEDIATE, 4, (uint32_t[]){1, HEADS, D, M});
  op = add_op(graph, IR_TRANSPOSE, split, NULL, keys);
  memcpy(op->attr.perm, (uint32_t[]){0, 2, 3, 1}, 4 * sizeof(uint32_t));
  ir_tensor* scores = add_tensor(graph, "scores", IR_INTERMEDIATE, 4, (uint32_t[]){1, HEADS, M, M});
  add_op(graph, IR_MATMUL, heads, keys, scores);
  ir_tensor* p = add_tensor(graph, "p", IR_INTERMEDIATE, 4, (uint32_t[]){1, HEADS, M, M});
  add_op(graph, IR_SOFTMAX, scores, NULL, p);
  ir_tensor* o = add_tensor(graph, "o", IR_INTERMEDIATE, 4, (uint32_t[]){1, HEADS, M, D});
  add_op(graph, IR_MATMUL, p, heads, o);
  assert_ok(ir_graph_mark_output(graph, o, IR_ROLE_NONE, -1));
  ir_tensor* u = add_tensor(graph, "u", IR_INTERMEDIATE, 4, (uint32_t[]){1, HEADS, M, D});
  op = add_op(graph, IR_MATMUL, p, keys, u);
  op->attr.matmul.transpose_b = true;
  ir_tensor* v = add_tensor(graph, "v", IR_INTERMEDIATE, 4, (uint32_t[]){1, HEADS, M, D});
  op = add_op(graph, IR_MATMUL, p, heads, v);
  op->attr.matmul.transpose_a = true;
  ir_tensor* both = add_tensor(graph, "both", IR_INTERMEDIATE, 4, (uint32_t[]){1, HEADS, M, 2 * D});
  add_op(graph, IR_CONCAT, u, v, both)->attr.axis = 3;
  assert_ok(ir_graph_mark_output(graph, both, IR_ROLE_NONE, -1));
  return graph;
}

static void test_split_work(void** state) {
  (void)state;
  float *weight = filled((size_t)N * K), *bias = filled(N), *gamma = filled(N), *beta = filled(N), *x = filled((size_t)M * K);
  ir_graph* graph = wide_graph(weight, bias, gamma, beta);
  size_t sizes[3];
  void* first[3] = {NULL};
  bool has_tiles = false;
  for (int run = 0; run < 6; run++) {
    thread_pool* pool = NULL;
    if (run) assert_ok(thread_pool_create((size_t)run % 3 + 1, &pool));
    executor* self;
    cpu_options options = {.pool = pool, .weight_cache_bytes = run == 2 ? 1u << 30 : 0, .fast_products = run == 5};
    assert_ok(cpu_executor_create(graph, &options, &self));
    has_tiles = ((cpu_executor*)self)->has_amx;
    if (run == 4) ((cpu_executor*)self)->has_amx = false; /* as on a processor without tiles: equal but for the last bits */
    const void* inputs[] = {x};
    void* outputs[3];
    for (int i = 0; i < 3; i++) {
      sizes[i] = executor_port_bytes(&self->outputs[i]);
      outputs[i] = malloc(sizes[i]);
    }
    assert_ok(executor_run(self, inputs, outputs));
    for (int i = 0; i < 3; i++) {
      if (run >= 4 && has_tiles) {
        const float *a = outputs[i], *b = first[i], tolerance = run == 5 ? 1e-4f : 1e-5f;
        for (size_t j = 0; j < sizes[i] / sizeof(float); j++) assert_true(fabsf(a[j] - b[j]) <= tolerance * (1 + fabsf(b[j])));
        free(outputs[i]);
      } else if (run) {
        assert_memory_equal(outputs[i], first[i], sizes[i]);
        free(outputs[i]);
      } else {
        first[i] = outputs[i];
      }
    }
    executor_destroy(self);
    thread_pool_destroy(pool);
  }
  const float* y = first[0];
  for (size_t i = 0; i < M; i++) {
    for (size_t j = 0; j < N; j++) {
      double sum = (double)bias[j], magnitude = 1;
      for (size_t k = 0; k < K; k++) {
        sum += (double)x[i * K + k] * (double)weight[j * K + k];
        magnitude += fabs((double)x[i * K + k] * (double)weight[j * K + k]);
      }
      if (!(fabs(sum - (double)y[i * N + j]) < 1e-6 * magnitude))
        fail_msg("y[%zu][%zu] is %g, expected %g", i, j, (double)y[i * N + j], sum);
    }
  }
  /* p is the same in all three products, so o (p times heads) equals u (p times keys transposed). */
  const float *o = first[1], *both = first[2];
  for (size_t i = 0; i < (size_t)HEADS * M; i++) {
    for (size_t j = 0; j < D; j++) assert_true(fabsf(o[i * D + j] - both[i * 2 * D + j]) < 1e-5f);
  }
  for (int i = 0; i < 3; i++) free(first[i]);
  free(weight), free(bias), free(gamma), free(beta), free(x);
  ir_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_memory_is_reused), cmocka_unit_test(test_observer_and_cancellation),
      cmocka_unit_test(test_value_range),      cmocka_unit_test(test_bad_calls),
      cmocka_unit_test(test_split_work),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
