/* Inputs on which other programs went wrong, one test each (row numbers are those of the collection of reports this project was given). The
 * expected behaviour is that of the reference library; test_small.c holds its ids for the same inputs. */
#include "small_tokenizers.h"

static const tokenizer_encode_options parse = {.parse_special = true};

static token_list encode(const tokenizer* self, const char* input, tokenizer_encode_options options) {
  token_list ids = {0};
  assert_ok(tokenizer_encode(self, input, strlen(input), options, &ids));
  return ids;
}

static void assert_tokens(const tokenizer* self, const char* input, const char* const* contents) {
  token_list ids = encode(self, input, parse);
  size_t i = 0;
  for (; contents[i]; i++) {
    assert_true(i < ids.count);
    text_view token = tokenizer_token(self, ids.ids[i]);
    if (!text_view_equal_cstr(token, contents[i])) fail_msg("token %zu is \"%.*s\"", i, (int)token.length, token.data);
  }
  assert_int_equal(ids.count, i);
  token_list_deinit(&ids);
}

typedef struct joined {
  text out;
} joined;

static genai_status* join(void* user, text_view piece) {
  joined* all = user;
  if (all->out.length) GENAI_TRY(text_append_char(&all->out, '|'));
  return text_append(&all->out, piece.data, piece.length);
}

static void assert_pieces(const char* pre, const char* input, const char* want) {
  tokenizer* self;
  assert_ok(tokenizer_create(&self));
  assert_ok(pre_tokenizer_by_name(text_view_of(pre), self));
  segmenter_scratch scratch;
  assert_ok(segmenter_scratch_init(&scratch, &self->segment));
  joined all = {0};
  assert_ok(segmenter_run(&self->segment, &self->classes, &scratch, text_view_of(input), true, join, &all));
  assert_string_equal(all.out.data, want);
  text_deinit(&all.out);
  segmenter_scratch_deinit(&scratch);
  tokenizer_close(self);
}

static void digits_in_groups_of_three_from_the_left(void** state) { /* 33 */
  (void)state;
  assert_pieces("llama-bpe", "What is 3333+777?", "What| is| |333|3|+|777|?");
}

static void whole_words_before_merges(void** state) { /* 34 */
  (void)state;
  tokenizer* self = small_tokenizer("llama3");
  static const char* const tokens[] = {"\xc4\xa0Vi\xc3\xa1\xc2\xbb\xc4\xa9t", NULL}; /* " Việt" in printable bytes */
  assert_tokens(self, " Vi\xe1\xbb\x87t", tokens);
  tokenizer_close(self);
}

static void punctuation_runs_and_single_digits(void** state) { /* 36 */
  (void)state;
  assert_pieces("qwen2", "->", "->");
  assert_pieces("qwen2", "(x):\n", "(x|):\n");
  assert_pieces("qwen2", "x 12\n\n  y", "x| |1|2|\n\n| | y");
}

static void falcons_order_of_splits(void** state) { /* 37 */
  (void)state;
  assert_pieces("falcon", "Hello, 12345 x...", "Hello|,| |123|45| x|...");
}

static void digits_one_by_one(void** state) { /* 38 */
  (void)state;
  assert_pieces("smollm", "Call 123 please", "Call| |1|2|3| please");
}

static void composed_and_decomposed_are_equal(void** state) { /* 39 */
  (void)state;
  tokenizer* self = small_tokenizer("qwen2");
  token_list decomposed = encode(self, "e\xcc\x81", parse), composed = encode(self, "\xc3\xa9", parse);
  assert_int_equal(decomposed.count, composed.count);
  assert_memory_equal(decomposed.ids, composed.ids, composed.count * sizeof *composed.ids);
  /* Also for an added token that is matched in normalized text. */
  token_list added = encode(self, "caf\xc3\xa9", parse);
  assert_int_equal(added.count, 1);
  token_list_deinit(&added);
  token_list_deinit(&decomposed);
  token_list_deinit(&composed);
  tokenizer_close(self);
}

static void compatibility_forms_only_when_asked(void** state) { /* 40 */
  (void)state;
  text out = {0};
  assert_ok(normalize_unicode(NORMALIZE_NFKC, text_view_of("\xe1\xbe\xbd"), &out));
  assert_string_equal(out.data, " \xcc\x93");
  text_clear(&out);
  assert_ok(normalize_unicode(NORMALIZE_NFC, text_view_of("\xe1\xbe\xbd"), &out));
  assert_string_equal(out.data, "\xe1\xbe\xbd");
  text_deinit(&out);
}

static void dummy_prefix_and_byte_fallback(void** state) { /* 42 */
  (void)state;
  tokenizer* self = small_tokenizer("llama2");
  static const char* const tokens[] = {"\xe2\x96\x81", "<0xF0>", "<0x9F>", "<0xA6>", "<0x99>", ".", "c", "p", "p", NULL};
  assert_tokens(self, "\xf0\x9f\xa6\x99.cpp", tokens);
  tokenizer_close(self);
}

static void prefix_after_special_only_where_the_file_says_so(void** state) { /* 43 */
  (void)state;
  tokenizer *always = small_tokenizer("llama2"), *first = small_tokenizer("metaspace first");
  static const char* const with[] = {"</s>", "\xe2\x96\x81x", NULL};
  static const char* const without[] = {"</s>", "x", NULL};
  assert_tokens(always, "</s>x", with);
  assert_tokens(first, "</s>x", without);
  tokenizer_close(always);
  tokenizer_close(first);
}

static void user_defined_tokens_stay_whole(void** state) { /* 45, 47, 48 */
  (void)state;
  tokenizer* self = small_tokenizer("gemma");
  static const char* const tabs[] = {"\t\t", "\t\t", "\t\t", "t", "est", NULL};
  token_list ids = encode(self, "\t\t\t\t\t\ttest", parse);
  for (size_t i = 0; i < 3; i++) assert_true(text_view_equal_cstr(tokenizer_token(self, ids.ids[i]), tabs[i]));
  assert_false(text_view_equal_cstr(tokenizer_token(self, ids.ids[3]), "\xe2\x96\x81"));
  token_list_deinit(&ids);
  static const char* const toxicity[] = {"[toxicity=0]", NULL};
  assert_tokens(self, "[toxicity=0]", toxicity);
  ids = encode(self, "\n\n\n\n", parse);
  assert_int_equal(ids.count, 2);
  token_list_deinit(&ids);
  tokenizer_close(self);
}

static void spaces_around_added_tokens_survive(void** state) { /* 49 */
  (void)state;
  tokenizer* self = small_tokenizer("gpt2");
  static const char* const tokens[] = {"\xc4\xa0", "<|extratoken_1|>", "\xc4\xa0", NULL};
  assert_tokens(self, " <|extratoken_1|> ", tokens);
  tokenizer_close(self);
}

static void lookahead_is_honoured(void** state) { /* 51 */
  (void)state;
  assert_pieces("gpt-2", "a   b \n c", "a|  | b| \n| c");
}

static void one_begin_token_only(void** state) { /* 52 */
  (void)state;
  tokenizer* self = small_tokenizer("llama3");
  const tokenizer_encode_options both = {.add_special = true, .parse_special = true};
  token_list rendered = encode(self, "<|begin_of_text|><|start_header_id|>user", both),
             plain = encode(self, "<|start_header_id|>user", both);
  assert_int_equal(rendered.ids[0], tokenizer_bos_id(self));
  assert_int_not_equal(rendered.ids[1], tokenizer_bos_id(self));
  assert_int_equal(rendered.count, plain.count);
  assert_memory_equal(rendered.ids, plain.ids, plain.count * sizeof *plain.ids);
  token_list_deinit(&rendered);
  token_list_deinit(&plain);
  tokenizer_close(self);
}

static void thousands_of_added_tokens(void** state) { /* ET#14432: joined into one regular expression they failed to compile */
  (void)state;
  text json = {0};
  assert_ok(text_append_cstr(&json, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"<\":2},\"merges\":[]},\"added_tokens\":["));
  for (int i = 0; i < 20000; i++) {
    assert_ok(text_printf(&json, "%s{\"id\":%d,\"content\":\"<(token.%d\\u00e9[\",\"special\":true,\"normalized\":false}", i ? "," : "",
                          i + 3, i));
  }
  assert_ok(text_append_cstr(&json, "]}"));
  json_document* document;
  assert_ok(json_parse(json.data, json.length, "added", &document));
  tokenizer* self;
  assert_ok(tokenizer_load_json(json_root(document), "added", &self));
  token_list ids = encode(self, "a<(token.19999\xc3\xa9[b<(token.1\xc3\xa9[<", parse);
  const int32_t want[] = {0, 20002, 1, 4, 2};
  assert_int_equal(ids.count, 5);
  assert_memory_equal(ids.ids, want, sizeof want);
  token_list_deinit(&ids);
  tokenizer_close(self);
  json_free(document);
  text_deinit(&json);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(digits_in_groups_of_three_from_the_left),
      cmocka_unit_test(whole_words_before_merges),
      cmocka_unit_test(punctuation_runs_and_single_digits),
      cmocka_unit_test(falcons_order_of_splits),
      cmocka_unit_test(digits_one_by_one),
      cmocka_unit_test(composed_and_decomposed_are_equal),
      cmocka_unit_test(compatibility_forms_only_when_asked),
      cmocka_unit_test(dummy_prefix_and_byte_fallback),
      cmocka_unit_test(prefix_after_special_only_where_the_file_says_so),
      cmocka_unit_test(user_defined_tokens_stay_whole),
      cmocka_unit_test(spaces_around_added_tokens_survive),
      cmocka_unit_test(lookahead_is_honoured),
      cmocka_unit_test(one_begin_token_only),
      cmocka_unit_test(thousands_of_added_tokens),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
