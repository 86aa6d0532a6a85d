/* Checks a tokenizer file against cases computed elsewhere: tests/interop/test_tokenizer.py runs this with the reference libraries' results.
 * GENAI_TOKENIZER names the tokenizer, GENAI_TOKENIZER_CASES a file of recorded cases (recorded_cases.h), GENAI_TOKENIZER_EXPORT where a
 * tokenizer.json is to be written. Without them there is nothing to check. */
#include "recorded_cases.h"

static tokenizer* self;

static int open_tokenizer(void** state) {
  (void)state;
  const char* path = test_environment("GENAI_TOKENIZER");
  if (path) assert_ok(tokenizer_open(path, &self));
  return 0;
}

static int close_tokenizer(void** state) {
  (void)state;
  tokenizer_close(self);
  return 0;
}

static void cases_are_reproduced(void** state) {
  (void)state;
  const char* path = test_environment("GENAI_TOKENIZER_CASES");
  skip_unless_file(path);
  assert_non_null(self);
  json_document* document;
  assert_ok(json_parse_file(path, (size_t)1 << 30, &document));
  json_value root = json_root(document);
  token_list ids = {0};
  size_t count = 0;
  json_iterator at = json_iterate(json_get(root, "cases"));
  for (json_value one; json_next(&at, NULL, &one); count++) {
    json_value parts[3] = {{0}};
    size_t n = 0;
    json_iterator part = json_iterate(one);
    while (n < 3 && json_next(&part, NULL, &parts[n])) n++;
    text_view input = json_string(parts[0]);
    ids.count = 0;
    assert_ok(tokenizer_encode(self, input.data, input.length, (tokenizer_encode_options){.parse_special = true}, &ids));
    check_ids(input, &ids, parts[1]);
    if (n == 3) check_decode(self, &ids, json_string(parts[2]));
  }
  token_list_deinit(&ids);
  json_free(document);
  print_message("%zu cases equal\n", count);
  assert_in_range(count, 1, 1000000);
}

static void the_tokenizer_is_exported(void** state) {
  (void)state;
  const char* path = test_environment("GENAI_TOKENIZER_EXPORT");
  if (!path) skip();
  assert_non_null(self);
  assert_ok(tokenizer_export_json(self, path));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cases_are_reproduced), cmocka_unit_test(the_tokenizer_is_exported)};
  return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
