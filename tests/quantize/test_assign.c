/* Encodings on a real (small) decoder: the invariants that the .pte contract and QNN's conventions demand, checked tensor by tensor. The
 * llama fixture has no biases and qwen2's attention has; smollm3-nope mixes layers with and without rotation. */
#include <math.h>

#include "base/memory.h"
#include "ir/feedback.h"
#include "quantize/quantize.h"
#include "quantize/weights.h"
#include "support.h"

typedef struct setup {
  checkpoint* file;
  model* source;
  calibration* ranges;
  thread_pool* pool;
} setup;

static void open_fixture(const char* name, const recipe* how, setup* out) {
  char path[256];
  snprintf(path, sizeof path, "checkpoints/%s", name);
  assert_ok(thread_pool_create(2, &out->pool));
  assert_ok(checkpoint_open(test_data(path), &out->file));
  assert_ok(model_open(out->file, &out->source));
  model_info info;
  model_get_info(out->source, &info);
  int32_t ids[3][20];
  const int32_t* sequences[3] = {ids[0], ids[1], ids[2]};
  size_t lengths[3] = {20, 7, 11};
  for (int s = 0; s < 3; s++) {
    for (int i = 0; i < 20; i++) ids[s][i] = (int32_t)((uint32_t)(s * 131 + i * 37 + 5) % info.vocab);
  }
  recipe adapted = *how;
  recipe_adapt(&adapted, out->source);
  calibration_options options = {.how = &adapted, .pool = out->pool, .max_tokens_per_pass = 24};
  assert_ok(calibrate(out->source, sequences, lengths, 3, &options, &out->ranges));
  assert_int_equal(calibration_tokens(out->ranges), 38);
}

static void close_fixture(setup* s) {
  calibration_destroy(s->ranges);
  model_close(s->source);
  checkpoint_close(s->file);
  thread_pool_destroy(s->pool);
}

static ir_graph* build(const setup* s, uint32_t ar, const recipe* how) {
  ir_graph* graph;
  model_graph_options options = {
      .name = ar == 1 ? "kv_forward" : "prefill_forward", .ar_length = ar, .context_length = 32, .rotate_qk = how->rotate_qk};
  assert_ok(model_build_graph(s->source, &options, &graph));
  return graph;
}

static void check_pair(const ir_graph* graph, ir_role in, ir_role out, int32_t layer, uint32_t bits) {
  const ir_tensor *a = ir_graph_find_role(graph, in, layer), *b = ir_graph_find_role(graph, out, layer);
  assert_non_null(a);
  assert_non_null(b);
  assert_int_equal(a->dtype, bits == 8 ? IR_U8 : IR_U16);
  assert_int_equal(a->dtype, b->dtype);
  assert_true(ir_encoding_equal(&a->encoding, &b->encoding));
}

static void check_graph(const setup* s, const ir_graph* graph, const recipe* how) {
  model_info info;
  model_get_info(s->source, &info);
  for (uint32_t l = 0; l < info.layers; l++) {
    check_pair(graph, IR_ROLE_KEY_IN, IR_ROLE_KEY_OUT, (int32_t)l, how->kv_bits);
    check_pair(graph, IR_ROLE_VALUE_IN, IR_ROLE_VALUE_OUT, (int32_t)l, how->kv_bits);
  }
  const ir_tensor* mask = ir_graph_find_role(graph, IR_ROLE_MASK, -1);
  assert_true(fabsf(mask->encoding.scale - 255.0f / 65535.0f) < 1e-9f);
  assert_int_equal(mask->encoding.offset, -65535);
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    const ir_tensor* output = graph->tensors[op->output];
    const ir_tensor* input = graph->tensors[op->inputs[0]];
    assert_int_equal(output->encoding.kind, IR_ENCODING_PER_TENSOR);
    int32_t levels = output->dtype == IR_U8 ? 255 : 65535;
    assert_true(output->encoding.offset <= 0 && output->encoding.offset >= -levels && output->encoding.scale > 0);
    /* What calibration saw is representable, to half a step. */
    float low, high;
    bool masked = false;
    for (uint32_t j = 0; op->kind == IR_ADD && j < 2; j++) {
      ir_role role = graph->tensors[op->inputs[j]]->role;
      masked = masked || role == IR_ROLE_MASK || role == IR_ROLE_MASK_SLIDING;
    }
    bool saturating = false; /* read by a sigmoid or tanh: may be cut where those reach their ends */
    for (uint32_t j = 0; j < graph->n_ops; j++)
      saturating =
          saturating || ((graph->ops[j]->kind == IR_SIGMOID || graph->ops[j]->kind == IR_TANH) && graph->ops[j]->inputs[0] == output->id);
    bool angles = !strncmp(output->name, "rope_", 5); /* has the range of its table, which ends with the context */
    if (!masked && !saturating && !angles && calibration_range(s->ranges, output->name, &low, &high)) {
      float scale = output->encoding.scale;
      assert_true(low >= scale * ((float)output->encoding.offset - 0.51f));
      assert_true(high <= scale * ((float)(levels + output->encoding.offset) + 0.51f));
    }
    if (op->kind == IR_RESHAPE || op->kind == IR_TRANSPOSE || op->kind == IR_SLICE || op->kind == IR_GATHER || op->kind == IR_CONCAT)
      assert_true(ir_encoding_equal(&input->encoding, &output->encoding));
    if (op->kind == IR_SOFTMAX) assert_true(output->encoding.offset == 0 && fabsf(output->encoding.scale - 1.0f / 65535.0f) < 1e-10f);
    if (op->kind == IR_CONV2D) {
      const ir_tensor* weight = graph->tensors[op->inputs[1]];
      assert_int_equal(weight->dtype, IR_S8);
      assert_int_equal(weight->encoding.channels, weight->dims[3]);
      if (op->n_inputs > 2) {
        const ir_tensor* bias = graph->tensors[op->inputs[2]];
        assert_int_equal(bias->dtype, IR_S32);
        for (uint32_t n = 0; n < weight->dims[3]; n++)
          assert_true(bias->encoding.scales[n] == input->encoding.scale * weight->encoding.scales[n]);
      }
    }
  }
}

static void check_fixture(const char* name, const recipe* wanted) {
  setup s;
  open_fixture(name, wanted, &s);
  recipe adapted = *wanted, *how = &adapted;
  recipe_adapt(how, s.source);
  ir_graph *prefill = build(&s, 8, how), *decode = build(&s, 1, how), *direct = build(&s, 1, how);
  assert_ok(quantize_graph(prefill, s.ranges, how, s.pool));
  check_graph(&s, prefill, how);
  assert_ok(quantize_graph_like(decode, prefill));
  assert_ok(quantize_graph(direct, s.ranges, how, NULL));
  check_graph(&s, decode, how);
  assert_int_equal(decode->n_ops, prefill->n_ops);
  for (uint32_t i = 0; i < decode->n_tensors; i++) {
    const ir_tensor *a = decode->tensors[i], *b = ir_graph_find(prefill, a->name), *c = direct->tensors[i];
    if (a->kind == IR_INTERMEDIATE && a->producer < 0) continue;
    assert_non_null(b);
    assert_int_equal(a->dtype, b->dtype);
    assert_true(ir_encoding_equal(&a->encoding, &b->encoding));
    assert_true(ir_encoding_equal(&a->encoding, &c->encoding));
  }
  ir_graph_destroy(prefill);
  ir_graph_destroy(decode);
  ir_graph_destroy(direct);
  close_fixture(&s);
}

static void test_every_recipe(void** state) {
  (void)state;
  for (size_t i = 0; i < recipe_count(); i++) {
    recipe how = *recipe_at(i);
    for (int variant = 0; variant < 8; variant++) {
      how.kv_bits = variant & 1 ? 8 : 16;
      how.rotate_qk = variant & 2;
      how.embedding_bits = variant & 4 ? 8 : 16;
      check_fixture("llama", &how);
    }
  }
  check_fixture("qwen2", recipe_at(0));
  check_fixture("qwen2", recipe_at(2));
  check_fixture("smollm3-nope", recipe_at(0));
  check_fixture("gemma", recipe_at(0));
  check_fixture("gemma2", recipe_at(1)); /* norms on both sides of the residual stream */
  check_fixture("gemma3", recipe_at(0));
  check_fixture("codegen", recipe_at(0)); /* LayerNorm, no residual rotation */
}

/* Squared error of the weight after quantization by its encoding, computed here from the definition. */
static double weight_error(const ir_tensor* weight, const float* rows) {
  const ir_encoding* e = &weight->encoding;
  size_t n = weight->dims[3], k = weight->dims[2];
  double error = 0, limit = (1 << (e->bits - 1)) - 1;
  for (size_t r = 0; r < n; r++) {
    for (size_t c = 0; c < k; c++) {
      double scale = (double)e->scales[r];
      if (e->kind == IR_ENCODING_BLOCK_EXPANSION) scale *= e->block_scales[r * e->blocks + c / (k / e->blocks)];
      double q = rint((double)rows[r * k + c] / scale);
      q = q > limit ? limit : q < -limit ? -limit : q;
      error += pow((double)rows[r * k + c] - q * scale, 2);
    }
  }
  return error;
}

static void test_weight_formats(void** state) {
  (void)state;
  enum { N = 70, K = 128 };
  float* rows = mem_alloc(sizeof(float) * N * K);
  uint32_t seed = 7;
  for (size_t i = 0; i < N * K; i++) {
    double sum = 0; /* roughly normal, with outliers in some blocks and one row of zeros */
    for (int j = 0; j < 6; j++) sum += (double)((seed = seed * 1664525u + 1013904223u) >> 8) / (1 << 24) - 0.5;
    rows[i] = i / K == 3 ? 0.0f : (float)(sum * (i % 32 < 4 && i / K % 5 == 0 ? 6 : 1));
  }
  ir_graph* graph;
  assert_ok(ir_graph_create("g", &graph));
  ir_static source = {.constants = rows, .rows = N, .cols = K, .scale = 1};
  uint32_t dims[4] = {1, 1, K, N};
  double errors[4];
  const weight_format formats[4] = {{8, 0, false}, {4, 0, false}, {4, 0, true}, {4, 32, true}};
  for (int i = 0; i < 4; i++) {
    ir_tensor* weight;
    char name[8];
    snprintf(name, sizeof name, "w%d", i);
    assert_ok(ir_graph_add_static(graph, name, 4, dims, &source, &weight));
    assert_ok(weights_encode(graph, weight, &formats[i], NULL));
    errors[i] = weight_error(weight, rows);
    for (size_t c = 0; c < N; c++) {
      float largest = 0;
      for (size_t k = 0; k < K; k++) largest = fmaxf(largest, fabsf(rows[c * K + k]));
      if (i < 2 && largest > 0) assert_true(fabsf(weight->encoding.scales[c] - largest / (i ? 7.0f : 127.0f)) < 1e-7f);
      assert_true(weight->encoding.scales[c] > 0);
      for (size_t b = 0; i == 3 && b < K / 32; b++) assert_in_range(weight->encoding.block_scales[c * (K / 32) + b], 1, 16);
    }
  }
  assert_true(errors[0] < errors[1] / 100); /* 16 times finer: 256 times less */
  assert_true(errors[2] < errors[1]);       /* the search finds something on normal weights */
  assert_true(errors[3] < errors[2] * 0.9); /* blocks follow the outliers */
  float low, high;
  assert_ok(static_range(&source, NULL, &low, &high));
  float expected_low = 0, expected_high = 0;
  for (size_t i = 0; i < N * K; i++) {
    expected_low = fminf(expected_low, rows[i]);
    expected_high = fmaxf(expected_high, rows[i]);
  }
  assert_true(low == expected_low && high == expected_high);
  ir_graph_destroy(graph);
  mem_free(rows);
}

static void test_calibration_refuses(void** state) {
  (void)state;
  setup s;
  open_fixture("llama", recipe_at(0), &s);
  int32_t ids[4] = {1, 2, 3, 4};
  const int32_t* sequence = ids;
  size_t length = 0;
  calibration* ranges;
  calibration_options options = {.how = recipe_at(0), .max_tokens_per_pass = 3};
  assert_fails(calibrate(s.source, &sequence, &length, 1, &options, &ranges), GENAI_ERROR_INVALID_ARGUMENT, "sequence 0 has no tokens");
  length = 4;
  assert_fails(calibrate(s.source, &sequence, &length, 1, &options, &ranges), GENAI_ERROR_LIMIT, "a pass takes 3");
  assert_fails(calibrate(s.source, &sequence, &length, 0, &options, &ranges), GENAI_ERROR_INVALID_ARGUMENT, "at least one token");
  cancel_token cancel = {true};
  options = (calibration_options){.how = recipe_at(0), .cancel = &cancel};
  assert_fails(calibrate(s.source, &sequence, &length, 1, &options, &ranges), GENAI_ERROR_CANCELLED, "cancelled");
  close_fixture(&s);
}

/* Four copies of one text show more of the queries and keys than one, for each begins at another position; what rotary embedding does not touch
 * is the same, since scores depend on distances alone. */
static void test_documents_begin_at_different_positions(void** state) {
  (void)state;
  setup s;
  open_fixture("gemma3", recipe_at(0), &s);
  recipe how = *recipe_at(0);
  recipe_adapt(&how, s.source);
  int32_t ids[8] = {5, 42, 79, 116, 153, 190, 227, 8};
  const int32_t* sequences[4] = {ids, ids, ids, ids};
  size_t lengths[4] = {8, 8, 8, 8};
  calibration *one, *four;
  calibration_options options = {.how = &how, .pool = s.pool};
  assert_ok(calibrate(s.source, sequences, lengths, 1, &options, &one));
  assert_ok(calibrate(s.source, sequences, lengths, 4, &options, &four));
  float low, high, wide_low, wide_high;
  static const char* const turned[] = {"layer0.attention.q_rope.first_sin", "layer0.attention.k_rope.second_sin"};
  for (size_t i = 0; i < 2; i++) {
    assert_true(calibration_range(one, turned[i], &low, &high) && calibration_range(four, turned[i], &wide_low, &wide_high));
    assert_true(wide_high - wide_low > 1.05f * (high - low));
  }
  static const char* const same[] = {"layer0.attention.q_proj", "layer1.feed_forward_residual", "lm_head"};
  for (size_t i = 0; i < 3; i++) {
    assert_true(calibration_range(one, same[i], &low, &high) && calibration_range(four, same[i], &wide_low, &wide_high));
    assert_true(fabsf(wide_low - low) <= 1e-3f * (high - low) && fabsf(wide_high - high) <= 1e-3f * (high - low));
  }
  calibration_destroy(one);
  calibration_destroy(four);
  close_fixture(&s);
}

/* Rounding what rotates the stream between norms would cost more than rotating brings: 8 bits hold these weights exactly, whatever the gammas
 * of the norms that write: all alike, or some channels three and thirty times the others. */
static void test_rotations_between_norms_are_exact(void** state) {
  (void)state;
  static const char* const names[] = {"residual_rotation.weight", "layer0.attention_norm.turn_back.weight", "final_norm.turn_back.weight"};
  static const float outliers[3][2] = {{1, 1}, {3, 3}, {30, 3}};
  setup s;
  recipe how = *recipe_at(0);
  open_fixture("gemma3", &how, &s);
  recipe_adapt(&how, s.source);
  for (size_t variant = 0; variant < 3; variant++) {
    ir_graph* graph = build(&s, 1, &how);
    ir_static* gamma = ir_graph_find(graph, "layer0.attention_post_norm.weight")->source;
    float* values = arena_calloc(&graph->memory, (size_t)gamma->rows, sizeof *values);
    for (uint64_t i = 0; i < gamma->rows; i++) values[i] = 50.0f;
    values[7] *= outliers[variant][0];
    values[20] *= outliers[variant][1];
    *gamma = (ir_static){.constants = values, .rows = gamma->rows, .cols = 1, .scale = 1.0f};
    assert_ok(quantize_graph(graph, s.ranges, &how, s.pool));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
      const ir_tensor* weight = ir_graph_find(graph, names[i]);
      assert_non_null(weight);
      assert_int_equal(weight->dtype, IR_S8);
      size_t n = (size_t)weight->source->rows, k = (size_t)weight->source->cols;
      float* wanted = mem_calloc(n, k * sizeof *wanted);
      int8_t* codes = mem_calloc(n, k);
      assert_ok(ir_static_read(weight->source, 0, n, wanted));
      assert_ok(ir_static_materialize(weight, NULL, codes));
      for (size_t r = 0; r < n; r++) {
        for (size_t c = 0; c < k; c++) {
          float have = weight->encoding.scales[r] * (float)codes[c * n + r]; /* stored [k, n] */
          assert_true(fabsf(have - wanted[r * k + c]) <= 1e-3f * weight->encoding.scales[r]);
        }
      }
      mem_free(wanted);
      mem_free(codes);
    }
    ir_graph_destroy(graph);
  }
  close_fixture(&s);
}

/* How much wider an encoding is than what calibration saw. */
static double room(const setup* s, const ir_graph* graph, const char* name) {
  const ir_tensor* tensor = ir_graph_find(graph, name);
  float low, high;
  assert_non_null(tensor);
  assert_true(calibration_range(s->ranges, name, &low, &high));
  low = fminf(low, 0); /* zero is always in */
  high = fmaxf(high, 0);
  return (double)tensor->encoding.scale * 65535 / (double)(high - low);
}

/* Texts longer than calibration's have larger queries, keys and scores. Rotated between norms there is room for them, elsewhere it would cost. */
static void test_scores_have_room_where_the_stream_is_rotated_between_norms(void** state) {
  (void)state;
  static const char* const of_scores[] = {"layer0.attention.q_proj", "layer0.attention.q_rope.low", "layer0.attention.k_rope.first_cos",
                                          "layer1.attention.k_norm", "layer1.attention.scores"};
  static const char* const others[] = {"layer0.attention.o_proj", "layer1.feed_forward.up_proj", "lm_head"};
  setup s;
  recipe how = *recipe_at(0);
  open_fixture("gemma3", &how, &s);
  recipe_adapt(&how, s.source);
  ir_graph* graph = build(&s, 1, &how);
  assert_ok(quantize_graph(graph, s.ranges, &how, s.pool));
  for (size_t i = 0; i < sizeof of_scores / sizeof of_scores[0]; i++) assert_true(room(&s, graph, of_scores[i]) >= 1.499);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) assert_true(fabs(room(&s, graph, others[i]) - 1.1) < 0.001);
  ir_graph_destroy(graph);
  close_fixture(&s);
  open_fixture("llama", &how, &s);
  graph = build(&s, 1, &how);
  assert_ok(quantize_graph(graph, s.ranges, &how, s.pool));
  assert_true(fabs(room(&s, graph, "layer1.attention.scores") - 1.1) < 0.001);
  ir_graph_destroy(graph);
  close_fixture(&s);
}

static bool same_feedback(const ir_tensor* a, const ir_tensor* b) {
  if (!a->feedback || !b->feedback) return a->feedback == b->feedback;
  size_t bytes = a->feedback->directions * a->source->cols * sizeof(float);
  return a->feedback->directions == b->feedback->directions && !memcmp(a->feedback->inputs, b->feedback->inputs, bytes) &&
         !memcmp(a->feedback->moves, b->feedback->moves, bytes);
}

/* What is written and read back gives every tensor the same encoding. */
static void test_calibration_as_bytes(void** state) {
  (void)state;
  recipe how;
  setup s;
  text bytes = {0}, again = {0};
  calibration* read = NULL;
  assert_ok(recipe_load("16a8w", &how));
  open_fixture("llama", &how, &s);
  recipe_adapt(&how, s.source);
  assert_ok(calibration_write(s.ranges, &bytes));
  assert_ok(calibration_read(bytes.data, bytes.length, &read));
  assert_int_equal(calibration_tokens(read), 38);
  ir_graph *one = build(&s, 1, &how), *other = build(&s, 1, &how);
  assert_ok(quantize_graph(one, s.ranges, &how, s.pool));
  assert_ok(quantize_graph(other, read, &how, s.pool));
  assert_int_equal(one->n_tensors, other->n_tensors);
  for (uint32_t i = 0; i < one->n_tensors; i++) {
    assert_int_equal(one->tensors[i]->dtype, other->tensors[i]->dtype);
    assert_true(ir_encoding_equal(&one->tensors[i]->encoding, &other->tensors[i]->encoding));
    assert_true(same_feedback(one->tensors[i], other->tensors[i]));
  }
  ir_graph_destroy(one);
  ir_graph_destroy(other);
  assert_ok(calibration_write(read, &again));
  assert_int_equal(again.length, bytes.length);
  calibration_destroy(read);
  for (size_t length = 0; length < bytes.length; length += length < 200 ? 1 : 1009)
    assert_fails(calibration_read(bytes.data, length, &read), GENAI_ERROR_BAD_FILE, "stored calibration");
  bytes.data[0] = 'x';
  assert_fails(calibration_read(bytes.data, bytes.length, &read), GENAI_ERROR_BAD_FILE, "another format");
  text_deinit(&bytes);
  text_deinit(&again);
  close_fixture(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_recipe),
      cmocka_unit_test(test_weight_formats),
      cmocka_unit_test(test_calibration_refuses),
      cmocka_unit_test(test_documents_begin_at_different_positions),
      cmocka_unit_test(test_rotations_between_norms_are_exact),
      cmocka_unit_test(test_scores_have_room_where_the_stream_is_rotated_between_norms),
      cmocka_unit_test(test_calibration_as_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
