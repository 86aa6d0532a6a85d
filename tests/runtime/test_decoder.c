/* The decoder over a stand-in executor that computes a function of exactly what attention may see: for each new token, a weighted sum over
 * all visible (token id, position) pairs, read from the cache and the mask. The expected value is computed directly from the ids, so a
 * wrong mask, position, cache column or re-stride changes it. */
#include "base/memory.h"
#include "runtime/runtime.h"
#include "support.h"

enum { CONTEXT = 24, LAYERS = 2, HEADS = 2, DIM = 3, VOCAB = 50, MAX_PORTS = 8 };

typedef struct fake {
  executor base;
  executor_port in[MAX_PORTS], out[MAX_PORTS];
  bool sliding;
  int calls;
} fake;

static executor_port make_port(ir_role role, int32_t layer, ir_dtype dtype, uint32_t rank, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  executor_port port = {.name = "port", .role = role, .layer = layer, .dtype = dtype, .rank = rank, .dims = {a, b, c, d}, .scale = 1};
  return port;
}

/* Key column = id + 100 * position in every row; value row = 3 * id + position. Logit v = sum of key and value over visible tokens + v. */
static genai_status* fake_run(executor* self, const void* const* inputs, void* const* outputs) {
  fake* me = (fake*)self;
  me->calls++;
  const int32_t *tokens = inputs[0], *positions = inputs[2];
  const float* mask = inputs[1];
  uint32_t ar = self->ar_length, past = CONTEXT - ar;
  for (uint32_t l = 0; l < LAYERS; l++) {
    float *key = outputs[1 + l], *value = outputs[1 + LAYERS + l];
    for (uint32_t t = 0; t < ar; t++) {
      for (uint32_t h = 0; h < HEADS; h++) {
        for (uint32_t d = 0; d < DIM; d++) {
          float unit = (float)(l * 7 + h * 3 + d + 1);
          key[(h * DIM + d) * ar + t] = unit * (float)(tokens[t] + 100 * positions[t]);
          value[(h * ar + t) * DIM + d] = unit * (float)(3 * tokens[t] + positions[t]);
        }
      }
    }
  }
  float* logits = outputs[0];
  for (uint32_t t = 0; t < ar; t++) {
    double sum = 0;
    for (uint32_t column = 0; column < CONTEXT; column++) {
      if (mask[t * CONTEXT + column] < 0) continue;
      for (uint32_t l = 0; l < LAYERS; l++) {
        for (uint32_t h = 0; h < HEADS; h++) {
          for (uint32_t d = 0; d < DIM; d++) {
            const float *key_in = inputs[3 + l], *value_in = inputs[3 + LAYERS + l];
            const float *key_new = outputs[1 + l], *value_new = outputs[1 + LAYERS + l];
            float k = column < past ? key_in[(h * DIM + d) * past + column] : key_new[(h * DIM + d) * ar + column - past];
            float v = column < past ? value_in[(h * past + column) * DIM + d] : value_new[(h * ar + column - past) * DIM + d];
            sum += (double)k + (double)v;
          }
        }
      }
    }
    for (uint32_t v = 0; v < VOCAB; v++) logits[t * VOCAB + v] = (float)sum + (float)v;
  }
  return NULL;
}

static void fake_destroy(executor* self) {
  (void)self;
}

static const executor_vtable fake_vtable = {fake_run, fake_destroy};

static void fake_init(fake* self, uint32_t ar, ir_role mask_role) {
  memset(self, 0, sizeof *self);
  uint32_t past = CONTEXT - ar;
  self->in[0] = make_port(IR_ROLE_TOKENS, -1, IR_I32, 2, 1, ar, 0, 0);
  self->in[1] = make_port(mask_role, -1, IR_F32, 4, 1, 1, ar, CONTEXT);
  self->in[2] = make_port(IR_ROLE_POSITIONS, -1, IR_I32, 2, 1, ar, 0, 0);
  self->out[0] = make_port(IR_ROLE_LOGITS, -1, IR_F32, 3, 1, ar, VOCAB, 0);
  for (uint32_t l = 0; l < LAYERS; l++) {
    self->in[3 + l] = make_port(IR_ROLE_KEY_IN, (int32_t)l, IR_F32, 4, 1, HEADS, DIM, past);
    self->in[3 + LAYERS + l] = make_port(IR_ROLE_VALUE_IN, (int32_t)l, IR_F32, 4, 1, HEADS, past, DIM);
    self->out[1 + l] = make_port(IR_ROLE_KEY_OUT, (int32_t)l, IR_F32, 4, 1, HEADS, DIM, ar);
    self->out[1 + LAYERS + l] = make_port(IR_ROLE_VALUE_OUT, (int32_t)l, IR_F32, 4, 1, HEADS, ar, DIM);
  }
  self->base = (executor){.vtable = &fake_vtable,
                          .name = "fake",
                          .ar_length = ar,
                          .context_length = CONTEXT,
                          .n_inputs = 3 + 2 * LAYERS,
                          .n_outputs = 1 + 2 * LAYERS,
                          .inputs = self->in,
                          .outputs = self->out};
}

static double expected_sum(const int32_t* ids, uint32_t position, uint32_t window) {
  double units = 0, sum = 0;
  for (uint32_t l = 0; l < LAYERS; l++) {
    for (uint32_t i = 0; i < HEADS * DIM; i++) units += l * 7 + i / DIM * 3 + i % DIM + 1;
  }
  for (uint32_t p = 0; p <= position; p++) {
    if (window && position - p >= window) continue;
    sum += units * (ids[p] + 100.0 * p) + units * (3.0 * ids[p] + p);
  }
  return sum;
}

typedef struct check {
  const int32_t* ids;
  uint32_t window, seen;
} check;

static genai_status* check_logits(void* user, uint32_t position, const float* logits) {
  check* self = user;
  double expected = expected_sum(self->ids, position, self->window);
  for (uint32_t v = 0; v < VOCAB; v++) {
    double difference = (double)logits[v] - expected - v;
    if (difference > 1 || difference < -1) /* a float sum of up to 10^6 */
      return genai_status_create(GENAI_ERROR_INTERNAL, "position %u, logit %u: %g, expected %g", position, v, (double)logits[v],
                                 expected + v);
  }
  self->seen++;
  return NULL;
}

static int32_t ids[CONTEXT];

static void fill_ids(void) {
  for (int32_t i = 0; i < CONTEXT; i++) ids[i] = i * 17 % VOCAB;
}

/* Every way to cut a full context into two runs, with one, two and three graphs. */
static void run_all_splits(ir_role mask_role, uint32_t window) {
  fill_ids();
  fake graphs[3];
  fake_init(&graphs[0], 1, mask_role);
  fake_init(&graphs[1], 8, mask_role);
  fake_init(&graphs[2], 5, mask_role);
  executor* executors[3] = {&graphs[1].base, &graphs[0].base, &graphs[2].base};
  for (size_t n = 2; n <= 3; n++) {
    for (uint32_t first = 1; first < CONTEXT; first++) {
      decoder* model;
      assert_ok(decoder_create(executors, n, &model));
      decoder_set_sliding_window(model, window);
      check state = {ids, window, 0};
      assert_ok(decoder_run(model, ids, first, true, check_logits, &state, NULL));
      assert_ok(decoder_run(model, ids + first, CONTEXT - first, true, check_logits, &state, NULL));
      assert_int_equal(state.seen, CONTEXT);
      assert_int_equal(decoder_position(model), CONTEXT);
      assert_fails(decoder_run(model, ids, 1, false, check_logits, &state, NULL), GENAI_ERROR_LIMIT, "context of 24");
      /* Going back and on again sees the same. */
      assert_ok(decoder_rewind(model, first));
      state.seen = 0;
      assert_ok(decoder_run(model, ids + first, CONTEXT - first, false, check_logits, &state, NULL));
      assert_int_equal(state.seen, 1);
      decoder_destroy(model);
    }
  }
}

static void test_every_split_sees_the_same(void** state) {
  (void)state;
  run_all_splits(IR_ROLE_MASK, 0);
}

static void test_sliding_window(void** state) {
  (void)state;
  run_all_splits(IR_ROLE_MASK_SLIDING, 6);
  run_all_splits(IR_ROLE_MASK_SLIDING, 1);
}

static void test_sliding_window_must_be_set(void** state) {
  (void)state;
  fake graph;
  fake_init(&graph, 4, IR_ROLE_MASK_SLIDING);
  executor* one = &graph.base;
  decoder* model;
  assert_ok(decoder_create(&one, 1, &model));
  assert_fails(decoder_run(model, ids, 1, false, NULL, NULL, NULL), GENAI_ERROR_INVALID_ARGUMENT, "no window width");
  decoder_destroy(model);
}

static void test_one_graph_serves_both(void** state) {
  (void)state;
  fill_ids();
  fake graph;
  fake_init(&graph, 6, IR_ROLE_MASK);
  executor* one = &graph.base;
  decoder* model;
  assert_ok(decoder_create(&one, 1, &model));
  check seen = {ids, 0, 0};
  for (uint32_t i = 0; i < CONTEXT - 6; i++) assert_ok(decoder_run(model, ids + i, 1, true, check_logits, &seen, NULL));
  assert_ok(decoder_run(model, ids + CONTEXT - 6, 1, true, check_logits, &seen, NULL));
  assert_int_equal(seen.seen, CONTEXT - 5);
  assert_fails(decoder_run(model, ids, 1, true, check_logits, &seen, NULL), GENAI_ERROR_LIMIT, "no graph takes tokens at position 19");
  decoder_destroy(model);
}

static void test_disagreeing_graphs_are_refused(void** state) {
  (void)state;
  fake a, b;
  fake_init(&a, 1, IR_ROLE_MASK);
  fake_init(&b, 8, IR_ROLE_MASK);
  executor* executors[2] = {&a.base, &b.base};
  decoder* model;
  b.out[2].scale = 0.5f;
  assert_fails(decoder_create(executors, 2, &model), GENAI_ERROR_INVALID_ARGUMENT, "encoding");
  b.out[2].scale = 1;
  b.in[4].dims[3]++;
  assert_fails(decoder_create(executors, 2, &model), GENAI_ERROR_INVALID_ARGUMENT, "must be [1, KV heads, head size, tokens]");
  b.in[4].dims[3]--;
  b.in[1].dims[3]++;
  assert_fails(decoder_create(executors, 2, &model), GENAI_ERROR_INVALID_ARGUMENT, "one column per position");
  b.in[1].dims[3]--;
  assert_fails(decoder_create(executors, 0, &model), GENAI_ERROR_INVALID_ARGUMENT, "at least one graph");
  for (uint64_t n = 1;; n++) {
    uint64_t before = mem_allocation_count();
    mem_inject_failure(n);
    genai_status* status = decoder_create(executors, 2, &model);
    bool reached = mem_allocation_count() - before >= n;
    mem_inject_failure(0);
    if (!status) {
      decoder_destroy(model);
      assert_false(reached);
      break;
    }
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
  }
}

static bool take(void* user, int32_t id) {
  int32_t* list = user;
  list[++list[0]] = id;
  return list[0] < 40;
}

static void test_generate(void** state) {
  (void)state;
  fill_ids();
  fake a, b;
  fake_init(&a, 1, IR_ROLE_MASK);
  fake_init(&b, 8, IR_ROLE_MASK);
  executor* executors[2] = {&a.base, &b.base};
  decoder* model;
  assert_ok(decoder_create(executors, 2, &model));
  generate_options options = {.sampling = {.top_p = 1, .repetition_penalty = 1}};
  int32_t list[64] = {0};
  generate_result result;
  /* The stand-in's largest logit is always the last id: it goes on until the context is full. */
  assert_ok(generate(model, ids, 20, &options, take, list, &result));
  assert_int_equal(result.end, GENERATE_CONTEXT_FULL);
  assert_int_equal(result.new_tokens, CONTEXT - 20 + 1);
  assert_int_equal(list[1], VOCAB - 1);
  decoder_reset(model);
  options.max_new_tokens = 3;
  assert_ok(generate(model, ids, 20, &options, take, list, &result));
  assert_int_equal(result.end, GENERATE_MAX_TOKENS);
  assert_int_equal(result.new_tokens, 3);
  decoder_reset(model);
  int32_t stop = VOCAB - 1;
  options.stop_ids = &stop;
  options.n_stop_ids = 1;
  assert_ok(generate(model, ids, 20, &options, take, list, &result));
  assert_int_equal(result.end, GENERATE_STOP_TOKEN);
  assert_int_equal(result.new_tokens, 0);
  decoder_reset(model);
  assert_fails(generate(model, ids, CONTEXT + 1, &options, take, list, &result), GENAI_ERROR_LIMIT,
               "the prompt has 25 tokens, the context holds 24");
  assert_fails(generate(model, ids, 0, &options, take, list, &result), GENAI_ERROR_INVALID_ARGUMENT, "no tokens");
  cancel_token cancel = {true};
  options.cancel = &cancel;
  assert_fails(generate(model, ids, 4, &options, take, list, &result), GENAI_ERROR_CANCELLED, "cancelled");
  int32_t bad = VOCAB;
  options.cancel = NULL;
  assert_fails(generate(model, &bad, 1, &options, take, list, &result), GENAI_ERROR_INVALID_ARGUMENT, "id 50, expected 0 to 49");
  decoder_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_split_sees_the_same),      cmocka_unit_test(test_sliding_window),
      cmocka_unit_test(test_sliding_window_must_be_set),     cmocka_unit_test(test_one_graph_serves_both),
      cmocka_unit_test(test_disagreeing_graphs_are_refused), cmocka_unit_test(test_generate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
