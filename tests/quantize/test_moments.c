/* The sketch of second moments against moments summed up here in double precision, with the documented weights: the tokens at position 0
 * together count a third of the others, hence a quarter of the whole. */
#include <math.h>

#include "base/memory.h"
#include "quantize/moments.h"
#include "support.h"

enum { COLS = 50, DIRECTIONS = 4 };

static uint32_t seed = 1;

static float noise(void) {
  seed = seed * 1664525u + 1013904223u;
  return (float)((int32_t)(seed >> 8) - (1 << 23)) / (float)(1 << 23);
}

/* The two known directions: orthogonal, of length 1. */
static double known(int which, size_t c) {
  return (which && c % 2 ? -1 : 1) / sqrt(COLS);
}

typedef struct sums {
  double moment[2][2]; /* along the known directions */
  double diagonal[COLS];
} sums;

static void add_pass(moments* self, size_t count, size_t n_first, float small, sums* expected) {
  float* rows = mem_calloc(count * COLS, sizeof *rows);
  int32_t positions[128];
  for (size_t i = 0; i < count; i++) {
    bool first = i % (count / n_first) == 0 && i / (count / n_first) < n_first;
    positions[i] = first ? 0 : (int32_t)i + 1;
    double strength[2] = {first ? 40 : (double)noise() * 2, (double)noise() * 6}, along[2] = {0};
    double weight = first ? (double)(count - n_first) / 3 / (double)n_first : 1;
    for (size_t c = 0; c < COLS; c++) {
      float value = (float)(strength[0] * known(0, c) + strength[1] * known(1, c)) + small * noise();
      rows[i * COLS + c] = value;
      along[0] += (double)value * known(0, c);
      along[1] += (double)value * known(1, c);
      expected->diagonal[c] += weight * (double)value * (double)value;
    }
    for (int a = 0; a < 2; a++) {
      for (int b = 0; b < 2; b++) expected->moment[a][b] += weight * along[a] * along[b];
    }
  }
  assert_ok(moments_add(self, rows, positions, count));
  mem_free(rows);
}

static void check(float small) {
  moments* self;
  sums expected = {0};
  assert_ok(moments_create(COLS, DIRECTIONS, &self));
  add_pass(self, 44, 4, small, &expected);
  add_pass(self, 62, 2, small, &expected);
  double trace = 0, expected_trace = 0;
  for (size_t c = 0; c < COLS; c++) {
    trace += (double)self->diagonal[c];
    expected_trace += expected.diagonal[c];
  }
  double unit = trace / expected_trace; /* only the shares are documented */
  for (size_t c = 0; c < COLS; c++) assert_true(fabs((double)self->diagonal[c] - unit * expected.diagonal[c]) < 1e-4 * trace / COLS);
  double half = (expected.moment[0][0] + expected.moment[1][1]) / 2, apart = (expected.moment[0][0] - expected.moment[1][1]) / 2;
  double root = sqrt(apart * apart + expected.moment[0][1] * expected.moment[0][1]), eigen[2] = {half + root, half - root};
  double within[2] = {0};
  for (int i = 0; i < DIRECTIONS; i++) {
    double length = 0, dot[2] = {0};
    for (size_t c = 0; c < COLS; c++) {
      double value = (double)self->strong[(size_t)i * COLS + c];
      length += value * value;
      for (int k = 0; k < 2; k++) dot[k] += value * known(k, c);
    }
    if (i >= 2) {
      assert_true(length < (small > 0 ? 0.02 : 1e-5) * unit * eigen[1]);
      continue;
    }
    if (!(fabs(length - unit * eigen[i]) < 0.03 * unit * eigen[i])) fail_msg("direction %d: %g, not %g", i, length, unit * eigen[i]);
    for (int k = 0; k < 2; k++) within[k] += dot[k] * dot[k] / length;
  }
  for (int k = 0; k < 2; k++) {
    if (!(fabs(within[k] - 1) < 1e-3)) fail_msg("known direction %d: %g of it found", k, within[k]);
  }
  arena memory = {0};
  const ir_feedback* feedback = NULL;
  assert_ok(moments_feedback(self, &memory, &feedback));
  assert_non_null(feedback);
  assert_int_equal(feedback->directions, DIRECTIONS);
  assert_memory_equal(feedback->inputs, self->strong, DIRECTIONS * COLS * sizeof(float));
  for (size_t i = 0; i < DIRECTIONS * COLS; i++) assert_true(isfinite(feedback->moves[i]));
  arena_deinit(&memory);
  moments_destroy(self);
}

static void test_two_directions_and_noise(void** state) {
  (void)state;
  check(0.1f); /* tilts the moment's own directions by some 1e-4 of their square */
}

static void test_two_directions_alone(void** state) {
  (void)state;
  check(0);
}

static void test_zeros_give_no_feedback(void** state) {
  (void)state;
  float rows[5 * COLS] = {0};
  int32_t positions[5] = {0, 1, 2, 3, 4};
  moments* self;
  arena memory = {0};
  ir_feedback ignored;
  const ir_feedback* feedback = &ignored;
  assert_ok(moments_create(COLS, DIRECTIONS, &self));
  assert_ok(moments_add(self, rows, positions, 5));
  assert_ok(moments_feedback(self, &memory, &feedback));
  assert_null(feedback);
  arena_deinit(&memory);
  moments_destroy(self);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two_directions_and_noise),
      cmocka_unit_test(test_two_directions_alone),
      cmocka_unit_test(test_zeros_give_no_feedback),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
