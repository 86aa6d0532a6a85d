/* Finding and recognising tokenizers, what a directory's configuration adds, and what damaged files lead to. */
#include "base/file.h"
#include "small_tokenizers.h"

static char folder[64];

static int make_folder(void** state) {
  (void)state;
  snprintf(folder, sizeof folder, "%s/genai-tokenizer-XXXXXX", P_tmpdir);
  return mkdtemp(folder) ? 0 : -1;
}

static const char* in_folder(const char* name) {
  return test_path(folder, name);
}

static void put(const char* name, const void* data, size_t size) {
  assert_ok(file_write_atomic(in_folder(name), data, size));
}
static void put_text(const char* name, const char* content) {
  put(name, content, strlen(content));
}
static void take_away(const char* name) {
  unlink(in_folder(name));
}

static int remove_folder(void** state) {
  (void)state;
  static const char* const names[] = {"tokenizer.json",    "tokenizer.model",        "tokenizer_config.json", "chat_template.jinja", "x",
                                      "added_tokens.json", "special_tokens_map.json"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) take_away(names[i]);
  return rmdir(folder);
}

#define TINY                                                                                                                             \
  "{\"added_tokens\":[{\"id\":4,\"content\":\"<s>\",\"special\":true,\"normalized\":false},{\"id\":5,\"content\":\"</s>\",\"special\":"  \
  "true,\"normalized\":false},{\"id\":6,\"content\":\"<|im_end|>\",\"special\":true,\"normalized\":false}],\"model\":{\"type\":\"BPE\"," \
  "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"c\":3},\"merges\":[\"a b\"]}}"

static void a_directory_with_tokenizer_json(void** state) {
  (void)state;
  put_text("tokenizer.json", TINY);
  tokenizer* self;
  assert_ok(tokenizer_open(folder, &self));
  assert_int_equal(tokenizer_vocab_size(self), 7);
  assert_int_equal(tokenizer_bos_id(self), 4); /* by name, for want of a configuration */
  assert_int_equal(tokenizer_eos_id(self), 5);
  assert_null(tokenizer_chat_template(self).data);
  assert_string_equal(tokenizer_kind(self), "BPE (tokenizer.json)");
  int32_t stops[8];
  assert_int_equal(tokenizer_stop_ids(self, stops, 8), 2);
  assert_int_equal(stops[1], 6);
  tokenizer_close(self);
}

static void the_configuration_is_applied(void** state) {
  (void)state;
  put_text("tokenizer.json", TINY);
  put_text("tokenizer_config.json",
           "{\"tokenizer_class\":\"LlamaTokenizerFast\",\"add_bos_token\":true,\"add_eos_token\":true,\"bos_token\":\"<s>\","
           "\"eos_token\":{\"content\":\"<|im_end|>\"},\"chat_template\":\"one\"}");
  tokenizer* self;
  assert_ok(tokenizer_open(folder, &self));
  assert_int_equal(tokenizer_eos_id(self), 6);
  assert_true(text_view_equal_cstr(tokenizer_chat_template(self), "one"));
  token_list ids = {0};
  assert_ok(tokenizer_encode(self, "ab", 2, (tokenizer_encode_options){.add_special = true}, &ids));
  const int32_t want[] = {4, 2, 6};
  assert_int_equal(ids.count, 3);
  assert_memory_equal(ids.ids, want, sizeof want);
  token_list_deinit(&ids);
  tokenizer_close(self);
  /* A template of its own file wins; other classes leave it to the post-processor what is added. */
  put_text("chat_template.jinja", "two");
  put_text("tokenizer_config.json", "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"add_bos_token\":true,\"bos_token\":\"<s>\"}");
  assert_ok(tokenizer_open(in_folder("tokenizer.json"), &self));
  assert_true(text_view_equal_cstr(tokenizer_chat_template(self), "two"));
  assert_ok(tokenizer_encode(self, "ab", 2, (tokenizer_encode_options){.add_special = true}, &ids));
  assert_int_equal(ids.count, 1);
  token_list_deinit(&ids);
  tokenizer_close(self);
  take_away("chat_template.jinja");
  take_away("tokenizer_config.json");
}

static void encodes(const tokenizer* self, const char* input, const int32_t* want, size_t count, const char* decoded) {
  token_list ids = {0};
  text back = {0};
  assert_ok(tokenizer_encode(self, input, strlen(input), (tokenizer_encode_options){.parse_special = true}, &ids));
  assert_int_equal(ids.count, count);
  assert_memory_equal(ids.ids, want, count * sizeof *want);
  assert_ok(tokenizer_decode(self, ids.ids, ids.count, true, &back));
  assert_string_equal(back.data, decoded);
  text_deinit(&back);
  token_list_deinit(&ids);
}

/* Fine-tuned models of the Llama 2 kind: tokenizer.model, and what they have more in files of their own. Ids and texts are those of
 * AutoTokenizer (transformers 5.24) over the same three files. */
static void tokens_beside_the_vocabulary(void** state) {
  (void)state;
  take_away("tokenizer.json");
  text data = {0};
  tokenizer* self;
  assert_ok(file_read_all(test_data("tokenizer/small/llama.model"), 1 << 20, &data));
  put("tokenizer.model", data.data, data.length);
  text_deinit(&data);
  put_text("tokenizer_config.json", "{\"tokenizer_class\":\"LlamaTokenizer\",\"bos_token\":\"<s>\"}");
  put_text("special_tokens_map.json", "{\"eos_token\":{\"content\":\"<|im_end|>\",\"lstrip\":false}}");
  put_text("added_tokens.json", "{\"<|im_start|>\":700,\"<|im_end|>\":701}");
  assert_ok(tokenizer_open(folder, &self));
  assert_int_equal(tokenizer_vocab_size(self), 702);
  assert_int_equal(tokenizer_eos_id(self), 701);
  assert_true(tokenizer_is_special(self, 701)); /* because the map names it */
  assert_false(tokenizer_is_special(self, 700));
  encodes(self, "<|im_start|>user\nHi<|im_end|>\n", (const int32_t[]){700, 514, 264, 13, 685, 636, 701, 627, 13}, 9,
          "<|im_start|> user\nHi<|im_end|> \n");
  encodes(self, "x<|im_start|>", (const int32_t[]){346, 700}, 2, "x<|im_start|>");
  tokenizer_close(self);
  /* The same in tokenizer_config.json, with the rules of each token. */
  take_away("added_tokens.json");
  put_text("tokenizer_config.json",
           "{\"added_tokens_decoder\":{\"1\":{\"content\":\"<s>\"},\"700\":{\"content\":\"<|im_start|>\",\"special\":true},"
           "\"701\":{\"content\":\"<|im_end|>\",\"special\":true,\"rstrip\":true}}}");
  assert_ok(tokenizer_open(folder, &self));
  token_list ids = {0};
  assert_ok(tokenizer_encode(self, "a<|im_end|> \n", 13, (tokenizer_encode_options){.parse_special = true}, &ids));
  assert_int_equal(ids.count, 2);
  assert_int_equal(ids.ids[1], 701);
  token_list_deinit(&ids);
  tokenizer_close(self);
  take_away("special_tokens_map.json");
  take_away("tokenizer.model");
  /* Beside a tokenizer.json too; a token that has its place already, or whose place another has, changes nothing. */
  put_text("tokenizer.json", TINY);
  put_text("tokenizer_config.json",
           "{\"added_tokens_decoder\":{\"6\":{\"content\":\"<|im_end|>\"},\"2\":{\"content\":\"<taken>\"},\"9\":{\"content\":\"<new>\"}},"
           "\"additional_special_tokens\":[\"c\",{\"content\":\"<none>\"}]}");
  assert_ok(tokenizer_open(folder, &self));
  assert_int_equal(tokenizer_vocab_size(self), 10);
  assert_int_equal(tokenizer_find(self, "<taken>"), -1);
  assert_true(tokenizer_is_special(self, 3)); /* c, a token of the vocabulary that the configuration calls special */
  assert_ok(tokenizer_encode(self, "<new>cab", 8, (tokenizer_encode_options){.parse_special = true}, &ids));
  const int32_t want[] = {9, 3, 2};
  assert_int_equal(ids.count, 3);
  assert_memory_equal(ids.ids, want, sizeof want);
  token_list_deinit(&ids);
  tokenizer_close(self);
  put_text("tokenizer_config.json", "{\"added_tokens_decoder\":{\"99999999\":{\"content\":\"x\"}}}");
  assert_fails(tokenizer_open(folder, &self), GENAI_ERROR_BAD_FILE, "added_tokens_decoder gives \"x\" the id");
  put_text("tokenizer_config.json", "{\"added_tokens_decoder\":{\"7\":{}}}");
  assert_fails(tokenizer_open(folder, &self), GENAI_ERROR_BAD_FILE, "added_tokens_decoder");
  take_away("tokenizer_config.json");
}

static void formats_are_recognised_by_content(void** state) {
  (void)state;
  text data = {0};
  tokenizer* self;
  assert_ok(file_read_all(test_data("tokenizer/small/llama.model"), 1 << 20, &data));
  put("x", data.data, data.length);
  assert_ok(tokenizer_open(in_folder("x"), &self));
  assert_string_equal(tokenizer_kind(self), "SentencePiece BPE");
  assert_int_equal(tokenizer_bos_id(self), 1);
  tokenizer_close(self);
  text_clear(&data);
  assert_ok(file_read_all(test_data("tokenizer/small/tekken.json"), 1 << 20, &data));
  put("x", data.data, data.length);
  assert_ok(tokenizer_open(in_folder("x"), &self));
  assert_string_equal(tokenizer_kind(self), "byte-level BPE (tekken)");
  tokenizer_close(self);
  text_deinit(&data);
  assert_ok(tokenizer_open(test_data("tokenizer/small/tiktoken"), &self));
  assert_string_equal(tokenizer_kind(self), "byte-level BPE (tiktoken)");
  assert_true(text_view_equal_cstr(tokenizer_chat_template(self), "d")); /* of several the default one */
  assert_int_equal(tokenizer_bos_id(self), tokenizer_find(self, "<|begin|>"));
  tokenizer_close(self);
}

/* The tokenizer of a checkpoint: beside the weights, or in the GGUF itself. */
static void the_tokenizer_of_a_checkpoint(void** state) {
  (void)state;
  checkpoint* file;
  tokenizer* self;
  assert_ok(checkpoint_open(test_data("checkpoints/llama"), &file));
  assert_fails(tokenizer_open_checkpoint(file, &self), GENAI_ERROR_NOT_FOUND, "holds no tokenizer"); /* the fixture has weights only */
  checkpoint_close(file);
  assert_ok(checkpoint_open(test_data("tokenizer/small/bytes.gguf"), &file));
  assert_ok(tokenizer_open_checkpoint(file, &self));
  checkpoint_close(file); /* which the tokenizer does not need any more */
  assert_int_equal(tokenizer_find(self, "<think>"), tokenizer_vocab_size(self) - 1);
  tokenizer_close(self);
}

static void fails_with(const char* content, genai_error_kind kind, const char* needle) {
  put_text("x", content);
  tokenizer* self;
  assert_fails(tokenizer_open(in_folder("x"), &self), kind, needle);
}

static void wrong_files_are_explained(void** state) {
  (void)state;
  tokenizer* self;
  take_away("tokenizer.json");
  assert_fails(tokenizer_open(folder, &self), GENAI_ERROR_NOT_FOUND, "holds no tokenizer");
  assert_fails(tokenizer_open(in_folder("nothing"), &self), GENAI_ERROR_NOT_FOUND, "nothing");
  fails_with("", GENAI_ERROR_BAD_FILE, "the file is empty");
  fails_with("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", GENAI_ERROR_BAD_FILE, "is a Git LFS pointer");
  fails_with("hello", GENAI_ERROR_BAD_FILE, "is not a tokenizer");
  fails_with("{\"a\":", GENAI_ERROR_BAD_FILE, "");
  fails_with("{}", GENAI_ERROR_BAD_FILE, "\"model\"");
  fails_with("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}", GENAI_ERROR_UNSUPPORTED, "WordPiece");
  fails_with("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", GENAI_ERROR_BAD_FILE, "id -1");
  fails_with("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":9999999},\"merges\":[]}}", GENAI_ERROR_BAD_FILE, "9999999");
  fails_with("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", GENAI_ERROR_BAD_FILE,
             "\"b\", which is not in the vocabulary");
  fails_with("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"ab\"]}}", GENAI_ERROR_BAD_FILE, "two tokens with a space");
  fails_with("{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}", GENAI_ERROR_BAD_FILE, "empty");
  fails_with("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",1]],\"unk_id\":3}}", GENAI_ERROR_BAD_FILE, "unk_id");
  const char* const parts[][2] = {
      {"\"normalizer\":{\"type\":\"Magic\"}", "Magic"},
      {"\"pre_tokenizer\":{\"type\":\"Magic\"}", "Magic"},
      {"\"decoder\":{\"type\":\"Magic\"}", "Magic"},
      {"\"post_processor\":{\"type\":\"Magic\"}", "Magic"},
      {"\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a\"},\"behavior\":\"Isolated\"}", "(a"},
      {"\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a[^b]]\"},\"behavior\":\"Isolated\"}", "class inside"}};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    char json[512];
    snprintf(json, sizeof json, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},%s}", parts[i][0]);
    fails_with(json, GENAI_ERROR_UNSUPPORTED, parts[i][1]);
  }
  fails_with("YQ== 0\nYg== 1\n", GENAI_ERROR_UNSUPPORTED, "a tiktoken file of 2 ranks");
  fails_with("YQ== 0\n!!!! 1\n", GENAI_ERROR_BAD_FILE, "base64");
}

/* Every prefix and every flipped byte of a SentencePiece model: an error or a tokenizer, never more. */
static void damaged_sentencepiece_models(void** state) {
  (void)state;
  text data = {0};
  assert_ok(file_read_all(test_data("tokenizer/small/plain.model"), 1 << 20, &data));
  size_t loaded = 0, refused = 0;
  for (size_t i = 0; i < data.length; i += i < 600 ? 1 : 37) {
    for (int flip = 0; flip < 2; flip++) {
      tokenizer* self = NULL;
      data.data[i] ^= flip ? (char)0xff : 0;
      genai_status* status = tokenizer_load_sentencepiece((const uint8_t*)data.data, flip ? data.length : i, "damaged", &self);
      data.data[i] ^= flip ? (char)0xff : 0;
      if (status)
        refused++;
      else
        loaded++;
      genai_status_free(status);
      if (!self) continue;
      token_list ids = {0};
      text out = {0};
      genai_status_free(tokenizer_encode(self, "the word \xc3\xa9", 11, (tokenizer_encode_options){.add_special = true}, &ids));
      genai_status_free(tokenizer_decode(self, ids.ids, ids.count, true, &out));
      text_deinit(&out);
      token_list_deinit(&ids);
      tokenizer_close(self);
    }
  }
  assert_in_range(refused, 100, 100000);
  assert_in_range(loaded, 1, 100000);
  text_deinit(&data);
}

static void exported_files_give_the_same_ids(void** state) {
  (void)state;
  static const char* const names[] = {"gpt2", "smollm", "llama3", "qwen2", "llama2", "gemma", "added token flags", "unigram"};
  const char sample[] = "Hello  world, it's 12345 <|im_end|> caf\xc3\xa9 \xf0\x9f\xa6\x99\n\n\tdone";
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    tokenizer *self = small_tokenizer(names[i]), *again;
    assert_ok(tokenizer_export_json(self, in_folder("tokenizer.json")));
    assert_ok(tokenizer_open(in_folder("tokenizer.json"), &again));
    const tokenizer_encode_options options = {.add_special = true, .parse_special = true};
    token_list want = {0}, got = {0};
    assert_ok(tokenizer_encode(self, sample, strlen(sample), options, &want));
    assert_ok(tokenizer_encode(again, sample, strlen(sample), options, &got));
    assert_int_equal(got.count, want.count);
    assert_memory_equal(got.ids, want.ids, want.count * sizeof *want.ids);
    text a = {0}, b = {0};
    assert_ok(tokenizer_decode(self, want.ids, want.count, false, &a));
    assert_ok(tokenizer_decode(again, want.ids, want.count, false, &b));
    assert_string_equal(a.data, b.data);
    text_deinit(&a);
    text_deinit(&b);
    token_list_deinit(&want);
    token_list_deinit(&got);
    tokenizer_close(self);
    tokenizer_close(again);
  }
  tokenizer* self;
  assert_ok(tokenizer_open(test_data("tokenizer/small/unigram.model"), &self));
  assert_fails(tokenizer_export_json(self, in_folder("tokenizer.json")), GENAI_ERROR_UNSUPPORTED, "unigram");
  tokenizer_close(self);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_directory_with_tokenizer_json),   cmocka_unit_test(the_configuration_is_applied),
      cmocka_unit_test(formats_are_recognised_by_content), cmocka_unit_test(wrong_files_are_explained),
      cmocka_unit_test(the_tokenizer_of_a_checkpoint),     cmocka_unit_test(damaged_sentencepiece_models),
      cmocka_unit_test(tokens_beside_the_vocabulary),      cmocka_unit_test(exported_files_give_the_same_ids),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
