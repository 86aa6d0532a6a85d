/* Vocabularies in GGUF metadata: tiny ones against the reference libraries, and what is wrong with damaged ones. */
#include "base/file.h"
#include "recorded_cases.h"

static void vocabularies_give_the_same_ids(void** state) {
  (void)state;
  json_document* document;
  assert_ok(json_parse_file(test_data("tokenizer/small/gguf.json"), 1 << 22, &document));
  json_iterator at = json_iterate(json_get(json_root(document), "entries"));
  size_t files = 0;
  for (json_value entry; json_next(&at, NULL, &entry); files++) {
    text_view name = json_string(json_get(entry, "name"));
    char path[256];
    snprintf(path, sizeof path, "tokenizer/small/%.*s.gguf", (int)name.length, name.data);
    tokenizer* self;
    assert_ok(tokenizer_open(test_data(path), &self));
    assert_in_range(check_cases(self, entry, (tokenizer_encode_options){.parse_special = true}), 50, 1000);
    tokenizer_close(self);
  }
  json_free(document);
  assert_int_equal(files, 2);
}

static void metadata_is_honoured(void** state) {
  (void)state;
  tokenizer* self;
  assert_ok(tokenizer_open(test_data("tokenizer/small/bytes.gguf"), &self));
  assert_string_equal(tokenizer_kind(self), "byte-level BPE (smollm)");
  assert_int_equal(tokenizer_bos_id(self), tokenizer_find(self, "<|im_start|>"));
  assert_int_equal(tokenizer_eos_id(self), tokenizer_find(self, "<|im_end|>"));
  assert_true(text_view_equal_cstr(tokenizer_chat_template(self), "{{ messages }}"));
  int32_t think = tokenizer_find(self, "<think>");
  assert_false(tokenizer_is_special(self, think));
  /* The begin token is added as the file says; a user-defined token is one whether or not special tokens are parsed. */
  token_list ids = {0};
  assert_ok(tokenizer_encode(self, "<think>", 7, (tokenizer_encode_options){.add_special = true}, &ids));
  assert_int_equal(ids.count, 2);
  assert_int_equal(ids.ids[0], tokenizer_bos_id(self));
  assert_int_equal(ids.ids[1], think);
  token_list_deinit(&ids);
  tokenizer_close(self);
  /* Without keys of its own: Llama's defaults. */
  assert_ok(tokenizer_open(test_data("tokenizer/small/scores.gguf"), &self));
  assert_int_equal(tokenizer_bos_id(self), 1);
  assert_int_equal(tokenizer_eos_id(self), 2);
  assert_ok(tokenizer_encode(self, "a", 1, (tokenizer_encode_options){.add_special = true}, &ids));
  assert_int_equal(ids.ids[0], 1);
  token_list_deinit(&ids);
  tokenizer_close(self);
}

/* Replaces the first `from` by `to` of the same length in a copy of a GGUF and opens that. */
static void opened_with(const char* name, const char* from, const char* to, genai_error_kind kind, const char* needle) {
  char path[] = P_tmpdir "/genai-tokenizer-XXXXXX";
  int descriptor = mkstemp(path);
  assert_true(descriptor >= 0);
  close(descriptor);
  text data = {0};
  assert_ok(file_read_all(test_data(name), 1 << 20, &data));
  char* at = memmem(data.data, data.length, from, strlen(from));
  assert_non_null(at);
  assert_int_equal(strlen(from), strlen(to));
  memcpy(at, to, strlen(to));
  assert_ok(file_write_atomic(path, data.data, data.length));
  text_deinit(&data);
  tokenizer* self;
  assert_fails(tokenizer_open(path, &self), kind, needle);
  unlink(path);
}

static void what_is_missing_is_named(void** state) {
  (void)state;
  const char* bytes = "tokenizer/small/bytes.gguf";
  opened_with(bytes, "smollm", "smolln", GENAI_ERROR_UNSUPPORTED, "nearest: \"smollm\"");
  opened_with(bytes, "gpt2", "gptx", GENAI_ERROR_UNSUPPORTED, "\"gptx\"");
  opened_with(bytes, "tokenizer.ggml.model", "tokenizer.ggml.modem", GENAI_ERROR_BAD_FILE, "tokenizer.ggml.model");
  opened_with(bytes, "tokenizer.ggml.tokens", "tokenizer.ggml.tokenz", GENAI_ERROR_BAD_FILE, "tokenizer.ggml.tokens");
  opened_with(bytes, "tokenizer.ggml.merges", "tokenizer.ggml.mergez", GENAI_ERROR_BAD_FILE, "tokenizer.ggml.merges");
  opened_with("tokenizer/small/scores.gguf", "tokenizer.ggml.scores", "tokenizer.ggml.scorez", GENAI_ERROR_BAD_FILE,
              "tokenizer.ggml.scores");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(vocabularies_give_the_same_ids),
      cmocka_unit_test(metadata_is_honoured),
      cmocka_unit_test(what_is_missing_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
