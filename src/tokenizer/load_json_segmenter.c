/* The "pre_tokenizer" of a tokenizer.json. */
#include <string.h>

#include "base/memory.h"
#include "tokenizer/load_json.h"

enum { MAX_NESTING = 16 };

static genai_status* read_behavior(json_value value, const char* name, split_behavior fallback, split_behavior* out) {
  static const char* const names[] = {"Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"};
  json_value member = json_get(value, "behavior");
  *out = fallback;
  if (json_type_of(member) == JSON_ABSENT) return NULL;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (!text_view_equal_cstr(json_string(member), names[i])) continue;
    *out = (split_behavior)i;
    return NULL;
  }
  return json_bad_member(name, "behavior", "Isolated, Removed, Contiguous, MergedWithPrevious or MergedWithNext");
}

static genai_status* add(segmenter* out, segment_kind kind, segment_step** step) {
  *step = segmenter_add(out, kind);
  return *step ? NULL : genai_status_out_of_memory();
}

static genai_status* load_split(json_value value, const char* name, segmenter* out) {
  split_behavior behavior;
  GENAI_TRY(read_behavior(value, name, SPLIT_ISOLATED, &behavior));
  bool invert = json_bool(json_get(value, "invert"), false);
  json_value pattern = json_get(value, "pattern");
  text_view expression = json_string(json_get(pattern, "Regex"));
  if (expression.data) return segmenter_add_regex(out, expression, behavior, invert);
  segment_step* step = NULL;
  GENAI_TRY(add(out, SEGMENT_STRING, &step));
  step->behavior = behavior;
  step->invert = invert;
  return json_copy_string(pattern, "String", name, &step->string, &step->string_length);
}

static genai_status* load_metaspace(json_value value, const char* name, segmenter* out) {
  segment_step* step = NULL;
  GENAI_TRY(add(out, SEGMENT_METASPACE, &step));
  text_view scheme = json_string(json_get(value, "prepend_scheme"));
  step->prepend = PREPEND_ALWAYS;
  if (text_view_equal_cstr(scheme, "first")) step->prepend = PREPEND_FIRST;
  if (text_view_equal_cstr(scheme, "never") || !json_bool(json_get(value, "add_prefix_space"), true)) step->prepend = PREPEND_NEVER;
  step->split = json_bool(json_get(value, "split"), true);
  return json_copy_character(value, "replacement", name, &step->string, &step->string_length);
}

static genai_status* load_byte_level(json_value value, segmenter* out) {
  segment_step* step = NULL;
  GENAI_TRY(add(out, SEGMENT_BYTE_LEVEL, &step));
  step->prepend = json_bool(json_get(value, "add_prefix_space"), true) ? PREPEND_ALWAYS : PREPEND_NEVER;
  step->split = json_bool(json_get(value, "use_regex"), true);
  step->scan = step->split ? scanner_find(text_view_of(scanner_gpt2_regex)) : NULL;
  step->map = true;
  return NULL;
}

static genai_status* load_step(json_value value, const char* name, unsigned depth, segmenter* out) {
  json_type json = json_type_of(value);
  if (json == JSON_NULL || json == JSON_ABSENT) return NULL;
  json_value type_name = json_get(value, "type");
  text_view type = json_string(type_name);
  segment_step* step = NULL;
  if (text_view_equal_cstr(type, "Sequence")) {
    if (depth == MAX_NESTING) return json_bad_member(name, "pre_tokenizer", "fewer sequences inside each other");
    json_iterator parts = json_iterate(json_get(value, "pretokenizers"));
    for (json_value part; json_next(&parts, NULL, &part);) GENAI_TRY(load_step(part, name, depth + 1, out));
    return NULL;
  }
  if (text_view_equal_cstr(type, "ByteLevel")) return load_byte_level(value, out);
  if (text_view_equal_cstr(type, "Split")) return load_split(value, name, out);
  if (text_view_equal_cstr(type, "Metaspace")) return load_metaspace(value, name, out);
  if (text_view_equal_cstr(type, "Digits")) {
    GENAI_TRY(add(out, SEGMENT_CLASS, &step));
    step->set = UNICODE_NUMERIC;
    step->behavior = json_bool(json_get(value, "individual_digits"), false) ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS;
    return NULL;
  }
  if (text_view_equal_cstr(type, "Punctuation")) {
    GENAI_TRY(add(out, SEGMENT_PUNCTUATION, &step));
    return read_behavior(value, name, SPLIT_ISOLATED, &step->behavior);
  }
  if (text_view_equal_cstr(type, "Whitespace")) return add(out, SEGMENT_WORDS, &step);
  if (text_view_equal_cstr(type, "WhitespaceSplit") || text_view_equal_cstr(type, "BertPreTokenizer")) {
    GENAI_TRY(add(out, SEGMENT_CLASS, &step));
    step->set = UNICODE_SPACES;
    step->behavior = SPLIT_REMOVED;
    return type.data[0] == 'W' ? NULL : add(out, SEGMENT_PUNCTUATION, &step);
  }
  if (text_view_equal_cstr(type, "CharDelimiterSplit") || text_view_equal_cstr(type, "Delimiter")) {
    GENAI_TRY(add(out, SEGMENT_STRING, &step));
    step->behavior = SPLIT_REMOVED;
    return json_copy_character(value, "delimiter", name, &step->string, &step->string_length);
  }
  if (text_view_equal_cstr(type, "FixedLength")) {
    GENAI_TRY(add(out, SEGMENT_FIXED, &step));
    int64_t length = json_integer(json_get(value, "length"), 5);
    if (length < 1) return json_bad_member(name, "length", "a positive number");
    step->length = (size_t)length;
    return NULL;
  }
  return json_unsupported_type(name, "pre_tokenizer", type_name,
                               "Sequence, ByteLevel, Split, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, "
                               "CharDelimiterSplit, FixedLength");
}

genai_status* load_json_segmenter(json_value value, const char* name, segmenter* out) {
  return load_step(value, name, 0, out);
}
