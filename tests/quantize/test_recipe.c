/* Recipes: the shipped ones, files, and what is refused (docs/recipes.md). */
#include "base/file.h"
#include "base/memory.h"
#include "quantize/quantize.h"
#include "support.h"

static const char* write_recipe(const char* content) {
  static char path[64];
  snprintf(path, sizeof path, "/tmp/genai-recipe-%d.json", (int)getpid());
  assert_ok(file_write_atomic(path, content, strlen(content)));
  return path;
}

static void test_shipped(void** state) {
  (void)state;
  recipe r;
  assert_ok(recipe_load("16a8w", &r));
  assert_true(r.activation_bits == 16 && r.weight_bits == 8 && r.weight_block == 0);
  assert_ok(recipe_load("16a4w_block", &r));
  assert_true(r.weight_bits == 4 && r.weight_block == 32 && r.head_bits == 8);
  assert_ok(recipe_load("16a4w", &r));
  assert_true(r.weight_bits == 4 && r.weight_block == 0);
  assert_fails(recipe_load("16a4w_blok", &r), GENAI_ERROR_CONFIG_VALIDATION, "did you mean \"16a4w_block\"");
}

static void test_file_starts_from_its_base(void** state) {
  (void)state;
  recipe r;
  const char* path =
      write_recipe("{\"base\": \"16a4w_block\", \"name\": \"mine\", \"weight_block\": 16, \"kv_bits\": 8, \"rotate_qk\": true}");
  assert_ok(recipe_load(path, &r));
  assert_string_equal(r.name, "mine");
  assert_true(r.weight_bits == 4 && r.weight_block == 16 && r.kv_bits == 8 && r.rotate_qk && r.weight_search);
  /* What is written reads back equal. */
  text json = {0};
  assert_ok(recipe_write_json(&r, &json));
  recipe again;
  assert_ok(recipe_load(write_recipe(json.data), &again));
  assert_memory_equal(&r, &again, sizeof r);
  text_deinit(&json);
  unlink(path);
}

static void test_bad_files_are_refused(void** state) {
  (void)state;
  static const struct {
    const char* content;
    const char* message;
  } cases[] = {
      {"{\"weight_bit\": 4}", "did you mean \"weight_bits\""},
      {"{\"weight_bits\": 5}", "weight_bits is 5, expected one of 4, 8"},
      {"{\"weight_bits\": \"8\"}", "weight_bits must be a small whole number"},
      {"{\"weight_block\": 32}", "blocks need weight_bits 4"},
      {"{\"range_margin\": 0.5}", "range_margin is 0.5, expected 1 to 4"},
      {"{\"feedback\": 17}", "feedback is 17, expected 0 to 16 directions"},
      {"{\"rotate_qk\": 1}", "rotate_qk must be a boolean"},
      {"{\"base\": \"16a9w\"}", "unknown recipe \"16a9w\""},
      {"{\"activation_bits\": 8}", "activation_bits is 8, expected one of 16"},
      {"[]", "no JSON object"},
      {"{", "cannot be read"},
      {"{\"name\": 3}", "name must be a string"},
  };
  recipe r = {.name = "untouched"};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char* path = write_recipe(cases[i].content);
    assert_fails(recipe_load(path, &r), GENAI_ERROR_CONFIG_VALIDATION, cases[i].message);
    assert_string_equal(r.name, "untouched");
    unlink(path);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shipped),
      cmocka_unit_test(test_file_starts_from_its_base),
      cmocka_unit_test(test_bad_files_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
