/* Fuzz target of tokenizer_config.json: special tokens, begin and end rules, chat templates, on a small tiktoken vocabulary. */
#include <stdio.h>

#include "tokenizer/use_fuzz.h"

/* "BASE64 RANK" for every byte and two pairs of bytes. */
static const text* ranks(void) {
  static text lines;
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (lines.length) return &lines;
  for (int i = 0; i < 256; i++) {
    if (text_printf(&lines, "%c%c== %d\n", digits[i >> 2], digits[(i & 3) << 4], i)) abort();
  }
  if (text_append_cstr(&lines, "YWI= 256\nIGE= 257\n")) abort();
  return &lines;
}

static genai_status* load(const uint8_t* data, size_t size, tokenizer** out) {
  json_document* document = NULL;
  GENAI_TRY(json_parse((const char*)data, size, "fuzz", &document));
  json_value config = json_root(document);
  genai_status* status = tokenizer_load_tiktoken(ranks()->data, ranks()->length, "fuzz", config, out);
  if (!status) status = tokenizer_apply_config(*out, config, NULL);
  json_free(document);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokenizer* self = NULL;
  genai_status* status = load(data, size, &self);
  return fuzz_finish(status, self);
}
