/* Values and bytes of statics. Checkpoint tensors are made here; expected values are worked out per element in double precision. */
#include <math.h>

#include "base/pool.h"
#include "checkpoint/checkpoint.h"
#include "ir/ir.h"
#include "support.h"

static checkpoint_tensor matrix(const float* data, uint64_t rows, uint64_t cols) {
  return (checkpoint_tensor){
      .name = "stored", .type = ELEMENT_F32, .rank = 2, .dims = {rows, cols}, .data = (const uint8_t*)data, .bytes = rows * cols * 4};
}

/* A value that tells its place: 1000 * row + column. */
static float* numbered(uint64_t rows, uint64_t cols) {
  float* data = malloc(rows * cols * sizeof *data);
  for (uint64_t i = 0; i < rows * cols; ++i) data[i] = (float)(1000 * (i / cols) + i % cols);
  return data;
}

static void test_read_slices_and_scales(void** state) {
  (void)state;
  float* data = numbered(10, 3);
  checkpoint_tensor stored = matrix(data, 10, 3);
  ir_static source = {.tensor = &stored, .rows = 4, .cols = 3, .first_row = 5, .scale = 2, .add = 1};
  float out[12];
  assert_ok(ir_static_read(&source, 1, 3, out));
  for (int i = 0; i < 9; ++i) assert_float_equal(out[i], (float)(2 * (1000 * (6 + i / 3) + i % 3) + 1), 0);
  assert_fails(ir_static_read(&source, 2, 3, out), GENAI_ERROR_INVALID_ARGUMENT, "4 rows");
  source.cols = 2;
  assert_fails(ir_static_read(&source, 0, 1, out), GENAI_ERROR_INVALID_ARGUMENT, "expected 2");
  free(data);
}

/* Two heads of 8 with 6 rotary dimensions: stored 0 1 2 3 4 5 | 6 7 become 0 2 4 1 3 5 | 6 7. */
static void test_interleaved_rows(void** state) {
  (void)state;
  static const int order[8] = {0, 2, 4, 1, 3, 5, 6, 7};
  float* data = numbered(18, 2);
  checkpoint_tensor stored = matrix(data, 18, 2);
  ir_static source = {.tensor = &stored,
                      .rows = 16,
                      .cols = 2,
                      .first_row = 2,
                      .row_order = IR_ROWS_ROTARY_INTERLEAVED,
                      .head_dim = 8,
                      .rotary_dim = 6,
                      .scale = 1};
  float out[32];
  assert_ok(ir_static_read(&source, 0, 16, out));
  for (int i = 0; i < 16; ++i) assert_float_equal(out[2 * i], (float)(1000 * (2 + i / 8 * 8 + order[i % 8])), 0);
  /* The same of a stored vector, element by element. */
  checkpoint_tensor vector = {.name = "bias", .type = ELEMENT_F32, .rank = 1, .dims = {36}, .data = (const uint8_t*)data, .bytes = 144};
  source.tensor = &vector;
  source.cols = 1;
  assert_ok(ir_static_read(&source, 3, 5, out));
  for (int i = 0; i < 5; ++i) assert_float_equal(out[i], data[2 + order[3 + i]], 0);
  source.first_row = 30;
  assert_fails(ir_static_read(&source, 0, 16, out), GENAI_ERROR_INVALID_ARGUMENT, "no element");
  free(data);
}

/* CodeGen's keys: four groups of 4 rows, each after 8 rows of its group (query, value), with the head order on top. */
static void test_grouped_rows(void** state) {
  (void)state;
  float* data = numbered(48, 1);
  checkpoint_tensor stored = matrix(data, 48, 1);
  ir_static source = {.tensor = &stored,
                      .rows = 16,
                      .cols = 1,
                      .first_row = 8,
                      .group_rows = 4,
                      .group_stride = 12,
                      .row_order = IR_ROWS_ROTARY_INTERLEAVED,
                      .head_dim = 4,
                      .rotary_dim = 4,
                      .scale = 1};
  static const int order[4] = {0, 2, 1, 3};
  float out[16];
  assert_ok(ir_static_read(&source, 0, 16, out));
  for (int i = 0; i < 16; ++i) assert_float_equal(out[i], (float)(1000 * (8 + i / 4 * 12 + order[i % 4])), 0);
  free(data);
}

static ir_tensor* add_static(ir_graph* graph, const char* name, uint32_t rank, const uint32_t* dims, const ir_static* source) {
  ir_tensor* tensor;
  assert_ok(ir_graph_add_static(graph, name, rank, dims, source, &tensor));
  return tensor;
}

static double clamped(double value, double low, double high) {
  return value < low ? low : value > high ? high : value;
}

/* 150 channels of 96 inputs, so that tiles and patches are cut at odd places. */
enum { ROWS = 150, COLS = 96 };

static float* random_matrix(void) {
  float* data = malloc(ROWS * COLS * sizeof *data);
  uint32_t seed = 1;
  for (int i = 0; i < ROWS * COLS; ++i) {
    seed = seed * 1664525u + 1013904223u;
    data[i] = (float)((int32_t)(seed >> 8) - (1 << 23)) / (float)(1 << 22);
  }
  return data;
}

static void check_linear(const ir_tensor* tensor, const float* data, thread_pool* pool) {
  size_t size = ir_dtype_size(tensor->dtype);
  uint8_t* bytes = calloc(ROWS * COLS, size);
  assert_ok(ir_static_materialize(tensor, pool, bytes));
  const ir_encoding* e = &tensor->encoding;
  double high = e->kind == IR_ENCODING_NONE ? 0 : (double)((1u << (e->bits - 1)) - 1);
  for (int n = 0; n < ROWS; ++n) {
    for (int k = 0; k < COLS; ++k) {
      float value = data[n * COLS + k];
      size_t at = (size_t)k * ROWS + (size_t)n; /* K outermost */
      if (tensor->dtype == IR_F32) {
        assert_float_equal(((float*)bytes)[at], value, 0);
        continue;
      }
      float scale = e->kind == IR_ENCODING_PER_TENSOR ? e->scale : e->scales[n];
      if (e->kind == IR_ENCODING_BLOCK_EXPANSION) scale *= (float)e->block_scales[(size_t)n * e->blocks + (size_t)k / (COLS / e->blocks)];
      double expected = clamped(rint((double)(value / scale)), -high, high);
      double stored = tensor->dtype == IR_S8 ? ((int8_t*)bytes)[at] : ((int16_t*)bytes)[at];
      if (stored != expected) fail_msg("channel %d, input %d: %g, expected %g", n, k, stored, expected);
    }
  }
  free(bytes);
}

static void test_linear_weights(void** state) {
  (void)state;
  float *data = random_matrix(), scales[ROWS];
  uint8_t blocks[ROWS * 6];
  for (int i = 0; i < ROWS; ++i) scales[i] = 0.004f + 0.0001f * (float)i;
  for (int i = 0; i < ROWS * 6; ++i) blocks[i] = (uint8_t)(1 + i % 16);
  checkpoint_tensor stored = matrix(data, ROWS, COLS);
  ir_static source = {.tensor = &stored, .rows = ROWS, .cols = COLS, .scale = 1};
  ir_graph* graph;
  thread_pool* pool;
  assert_ok(ir_graph_create("g", &graph));
  assert_ok(thread_pool_create(3, &pool));
  ir_tensor* w = add_static(graph, "w", 4, (uint32_t[]){1, 1, COLS, ROWS}, &source);
  check_linear(w, data, NULL);
  for (int i = 0; i < 2; ++i) {
    w->dtype = IR_S8;
    w->encoding = (ir_encoding){.kind = IR_ENCODING_PER_CHANNEL, .bits = 8, .axis = 3, .channels = ROWS, .scales = scales};
    check_linear(w, data, i ? pool : NULL);
    w->encoding.bits = 4; /* mostly clamped: the range is then +-7, not -8 */
    check_linear(w, data, i ? pool : NULL);
    w->encoding = (ir_encoding){
        .kind = IR_ENCODING_BLOCK_EXPANSION, .bits = 4, .axis = 3, .channels = ROWS, .blocks = 6, .scales = scales, .block_scales = blocks};
    check_linear(w, data, i ? pool : NULL);
    w->dtype = IR_S16;
    w->encoding = (ir_encoding){.kind = IR_ENCODING_PER_TENSOR, .bits = 16, .scale = 1e-4f};
    check_linear(w, data, i ? pool : NULL);
  }
  w->dtype = IR_S32;
  w->encoding.bits = 32;
  float unused;
  assert_fails(ir_static_materialize(w, NULL, &unused), GENAI_ERROR_INVALID_ARGUMENT, "s32");
  w->dtype = IR_I32;
  assert_fails(ir_static_materialize(w, NULL, &unused), GENAI_ERROR_INVALID_ARGUMENT, "i32");
  thread_pool_destroy(pool);
  ir_graph_destroy(graph);
  free(data);
}

static void test_ties_clamps_and_strange_values(void** state) {
  (void)state;
  static const float values[8] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 1e30f, -1e30f, NAN};
  static const int expected_s8[8] = {0, 2, 2, 0, -2, 127, -127, -127};
  checkpoint_tensor stored = matrix(values, 1, 8);
  ir_static source = {.tensor = &stored, .rows = 1, .cols = 8, .scale = 1};
  ir_graph* graph;
  assert_ok(ir_graph_create("g", &graph));
  ir_tensor* flat = add_static(graph, "flat", 1, (uint32_t[]){8}, &source);
  flat->dtype = IR_S8;
  flat->encoding = (ir_encoding){.kind = IR_ENCODING_PER_TENSOR, .bits = 8, .scale = 1};
  int8_t s8[8];
  assert_ok(ir_static_materialize(flat, NULL, s8));
  for (int i = 0; i < 8; ++i) assert_int_equal(s8[i], expected_s8[i]);
  /* real = scale * (q + offset): with offset -3, q = round(x) + 3. */
  flat->dtype = IR_U8;
  flat->encoding.offset = -3;
  uint8_t u8[8];
  static const int expected_u8[8] = {3, 5, 5, 3, 1, 255, 0, 0};
  assert_ok(ir_static_materialize(flat, NULL, u8));
  for (int i = 0; i < 8; ++i) assert_int_equal(u8[i], expected_u8[i]);
  flat->dtype = IR_U16;
  flat->encoding.bits = 16;
  flat->encoding.offset = -40000;
  uint16_t u16[8];
  static const int expected_u16[8] = {40000, 40002, 40002, 40000, 39998, 65535, 0, 0};
  assert_ok(ir_static_materialize(flat, NULL, u16));
  for (int i = 0; i < 8; ++i) assert_int_equal(u16[i], expected_u16[i]);
  flat->dtype = IR_U16;
  flat->encoding = (ir_encoding){0};
  assert_fails(ir_static_materialize(flat, NULL, u16), GENAI_ERROR_INVALID_ARGUMENT, "no encoding");
  ir_graph_destroy(graph);
}

static void test_bias_and_table(void** state) {
  (void)state;
  static const float bias[4] = {1.0f, -2.0f, 1e9f, 0.26f};
  float scales[4] = {1e-6f, 0.5f, 1e-6f, 0.1f};
  checkpoint_tensor stored = {.name = "bias", .type = ELEMENT_F32, .rank = 1, .dims = {4}, .data = (const uint8_t*)bias, .bytes = 16};
  ir_static source = {.tensor = &stored, .rows = 4, .cols = 1, .scale = 1};
  ir_graph* graph;
  assert_ok(ir_graph_create("g", &graph));
  ir_tensor* b = add_static(graph, "b", 1, (uint32_t[]){4}, &source);
  b->dtype = IR_S32;
  b->encoding = (ir_encoding){.kind = IR_ENCODING_PER_CHANNEL, .bits = 32, .axis = 0, .channels = 4, .scales = scales};
  int32_t s32[4];
  assert_ok(ir_static_materialize(b, NULL, s32));
  assert_int_equal(s32[0], (int32_t)rint(1.0 / (double)1e-6f));
  assert_int_equal(s32[1], -4);
  assert_int_equal(s32[2], INT32_MAX);
  assert_int_equal(s32[3], 3);
  /* A table keeps its rows together: not transposed. */
  float* data = numbered(70, 3);
  checkpoint_tensor rows = matrix(data, 70, 3);
  source = (ir_static){.tensor = &rows, .rows = 70, .cols = 3, .scale = 0.001f};
  ir_tensor* table = add_static(graph, "table", 2, (uint32_t[]){70, 3}, &source);
  float table_scales[70];
  for (int i = 0; i < 70; ++i) table_scales[i] = 1.0f + (float)i;
  table->dtype = IR_S8;
  table->encoding = (ir_encoding){.kind = IR_ENCODING_PER_CHANNEL, .bits = 8, .axis = 0, .channels = 70, .scales = table_scales};
  int8_t s8[210];
  assert_ok(ir_static_materialize(table, NULL, s8));
  for (int i = 0; i < 210; ++i) assert_int_equal(s8[i], (int)rintf(data[i] * 0.001f / table_scales[i / 3]));
  table->dtype = IR_F32;
  table->encoding = (ir_encoding){0};
  float f32[210];
  assert_ok(ir_static_materialize(table, NULL, f32));
  for (int i = 0; i < 210; ++i) assert_float_equal(f32[i], data[i] * 0.001f, 0);
  int32_t numbers[3] = {7, -8, 9};
  ir_tensor* integers;
  assert_ok(ir_graph_add_tensor(graph, "integers", IR_STATIC, IR_I32, 1, (uint32_t[]){3}, &integers));
  integers->integers = numbers;
  int32_t copied[3];
  assert_ok(ir_static_materialize(integers, NULL, copied));
  assert_memory_equal(copied, numbers, sizeof numbers);
  free(data);
  ir_graph_destroy(graph);
}

static void test_failures_in_workers(void** state) {
  (void)state;
  float* data = random_matrix();
  checkpoint_tensor stored = matrix(data, ROWS, COLS);
  ir_static source = {.tensor = &stored, .rows = ROWS, .cols = COLS, .scale = 1};
  ir_graph* graph;
  assert_ok(ir_graph_create("g", &graph));
  ir_tensor* w = add_static(graph, "w", 4, (uint32_t[]){1, 1, COLS, ROWS}, &source);
  float* out = malloc(ROWS * COLS * sizeof *out);
  for (uint64_t nth = 1; nth <= 2; ++nth) {
    mem_inject_failure(nth);
    genai_status* status = ir_static_materialize(w, NULL, out);
    mem_inject_failure(0);
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
  }
  thread_pool* pool;
  assert_ok(thread_pool_create(4, &pool));
  w->source->first_row = 100; /* its last rows are not there */
  assert_fails(ir_static_materialize(w, pool, out), GENAI_ERROR_INVALID_ARGUMENT, "");
  thread_pool_destroy(pool);
  free(out);
  free(data);
  ir_graph_destroy(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_read_slices_and_scales),
      cmocka_unit_test(test_interleaved_rows),
      cmocka_unit_test(test_grouped_rows),
      cmocka_unit_test(test_linear_weights),
      cmocka_unit_test(test_ties_clamps_and_strange_values),
      cmocka_unit_test(test_bias_and_table),
      cmocka_unit_test(test_failures_in_workers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
