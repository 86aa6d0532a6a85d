/* Fuzz target of the tokenizer files: tokenizer.json and tekken.json, and, for what is not JSON, tiktoken files and SentencePiece models.
 * What loads must encode and decode a text, whole and streamed, to the same result. */
#include <stdlib.h>

#include "tokenizer/tokenizer_internal.h"

static const char sample[] =
    "Hello  world, it's 12345 <s>caf\xc3\xa9 e\xcc\x81 \xf0\x9f\xa6\x99\xe2\x96\x81\xe4\xb8\xad\n\n\tABCdef ab ab</s> \xef\xac\x81 ";

static void use(const tokenizer* self) {
  token_list ids = {0};
  text whole = {0}, streamed = {0};
  genai_status* status = tokenizer_encode(self, sample, sizeof sample - 1, (tokenizer_encode_options){true, true}, &ids);
  if (!status) status = tokenizer_decode(self, ids.ids, ids.count, true, &whole);
  if (!status) {
    token_stream stream;
    token_stream_init(&stream, self, true);
    for (size_t i = 0; i < ids.count && !status; i++) status = token_stream_push(&stream, ids.ids[i], &streamed);
    if (!status) status = token_stream_finish(&stream, &streamed);
    token_stream_deinit(&stream);
    if (!status && !text_view_equal((text_view){whole.data, whole.length}, (text_view){streamed.data, streamed.length})) abort();
  }
  int32_t stops[4];
  if (tokenizer_stop_ids(self, stops, 4) > 64 || !tokenizer_kind(self)[0]) abort();
  if (status && !genai_status_message(status)[0]) abort();
  genai_status_free(status);
  text_deinit(&whole);
  text_deinit(&streamed);
  token_list_deinit(&ids);
}

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
  if (!status)
    use(self);
  else if (!genai_status_message(status)[0])
    abort();
  genai_status_free(status);
  tokenizer_close(self);
  return 0;
}
