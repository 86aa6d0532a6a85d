/* The "normalizer" of a tokenizer.json. */
#include <string.h>

#include "base/memory.h"
#include "tokenizer/load_json.h"

enum { MAX_NESTING = 16 };

static genai_status* load_replace(json_value value, const char* name, normalizer_step* step) {
  json_value pattern = json_get(value, "pattern");
  text_view expression = json_string(json_get(pattern, "Regex"));
  GENAI_TRY(json_copy_string(value, "content", name, &step->content, &step->content_length));
  if (!expression.data) return json_copy_string(pattern, "String", name, &step->pattern, &step->pattern_length);
  step->source = mem_strndup(expression.data, expression.length);
  if (!step->source) return genai_status_out_of_memory();
  return regex_compile(expression, &step->expression);
}

static genai_status* load_charsmap(json_value value, const char* name, normalizer_step* step) {
  json_value map = json_get(value, "precompiled_charsmap");
  if (json_type_of(map) == JSON_NULL) return NULL;
  text bytes = {0};
  genai_status* status = NULL;
  if (!base64_decode(json_string(map), &bytes, &status) && !status) status = json_bad_member(name, "precompiled_charsmap", "base64");
  if (status) {
    text_deinit(&bytes);
    return status;
  }
  step->blob_length = bytes.length;
  step->blob = text_detach(&bytes);
  if (!step->blob) return genai_status_out_of_memory();
  return charsmap_open(step->blob, step->blob_length, &step->map);
}

static genai_status* load_step(json_value value, const char* name, unsigned depth, normalizer* out) {
  static const struct {
    const char* type;
    normalizer_kind kind;
  } kinds[] = {
      {"NFC", NORMALIZE_NFC},
      {"NFD", NORMALIZE_NFD},
      {"NFKC", NORMALIZE_NFKC},
      {"NFKD", NORMALIZE_NFKD},
      {"Lowercase", NORMALIZE_LOWERCASE},
      {"Strip", NORMALIZE_STRIP},
      {"StripAccents", NORMALIZE_STRIP_ACCENTS},
      {"Prepend", NORMALIZE_PREPEND},
      {"Replace", NORMALIZE_REPLACE},
      {"Nmt", NORMALIZE_NMT},
      {"ByteLevel", NORMALIZE_BYTE_LEVEL},
      {"Precompiled", NORMALIZE_CHARSMAP},
  };
  json_type type = json_type_of(value);
  if (type == JSON_NULL || type == JSON_ABSENT) return NULL;
  json_value type_name = json_get(value, "type");
  if (text_view_equal_cstr(json_string(type_name), "Sequence")) {
    if (depth == MAX_NESTING) return json_bad_member(name, "normalizer", "fewer sequences inside each other");
    json_iterator parts = json_iterate(json_get(value, "normalizers"));
    for (json_value part; json_next(&parts, NULL, &part);) GENAI_TRY(load_step(part, name, depth + 1, out));
    return NULL;
  }
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if (!text_view_equal_cstr(json_string(type_name), kinds[i].type)) continue;
    normalizer_step* step = normalizer_add(out, kinds[i].kind);
    if (!step) return genai_status_out_of_memory();
    switch (kinds[i].kind) {
      case NORMALIZE_STRIP:
        step->left = json_bool(json_get(value, "strip_left"), true);
        step->right = json_bool(json_get(value, "strip_right"), true);
        return NULL;
      case NORMALIZE_PREPEND:
        return json_copy_string(value, "prepend", name, &step->content, &step->content_length);
      case NORMALIZE_REPLACE:
        return load_replace(value, name, step);
      case NORMALIZE_CHARSMAP:
        return load_charsmap(value, name, step);
      default:
        return NULL;
    }
  }
  return json_unsupported_type(
      name, "normalizer", type_name,
      "Sequence, NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend, Replace, Nmt, ByteLevel, Precompiled");
}

genai_status* load_json_normalizer(json_value value, const char* name, normalizer* out) {
  return load_step(value, name, 0, out);
}
