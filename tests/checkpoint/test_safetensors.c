/* safetensors files, well formed and damaged. Expectations follow the format's description and the reference implementation's checks
 * (safetensors, tensor.rs); the cases are those reported against other readers. */
#include <math.h>

#include "checkpoint_support.h"

static void test_order_and_shapes(void** state) {
  (void)state;
  bytes b = {0};
  /* Keys in another order than the data, padding spaces behind the header, a scalar, an empty tensor, metadata. */
  safetensors_file(&b,
                   "{\"b\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[8,20]},\"__metadata__\":{\"format\":\"pt\"},"
                   "\"a\":{\"shape\":[2],\"data_offsets\":[0,8],\"dtype\":\"F32\"},\"scalar\":{\"dtype\":\"BF16\",\"shape\":[],"
                   "\"data_offsets\":[20,22]},\"none\":{\"dtype\":\"F32\",\"shape\":[0,4],\"data_offsets\":[22,22]}}   ",
                   22);
  checkpoint out = {0};
  assert_ok(parse_exact(safetensors_parse, b.data, b.size, &out));
  static const char* const names[] = {"a", "b", "scalar", "none"}; /* file order */
  static const uint32_t ranks[] = {1, 2, 0, 2};
  static const uint64_t sizes[] = {8, 12, 2, 0};
  assert_int_equal(out.tensor_count, 4);
  for (size_t i = 0; i < 4; ++i) {
    assert_string_equal(out.tensors[i].name, names[i]);
    assert_int_equal(out.tensors[i].rank, ranks[i]);
    assert_int_equal(out.tensors[i].bytes, sizes[i]);
    assert_ptr_equal(checkpoint_find(&out, names[i]), &out.tensors[i]);
  }
  assert_int_equal(out.tensors[1].dims[0], 2);
  assert_int_equal(out.tensors[1].dims[1], 3);
  checkpoint_deinit(&out);
}

static void refused(const char* header, size_t data, genai_error_kind kind, const char* message) {
  bytes b = {0};
  safetensors_file(&b, header, data);
  assert_fails(try_safetensors(&b), kind, message);
}

static void test_header_length(void** state) {
  (void)state;
  bytes b = {0};
  put(&b, "\x40\x9D\xDF\x07\0\0\0\0{}", 10); /* 132,095,296: safetensors issue 668 */
  assert_fails(try_safetensors(&b), GENAI_ERROR_BAD_FILE, "says it has 132095296 bytes, more than the 100000000");
  static const uint64_t lengths[] = {3, 99999999, 1ull << 63, UINT64_MAX, UINT64_MAX - 7};
  for (size_t i = 0; i < 5; ++i) {
    b.size = 0;
    put_u64(&b, lengths[i]);
    put(&b, "{}", 2);
    assert_fails(try_safetensors(&b), GENAI_ERROR_BAD_FILE, lengths[i] > 100000000 ? "more than the 100000000" : "but only 2 follow");
  }
  b.size = 0;
  put(&b, "\2\0\0\0\0\0\0", 7);
  assert_fails(try_safetensors(&b), GENAI_ERROR_BAD_FILE, "7 bytes, too short");
  b.size = 0;
  put_u64(&b, 0);
  assert_fails(try_safetensors(&b), GENAI_ERROR_BAD_FILE, "not a JSON object");
  refused("[]", 0, GENAI_ERROR_BAD_FILE, "not a JSON object");
  refused(" {}", 0, GENAI_ERROR_BAD_FILE, "not a JSON object"); /* the reference insists on the brace too */
  refused("{\"a\":}", 0, GENAI_ERROR_BAD_FILE, "byte 5): expected a value");
  safetensors_file(&b, "{}", 0);
  assert_ok(try_safetensors(&b));
}

static void test_header_of_100000_bytes(void** state) {
  (void)state;
  char* header = malloc(100001);
  memset(header, ' ', 100000);
  header[100000] = 0;
  static const char content[] = "{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
  memcpy(header, content, sizeof content - 1);
  uint8_t* file = malloc(100012);
  uint64_t length = 100000;
  memcpy(file, &length, 8);
  memcpy(file + 8, header, 100000);
  float value = 2.5f;
  memcpy(file + 100008, &value, 4);
  checkpoint out = {0};
  assert_ok(safetensors_parse(&out, file, 100012, "sample"));
  float got = 0;
  assert_ok(checkpoint_read_rows(&out.tensors[0], 0, 1, &got));
  assert_true(got == value);
  checkpoint_deinit(&out);
  free(header);
  free(file);
}

static void test_places(void** state) {
  (void)state;
#define F32(name, begin, end, count) "\"" name "\":{\"dtype\":\"F32\",\"shape\":[" count "],\"data_offsets\":[" begin "," end "]}"
  refused("{" F32("a", "0", "8", "2") "," F32("b", "4", "12", "2") "}", 12, GENAI_ERROR_BAD_FILE, "tensors \"a\" and \"b\" overlap");
  refused("{" F32("b", "12", "16", "1") "," F32("a", "0", "8", "2") "}", 16, GENAI_ERROR_BAD_FILE,
          "no tensor covers bytes 8 to 12 of the data");
  refused("{" F32("a", "4", "8", "1") "}", 8, GENAI_ERROR_BAD_FILE, "no tensor covers bytes 0 to 4");
  refused("{" F32("a", "0", "8", "2") "}", 12, GENAI_ERROR_BAD_FILE, "4 bytes follow the last tensor");
  refused("{" F32("a", "8", "0", "2") "}", 8, GENAI_ERROR_BAD_FILE, "ends before it begins");
  refused("{" F32("a", "0", "80", "20") "}", 8, GENAI_ERROR_BAD_FILE, "ends at byte 80 of the data, but the file has only 8");
  refused("{" F32("a", "0", "9223372036854775807", "20") "}", 8, GENAI_ERROR_BAD_FILE, "but the file has only 8");
  refused("{" F32("a", "0", "18446744073709551615", "20") "}", 8, GENAI_ERROR_BAD_FILE, "no \"data_offsets\" pair");
  refused("{" F32("a", "-4", "4", "2") "}", 8, GENAI_ERROR_BAD_FILE, "no \"data_offsets\" pair");
  refused("{" F32("a", "0.0", "8", "2") "}", 8, GENAI_ERROR_BAD_FILE, "no \"data_offsets\" pair");
  refused("{" F32("a", "0", "8,8", "2") "}", 8, GENAI_ERROR_BAD_FILE, "no \"data_offsets\" pair");
  refused("{" F32("a", "0", "8", "3") "}", 8, GENAI_ERROR_BAD_FILE, "tensor \"a\" of shape [3] and dtype F32 has 8 bytes of data");
  refused("{" F32("a", "0", "8", "4294967296,4294967296") "}", 8, GENAI_ERROR_BAD_FILE, "does not fit in 64 bits");
  refused("{" F32("a", "0", "8", "4611686018427387906") "}", 8, GENAI_ERROR_BAD_FILE, "8 bytes of data"); /* times 32 bits wraps to 64 */
  refused("{" F32("a", "0", "8", "-2") "}", 8, GENAI_ERROR_BAD_FILE, "a dimension that is not a whole number");
  refused("{" F32("a", "0", "8", "2.0") "}", 8, GENAI_ERROR_BAD_FILE, "a dimension that is not a whole number");
  refused("{" F32("a", "0", "8", "2,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1") "}", 8, GENAI_ERROR_BAD_FILE, "more than 16 dimensions");
  refused("{" F32("a", "0", "4", "1") "," F32("a", "4", "8", "1") "}", 8, GENAI_ERROR_BAD_FILE, "tensor \"a\" is there twice");
  refused("{" F32("", "0", "4", "1") "}", 4, GENAI_ERROR_BAD_FILE, "without NUL bytes");
  refused("{" F32("a\\u0000b", "0", "4", "1") "}", 4, GENAI_ERROR_BAD_FILE, "\"a\\x00b\"");
  refused("{\"a\":5}", 0, GENAI_ERROR_BAD_FILE, "tensor \"a\" has no \"data_offsets\"");
  refused("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, GENAI_ERROR_BAD_FILE, "has no \"shape\" list");
}

static void test_types(void** state) {
  (void)state;
#define ENTRY(name, type, count, size) "{\"" name "\":{\"dtype\":\"" type "\",\"shape\":[" count "],\"data_offsets\":[0," size "]}}"
  refused(ENTRY("w", "Q7", "4", "4"), 4, GENAI_ERROR_UNSUPPORTED, "tensor \"w\" has dtype \"Q7\", which is not known");
  refused(ENTRY("model.layers.0.mlp.up_proj.weight", "I8", "4", "4"), 4, GENAI_ERROR_UNSUPPORTED, "quantized already");
  refused(ENTRY("model.layers.0.mlp.up_proj.weight", "U8", "4", "4"), 4, GENAI_ERROR_UNSUPPORTED, "quantized already");   /* bitsandbytes */
  refused(ENTRY("model.layers.0.mlp.up_proj.qweight", "I32", "1", "4"), 4, GENAI_ERROR_UNSUPPORTED, "quantized already"); /* GPTQ, AWQ */
  refused(ENTRY("model.layers.0.mlp.up_proj.weight", "F8_E4M3", "4", "4"), 4, GENAI_ERROR_UNSUPPORTED, "take the original checkpoint");
  refused(ENTRY("w", "F4", "8", "4"), 4, GENAI_ERROR_UNSUPPORTED, "dtype F4");
  refused(ENTRY("w", "F4", "7", "4"), 4, GENAI_ERROR_BAD_FILE, "has 4 bytes of data");
  refused(ENTRY("w", "F64", "1", "8"), 8, GENAI_ERROR_UNSUPPORTED, "dtype F64, expected F32, F16 or BF16");
  /* Masks and position ids are no weights. */
  static const char* const passed_over[] = {ENTRY("attn.causal_mask", "BOOL", "4", "4"), ENTRY("attn.bias", "U8", "4", "4"),
                                            ENTRY("position_ids", "I64", "1", "8"), ENTRY("patch.weight", "F32", "1,1,1,1,1", "4")};
  for (size_t i = 0; i < 4; ++i) {
    bytes b = {0};
    safetensors_file(&b, passed_over[i], i == 2 ? 8 : 4);
    checkpoint out = {0};
    assert_ok(parse_exact(safetensors_parse, b.data, b.size, &out));
    assert_int_equal(out.tensor_count, 0);
    checkpoint_deinit(&out);
  }
}

static void test_tied_head_without_type(void** state) {
  (void)state;
  bytes b = {0}; /* torchtitan pull request 3764 */
  safetensors_file(&b,
                   "{\"lm_head.weight\":{\"dtype\":\"\",\"shape\":[],\"data_offsets\":[0,0]},"
                   "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                   4);
  checkpoint out = {0};
  capture_log();
  assert_ok(parse_exact(safetensors_parse, b.data, b.size, &out));
  log_set_sink(NULL, NULL, LOG_ERROR);
  assert_non_null(strstr(captured_log, "tensor \"lm_head.weight\" has dtype \"\" and no data; it is ignored"));
  assert_int_equal(out.tensor_count, 1);
  assert_null(checkpoint_find(&out, "lm_head.weight"));
  checkpoint_deinit(&out);
}

/* What the bits of a float with this many exponent and fraction bits mean, by the definition in IEEE 754, without bit tricks. */
static double by_definition(unsigned bits, int exponent_bits, int fraction_bits) {
  int exponent = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  double fraction = (double)(bits & ((1u << fraction_bits) - 1)) / (double)(1u << fraction_bits);
  int bias = (1 << (exponent_bits - 1)) - 1;
  double sign = bits >> (exponent_bits + fraction_bits) ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
  return sign * (exponent ? ldexp(1 + fraction, exponent - bias) : ldexp(fraction, 1 - bias));
}

static void test_all_16_bit_values(void** state) {
  (void)state;
  uint16_t* stored = malloc(65536 * sizeof *stored);
  float* got = malloc(65536 * sizeof *got);
  for (unsigned i = 0; i < 65536; ++i) stored[i] = (uint16_t)i;
  for (int half = 0; half < 2; ++half) {
    checkpoint_tensor tensor = {.name = "t",
                                .type = half ? ELEMENT_F16 : ELEMENT_BF16,
                                .rank = 2,
                                .dims = {256, 256},
                                .data = (const uint8_t*)stored,
                                .bytes = 131072};
    assert_ok(checkpoint_read_rows(&tensor, 0, 256, got));
    for (unsigned i = 0; i < 65536; ++i) {
      double expected = half ? by_definition(i, 5, 10) : by_definition(i, 8, 7);
      uint32_t bits;
      memcpy(&bits, &got[i], 4);
      if (isnan(expected)) {
        /* The payload moves to the top of the wider fraction, the sign stays. */
        uint32_t payload = half ? (i & 0x3FFu) << 13 : (i & 0x7Fu) << 16;
        if (bits != ((i >> 15) << 31 | 0x7F800000u | payload)) fail_msg("%s NaN %04x becomes %08x", half ? "F16" : "BF16", i, bits);
      } else if (memcmp(&got[i], &(float){(float)expected}, 4)) { /* bits, for the sign of zero */
        fail_msg("%s %04x becomes %.9g, expected %.9g", half ? "F16" : "BF16", i, (double)got[i], expected);
      }
    }
  }
  free(stored);
  free(got);
}

static void sample(bytes* b) {
  safetensors_file(b,
                   "{\"__metadata__\":{\"k\":\"v\"},\"a\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[0,4]},"
                   "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
                   12);
}

static void refused_or_read(genai_status* status) {
  if (!status) return;
  genai_error_kind kind = genai_status_kind(status);
  assert_true(kind == GENAI_ERROR_BAD_FILE || kind == GENAI_ERROR_UNSUPPORTED);
  genai_status_free(status);
}

static void test_every_byte_changed(void** state) {
  (void)state;
  bytes b = {0};
  sample(&b);
  assert_ok(try_safetensors(&b));
  for (size_t at = 0; at < b.size; ++at) {
    uint8_t before = b.data[at];
    for (unsigned bit = 0; bit < 8; ++bit) {
      b.data[at] = (uint8_t)(before ^ 1u << bit);
      refused_or_read(try_safetensors(&b));
    }
    b.data[at] = before;
  }
}

static void test_every_length(void** state) {
  (void)state;
  bytes b = {0};
  sample(&b);
  for (size_t size = 0; size < b.size; ++size) {
    genai_status* status = parse_and_drop(safetensors_parse, b.data, size);
    assert_non_null(status);
    refused_or_read(status);
  }
}

static void test_allocation_failures(void** state) {
  (void)state;
  bytes b = {0};
  sample(&b);
  for (unsigned nth = 1, succeeded = 0; succeeded < 10; ++nth) { /* JSON may fail to shrink its blocks without harm */
    mem_inject_failure(nth);
    genai_status* status = try_safetensors(&b);
    mem_inject_failure(0);
    if (status) {
      succeeded = 0;
      assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
      genai_status_free(status);
    } else {
      ++succeeded;
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_order_and_shapes),
      cmocka_unit_test(test_header_length),
      cmocka_unit_test(test_header_of_100000_bytes),
      cmocka_unit_test(test_places),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_tied_head_without_type),
      cmocka_unit_test(test_all_16_bit_values),
      cmocka_unit_test(test_every_byte_changed),
      cmocka_unit_test(test_every_length),
      cmocka_unit_test(test_allocation_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
