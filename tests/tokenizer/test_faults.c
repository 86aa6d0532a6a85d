/* Every allocation of loading, encoding, decoding and exporting fails once in turn: an out-of-memory status each time, nothing lost. */
#include "base/file.h"
#include "base/memory.h"
#include "small_tokenizers.h"

#define VOCAB "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\\u0120\":3,\"<unk>\":4,\"<0x41>\":5},\"merges\":[\"a b\"]"
#define ADDED                                                                                                                             \
  "\"added_tokens\":[{\"id\":6,\"content\":\"<s>\",\"special\":true,\"normalized\":false},{\"id\":7,\"content\":\"B<x>\",\"normalized\":" \
  "true}]"

static const char* const sources[] = {
    "{" ADDED
    ",\"added_tokens_decoder\":{\"9\":{\"content\":\"end\",\"normalized\":true}}"
    ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Lowercase\"},{\"type\":\"NFC\"},{\"type\":\"Replace\","
    "\"pattern\":{\"Regex\":\"x+\"},\"content\":\"x\"}]},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","
    "\"pattern\":{\"Regex\":\"b?a\"},\"behavior\":\"Isolated\"},{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"use_regex\":true}]},"
    "\"decoder\":{\"type\":\"ByteLevel\"},\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>"
    "\","
    "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[],\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[6],"
    "\"tokens\":[\"<s>\"]}}},\"model\":{\"type\":\"BPE\",\"ignore_merges\":true," VOCAB "}}",
    "{" ADDED
    ",\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"a\"},\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\"},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\\u2581\"},\"content\":\" "
    "\"},{\"type\":"
    "\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},\"model\":{\"type\":\"BPE\","
    "\"unk_token\":\"<unk>\",\"byte_fallback\":true," VOCAB "}}",
    "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"a\",-1],[\"b\",-2],[\"ab\",-1.5]]}}",
};

static const char sample[] =
    "Ab \xc3\xa9xx<s> B<x>ab A aaaabbbbaabb "
    "ababababababababababababababababababababababababababababababababababababababababababababababababababababababab"
    "abababababababababababababababababababababababababababababababababababababababababababababababababab the end "
    "and once more the end and once more";

/* All of it; the first failure comes out. */
static genai_status* use(json_value root, const char* path) {
  tokenizer* self = NULL;
  token_list ids = {0};
  text out = {0};
  genai_status* status = tokenizer_load_json(root, "fault", &self);
  if (!status) status = tokenizer_apply_config(self, root, NULL);
  const tokenizer_encode_options options = {.add_special = true, .parse_special = true};
  if (!status) status = tokenizer_encode(self, sample, strlen(sample), options, &ids);
  if (!status) status = tokenizer_decode(self, ids.ids, ids.count, true, &out);
  if (!status) status = tokenizer_export_json(self, path);
  token_list_deinit(&ids);
  text_deinit(&out);
  tokenizer_close(self);
  return status;
}

static void json_tokenizers(void** state) {
  (void)state;
  char path[] = P_tmpdir "/genai-tokenizer-XXXXXX";
  int descriptor = mkstemp(path);
  assert_true(descriptor >= 0);
  close(descriptor);
  for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
    json_document* document;
    assert_ok(json_parse(sources[i], strlen(sources[i]), "fault", &document));
    assert_ok(use(json_root(document), path));
    uint64_t nth = 1, tolerated = 0;
    for (;; nth++) {
      uint64_t before = mem_allocation_count();
      mem_inject_failure(nth);
      genai_status* status = use(json_root(document), path);
      mem_inject_failure(0);
      if (mem_allocation_count() - before < nth) break; /* every allocation has failed once */
      if (status)
        assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
      else
        tolerated++; /* PCRE2 does without its JIT compiler */
      genai_status_free(status);
    }
    assert_in_range(nth, 15, 5000);
    assert_in_range(tolerated, 0, 16);
    json_free(document);
  }
  unlink(path);
}

static genai_status* use_file(const char* path) {
  tokenizer* self = NULL;
  token_list ids = {0};
  genai_status* status = tokenizer_open(path, &self);
  if (!status) status = tokenizer_encode(self, sample, strlen(sample), (tokenizer_encode_options){.add_special = true}, &ids);
  token_list_deinit(&ids);
  tokenizer_close(self);
  return status;
}

/* These have too many allocations to try each: steps that grow. */
static void other_formats(void** state) {
  (void)state;
  static const char* const files[] = {"tokenizer/small/llama.model", "tokenizer/small/gemma.model", "tokenizer/small/unigram.model",
                                      "tokenizer/small/tiktoken", "tokenizer/small/tekken.json"};
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    uint64_t failures = 0, tolerated = 0;
    for (uint64_t nth = 1;; nth += 1 + nth / 30) {
      uint64_t before = mem_allocation_count();
      mem_inject_failure(nth);
      genai_status* status = use_file(test_data(files[i]));
      mem_inject_failure(0);
      if (mem_allocation_count() - before < nth) break;
      if (status)
        assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
      else
        tolerated++; /* PCRE2's JIT compiler, giving memory back */
      genai_status_free(status);
      failures++;
    }
    assert_in_range(failures, 20, 10000);
    assert_in_range(tolerated, 0, 10);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(json_tokenizers), cmocka_unit_test(other_formats)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
