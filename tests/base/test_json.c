/* JSON reading and writing. Accepted and refused texts follow RFC 8259 (the names in brackets are those of the JSONTestSuite collection that
 * has the same case); numbers are compared with what C's own strtod makes of the same digits. */
#include <math.h>

#include "base/json.h"
#include "base/memory.h"
#include "support.h"

static json_document* parse(const char* source) {
  json_document* document = NULL;
  assert_ok(json_parse(source, strlen(source), "sample.json", &document));
  return document;
}

static void assert_view(text_view view, const char* expected, size_t length) {
  assert_int_equal(view.length, length);
  assert_memory_equal(view.data, expected, length);
}

static void test_types_and_values(void** state) {
  (void)state;
  json_document* d = parse("{\"a\":[1,-2.5,true,false,null,\"x\"],\"b\":{},\"c\":[]}");
  json_value root = json_root(d);
  assert_int_equal(json_type_of(root), JSON_OBJECT);
  assert_int_equal(json_count(root), 3);
  static const json_type types[] = {JSON_INTEGER, JSON_NUMBER, JSON_BOOL, JSON_BOOL, JSON_NULL, JSON_STRING};
  json_value a = json_get(root, "a");
  assert_int_equal(json_count(a), 6);
  json_iterator it = json_iterate(a);
  json_value v;
  text_view key = {"untouched", 9};
  for (size_t i = 0; i < 6; ++i) {
    assert_true(json_next(&it, &key, &v));
    assert_int_equal(json_type_of(v), types[i]);
    assert_null(key.data);
    if (i == 0) assert_int_equal(json_integer(v, 0), 1);
    if (i == 1) assert_true(json_number(v, 0) == -2.5);
    if (i == 1) assert_int_equal(json_integer(v, 77), 77); /* not integral */
    if (i == 2) assert_true(json_bool(v, false));
    if (i == 3) assert_false(json_bool(v, true));
    if (i == 5) assert_view(json_string(v), "x", 1);
    if (i == 5) assert_int_equal(json_integer(v, 5), 5);
  }
  assert_false(json_next(&it, &key, &v));
  assert_int_equal(json_type_of(json_get(root, "b")), JSON_OBJECT);
  assert_int_equal(json_count(json_get(root, "b")), 0);
  assert_int_equal(json_count(json_get(root, "c")), 0);
  it = json_iterate(json_get(root, "b"));
  assert_false(json_next(&it, &key, &v));
  json_free(d);
}

static void test_absent(void** state) {
  (void)state;
  json_document* d = parse("[{\"k\":null}]");
  json_value absent = json_get(json_root(d), "k"); /* not an object */
  assert_int_equal(json_type_of(absent), JSON_ABSENT);
  assert_int_equal(json_type_of(json_get(absent, "deeper")), JSON_ABSENT);
  assert_int_equal(json_count(absent), 0);
  assert_null(json_string(absent).data);
  assert_int_equal(json_integer(absent, -3), -3);
  assert_true(json_number(absent, 1.5) == 1.5);
  assert_true(json_bool(absent, true));
  json_iterator it = json_iterate(absent);
  assert_false(json_next(&it, NULL, NULL));
  json_iterator outer = json_iterate(json_root(d));
  json_value object;
  assert_true(json_next(&outer, NULL, &object));
  assert_int_equal(json_type_of(json_get(object, "k")), JSON_NULL); /* null is there, not absent */
  json_free(d);
}

static void test_duplicate_keys_last_wins(void** state) {
  (void)state;
  json_document* d = parse("{\"a\":{\"a\":9},\"b\":2,\"a\":[3,4],\"ab\":5}");
  json_value a = json_get(json_root(d), "a");
  assert_int_equal(json_type_of(a), JSON_ARRAY);
  assert_int_equal(json_count(a), 2);
  assert_int_equal(json_count(json_root(d)), 4);
  json_free(d);
}

static void test_iteration_gives_keys_in_order(void** state) {
  (void)state;
  json_document* d = parse("{\"z\":[[1],{\"q\":2}],\"y\":\"w\",\"\":3}");
  static const char* const keys[] = {"z", "y", ""};
  json_iterator it = json_iterate(json_root(d));
  text_view key;
  json_value v;
  for (size_t i = 0; i < 3; ++i) {
    assert_true(json_next(&it, &key, &v));
    assert_view(key, keys[i], strlen(keys[i]));
  }
  assert_int_equal(json_integer(v, 0), 3);
  assert_false(json_next(&it, &key, &v));
  json_free(d);
}

static void test_strings(void** state) {
  (void)state;
  json_document* d = parse("[\"\\u0000a\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"\\ud83e\\udd99\",\"\xF0\x9F\xA6\x99\",\"\\u00e9\",\"\"]");
  static const char* const expected[] = {"\0a\"\\/\b\f\n\r\t", "\xF0\x9F\xA6\x99", "\xF0\x9F\xA6\x99", "\xC3\xA9", ""};
  static const size_t lengths[] = {10, 4, 4, 2, 0};
  json_iterator it = json_iterate(json_root(d));
  json_value v;
  for (size_t i = 0; i < 5; ++i) {
    assert_true(json_next(&it, NULL, &v));
    assert_int_equal(json_type_of(v), JSON_STRING);
    assert_view(json_string(v), expected[i], lengths[i]);
    assert_non_null(json_string(v).data);
  }
  json_free(d);
}

static void test_numbers(void** state) {
  (void)state;
  static const struct {
    const char* digits;
    json_type type;
  } samples[] = {
      {"0", JSON_INTEGER},
      {"-0", JSON_INTEGER},
      {"9223372036854775807", JSON_INTEGER},
      {"-9223372036854775808", JSON_INTEGER},
      {"9223372036854775808", JSON_NUMBER},              /* beyond int64, within uint64 */
      {"-9223372036854775809", JSON_NUMBER},             /* beyond int64 */
      {"18446744073709551616", JSON_NUMBER},             /* beyond uint64 */
      {"1000000000000000019884624838656", JSON_NUMBER},  /* model_max_length of many tokenizer_config.json */
      {"-1000000000000000019884624838656", JSON_NUMBER}, /* the same, negative */
      {"1e5", JSON_NUMBER},
      {"1E+2", JSON_NUMBER},
      {"1.0", JSON_NUMBER},
      {"1e-05", JSON_NUMBER},
      {"123456789012345678901234567890.125", JSON_NUMBER},
      {"0.1234567890123456789012345678901234567890", JSON_NUMBER},
      {"2.2250738585072011e-308", JSON_NUMBER}, /* the largest subnormal */
      {"4.9406564584124654e-324", JSON_NUMBER},
      {"1.7976931348623157e308", JSON_NUMBER},
      {"1e-400", JSON_NUMBER}, /* underflows to zero */
  };
  for (size_t i = 0; i < sizeof samples / sizeof samples[0]; ++i) {
    char source[160];
    /* the long integer beside it sends every sample through the second parse as well; the string must come out unchanged */
    for (int with_long = 0; with_long < 2; ++with_long) {
      snprintf(source, sizeof source, "[%s%s]", samples[i].digits,
               with_long ? ",99999999999999999999999,\"1000000000000000019884624838656 \\\" 1000000000000000019884624838656\"" : "");
      json_document* d = parse(source);
      json_iterator it = json_iterate(json_root(d));
      json_value v;
      assert_true(json_next(&it, NULL, &v));
      if (json_type_of(v) != samples[i].type) fail_msg("%s: type %d", samples[i].digits, (int)json_type_of(v));
      if (json_number(v, 1) != strtod(samples[i].digits, NULL)) fail_msg("%s: %.17g", samples[i].digits, json_number(v, 1));
      if (with_long) {
        assert_true(json_next(&it, NULL, &v));
        assert_true(json_number(v, 0) == 99999999999999999999999.0);
        assert_true(json_next(&it, NULL, &v));
        assert_true(text_view_equal_cstr(json_string(v), "1000000000000000019884624838656 \" 1000000000000000019884624838656"));
      }
      json_free(d);
    }
  }
  json_document* d = parse("[131072.0,-3e2,9.3e18,9223372036854775807]");
  static const int64_t integers[] = {131072, -300, -1, INT64_MAX};
  json_iterator it = json_iterate(json_root(d));
  json_value v;
  for (size_t i = 0; json_next(&it, NULL, &v); ++i) assert_int_equal(json_integer(v, -1), integers[i]);
  json_free(d);
}

static void test_scalar_and_padded_roots(void** state) {
  (void)state;
  static const char* const sources[] = {"7", " \t\r\n7 \n", "\xEF\xBB\xBF 7"};
  for (size_t i = 0; i < 3; ++i) {
    json_document* d = parse(sources[i]);
    assert_int_equal(json_integer(json_root(d), 0), 7);
    json_free(d);
  }
}

static void test_refusals_say_where(void** state) {
  (void)state;
  static const struct {
    const char* source;
    const char* message;
  } samples[] = {
      {"", "empty"},
      {"  ", "byte 2): expected a value, found the end of the text"},
      {"{\"a\":1,}", "line 1, column 8 (byte 7): expected a key in double quotes, found '}'"}, /* [n_object_trailing_comma] */
      {"[1,\n2,\n]", "line 3, column 1 (byte 7): expected a value, found ']'"},
      {"{\"a\" 1}", "byte 5): expected ':' after the key, found '1'"},
      {"{\"a\":1 \"b\":2}", "byte 7): expected ',' or '}', found '\"'"},
      {"[1 2]", "byte 3): expected ',' or ']', found '2'"},
      {"[1}", "byte 2): expected ',' or ']', found '}'"},
      {"{\"a\":[{}", "byte 8): expected ',' or ']', found the end"},
      {"{1:2}", "byte 1): expected a key in double quotes, found '1'"},
      {"{'a':2}", "byte 1): expected a key"},
      {"[] []", "byte 3): expected the end of the text after the value, found '['"},
      {"[\"abc", "byte 1): expected a closing quote for the string that begins here"},
      {"[\"a\nb\"]", "byte 3): expected an escape instead of a raw control character"},
      {"[\"\\x\"]", "byte 2): expected one of the escapes"},
      {"[\"\\u12g4\"]", "byte 6): expected four hexadecimal digits"},
      {"[\"\\ud800\"]", "byte 2): expected a surrogate pair"},
      {"[\"\\ud800\\u0041\"]", "byte 2): expected a surrogate pair"},
      {"[\"\\udc00\"]", "byte 2): expected a surrogate pair"},
      {"[\"a\xFF\"]", "byte 3): expected valid UTF-8, found byte 0xFF"},
      {"[\"\xC0\x80\"]", "byte 2): expected valid UTF-8"},
      {"[01]", "byte 2): expected no digit after a leading zero"},
      {"[+1]", "byte 1): expected a value, found '+'"},
      {"[1.]", "byte 3): expected a digit, found ']'"},
      {"[-]", "byte 2): expected a digit"},
      {"[1e]", "byte 3): expected a digit"},
      {"[NaN]", "byte 1): expected a value, found 'N'"},
      {"[-Infinity]", "byte 2): expected a digit, found 'I'"},
      {"[tru]", "byte 1): expected a value, found 't'"},
      {"[1e999]", "sample.json: not usable as JSON"},
      {"// c\n{}", "byte 0): expected a value, found '/'"},
      {"[\xE2\x80\x9Cx\xE2\x80\x9D]", "byte 1): expected a value, found byte 0xE2"},
  };
  for (size_t i = 0; i < sizeof samples / sizeof samples[0]; ++i) {
    json_document* document = (json_document*)&document;
    assert_fails(json_parse(samples[i].source, strlen(samples[i].source), "sample.json", &document), GENAI_ERROR_BAD_FILE,
                 samples[i].message);
    assert_ptr_equal(document, &document); /* set only on success */
  }
}

static void test_every_truncation_is_refused(void** state) {
  (void)state;
  static const char source[] = "{\"version\":\"1.0\",\"added\":[{\"id\":0,\"c\":\"<\\u0073>\xC3\xA9\",\"x\":true}],\"n\":[1,2.5e3,null]}";
  for (size_t length = 0; length < sizeof source - 1; ++length) {
    json_document* document = NULL;
    assert_fails(json_parse(source, length, "cut.json", &document), GENAI_ERROR_BAD_FILE, "cut.json: ");
  }
}

static void test_deep_nesting_is_refused(void** state) {
  (void)state;
  for (size_t depth = 512; depth <= 100000; depth *= 200) {
    char* source = malloc(2 * depth);
    memset(source, '[', depth);
    memset(source + depth, ']', depth);
    json_document* document = NULL;
    if (depth < 1000) {
      assert_ok(json_parse(source, 2 * depth, "deep.json", &document));
      json_free(document);
    } else {
      assert_fails(json_parse(source, 2 * depth, "deep.json", &document), GENAI_ERROR_BAD_FILE, "less deep nesting");
    }
    free(source);
  }
}

static void test_file(void** state) {
  (void)state;
  const char* path = test_data("checkpoints/llama/config.json");
  json_document* d = NULL;
  assert_ok(json_parse_file(path, 1 << 20, &d));
  assert_true(text_view_equal_cstr(json_string(json_get(json_root(d), "model_type")), "llama"));
  json_free(d);
  assert_fails(json_parse_file(path, 10, &d), GENAI_ERROR_LIMIT, "config.json");
  assert_fails(json_parse_file(test_data("absent.json"), 10, &d), GENAI_ERROR_NOT_FOUND, "absent.json");
}

static void test_allocation_failures(void** state) {
  (void)state;
  static const char source[] = "{\"a\":[1,2,3,\"x\"],\"long\":1000000000000000019884624838656}";
  for (unsigned nth = 1;; ++nth) {
    json_document* document = NULL;
    mem_inject_failure(nth);
    genai_status* status = json_parse(source, sizeof source - 1, "oom.json", &document);
    mem_inject_failure(0);
    if (!status) {
      assert_int_equal(json_count(json_root(document)), 2);
      json_free(document);
      assert_true(nth > 4);
      /* the last allocations only shrink blocks, and may fail without harm */
      if (nth > 8) break;
      continue;
    }
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
  }
}

static void write_sample(json_writer* w) {
  json_begin_object(w);
  json_key(w, "a\"b");
  json_begin_array(w);
  json_write_integer(w, INT64_MIN);
  json_write_unsigned(w, UINT64_MAX);
  json_write_number(w, 0.1);
  json_write_bool(w, true);
  json_write_bool(w, false);
  json_write_string(w, NULL);
  json_begin_object(w);
  json_end_object(w);
  json_begin_array(w);
  json_end_array(w);
  json_end_array(w);
  json_key(w, "t");
  json_write_bytes(w, "\0\x1f\n\"\\/\xC3\xA9\xFF\xF0\x9F", 11);
  json_end_object(w);
}

static void test_writing(void** state) {
  (void)state;
  text out = {0};
  json_writer w;
  json_writer_init(&w, &out, false);
  write_sample(&w);
  assert_ok(json_writer_finish(&w));
  assert_string_equal(out.data,
                      "{\"a\\\"b\":[-9223372036854775808,18446744073709551615,0.1,true,false,null,{},[]],"
                      "\"t\":\"\\u0000\\u001f\\n\\\"\\\\/\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"}");
  json_document* d = NULL;
  assert_ok(json_parse(out.data, out.length, "own output", &d));
  json_free(d);
  text_clear(&out);
  json_writer_init(&w, &out, true);
  write_sample(&w);
  assert_ok(json_writer_finish(&w));
  assert_string_equal(
      out.data,
      "{\n  \"a\\\"b\": [\n    -9223372036854775808,\n    18446744073709551615,\n    0.1,\n    true,\n    false,\n    null,\n    {},\n"
      "    []\n  ],\n  \"t\": \"\\u0000\\u001f\\n\\\"\\\\/\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n}");
  text_deinit(&out);
}

static void test_written_numbers_read_back(void** state) {
  (void)state;
  static const double values[] = {0,           -0.0, 1, 0.1, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 0.30000000000000004, 123456789.125,
                                  (double)0.1f};
  uint64_t seed = 1;
  for (size_t i = 0; i < 20000; ++i) {
    double value = 0;
    if (i < sizeof values / sizeof values[0]) {
      value = values[i];
    } else {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      memcpy(&value, &seed, sizeof value);
    }
    text out = {0};
    json_writer w;
    json_writer_init(&w, &out, false);
    json_write_number(&w, value);
    assert_ok(json_writer_finish(&w));
    if (!isfinite(value)) {
      assert_string_equal(out.data, "null");
    } else {
      double back = strtod(out.data, NULL);
      if (memcmp(&back, &value, sizeof value)) fail_msg("%s is not %.17g", out.data, value);
      char plain[40]; /* never longer than the 17 digits that always suffice, but for -0.0 */
      assert_true(out.length <= (size_t)snprintf(plain, sizeof plain, "%.17g", value) + 2 * (value == 0));
      json_document* d = parse(out.data);
      double read = json_number(json_root(d), 1);
      assert_memory_equal(&read, &value, sizeof value);
      json_free(d);
    }
    text_deinit(&out);
  }
}

static void test_writer_misuse_is_reported(void** state) {
  (void)state;
  text out = {0};
  json_writer w;
  json_writer_init(&w, &out, false);
  json_begin_array(&w);
  assert_fails(json_writer_finish(&w), GENAI_ERROR_INTERNAL, "1 containers open");
  json_writer_init(&w, &out, false);
  json_end_array(&w);
  assert_fails(json_writer_finish(&w), GENAI_ERROR_INTERNAL, "without its beginning");
  json_writer_init(&w, &out, false);
  for (int i = 0; i < 33; ++i) json_begin_array(&w);
  assert_fails(json_writer_finish(&w), GENAI_ERROR_INTERNAL, "more than 32");
  text_deinit(&out);
}

static void test_writer_out_of_memory(void** state) {
  (void)state;
  for (unsigned nth = 1;; ++nth) {
    text out = {0};
    json_writer w;
    json_writer_init(&w, &out, false);
    mem_inject_failure(nth);
    write_sample(&w);
    genai_status* status = json_writer_finish(&w);
    mem_inject_failure(0);
    text_deinit(&out);
    if (!status) break;
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_types_and_values),
      cmocka_unit_test(test_absent),
      cmocka_unit_test(test_duplicate_keys_last_wins),
      cmocka_unit_test(test_iteration_gives_keys_in_order),
      cmocka_unit_test(test_strings),
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_scalar_and_padded_roots),
      cmocka_unit_test(test_refusals_say_where),
      cmocka_unit_test(test_every_truncation_is_refused),
      cmocka_unit_test(test_deep_nesting_is_refused),
      cmocka_unit_test(test_file),
      cmocka_unit_test(test_allocation_failures),
      cmocka_unit_test(test_writing),
      cmocka_unit_test(test_written_numbers_read_back),
      cmocka_unit_test(test_writer_misuse_is_reported),
      cmocka_unit_test(test_writer_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
