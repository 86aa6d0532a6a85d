/* Error feedback: what it moves columns by against a dense solve in double precision, what it does to rows, and that stored weights are the
 * rows it gives. */
#include <math.h>

#include "base/memory.h"
#include "ir/feedback.h"
#include "support.h"

static uint32_t seed = 1;

static float noise(void) {
  seed = seed * 1664525u + 1013904223u;
  return (float)((int32_t)(seed >> 8) - (1 << 23)) / (float)(1 << 23);
}

static float* random_values(size_t count) {
  float* values = mem_realloc_array(NULL, count, sizeof *values);
  for (size_t i = 0; i < count; i++) values[i] = noise();
  return values;
}

/* a x = b for a positive definite matrix: Gaussian elimination; `b` becomes x. */
static void solve(double* a, double* b, size_t n) {
  for (size_t p = 0; p < n; p++) {
    for (size_t r = p + 1; r < n; r++) {
      double factor = a[r * n + p] / a[p * n + p];
      for (size_t c = p; c < n; c++) a[r * n + c] -= factor * a[p * n + c];
      b[r] -= factor * b[p];
    }
  }
  for (size_t p = n; p-- > 0;) {
    for (size_t c = p + 1; c < n; c++) b[p] -= a[p * n + c] * b[c];
    b[p] /= a[p * n + p];
  }
}

/* At the start of a run, the columns F from there on minimize d^T D d + |r + U_F^T d|^2. */
static void test_moves_are_least_squares(void** state) {
  (void)state;
  enum { COLS = 41, DIRECTIONS = 2 };
  float *inputs = random_values(DIRECTIONS * COLS), *diagonal = random_values(COLS);
  for (size_t j = 0; j < COLS; j++) diagonal[j] = 0.3f + fabsf(diagonal[j]);
  arena memory = {0};
  const ir_feedback* made;
  assert_ok(ir_feedback_create(&memory, DIRECTIONS, inputs, diagonal, COLS, &made));
  assert_int_equal(made->directions, DIRECTIONS);
  assert_memory_equal(made->inputs, inputs, DIRECTIONS * COLS * sizeof *inputs);
  static const size_t begins[] = {0, 16, 32, 37, 39, 40, COLS}; /* 41 columns: runs of 16, 16, and halves of what is left */
  for (size_t run = 0; begins[run] < COLS; run++) {
    size_t begin = begins[run], n = COLS - begin;
    for (size_t i = 0; i < DIRECTIONS; i++) {
      double a[COLS * COLS], b[COLS];
      for (size_t r = 0; r < n; r++) {
        for (size_t c = 0; c < n; c++) {
          a[r * n + c] = r == c ? (double)diagonal[begin + r] : 0;
          for (size_t k = 0; k < DIRECTIONS; k++)
            a[r * n + c] += (double)inputs[k * COLS + begin + r] * (double)inputs[k * COLS + begin + c];
        }
        b[r] = -(double)inputs[i * COLS + begin + r];
      }
      solve(a, b, n);
      for (size_t j = 0; begin + j < begins[run + 1]; j++) assert_true(fabs((double)made->moves[i * COLS + begin + j] - b[j]) < 1e-6);
    }
  }
  const ir_feedback* copy;
  assert_ok(ir_feedback_copy(&memory, made, COLS, &copy));
  assert_int_equal(copy->directions, DIRECTIONS);
  assert_memory_equal(copy->inputs, made->inputs, DIRECTIONS * COLS * sizeof *inputs);
  assert_memory_equal(copy->moves, made->moves, DIRECTIONS * COLS * sizeof *inputs);
  assert_fails(ir_feedback_create(&memory, 0, inputs, diagonal, COLS, &made), GENAI_ERROR_INVALID_ARGUMENT, "along 0 directions");
  assert_fails(ir_feedback_create(&memory, 17, inputs, diagonal, COLS, &made), GENAI_ERROR_INVALID_ARGUMENT, "along 17 directions");
  arena_deinit(&memory);
  mem_free(inputs);
  mem_free(diagonal);
}

/* Errors of the last run stay: that is a 16th of nearest rounding's for 256 runs. */
enum { ROWS = 70, WIDTH = 4096, BLOCK = 32, ALONG = 2 };

typedef struct setup {
  ir_graph* graph;
  ir_tensor* weight;
  float *rows, *diagonal, *inputs;
} setup;

static void open_weight(bool blocks, setup* s) {
  s->rows = random_values((size_t)ROWS * WIDTH);
  s->diagonal = random_values(WIDTH);
  s->inputs = random_values((size_t)ALONG * WIDTH);
  for (size_t j = 0; j < WIDTH; j++) s->diagonal[j] = 0.1f + 0.05f * s->diagonal[j];
  assert_ok(ir_graph_create("g", &s->graph));
  ir_static source = {.constants = s->rows, .rows = ROWS, .cols = WIDTH, .scale = 1};
  assert_ok(ir_graph_add_static(s->graph, "w", 4, (uint32_t[]){1, 1, WIDTH, ROWS}, &source, &s->weight));
  float* scales = arena_calloc(&s->graph->memory, ROWS, sizeof *scales);
  uint8_t* parts = arena_alloc(&s->graph->memory, (size_t)ROWS * WIDTH / BLOCK);
  for (size_t i = 0; i < ROWS; i++) scales[i] = (blocks ? 0.012f : 0.16f) + 0.0001f * (float)i;
  for (size_t i = 0; i < (size_t)ROWS * WIDTH / BLOCK; i++) parts[i] = (uint8_t)(11 + i % 6);
  s->weight->dtype = IR_S8;
  s->weight->encoding = (ir_encoding){
      .kind = blocks ? IR_ENCODING_BLOCK_EXPANSION : IR_ENCODING_PER_CHANNEL, .bits = 4, .axis = 3, .channels = ROWS, .scales = scales};
  if (blocks) {
    s->weight->encoding.blocks = WIDTH / BLOCK;
    s->weight->encoding.block_scales = parts;
  }
}

static void close_weight(setup* s) {
  ir_graph_destroy(s->graph);
  mem_free(s->rows);
  mem_free(s->diagonal);
  mem_free(s->inputs);
}

static float scale_of(const ir_encoding* e, size_t row, size_t col) {
  return e->kind == IR_ENCODING_PER_CHANNEL ? e->scales[row] : e->scales[row] * (float)e->block_scales[row * e->blocks + col / BLOCK];
}

static void check_weight(bool blocks) {
  setup s;
  open_weight(blocks, &s);
  const ir_encoding* e = &s.weight->encoding;
  float* row = mem_alloc(WIDTH * sizeof *row);
  int8_t* stored = mem_alloc((size_t)ROWS * WIDTH);
  memcpy(row, s.rows, WIDTH * sizeof *row);
  ir_feedback_apply(s.weight, 0, row);
  assert_memory_equal(row, s.rows, WIDTH * sizeof *row);
  assert_ok(ir_feedback_create(&s.graph->memory, ALONG, s.inputs, s.diagonal, WIDTH, &s.weight->feedback));
  assert_ok(ir_static_materialize(s.weight, NULL, stored));
  double fed[ALONG] = {0}, nearest[ALONG] = {0};
  for (size_t n = 0; n < ROWS; n++) {
    const float* values = s.rows + n * WIDTH;
    double along[ALONG] = {0}, rounded[ALONG] = {0};
    memcpy(row, values, WIDTH * sizeof *row);
    ir_feedback_apply(s.weight, n, row);
    for (size_t j = 0; j < WIDTH; j++) {
      float scale = scale_of(e, n, j), q = rintf(row[j] / scale);
      if (q * scale != row[j] || fabsf(q) > 7) fail_msg("row %zu, column %zu: %g is off the grid", n, j, (double)row[j]);
      if (stored[j * ROWS + n] != (int)q) fail_msg("row %zu, column %zu: stored %d, not %g", n, j, stored[j * ROWS + n], (double)q);
      double plain = fmax(-7, fmin(7, rint((double)values[j] / (double)scale))) * (double)scale;
      for (size_t i = 0; i < ALONG; i++) {
        along[i] += ((double)row[j] - (double)values[j]) * (double)s.inputs[i * WIDTH + j];
        rounded[i] += (plain - (double)values[j]) * (double)s.inputs[i * WIDTH + j];
      }
    }
    for (size_t i = 0; i < ALONG; i++) {
      fed[i] += along[i] * along[i];
      nearest[i] += rounded[i] * rounded[i];
    }
  }
  for (size_t i = 0; i < ALONG; i++) {
    if (!(sqrt(fed[i]) * 10 < sqrt(nearest[i]))) fail_msg("direction %zu: %g, to the nearest %g", i, sqrt(fed[i]), sqrt(nearest[i]));
  }
  mem_free(row);
  mem_free(stored);
  close_weight(&s);
}

static void test_rows_per_channel(void** state) {
  (void)state;
  check_weight(false);
}

static void test_rows_in_blocks(void** state) {
  (void)state;
  check_weight(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_moves_are_least_squares),
      cmocka_unit_test(test_rows_per_channel),
      cmocka_unit_test(test_rows_in_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
