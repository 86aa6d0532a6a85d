/* Sampling rules, against the definitions in the papers named in sample.c (distributions are checked by frequency). */
#include <math.h>

#include "runtime/runtime.h"
#include "support.h"

static const sampling_options greedy = {.temperature = 0, .top_p = 1, .repetition_penalty = 1};

static void test_temperature_zero_is_arg_max(void** state) {
  (void)state;
  uint64_t rng = 1;
  float logits[] = {-3, 2, 7, 7, -INFINITY};
  assert_int_equal(sample(logits, 5, &greedy, NULL, 0, &rng), 2); /* the first of equals */
  assert_int_equal(rng, 1);
}

static void test_repetition_penalty(void** state) {
  (void)state;
  /* CTRL divides positive logits; negative ones are multiplied, so that both become less likely. A repeated id is penalised once. */
  uint64_t rng = 1;
  int32_t history[] = {0, 0, 2};
  sampling_options options = greedy;
  options.repetition_penalty = 2;
  float logits[] = {4, 3, -1, -1.5f};
  assert_int_equal(sample(logits, 4, &options, history, 3, &rng), 1);
  assert_true(logits[0] == 2 && logits[1] == 3 && logits[2] == -2 && logits[3] == -1.5f);
}

static void frequencies(const float* logits, size_t n, sampling_options options, double* out) {
  enum { DRAWS = 20000 };
  uint64_t rng = 42;
  for (size_t i = 0; i < n; i++) out[i] = 0;
  for (int draw = 0; draw < DRAWS; draw++) {
    float copy[16];
    memcpy(copy, logits, n * sizeof *logits);
    out[sample(copy, n, &options, NULL, 0, &rng)] += 1.0 / DRAWS;
  }
}

static void test_distribution(void** state) {
  (void)state;
  const float logits[] = {logf(0.5f), logf(0.3f), logf(0.15f), logf(0.05f)};
  sampling_options options = {.temperature = 1, .top_p = 1, .repetition_penalty = 1};
  double seen[4];
  frequencies(logits, 4, options, seen);
  assert_true(fabs(seen[0] - 0.5) < 0.02 && fabs(seen[1] - 0.3) < 0.02 && fabs(seen[2] - 0.15) < 0.02 && fabs(seen[3] - 0.05) < 0.01);
  options.temperature = 0.5f; /* squares the odds: .25 .09 .0225 .0025, sum .365 */
  frequencies(logits, 4, options, seen);
  assert_true(fabs(seen[0] - 0.685) < 0.02 && fabs(seen[1] - 0.2466) < 0.02);
  options.temperature = 1;
  options.top_k = 2;
  frequencies(logits, 4, options, seen);
  assert_true(fabs(seen[0] - 0.625) < 0.02 && seen[2] == 0 && seen[3] == 0);
  options.top_k = 0;
  options.top_p = 0.79f; /* the two likeliest reach it */
  frequencies(logits, 4, options, seen);
  assert_true(fabs(seen[0] - 0.625) < 0.02 && seen[2] == 0 && seen[3] == 0);
  options.top_p = 0.4f; /* the likeliest alone reaches it */
  frequencies(logits, 4, options, seen);
  assert_true(seen[0] > 0.9999);
}

static void test_top_k_over_many(void** state) {
  (void)state;
  enum { N = 5000 };
  static float logits[N];
  sampling_options options = {.temperature = 100, .top_k = 7, .top_p = 1, .repetition_penalty = 1};
  uint64_t rng = 9;
  for (int round = 0; round < 200; round++) {
    for (size_t i = 0; i < N; i++) logits[i] = (float)(int)(i * 7919 % N) - 2500.0f; /* a permutation: distinct values */
    int32_t id = sample(logits, N, &options, NULL, 0, &rng);
    assert_true((int)((size_t)id * 7919 % N) >= N - 7);
  }
}

static void test_bad_options_are_refused(void** state) {
  (void)state;
  sampling_options options = greedy;
  assert_ok(sampling_validate(&options));
  options.temperature = NAN;
  assert_fails(sampling_validate(&options), GENAI_ERROR_CONFIG_VALIDATION, "temperature is nan");
  options.temperature = -1;
  assert_fails(sampling_validate(&options), GENAI_ERROR_CONFIG_VALIDATION, "temperature is -1");
  options = greedy;
  options.top_p = 0;
  assert_fails(sampling_validate(&options), GENAI_ERROR_CONFIG_VALIDATION, "top_p is 0");
  options = greedy;
  options.repetition_penalty = 0;
  assert_fails(sampling_validate(&options), GENAI_ERROR_CONFIG_VALIDATION, "repetition_penalty is 0");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_temperature_zero_is_arg_max),
      cmocka_unit_test(test_repetition_penalty),
      cmocka_unit_test(test_distribution),
      cmocka_unit_test(test_top_k_over_many),
      cmocka_unit_test(test_bad_options_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
