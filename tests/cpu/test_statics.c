/* Rounding and statics: every integer of a port's type survives the way to a real and back; statics read as reals are the integers that
 * ir_static_materialize stores, times their scales; and weights whose rows are rotated. */
#include <math.h>

#include "cpu/internal.h"
#include "cpu/rounding.h"
#include "ir/half.h"
#include "ir/rotation.h"
#include "support.h"

static void test_ports_round_trip(void** state) {
  (void)state;
  static const ir_dtype types[] = {IR_U8, IR_U16, IR_S8, IR_S16};
  static const float scales[] = {1.0f, 0.0039215689f, 1.5259022e-05f, 0.37f, 2.7e-8f, 3000.5f};
  static uint16_t stored[65536], again[65536];
  static float values[65536];
  for (size_t t = 0; t < 4; t++) {
    bool is_unsigned = types[t] == IR_U8 || types[t] == IR_U16;
    size_t size = ir_dtype_size(types[t]), count = (size_t)1 << (8 * size);
    for (size_t i = 0; i < count; i++) {
      uint8_t* to = (uint8_t*)stored + i * size;
      to[0] = (uint8_t)i;
      if (size == 2) to[1] = (uint8_t)(i >> 8);
    }
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
      for (int32_t offset = 0; offset >= (is_unsigned ? -(int32_t)count + 1 : 0); offset -= (int32_t)count / 3) {
        executor_port port = {.dtype = types[t], .scale = scales[s], .offset = offset};
        ir_encoding encoding = {.kind = IR_ENCODING_PER_TENSOR, .bits = (uint8_t)(8 * size), .scale = scales[s], .offset = offset};
        rounding_decode_port(&port, stored, 0, count, values);
        for (size_t i = 0; i < count; i += 97) assert_true(values[i] == executor_port_read(&port, stored, i));
        memset(again, 0, sizeof again);
        rounding_encode_port(&port, values, 0, count, again);
        assert_memory_equal(again, stored, count * size);
        rounding_apply(types[t], &encoding, values, count); /* already on the grid: unchanged */
        for (size_t i = 0; i < count; i += 97) assert_true(values[i] == executor_port_read(&port, stored, i));
      }
    }
  }
}

static void test_rounding_rules(void** state) {
  (void)state;
  ir_encoding encoding = {.kind = IR_ENCODING_PER_TENSOR, .bits = 8, .scale = 0.5f, .offset = -10};
  float values[] = {0.25f, 0.75f, -0.25f, -0.75f, 0.26f, 1000.0f, -1000.0f, INFINITY, -INFINITY, NAN, 122.4f, -5.3f};
  const float expected[] = {0.0f, 1.0f, 0.0f, -1.0f, 0.5f, 122.5f, -5.0f, 122.5f, -5.0f, -5.0f, 122.5f, -5.0f};
  rounding_apply(IR_U8, &encoding, values, 12); /* ties to even; the range is [0, 255] - 10 steps */
  for (int i = 0; i < 12; i++) {
    if (values[i] != expected[i]) fail_msg("value %d is %g, expected %g", i, (double)values[i], (double)expected[i]);
  }
  float halves[] = {1.0f, 1.0004883f, 65520.0f, 1e-8f};
  rounding_apply_half(halves, 4);
  assert_true(halves[0] == 1.0f && halves[1] == 1.0f && isinf(halves[2]) && halves[3] == 0.0f);
}

/* ---- statics ---- */

enum { ROWS = 36, COLS = 48 };

static float pattern(size_t i) {
  return (float)((i * 2654435761u >> 9) % 4001) / 2000.0f - 1.0f;
}

static ir_graph* new_graph(void) {
  ir_graph* graph;
  assert_ok(ir_graph_create("statics", &graph));
  graph->ar_length = graph->context_length = 1;
  return graph;
}

static ir_tensor* add_static(ir_graph* graph, const char* name, uint32_t rank, const uint32_t* dims, uint64_t rows, uint64_t cols) {
  float* values = arena_calloc(&graph->memory, (size_t)(rows * cols), sizeof *values);
  for (size_t i = 0; i < rows * cols; i++) values[i] = pattern(i);
  ir_static source = {.constants = values, .rows = rows, .cols = cols, .scale = 1.0f};
  ir_tensor* tensor;
  assert_ok(ir_graph_add_static(graph, name, rank, dims, &source, &tensor));
  return tensor;
}

static float stored_integer(const ir_tensor* tensor, const uint8_t* bytes, size_t at) {
  switch (tensor->dtype) {
    case IR_U8:
      return (float)bytes[at];
    case IR_S8:
      return (float)((const int8_t*)bytes)[at];
    case IR_U16:
      return (float)((const uint16_t*)(const void*)bytes)[at];
    case IR_S16:
      return (float)((const int16_t*)(const void*)bytes)[at];
    case IR_F16:
      return half_to_float(((const uint16_t*)(const void*)bytes)[at]);
    default:
      return (float)((const int32_t*)(const void*)bytes)[at];
  }
}

/* The reals that the stored bytes mean; linear weights are stored transposed. */
static double meaning(const ir_tensor* tensor, const uint8_t* bytes, bool linear, size_t row, size_t col) {
  const ir_encoding* e = &tensor->encoding;
  size_t at = linear ? col * ROWS + row : row * COLS + col;
  double q = (double)stored_integer(tensor, bytes, at);
  switch (e->kind) {
    case IR_ENCODING_NONE:
      return q;
    case IR_ENCODING_PER_TENSOR:
      return (double)e->scale * (q + e->offset);
    case IR_ENCODING_PER_CHANNEL:
      return (double)e->scales[linear || e->axis == 0 ? row : col] * q;
    default:
      return (double)e->scales[row] * e->block_scales[row * e->blocks + col / (COLS / e->blocks)] * q;
  }
}

typedef struct form {
  ir_dtype dtype;
  ir_encoding_kind kind;
  uint8_t bits;
  bool linear;
  int32_t axis;
} form;

static void test_statics_are_what_is_stored(void** state) {
  (void)state;
  static const form forms[] = {
      {IR_S8, IR_ENCODING_PER_CHANNEL, 8, true, 3},     {IR_S8, IR_ENCODING_PER_CHANNEL, 4, true, 3},
      {IR_S8, IR_ENCODING_BLOCK_EXPANSION, 4, true, 3}, {IR_S8, IR_ENCODING_PER_TENSOR, 8, true, 0},
      {IR_U8, IR_ENCODING_PER_TENSOR, 8, false, 0},     {IR_U16, IR_ENCODING_PER_TENSOR, 16, false, 0},
      {IR_S16, IR_ENCODING_PER_TENSOR, 16, false, 0},   {IR_S8, IR_ENCODING_PER_CHANNEL, 8, false, 0},
      {IR_S8, IR_ENCODING_PER_CHANNEL, 8, false, 1},    {IR_S32, IR_ENCODING_PER_TENSOR, 32, false, 0},
      {IR_S32, IR_ENCODING_PER_CHANNEL, 32, false, 1},  {IR_F16, IR_ENCODING_NONE, 0, false, 0},
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    const form* f = &forms[i];
    ir_graph* graph = new_graph();
    ir_tensor* tensor = f->linear ? add_static(graph, "w", 4, (uint32_t[]){1, 1, COLS, ROWS}, ROWS, COLS)
                                  : add_static(graph, "w", 2, (uint32_t[]){ROWS, COLS}, ROWS, COLS);
    uint32_t channels = f->linear || f->axis == 0 ? ROWS : COLS;
    float scales[COLS];
    uint8_t blocks[ROWS * 3];
    for (size_t c = 0; c < channels; c++)
      scales[c] = (f->bits == 32 ? 1e-9f : f->bits == 4 ? 0.02f : 0.008f) * (1.0f + 0.1f * (float)(c % 5));
    for (size_t b = 0; b < sizeof blocks; b++) blocks[b] = (uint8_t)(1 + b % 16);
    tensor->dtype = f->dtype;
    tensor->encoding = (ir_encoding){.kind = f->kind,
                                     .bits = f->bits,
                                     .axis = f->axis,
                                     .scale = f->bits == 32   ? 1e-9f
                                              : f->bits == 16 ? 3.1e-5f
                                                              : 0.0078f,
                                     .offset = f->dtype == IR_U8    ? -131
                                               : f->dtype == IR_U16 ? -31000
                                                                    : 0,
                                     .channels = channels,
                                     .blocks = 3,
                                     .scales = f->kind > IR_ENCODING_PER_TENSOR ? scales : NULL,
                                     .block_scales = blocks};
    uint8_t* bytes = malloc((size_t)ROWS * COLS * ir_dtype_size(f->dtype));
    assert_ok(ir_static_materialize(tensor, NULL, bytes));
    float* none = NULL;
    cpu_executor self = {.options = {.mode = CPU_SIMULATED}, .statics = &none};
    float rows[5 * COLS];
    for (uint64_t first = 0; first < ROWS; first += 5) {
      uint64_t count = ROWS - first < 5 ? ROWS - first : 5;
      assert_ok(cpu_static_rows(&self, tensor, first, count, rows));
      for (size_t at = 0; at < count * COLS; at++) {
        double expected = meaning(tensor, bytes, f->linear, (size_t)first + at / COLS, at % COLS);
        if (!(fabs((double)rows[at] - expected) <= 1.2e-7 * fabs(expected)))
          fail_msg("form %zu: row %zu, column %zu is %.9g, stored is %.9g", i, (size_t)first + at / COLS, at % COLS, (double)rows[at],
                   expected);
      }
    }
    free(bytes);
    ir_graph_destroy(graph);
  }
}

/* A layer whose rows are rotated multiplies by the rotated matrix, kept or not, with one row of activations and with more. */
static void test_rotated_rows(void** state) {
  (void)state;
  rotation* turn;
  assert_ok(rotation_create(ROWS, &turn));
  for (uint32_t m = 1; m <= 5; m += 4) {
    ir_graph* graph = new_graph();
    ir_tensor *x, *y, *w = add_static(graph, "w", 4, (uint32_t[]){1, 1, COLS, ROWS}, ROWS, COLS);
    w->source->rotate_rows = turn;
    float matrix[ROWS * COLS], *scratch = malloc(rotation_scratch(turn) * COLS * sizeof *scratch);
    memcpy(matrix, w->source->constants, sizeof matrix);
    rotation_apply_columns(turn, matrix, COLS, scratch);
    free(scratch);
    assert_ok(ir_graph_add_tensor(graph, "x", IR_INPUT, IR_F32, 4, (uint32_t[]){1, 1, m, COLS}, &x));
    assert_ok(ir_graph_add_tensor(graph, "y", IR_INTERMEDIATE, IR_F32, 4, (uint32_t[]){1, 1, m, ROWS}, &y));
    ir_op* op;
    assert_ok(ir_graph_add_op(graph, IR_CONV2D, "linear", (int32_t[]){x->id, w->id}, 2, y->id, &op));
    assert_ok(ir_graph_mark_output(graph, y, IR_ROLE_NONE, -1));
    for (int kept = 0; kept < 2; kept++) {
      executor* self;
      cpu_options options = {.weight_cache_bytes = kept ? 1u << 20 : 0};
      assert_ok(cpu_executor_create(graph, &options, &self));
      float in[5 * COLS], out[5 * ROWS];
      for (size_t i = 0; i < m * COLS; i++) in[i] = pattern(i + 77);
      assert_ok(executor_run(self, (const void*[]){in}, (void*[]){out}));
      for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < ROWS; j++) {
          double sum = 0;
          for (size_t k = 0; k < COLS; k++) sum += (double)in[i * COLS + k] * (double)matrix[j * COLS + k];
          assert_true(fabs(sum - (double)out[i * ROWS + j]) < 1e-5);
        }
      }
      executor_destroy(self);
    }
    ir_graph_destroy(graph);
  }
  rotation_destroy(turn);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ports_round_trip),
      cmocka_unit_test(test_rounding_rules),
      cmocka_unit_test(test_statics_are_what_is_stored),
      cmocka_unit_test(test_rotated_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
