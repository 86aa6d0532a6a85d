/* The tokenizers of tests/data/tokenizer/small/tokenizers.json by name. */
#ifndef GENAI_TESTS_SMALL_TOKENIZERS_H
#define GENAI_TESTS_SMALL_TOKENIZERS_H

#include "base/json.h"
#include "support.h"
#include "tokenizer/tokenizer_internal.h"

static inline tokenizer* small_tokenizer(const char* name) {
  json_document* document;
  assert_ok(json_parse_file(test_data("tokenizer/small/tokenizers.json"), 1 << 22, &document));
  tokenizer* self = NULL;
  json_iterator at = json_iterate(json_get(json_root(document), "entries"));
  for (json_value entry; !self && json_next(&at, NULL, &entry);) {
    if (text_view_equal_cstr(json_string(json_get(entry, "name")), name))
      assert_ok(tokenizer_load_json(json_get(entry, "json"), name, &self));
  }
  json_free(document);
  assert_non_null(self);
  return self;
}

#endif
