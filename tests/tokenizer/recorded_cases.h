/* Checks a tokenizer against recorded cases: a JSON file `{"cases": [[text, [ids], decoded?], ...]}` written by tests/tools/make_tokenizer_*.py
 * with the reference library. `decoded` stands there when the ids do not give the text back. */
#ifndef GENAI_TESTS_RECORDED_CASES_H
#define GENAI_TESTS_RECORDED_CASES_H

#include "base/json.h"
#include "support.h"
#include "tokenizer/tokenizer.h"

static inline void check_ids(text_view input, const token_list* got, json_value want) {
  size_t count = json_count(want), i = 0;
  bool equal = got->count == count;
  json_iterator at = json_iterate(want);
  for (json_value id; json_next(&at, NULL, &id) && equal; i++) equal = got->ids[i] == json_integer(id, -1);
  if (!equal) {
    fail_msg("\"%.*s\": %zu ids, %zu expected; the first difference is at %zu", (int)(input.length > 200 ? 200 : input.length), input.data,
             got->count, count, i ? i - 1 : 0);
  }
}

/* Whole decode and streamed decode, which must be valid UTF-8 after every step. */
static inline void check_decode(const tokenizer* self, const token_list* ids, text_view want) {
  text whole = {0}, streamed = {0};
  assert_ok(tokenizer_decode(self, ids->ids, ids->count, true, &whole));
  if (!text_view_equal((text_view){whole.data, whole.length}, want)) {
    fail_msg("decoded \"%s\", expected \"%.*s\"", whole.data, (int)want.length, want.data);
  }
  token_stream stream;
  token_stream_init(&stream, self, true);
  for (size_t i = 0; i < ids->count; i++) {
    assert_ok(token_stream_push(&stream, ids->ids[i], &streamed));
    assert_true(utf8_is_valid(streamed.data, streamed.length));
  }
  assert_ok(token_stream_finish(&stream, &streamed));
  token_stream_deinit(&stream);
  assert_true(text_view_equal((text_view){streamed.data, streamed.length}, (text_view){whole.data, whole.length}));
  text_deinit(&whole);
  text_deinit(&streamed);
}

/* Every case of `document`: ids, decode, streamed decode. Returns how many there were. */
static inline size_t check_cases(const tokenizer* self, json_value document, tokenizer_encode_options options) {
  token_list ids = {0};
  size_t count = 0;
  json_iterator at = json_iterate(json_get(document, "cases"));
  for (json_value one; json_next(&at, NULL, &one); count++) {
    json_value parts[3] = {{0}};
    size_t n = 0;
    json_iterator part = json_iterate(one);
    while (n < 3 && json_next(&part, NULL, &parts[n])) n++;
    assert_in_range(n, 2, 3);
    text_view input = json_string(parts[0]);
    ids.count = 0;
    assert_ok(tokenizer_encode(self, input.data, input.length, options, &ids));
    check_ids(input, &ids, parts[1]);
    check_decode(self, &ids, n == 3 ? json_string(parts[2]) : input);
  }
  token_list_deinit(&ids);
  return count;
}

#endif
