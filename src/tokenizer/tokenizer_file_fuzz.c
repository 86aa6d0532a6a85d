/* Fuzz target of the tokenizer files: tokenizer.json and tekken.json, and, for what is not JSON, tiktoken files and SentencePiece models.
 * What loads must encode and decode a text, whole and streamed, to the same result. */
#include "tokenizer/use_fuzz.h"

static genai_status* load(const uint8_t* data, size_t size, tokenizer** out) {
  if (size && data[0] == '{') {
    json_document* document = NULL;
    GENAI_TRY(json_parse((const char*)data, size, "fuzz", &document));
    json_value root = json_root(document);
    bool tekken = json_type_of(json_get(root, "config")) != JSON_ABSENT;
    genai_status* status = tekken ? tokenizer_load_tekken(root, "fuzz", out) : tokenizer_load_json(root, "fuzz", out);
    json_free(document);
    return status;
  }
  if (size && data[0] == 0x0a) return tokenizer_load_sentencepiece(data, size, "fuzz", out);
  /* With special tokens of its own, so that any number of ranks will do. */
  static const char config[] = "{\"added_tokens_decoder\":{\"5\":{\"content\":\"<s>\"}}}";
  json_document* document = NULL;
  GENAI_TRY(json_parse(config, sizeof config - 1, "fuzz", &document));
  genai_status* status = tokenizer_load_tiktoken((const char*)data, size, "fuzz", json_root(document), out);
  json_free(document);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokenizer* self = NULL;
  genai_status* status = load(data, size, &self);
  return fuzz_finish(status, self);
}
