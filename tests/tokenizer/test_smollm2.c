/* SmolLM2's vocabulary, from its GGUF, against Hugging Face tokenizers on 2,400 texts (tests/tools/make_tokenizer_smollm2.py recorded them).
 * Needs the GGUF: GENAI_MODEL_GGUF names it. */
#include "recorded_cases.h"

static tokenizer* model;

static int open_model(void** state) {
  (void)state;
  const char* path = test_environment("GENAI_MODEL_GGUF");
  if (path && access(path, R_OK) == 0) assert_ok(tokenizer_open(path, &model));
  return 0;
}

static int close_model(void** state) {
  (void)state;
  tokenizer_close(model);
  return 0;
}

static void ids_equal_the_reference(void** state) {
  (void)state;
  skip_unless_file(test_environment("GENAI_MODEL_GGUF"));
  json_document* document;
  assert_ok(json_parse_file(test_data("tokenizer/smollm2.json"), 1 << 22, &document));
  size_t count = check_cases(model, json_root(document), (tokenizer_encode_options){.parse_special = true});
  json_free(document);
  assert_in_range(count, 2000, 100000);
}

static void special_tokens_are_text_unless_parsed(void** state) {
  (void)state;
  skip_unless_file(test_environment("GENAI_MODEL_GGUF"));
  token_list ids = {0};
  const char chat[] = "<|im_start|>user\nHi<|im_end|>";
  assert_ok(tokenizer_encode(model, chat, strlen(chat), (tokenizer_encode_options){.parse_special = true}, &ids));
  assert_int_equal(ids.ids[0], 1);
  assert_int_equal(ids.ids[ids.count - 1], 2);
  text out = {0};
  assert_ok(tokenizer_decode(model, ids.ids, ids.count, false, &out));
  assert_string_equal(out.data, "user\nHi");
  ids.count = 0;
  assert_ok(tokenizer_encode(model, chat, strlen(chat), (tokenizer_encode_options){0}, &ids));
  for (size_t i = 0; i < ids.count; i++) assert_false(tokenizer_is_special(model, ids.ids[i]));
  text_clear(&out);
  assert_ok(tokenizer_decode(model, ids.ids, ids.count, false, &out));
  assert_string_equal(out.data, chat);
  text_deinit(&out);
  token_list_deinit(&ids);
}

static void describes_itself(void** state) {
  (void)state;
  skip_unless_file(test_environment("GENAI_MODEL_GGUF"));
  assert_int_equal(tokenizer_vocab_size(model), 49152);
  assert_int_equal(tokenizer_bos_id(model), 1);
  assert_int_equal(tokenizer_eos_id(model), 2);
  assert_int_equal(tokenizer_find(model, "<|im_end|>"), 2);
  assert_string_equal(tokenizer_kind(model), "byte-level BPE (smollm)");
  assert_true(tokenizer_chat_template(model).length > 100);
  int32_t stops[4];
  assert_int_equal(tokenizer_stop_ids(model, stops, 4), 2); /* <|im_end|>, the eos, and <|endoftext|> */
  assert_int_equal(stops[0], 2);
  assert_int_equal(stops[1], 0);
  /* The file says that no begin token is added. */
  token_list ids = {0};
  assert_ok(tokenizer_encode(model, "Hi", 2, (tokenizer_encode_options){.add_special = true}, &ids));
  assert_int_equal(ids.count, 1);
  token_list_deinit(&ids);
}

static void bad_input_is_an_error(void** state) {
  (void)state;
  skip_unless_file(test_environment("GENAI_MODEL_GGUF"));
  token_list ids = {0};
  assert_fails(tokenizer_encode(model, "ab\xff", 3, (tokenizer_encode_options){0}, &ids), GENAI_ERROR_INVALID_ARGUMENT, "byte 2 (0xff)");
  assert_int_equal(ids.count, 0);
  text out = {0};
  int32_t outside[] = {5, 49152};
  assert_fails(tokenizer_decode(model, outside, 2, true, &out), GENAI_ERROR_INVALID_ARGUMENT, "49152");
  assert_int_equal(out.length, 0);
  outside[1] = -1;
  assert_fails(tokenizer_decode(model, outside, 2, true, &out), GENAI_ERROR_INVALID_ARGUMENT, "-1");
  text_deinit(&out);
  token_list_deinit(&ids);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ids_equal_the_reference),
      cmocka_unit_test(special_tokens_are_text_unless_parsed),
      cmocka_unit_test(describes_itself),
      cmocka_unit_test(bad_input_is_an_error),
  };
  return cmocka_run_group_tests(tests, open_model, close_model);
}
