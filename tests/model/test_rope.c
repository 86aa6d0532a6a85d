/* Rotary rules against transformers (tests/data/model/rope.json, written by tests/tools/make_model_rope.py), and tables at far positions
 * against double precision. */
#include <math.h>

#include "base/json.h"
#include "model/model_internal.h"
#include "support.h"

static json_document* load(void) {
  json_document* document;
  assert_ok(json_parse_file(test_data("model/rope.json"), 1 << 20, &document));
  return document;
}

static double number_at(json_value list, size_t index) {
  json_iterator iterator = json_iterate(list);
  json_value value = {0};
  for (size_t i = 0; i <= index; ++i) assert_true(json_next(&iterator, NULL, &value));
  return json_number(value, NAN);
}

static checkpoint* any_file; /* for the path in messages */

/* Reads a case's config into a model that has only what the rules need. */
static void read_case(json_value item, model* m) {
  const family* row;
  assert_ok(family_find(json_integer(json_get(item, "head_dim"), 0) == 64 ? "llama" : "phi3", "test", &row));
  *m = (model){.file = any_file, .family = row, .head_dim = (uint32_t)json_integer(json_get(item, "head_dim"), 0)};
  json_value config = json_get(item, "config");
  m->trained_context = (uint32_t)json_integer(json_get(config, "max_position_embeddings"), 0);
  assert_ok(rope_read_config(m, config));
}

static void test_frequencies(void** state) {
  (void)state;
  json_document* document = load();
  json_iterator cases = json_iterate(json_get(json_root(document), "cases"));
  json_value item;
  int seen = 0;
  while (json_next(&cases, NULL, &item)) {
    model m;
    double frequencies[64], factor;
    read_case(item, &m);
    json_value expected = json_get(item, "frequencies");
    text_view name = json_string(json_get(item, "name"));
    assert_int_equal(m.ropes[0].rotary_dim / 2, json_count(expected));
    rope_frequencies(&m.ropes[0], (uint32_t)json_integer(json_get(item, "context"), 0), frequencies, &factor);
    for (size_t i = 0; i < json_count(expected); ++i) {
      double reference = number_at(expected, i);
      if (!(fabs(frequencies[i] / reference - 1) < 3e-6)) fail_msg("%s, pair %zu: %.9g, %.9g", name.data, i, frequencies[i], reference);
    }
    double reference = json_number(json_get(item, "attention_factor"), NAN);
    if (!(fabs(factor - reference) < 1e-9)) fail_msg("%s: attention factor %g, expected %g", name.data, factor, reference);
    arena_deinit(&m.memory);
    ++seen;
  }
  assert_int_equal(seen, 9);
  json_free(document);
}

/* Llama-3.2-1B: pairs 0 to 14 as they were, 15 to 17 blended, 18 to 31 divided by 32. */
static void test_llama3_borders(void** state) {
  (void)state;
  rope_rule rule = {.kind = ROPE_LLAMA3,
                    .rotary_dim = 64,
                    .theta = 5e5,
                    .factor = 32,
                    .low_frequency = 1,
                    .high_frequency = 4,
                    .original_context = 8192,
                    .attention_factor = NAN};
  double scaled[32], factor;
  rope_frequencies(&rule, 512, scaled, &factor);
  for (int i = 0; i < 32; ++i) {
    double ratio = pow(5e5, -i / 32.0) / scaled[i];
    if (i <= 14) assert_true(fabs(ratio - 1) < 1e-12);
    if (i >= 15 && i <= 17) assert_true(ratio > 1.0001 && ratio < 31.999);
    if (i >= 18) assert_true(fabs(ratio - 32) < 1e-10);
  }
}

static void test_far_positions(void** state) {
  (void)state;
  json_document* document = load();
  json_value root = json_root(document), far = json_get(root, "far"), item;
  json_iterator cases = json_iterate(json_get(root, "cases"));
  assert_true(json_next(&cases, NULL, &item));
  model m;
  read_case(item, &m);
  uint32_t context = (uint32_t)json_integer(json_get(far, "context"), 0), half = m.ropes[0].rotary_dim / 2;
  float* tables = malloc((size_t)context * half * 2 * sizeof *tables);
  assert_ok(rope_tables(&m.ropes[0], context, context, tables, tables + (size_t)context * half));
  json_value positions = json_get(far, "positions"), row;
  json_iterator cosines = json_iterate(json_get(far, "cos")), sines = json_iterate(json_get(far, "sin"));
  for (size_t p = 0; p < json_count(positions); ++p) {
    size_t at = (size_t)number_at(positions, p) * half;
    assert_true(json_next(&cosines, NULL, &row));
    for (size_t i = 0; i < half; ++i) assert_true(fabs((double)tables[at + i] - number_at(row, i)) < 1e-7);
    assert_true(json_next(&sines, NULL, &row));
    for (size_t i = 0; i < half; ++i) assert_true(fabs((double)tables[(size_t)context * half + at + i] - number_at(row, i)) < 1e-7);
  }
  free(tables);
  arena_deinit(&m.memory);
  json_free(document);
}

/* The attention factor multiplies both tables; a longer compiled context takes the long list. */
static void test_longrope_tables(void** state) {
  (void)state;
  json_document* document = load();
  json_iterator cases = json_iterate(json_get(json_root(document), "cases"));
  json_value item;
  for (int i = 0; i < 8; ++i) assert_true(json_next(&cases, NULL, &item));
  model m;
  read_case(item, &m);
  assert_int_equal(m.ropes[0].rotary_dim, 96);
  float cosines[2 * 48], sines[2 * 48];
  double scale = sqrt(1 + log(32.0) / log(4096.0));
  assert_ok(rope_tables(&m.ropes[0], 4096, 2, cosines, sines));
  assert_true(fabs((double)cosines[0] - scale) < 1e-6); /* cos 0 */
  assert_true(fabs((double)cosines[48 + 10] - scale * cos(pow(1e4, -20.0 / 96) / 1.10)) < 1e-6);
  assert_ok(rope_tables(&m.ropes[0], 4097, 2, cosines, sines));
  assert_true(fabs((double)sines[48 + 10] - scale * sin(pow(1e4, -20.0 / 96) / 10.0)) < 1e-6);
  arena_deinit(&m.memory);
  json_free(document);
}

static int open_any(void** state) {
  (void)state;
  genai_status* status = checkpoint_open(test_data("checkpoints/llama"), &any_file);
  genai_status_free(status);
  return status ? -1 : 0;
}
static int close_any(void** state) {
  (void)state;
  checkpoint_close(any_file);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_frequencies), cmocka_unit_test(test_llama3_borders),
                                     cmocka_unit_test(test_far_positions), cmocka_unit_test(test_longrope_tables)};
  return cmocka_run_group_tests(tests, open_any, close_any);
}
