/* Products on the tile unit against sums in double; and exact ones of integers. Skipped where the processor has no tiles. */
#include <math.h>

#include "cpu/amx.h"
#include "support.h"

static double uniform(uint32_t* state) {
  *state = *state * 1664525u + 1013904223u;
  return (double)(*state >> 8) / 8388608.0 - 1.0;
}

typedef struct shape {
  size_t rows, columns, k;
} shape;
static const shape shapes[] = {{1, 1, 1}, {5, 7, 3}, {16, 16, 32}, {37, 50, 33}, {64, 33, 576}, {100, 16, 70}, {17, 96, 64}};

typedef struct operands {
  float *left, *right, *right_rows, *y; /* [rows][k], [k][columns], [columns][k] */
  uint8_t *packed_left, *packed_right;
} operands;

static operands make(const shape* s, float left_scale, int left_most, float right_scale, int right_most) {
  operands o = {.left = malloc(s->rows * s->k * sizeof(float)),
                .right = malloc(s->k * s->columns * sizeof(float)),
                .right_rows = malloc(s->k * s->columns * sizeof(float)),
                .y = malloc(s->rows * s->columns * sizeof(float)),
                .packed_left = aligned_alloc(64, amx_packed_bytes(s->rows, s->k, AMX_PIECES)),
                .packed_right = aligned_alloc(64, amx_packed_bytes(s->columns, s->k, AMX_PIECES))};
  uint32_t seed = 1;
  for (size_t i = 0; i < s->rows * s->k; i++)
    o.left[i] = left_most ? left_scale * (float)rint(uniform(&seed) * left_most) : (float)uniform(&seed);
  for (size_t i = 0; i < s->k; i++) {
    for (size_t j = 0; j < s->columns; j++) {
      float value = right_most ? right_scale * (float)rint(uniform(&seed) * right_most) : (float)uniform(&seed);
      o.right[i * s->columns + j] = o.right_rows[j * s->k + i] = value;
    }
  }
  return o;
}

static void drop(operands* o) {
  free(o->left), free(o->right), free(o->right_rows), free(o->y), free(o->packed_left), free(o->packed_right);
}

static void check(const shape* s, const operands* o, const float* row_scale, const float* row_bias, bool transposed, double tolerance) {
  for (size_t i = 0; i < s->rows; i++) {
    for (size_t j = 0; j < s->columns; j++) {
      double sum = 0, magnitude = 0;
      for (size_t k = 0; k < s->k; k++) {
        double term = (double)o->left[i * s->k + k] * (double)o->right[k * s->columns + j];
        sum += term;
        magnitude += fabs(term);
      }
      if (row_scale) sum = sum * (double)row_scale[i] + (double)row_bias[i];
      double got = (double)o->y[transposed ? j * s->rows + i : i * s->columns + j];
      if (!(fabs(got - sum) <= tolerance * (magnitude + 1e-30)))
        fail_msg("%zu x %zu x %zu: [%zu][%zu] is %.9g, expected %.9g", s->rows, s->columns, s->k, i, j, got, sum);
    }
  }
}

static void check_floats(const shape* s, size_t pieces, double tolerance) {
  operands o = make(s, 1, 0, 1, 0);
  amx_source left = {.values = o.left, .stride = s->k}, right = {.values = o.right, .stride = s->columns};
  amx_target plain = {.y = o.y, .stride = s->columns, .scale = 1.0f};
  amx_pack_left(&left, s->rows, s->k, pieces, o.packed_left);
  amx_pack_right(&right, s->columns, s->k, pieces, o.packed_right);
  amx_multiply(o.packed_left, pieces, s->rows, o.packed_right, pieces, s->columns, s->k, pieces, &plain);
  check(s, &o, NULL, NULL, false, tolerance);

  float *scale = malloc(s->rows * sizeof(float)), *bias = calloc(s->rows, sizeof(float));
  for (size_t r = 0; r < s->rows; r++) scale[r] = 1.0f + 0.25f * (float)(r % 3);
  amx_source rows = {.values = o.right_rows, .stride = s->k};
  amx_target turned = {.y = o.y, .stride = s->rows, .transposed = true, .scale = 1.0f, .row_scale = scale, .row_bias = bias};
  amx_pack_right_transposed(&rows, s->columns, s->k, pieces, o.packed_right);
  amx_multiply(o.packed_left, pieces, s->rows, o.packed_right, pieces, s->columns, s->k, pieces, &turned);
  check(s, &o, scale, bias, true, 1.5 * tolerance);
  free(scale), free(bias);
  drop(&o);
}

static void test_floats(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    check_floats(&shapes[i], 3, 1e-6);
    check_floats(&shapes[i], 2, 1e-5);
  }
}

/* Of 16 by 8 bits, 8 by 16, and 16 by 16: exact while sums stay below 2^24 steps. */
static void test_integers(void** state) {
  (void)state;
  static const struct { size_t left, right; } pieces[] = {{2, 1}, {1, 2}, {2, 2}, {1, 1}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const shape* s = &shapes[i];
    for (size_t p = 0; p < 4; p++) {
      /* sums of k products stay below 2^24: one operand large, the other small */
      int room = (int)(16777215 / s->k), large = room < 65535 ? room : 65535, small = room / large > 255 ? 255 : room / large;
      int left = pieces[p].left == 2 ? large : small < 255 ? 7 : 255, right = pieces[p].left == 2 ? small : large;
      if (pieces[p].left == 1 && pieces[p].right == 1) left = right = room < 255 * 255 ? 100 : 255;
      if (pieces[p].left == 2 && pieces[p].right == 2) left = right = (int)sqrt(room);
      if ((double)left * right > room) left = room / right;
      operands o = make(s, 0.25f, left, 0.5f, right);
      float left_inverse = 4.0f, right_inverse = 2.0f;
      amx_source from = {.values = o.left, .stride = s->k, .inverse = &left_inverse, .one_inverse = true};
      amx_source rows = {.values = o.right_rows, .stride = s->k, .inverse = &right_inverse, .one_inverse = true};
      amx_target plain = {.y = o.y, .stride = s->columns, .scale = 0.125f};
      amx_pack_left(&from, s->rows, s->k, pieces[p].left, o.packed_left);
      amx_pack_right_transposed(&rows, s->columns, s->k, pieces[p].right, o.packed_right);
      amx_multiply(o.packed_left, pieces[p].left, s->rows, o.packed_right, pieces[p].right, s->columns, s->k, 3, &plain);
      check(s, &o, NULL, NULL, false, 0);
      drop(&o);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_floats), cmocka_unit_test(test_integers)};
  if (!amx_available()) {
    print_message("skipped: this processor has no tile unit\n");
    return 77;
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
