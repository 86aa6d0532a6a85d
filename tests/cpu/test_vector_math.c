/* The vectorisable functions against libm in double, over their whole range. */
#include <math.h>

#include "cpu/vector_math.h"
#include "support.h"

/* Distance in units of the last place of the expected value; below the normal range in units of the smallest subnormal. */
static double ulps(float got, double expected) {
  if (isnan(expected)) return isnan(got) ? 0 : INFINITY;
  if (fabs(expected) > 3.4028235677973366e38) return isinf(got) && (got > 0) == (expected > 0) ? 0 : INFINITY;
  int exponent;
  frexp(expected, &exponent);
  if (exponent < -125) exponent = -125;
  return fabs((double)got - expected) / ldexp(1, exponent - 24);
}

typedef struct function {
  const char* name;
  float (*ours)(float x);
  double (*exact)(double x);
  double most;     /* ulps */
  double absolute; /* or this far apart, in absolute terms */
} function;

static float our_exp(float x) {
  return vm_exp(x);
}
static float our_sigmoid(float x) {
  return vm_sigmoid(x);
}
static float our_tanh(float x) {
  return vm_tanh(x);
}
static float our_gelu(float x) {
  return vm_gelu(x);
}
static double exact_sigmoid(double x) {
  return 1 / (1 + exp(-x));
}
static double exact_gelu(double x) {
  return 0.5 * x * erfc(-x / sqrt(2));
}

static void test_function(void** state) {
  const function* f = *state;
  double worst = 0;
  float at = 0;
  for (uint64_t bits = 0; bits < 1ull << 32; bits += 4099) { /* a million floats of every exponent and sign */
    float x = vm_from_bits((uint32_t)bits);
    if (isnan(x)) continue;
    double expected = f->exact((double)x), distance = ulps(f->ours(x), expected);
    if (fabs((double)f->ours(x) - expected) <= f->absolute) continue;
    if (distance > worst) {
      worst = distance;
      at = x;
    }
  }
  print_message("%s: %.2f ulp at %.9g\n", f->name, worst, (double)at);
  if (worst > f->most) fail_msg("%s is %.2f ulp off at %.9g", f->name, worst, (double)at);
  assert_true(isnan(f->ours(NAN)));
}

static void test_round(void** state) {
  (void)state;
  for (float x = -70000.0f; x <= 70000.0f; x += 0.125f) assert_true(vm_round(x) == nearbyintf(x));
}

int main(void) {
  static const function functions[] = {
      {"exp", our_exp, exp, 2, 0},
      {"sigmoid", our_sigmoid, exact_sigmoid, 3, 1e-37},
      {"tanh", our_tanh, tanh, 2.5, 0},
      {"gelu", our_gelu, exact_gelu, 32, 1e-12}, /* exp of a rounded square, down where the value is below 1e-4 */
  };
  struct CMUnitTest tests[5] = {cmocka_unit_test(test_round)};
  for (int i = 0; i < 4; i++)
    tests[i + 1] = (struct CMUnitTest){.name = functions[i].name, .test_func = test_function, .initial_state = (void*)&functions[i]};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
