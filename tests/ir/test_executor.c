/* Ports: sizes, and reals in and out of buffers of every type. Half floats against the compiler's _Float16. */
#include <math.h>

#include "ir/executor.h"
#include "support.h"

static void test_port_of_a_tensor(void** state) {
  (void)state;
  ir_tensor tensor = {.name = "layer2.key_in",
                      .dtype = IR_U8,
                      .rank = 4,
                      .dims = {1, 3, 64, 384},
                      .role = IR_ROLE_KEY_IN,
                      .layer = 2,
                      .encoding = {.kind = IR_ENCODING_PER_TENSOR, .bits = 8, .scale = 0.25f, .offset = -100}};
  executor_port port;
  executor_port_from_tensor(&tensor, &port);
  assert_int_equal(executor_port_bytes(&port), 3 * 64 * 384);
  assert_int_equal(port.layer, 2);
  assert_float_equal(port.scale, 0.25, 0);
  assert_int_equal(port.offset, -100);
  tensor.encoding.kind = IR_ENCODING_NONE;
  tensor.dtype = IR_F32;
  executor_port_from_tensor(&tensor, &port);
  assert_float_equal(port.scale, 1, 0);
  assert_int_equal(port.offset, 0);
  assert_int_equal(executor_port_bytes(&port), 4 * 3 * 64 * 384);
}

static void test_fixed_point(void** state) {
  (void)state;
  static const struct {
    ir_dtype type;
    int32_t offset;
    double low, high;
  } types[] = {{IR_U8, -100, 0, 255}, {IR_U16, -30000, 0, 65535}, {IR_S8, 0, -128, 127}, {IR_S16, 0, -32768, 32767}};
  static const float values[] = {0.0f, 0.124f, 0.126f, -0.126f, 3.3f, -3.3f, 1e9f, -1e9f};
  uint8_t buffer[64];
  for (size_t t = 0; t < 4; ++t) {
    executor_port port = {.dtype = types[t].type, .rank = 1, .dims = {8}, .scale = 0.25f, .offset = types[t].offset};
    for (size_t i = 0; i < 8; ++i) {
      executor_port_write(&port, buffer, i, values[i]);
      double q = rint((double)values[i] / 0.25 - types[t].offset);
      q = q < types[t].low ? types[t].low : q > types[t].high ? types[t].high : q;
      assert_float_equal(executor_port_read(&port, buffer, i), (float)(0.25 * (q + types[t].offset)), 1e-3f);
    }
  }
  executor_port wide = {.dtype = IR_S32, .rank = 1, .dims = {1}, .scale = 0.5f};
  executor_port_write(&wide, buffer, 0, -7.6f);
  assert_float_equal(executor_port_read(&wide, buffer, 0), -7.5, 0);
  executor_port tokens = {.dtype = IR_I32, .rank = 1, .dims = {1}, .scale = 1};
  executor_port_write(&tokens, buffer, 0, 49151);
  assert_float_equal(executor_port_read(&tokens, buffer, 0), 49151, 0);
}

#ifdef __FLT16_MANT_DIG__
static void test_half_floats(void** state) {
  (void)state;
  executor_port port = {.dtype = IR_F16, .rank = 1, .dims = {1}, .scale = 1};
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    uint16_t half = (uint16_t)bits, back;
    _Float16 reference;
    memcpy(&reference, &half, sizeof half);
    float expected = (float)reference, widened = executor_port_read(&port, &half, 0);
    if (isnan(expected)) {
      assert_true(isnan(widened));
      continue;
    }
    assert_memory_equal(&widened, &expected, sizeof expected);
    executor_port_write(&port, &back, 0, widened);
    assert_int_equal(back, half);
    /* Around the midpoint to the next value up, where rounding is decided. */
    for (int step = -1; step <= 1; ++step) {
      float next = executor_port_read(&port, &(uint16_t){(uint16_t)(half + 1)}, 0);
      float middle = nextafterf((widened + next) / 2, step < 0 ? -INFINITY : INFINITY);
      if (step == 0) middle = (widened + next) / 2;
      if (!isfinite(middle)) continue;
      _Float16 rounded = (_Float16)middle;
      uint16_t wanted;
      memcpy(&wanted, &rounded, sizeof wanted);
      executor_port_write(&port, &back, 0, middle);
      assert_int_equal(back, wanted);
    }
  }
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_port_of_a_tensor),
      cmocka_unit_test(test_fixed_point),
#ifdef __FLT16_MANT_DIG__
      cmocka_unit_test(test_half_floats),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
