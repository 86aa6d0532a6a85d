/* Outlier neurons: the choice, and that a graph with neurons split off still computes the fixtures' reference logits (transformers, see
 * tests/data/checkpoints) and what a block with biases gives in double precision. */
#include <math.h>

#include "base/json.h"
#include "base/memory.h"
#include "causal_inputs.h"
#include "cpu/cpu.h"
#include "quantize/calibration.h"
#include "quantize/neurons.h"
#include "quantize/quantize.h"
#include "support.h"

static void test_choice(void** state) {
  (void)state;
  static const struct {
    float largest[8];
    uint32_t count, chosen[4];
  } cases[] = {
      {{1, 2, 3, 4, 5, 6, 7, 8}, 0, {0}},           {{1, 2, 3, 1, 100, 3, 2, 1}, 1, {4}},
      {{80, 1, 2, 100, 5, 3, 90, 4}, 3, {0, 3, 6}}, {{50, 1, 100, 60, 1, 1, 70, 12}, 4, {0, 2, 3, 6}},
      {{100, 90, 80, 70, 60, 1, 1, 1}, 0, {0}},     {{0}, 0, {0}},
      {{3, 3, 3, 3, 3, 3, 3, 3}, 0, {0}},           {{0, 0, 0, 0, 0, 0, 0, 5}, 1, {7}},
      {{8, 1, 1, 1, 1, 1, 1, 1}, 1, {0}},           {{7.9f, 1, 1, 1, 1, 1, 1, 1}, 0, {0}},
  };
  uint32_t chosen[NEURONS_PER_LAYER];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint32_t count = neurons_choose(cases[i].largest, 8, chosen);
    if (count != cases[i].count) fail_msg("case %zu: %u chosen, expected %u", i, count, cases[i].count);
    assert_memory_equal(chosen, cases[i].chosen, count * sizeof *chosen);
  }
  assert_int_equal(neurons_choose((float[]){5}, 1, chosen), 0); /* no others */
}

typedef struct fixture {
  checkpoint* file;
  model* source;
  model_info info;
  char directory[512];
} fixture;

static void open_fixture(const char* name, fixture* f) {
  char relative[128];
  snprintf(relative, sizeof relative, "checkpoints/%s", name);
  snprintf(f->directory, sizeof f->directory, "%s", test_data(relative));
  assert_ok(checkpoint_open(f->directory, &f->file));
  assert_ok(model_open(f->file, &f->source));
  model_get_info(f->source, &f->info);
}

static void close_fixture(fixture* f) {
  model_close(f->source);
  checkpoint_close(f->file);
}

/* `channels` of every block. */
enum { MAX_LIST = 32 };
static size_t list_neurons(const ir_graph* graph, const uint32_t* channels, size_t count, outlier_neuron* list) {
  size_t n = 0;
  for (uint32_t i = 0; i < graph->n_tensors; i++) {
    if (!neurons_site(graph, graph->tensors[i])) continue;
    for (size_t c = 0; c < count; c++, n++) {
      assert_true(n < MAX_LIST);
      list[n] = (outlier_neuron){graph->tensors[i]->name, channels[c]};
    }
  }
  return n;
}

static void run_and_compare(const fixture* f, ir_graph* graph, const int32_t* ids, uint32_t n, const float* expected, size_t vocab) {
  executor* exec;
  cpu_options cpu = {.mode = CPU_FLOAT};
  assert_ok(cpu_executor_create(graph, &cpu, &exec));
  int32_t positions[64];
  float mask[64 * 64], sliding[64 * 64];
  fill_causal_inputs(n, f->info.sliding_window, positions, mask, sliding);
  const void* inputs[4];
  for (uint32_t i = 0; i < exec->n_inputs; i++) {
    ir_role role = exec->inputs[i].role;
    inputs[i] = role == IR_ROLE_TOKENS      ? (const void*)ids
                : role == IR_ROLE_POSITIONS ? (const void*)positions
                : role == IR_ROLE_MASK      ? (const void*)mask
                                            : (const void*)sliding;
  }
  float* logits = mem_calloc(n * vocab, sizeof *logits);
  void** outputs = mem_calloc(exec->n_outputs, sizeof *outputs);
  outputs[0] = logits;
  assert_ok(executor_run(exec, inputs, outputs));
  float largest = 0, worst = 0;
  for (size_t i = 0; i < n * vocab; i++) {
    largest = fmaxf(largest, fabsf(expected[i]));
    worst = fmaxf(worst, fabsf(expected[i] - logits[i]));
  }
  if (!(worst <= 1e-3f * largest)) fail_msg("%s: off by %g of %g", f->directory, (double)worst, (double)largest);
  mem_free(logits);
  mem_free(outputs);
  executor_destroy(exec);
}

static void check_logits(const char* name, const uint32_t* channels, size_t count, bool rotate) {
  fixture f;
  open_fixture(name, &f);
  char path[600];
  json_document* document;
  snprintf(path, sizeof path, "%s/expected.json", f.directory);
  assert_ok(json_parse_file(path, 1 << 20, &document));
  json_iterator iterator = json_iterate(json_get(json_root(document), "input_ids"));
  json_value value;
  int32_t ids[64];
  uint32_t n = 0;
  while (json_next(&iterator, NULL, &value)) ids[n++] = (int32_t)json_integer(value, -1);
  json_free(document);
  snprintf(path, sizeof path, "%s/expected_logits.f32", f.directory);
  mapped_file file;
  assert_ok(mapped_file_open(path, &file));
  float* expected = mem_dup(file.data, file.size);
  size_t vocab = file.size / sizeof(float) / n;
  mapped_file_close(&file);
  ir_graph* graph;
  model_graph_options options = {.name = "full", .ar_length = n, .context_length = n};
  assert_ok(model_build_graph(f.source, &options, &graph));
  bool done;
  if (rotate) assert_ok(rotate_residual(graph, &done));
  outlier_neuron list[MAX_LIST];
  size_t listed = list_neurons(graph, channels, count, list);
  assert_int_equal(listed, count * f.info.layers);
  uint32_t before = graph->n_ops;
  assert_ok(neurons_split(graph, list, listed, NULL));
  /* A slice a neuron, their concatenation, two projections, a product and a sum. */
  assert_int_equal(graph->n_ops, before + f.info.layers * (uint32_t)(count + (count > 1) + 4));
  assert_ok(ir_graph_verify(graph));
  run_and_compare(&f, graph, ids, n, expected, vocab);
  ir_graph_destroy(graph);
  mem_free(expected);
  close_fixture(&f);
}

static void test_logits_stay(void** state) {
  (void)state;
  static const char* const names[] = {"llama", "qwen2", "gemma3", "phi3"};
  static const uint32_t channels[3] = {0, 77, 159};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    for (int rotate = 0; rotate < 2; rotate++) {
      check_logits(names[i], channels + 1, 1, rotate);
      check_logits(names[i], channels, 3, rotate);
    }
  }
}

/* A block with biases: y = down(sigmoid(gate(x)) * up(x)). */
enum { TOKENS = 3, WIDTH = 6, NEURONS = 10 };

static uint32_t seed = 1;

static float noise(void) {
  seed = seed * 1664525u + 1013904223u;
  return (float)((int32_t)(seed >> 8) - (1 << 23)) / (float)(1 << 23);
}

static ir_tensor* linear(ir_graph* graph, const char* name, const ir_tensor* x, const float* weight, const float* bias, uint32_t rows,
                         ir_tensor_kind kind) {
  uint32_t cols = x->dims[3];
  ir_tensor *w, *b, *y;
  ir_op* op;
  ir_static matrix = {.constants = weight, .rows = rows, .cols = cols, .scale = 1};
  ir_static vector = {.constants = bias, .rows = 1, .cols = rows, .scale = 1};
  assert_ok(ir_graph_add_static(graph, arena_printf(&graph->memory, "%s.weight", name), 4, (uint32_t[]){1, 1, cols, rows}, &matrix, &w));
  assert_ok(ir_graph_add_static(graph, arena_printf(&graph->memory, "%s.bias", name), 1, &rows, &vector, &b));
  assert_ok(ir_graph_add_tensor(graph, name, kind, IR_F32, 4, (uint32_t[]){1, 1, TOKENS, rows}, &y));
  assert_ok(ir_graph_add_op(graph, IR_CONV2D, name, (int32_t[]){x->id, w->id, b->id}, 3, y->id, &op));
  return y;
}

static void test_biases(void** state) {
  (void)state;
  float gate[NEURONS * WIDTH], up[NEURONS * WIDTH], down[WIDTH * NEURONS], bias[3][NEURONS], x[TOKENS * WIDTH], y[TOKENS * WIDTH];
  for (int i = 0; i < NEURONS * WIDTH; i++) {
    gate[i] = noise();
    up[i] = noise();
    down[i] = noise();
  }
  for (int i = 0; i < 3 * NEURONS; i++) bias[i / NEURONS][i % NEURONS] = noise();
  for (int i = 0; i < TOKENS * WIDTH; i++) x[i] = noise();
  ir_graph* graph;
  ir_tensor *in, *sigmoid, *product;
  ir_op* op;
  assert_ok(ir_graph_create("block", &graph));
  assert_ok(ir_graph_add_tensor(graph, "x", IR_INPUT, IR_F32, 4, (uint32_t[]){1, 1, TOKENS, WIDTH}, &in));
  ir_tensor* g = linear(graph, "gate", in, gate, bias[0], NEURONS, IR_INTERMEDIATE);
  assert_ok(ir_graph_add_tensor(graph, "sigmoid", IR_INTERMEDIATE, IR_F32, 4, g->dims, &sigmoid));
  assert_ok(ir_graph_add_op(graph, IR_SIGMOID, "sigmoid", &g->id, 1, sigmoid->id, &op));
  ir_tensor* u = linear(graph, "up", in, up, bias[1], NEURONS, IR_INTERMEDIATE);
  assert_ok(ir_graph_add_tensor(graph, "product", IR_INTERMEDIATE, IR_F32, 4, g->dims, &product));
  assert_ok(ir_graph_add_op(graph, IR_MULTIPLY, "product", (int32_t[]){sigmoid->id, u->id}, 2, product->id, &op));
  linear(graph, "y", product, down, bias[2], WIDTH, IR_OUTPUT);
  const outlier_neuron list[] = {{"product", 2}, {"product", 9}, {"elsewhere", 1}};
  assert_ok(neurons_split(graph, list, 3, NULL));
  assert_ok(ir_graph_verify(graph));
  /* The neurons are gone from the block itself, so that its range is the others'. */
  float rest[NEURONS * WIDTH], rest_bias[NEURONS];
  assert_ok(ir_static_read(ir_graph_find(graph, "up.weight")->source, 0, NEURONS, rest));
  assert_ok(ir_static_read(ir_graph_find(graph, "up.bias")->source, 0, 1, rest_bias));
  for (int n = 0; n < NEURONS; n++) {
    bool gone = n == 2 || n == 9;
    assert_true(rest_bias[n] == (gone ? 0 : bias[1][n]));
    for (int k = 0; k < WIDTH; k++) assert_true(rest[n * WIDTH + k] == (gone ? 0 : up[n * WIDTH + k]));
  }
  executor* exec;
  cpu_options cpu = {.mode = CPU_FLOAT};
  assert_ok(cpu_executor_create(graph, &cpu, &exec));
  assert_ok(executor_run(exec, (const void*[]){x}, (void*[]){y}));
  for (int t = 0; t < TOKENS; t++) {
    double inner[NEURONS];
    for (int n = 0; n < NEURONS; n++) {
      double a = (double)bias[0][n], b = (double)bias[1][n];
      for (int k = 0; k < WIDTH; k++) {
        a += (double)gate[n * WIDTH + k] * (double)x[t * WIDTH + k];
        b += (double)up[n * WIDTH + k] * (double)x[t * WIDTH + k];
      }
      inner[n] = b / (1 + exp(-a));
    }
    for (int k = 0; k < WIDTH; k++) {
      double sum = (double)bias[2][k];
      for (int n = 0; n < NEURONS; n++) sum += (double)down[k * NEURONS + n] * inner[n];
      assert_true(fabs(sum - (double)y[t * WIDTH + k]) < 1e-5);
    }
  }
  executor_destroy(exec);
  ir_graph_destroy(graph);
}

static ir_graph* build(const fixture* f, uint32_t ar, const recipe* how) {
  ir_graph* graph;
  model_graph_options options = {
      .name = ar == 1 ? "kv_forward" : "prefill_forward", .ar_length = ar, .context_length = 32, .rotate_qk = how->rotate_qk};
  assert_ok(model_build_graph(f->source, &options, &graph));
  return graph;
}

static void check_like(const char* name, const uint32_t* channels, size_t count) {
  fixture f;
  open_fixture(name, &f);
  recipe how = *recipe_at(0);
  how.split_neurons = true;
  recipe_adapt(&how, f.source);
  int32_t ids[20];
  const int32_t* sequence = ids;
  size_t length = 20;
  for (int i = 0; i < 20; i++) ids[i] = (int32_t)((uint32_t)(i * 37 + 5) % f.info.vocab);
  calibration_options options = {.how = &how};
  calibration* seen;
  assert_ok(calibrate(f.source, &sequence, &length, 1, &options, &seen));
  /* The fixtures' random weights have no outliers: name some, with ranges for what the split adds. */
  ir_graph *prefill = build(&f, 8, &how), *decode = build(&f, 1, &how), *split = build(&f, 8, &how);
  outlier_neuron list[MAX_LIST];
  size_t listed = list_neurons(prefill, channels, count, list);
  assert_int_equal(listed, count * f.info.layers);
  assert_int_equal(seen->n_neurons, 0);
  for (size_t i = 0; i < listed; i++) assert_ok(calibration_add_neuron(seen, list[i].product, list[i].channel));
  assert_ok(neurons_split(split, list, listed, NULL));
  for (uint32_t i = 0; i < split->n_tensors; i++) {
    const ir_tensor* tensor = split->tensors[i];
    if (tensor->kind != IR_INTERMEDIATE || ir_graph_find(prefill, tensor->name)) continue;
    observed* slot;
    assert_ok(calibration_entry(seen, tensor->name, &slot));
    slot->low = -1 - 0.01f * (float)i;
    slot->high = 2;
  }
  assert_ok(quantize_graph(prefill, seen, &how, NULL));
  assert_ok(quantize_graph_like(decode, prefill));
  assert_ok(ir_graph_verify(prefill));
  assert_ok(ir_graph_verify(decode));
  assert_int_equal(decode->n_ops, prefill->n_ops);
  assert_int_equal(decode->n_tensors, prefill->n_tensors);
  for (uint32_t i = 0; i < decode->n_ops; i++) {
    const ir_op *a = decode->ops[i], *b = prefill->ops[i];
    assert_string_equal(a->name, b->name);
    if (a->kind == IR_SLICE && strstr(a->name, ".outlier")) assert_int_equal(a->attr.slice.begin[3], b->attr.slice.begin[3]);
  }
  size_t added = 0;
  for (uint32_t i = 0; i < decode->n_tensors; i++) {
    const ir_tensor *a = decode->tensors[i], *b = prefill->tensors[i];
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->dtype, b->dtype);
    assert_true(ir_encoding_equal(&a->encoding, &b->encoding));
    if (a->source) {
      assert_int_equal(a->source->n_dropped_rows, b->source->n_dropped_rows);
      assert_int_equal(a->source->n_dropped_columns, b->source->n_dropped_columns);
      for (uint32_t c = 0; c < a->source->n_dropped_rows; c++) assert_int_equal(a->source->dropped_rows[c], channels[c]);
      for (uint32_t c = 0; c < a->source->n_dropped_columns; c++) assert_int_equal(a->source->dropped_columns[c], channels[c]);
    }
    if (strstr(a->name, ".outliers") && a->encoding.kind == IR_ENCODING_PER_TENSOR) added++;
  }
  assert_int_equal(added, f.info.layers);
  /* A graph without the blocks of the reference is refused. */
  fixture plain;
  open_fixture("codegen", &plain);
  ir_graph* other = build(&plain, 1, &how);
  assert_fails(neurons_split_like(other, prefill), GENAI_ERROR_INVALID_ARGUMENT, "has no product");
  ir_graph_destroy(other);
  close_fixture(&plain);
  ir_graph_destroy(prefill);
  ir_graph_destroy(decode);
  ir_graph_destroy(split);
  calibration_destroy(seen);
  close_fixture(&f);
}

static void test_other_lengths_are_split_alike(void** state) {
  (void)state;
  check_like("llama", (uint32_t[]){5, 100, 159}, 3);
  check_like("qwen2", (uint32_t[]){40}, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_choice),
      cmocka_unit_test(test_logits_stay),
      cmocka_unit_test(test_biases),
      cmocka_unit_test(test_other_lengths_are_split_alike),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
