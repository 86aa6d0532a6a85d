/* The normalizer, pre-tokenizer, post-processor and decoder of a written tokenizer.json. */
#include "base/memory.h"
#include "tokenizer/export_json.h"
#include "tokenizer/load_json.h"

#define LOWER_BLOCK "\xe2\x96\x81" /* U+2581 */

static void begin_typed(json_writer* out, const char* type) {
  json_begin_object(out);
  json_key(out, "type");
  json_write_string(out, type);
}

static void write_string(json_writer* out, const char* key, const char* value) {
  json_key(out, key);
  json_write_string(out, value);
}

static void write_bool(json_writer* out, const char* key, bool value) {
  json_key(out, key);
  json_write_bool(out, value);
}

/* {"String": ...} or {"Regex": ...} under "pattern". */
static void write_pattern(json_writer* out, const char* expression, text_view string) {
  json_key(out, "pattern");
  json_begin_object(out);
  export_write_view(out, expression ? "Regex" : "String", expression ? text_view_of(expression) : string);
  json_end_object(out);
}

static void write_replace(json_writer* out, const char* expression, text_view string, text_view content) {
  begin_typed(out, "Replace");
  write_pattern(out, expression, string);
  export_write_view(out, "content", content);
  json_end_object(out);
}

static void write_prepend(json_writer* out, text_view content) {
  begin_typed(out, "Prepend");
  export_write_view(out, "prepend", content);
  json_end_object(out);
}

static genai_status* write_charsmap(json_writer* out, const normalizer_step* step) {
  text base64 = {0};
  genai_status* status;
  if (base64_encode((text_view){step->blob, step->blob_length}, &base64, &status)) {
    begin_typed(out, "Precompiled");
    export_write_view(out, "precompiled_charsmap", (text_view){base64.data ? base64.data : "", base64.length});
    json_end_object(out);
  }
  text_deinit(&base64);
  return status;
}

/* SentencePiece's normalizer, without compiled rules, in the reference's steps. */
static void write_sentencepiece(json_writer* out, const normalizer_step* step) {
  if (step->remove_extra_whitespaces) {
    write_replace(out, "\\A +| +\\z", (text_view){0}, text_view_of(""));
    write_replace(out, " {2,}", (text_view){0}, text_view_of(" "));
  }
  const char* space = step->escape_whitespaces ? LOWER_BLOCK : " ";
  if (step->add_dummy_prefix) write_prepend(out, text_view_of(space));
  if (step->escape_whitespaces) write_replace(out, NULL, text_view_of(" "), text_view_of(LOWER_BLOCK));
}

genai_status* export_normalizer(const tokenizer* self, json_writer* out) {
  static const char* const plain[] = {
      [NORMALIZE_NFC] = "NFC",
      [NORMALIZE_NFD] = "NFD",
      [NORMALIZE_NFKC] = "NFKC",
      [NORMALIZE_NFKD] = "NFKD",
      [NORMALIZE_LOWERCASE] = "Lowercase",
      [NORMALIZE_STRIP_ACCENTS] = "StripAccents",
      [NORMALIZE_NMT] = "Nmt",
      [NORMALIZE_BYTE_LEVEL] = "ByteLevel",
      [NORMALIZE_SENTENCEPIECE] = NULL,
  };
  json_key(out, "normalizer");
  if (!self->normalize.count) {
    json_write_string(out, NULL);
    return NULL;
  }
  begin_typed(out, "Sequence");
  json_key(out, "normalizers");
  json_begin_array(out);
  for (size_t i = 0; i < self->normalize.count; i++) {
    const normalizer_step* step = &self->normalize.steps[i];
    text_view content = {step->content, step->content_length};
    switch (step->kind) {
      case NORMALIZE_STRIP:
        begin_typed(out, "Strip");
        write_bool(out, "strip_left", step->left);
        write_bool(out, "strip_right", step->right);
        json_end_object(out);
        break;
      case NORMALIZE_PREPEND:
        write_prepend(out, content);
        break;
      case NORMALIZE_REPLACE:
        write_replace(out, step->source, (text_view){step->pattern, step->pattern_length}, content);
        break;
      case NORMALIZE_CHARSMAP:
        GENAI_TRY(write_charsmap(out, step));
        break;
      case NORMALIZE_SENTENCEPIECE:
        write_sentencepiece(out, step);
        break;
      default:
        begin_typed(out, plain[step->kind]);
        json_end_object(out);
        break;
    }
  }
  json_end_array(out);
  json_end_object(out);
  return NULL;
}

static void write_behavior(json_writer* out, split_behavior behavior) {
  static const char* const names[] = {"Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"};
  write_string(out, "behavior", names[behavior]);
}

static void write_split(json_writer* out, const char* expression, text_view string, split_behavior behavior, bool invert) {
  begin_typed(out, "Split");
  write_pattern(out, expression, string);
  write_behavior(out, behavior);
  write_bool(out, "invert", invert);
  json_end_object(out);
}

static void write_byte_level(json_writer* out, bool prefix, bool expression) {
  begin_typed(out, "ByteLevel");
  write_bool(out, "add_prefix_space", prefix);
  write_bool(out, "trim_offsets", true);
  write_bool(out, "use_regex", expression);
  json_end_object(out);
}

static genai_status* write_class(json_writer* out, const segment_step* step) {
  bool isolated = step->behavior == SPLIT_ISOLATED;
  if (step->set == UNICODE_NUMERIC && (isolated || step->behavior == SPLIT_CONTIGUOUS)) {
    begin_typed(out, "Digits");
    write_bool(out, "individual_digits", isolated);
    json_end_object(out);
    return NULL;
  }
  begin_typed(out, "WhitespaceSplit");
  json_end_object(out);
  return NULL;
}

static genai_status* write_segment(json_writer* out, const segment_step* step) {
  static const char* const schemes[] = {[PREPEND_NEVER] = "never", [PREPEND_FIRST] = "first", [PREPEND_ALWAYS] = "always"};
  text_view string = {step->string, step->string_length};
  switch (step->kind) {
    case SEGMENT_SCANNER:
      write_split(out, step->scan->regex, string, SPLIT_ISOLATED, false);
      return NULL;
    case SEGMENT_REGEX:
      write_split(out, step->source, string, step->behavior, step->invert);
      return NULL;
    case SEGMENT_STRING:
      write_split(out, NULL, string, step->behavior, step->invert);
      return NULL;
    case SEGMENT_CLASS:
      return write_class(out, step);
    case SEGMENT_PUNCTUATION:
      begin_typed(out, "Punctuation");
      write_behavior(out, step->behavior);
      break;
    case SEGMENT_WORDS:
      begin_typed(out, "Whitespace");
      break;
    case SEGMENT_METASPACE:
      begin_typed(out, "Metaspace");
      export_write_view(out, "replacement", string);
      write_string(out, "prepend_scheme", schemes[step->prepend]);
      write_bool(out, "split", step->split);
      break;
    case SEGMENT_BYTE_LEVEL:
      write_byte_level(out, step->prepend == PREPEND_ALWAYS, step->split);
      return NULL;
    case SEGMENT_FIXED:
      begin_typed(out, "FixedLength");
      json_key(out, "length");
      json_write_unsigned(out, step->length);
      break;
  }
  json_end_object(out);
  return NULL;
}

genai_status* export_segmenter(const tokenizer* self, json_writer* out) {
  json_key(out, "pre_tokenizer");
  const segmenter* segment = &self->segment;
  bool spelled = segment->count && segment->steps[segment->count - 1].kind == SEGMENT_BYTE_LEVEL;
  bool spell = self->model == MODEL_BPE && self->bpe.byte_symbols && !spelled;
  if (!segment->count && !spell) {
    json_write_string(out, NULL);
    return NULL;
  }
  begin_typed(out, "Sequence");
  json_key(out, "pretokenizers");
  json_begin_array(out);
  for (size_t i = 0; i < segment->count; i++) GENAI_TRY(write_segment(out, &segment->steps[i]));
  if (spell) write_byte_level(out, false, false);
  json_end_array(out);
  json_end_object(out);
  return NULL;
}

static void write_special_piece(json_writer* out, text_view content) {
  json_begin_object(out);
  json_key(out, "SpecialToken");
  json_begin_object(out);
  export_write_view(out, "id", content);
  json_key(out, "type_id");
  json_write_integer(out, 0);
  json_end_object(out);
  json_end_object(out);
}

static void write_sequence_piece(json_writer* out, const char* id, int type_id) {
  json_begin_object(out);
  json_key(out, "Sequence");
  json_begin_object(out);
  write_string(out, "id", id);
  json_key(out, "type_id");
  json_write_integer(out, type_id);
  json_end_object(out);
  json_end_object(out);
}

static void write_template(const tokenizer* self, json_writer* out, const char* key, bool pair) {
  json_key(out, key);
  json_begin_array(out);
  for (int b = 0; b <= (int)pair; b++) {
    for (size_t i = 0; i < self->prefix.count; i++) write_special_piece(out, vocabulary_text(&self->tokens, self->prefix.ids[i]));
    write_sequence_piece(out, b ? "B" : "A", b);
    for (size_t i = 0; i < self->suffix.count; i++) write_special_piece(out, vocabulary_text(&self->tokens, self->suffix.ids[i]));
  }
  json_end_array(out);
}

genai_status* export_post_processor(const tokenizer* self, json_writer* out) {
  json_key(out, "post_processor");
  if (!self->prefix.count && !self->suffix.count) {
    json_write_string(out, NULL);
    return NULL;
  }
  begin_typed(out, "TemplateProcessing");
  write_template(self, out, "single", false);
  write_template(self, out, "pair", true);
  json_key(out, "special_tokens");
  json_begin_object(out);
  const template_ids* both[] = {&self->prefix, &self->suffix};
  genai_status* status = NULL;
  for (size_t k = 0; k < 2 && !status; k++) {
    for (size_t i = 0; i < both[k]->count && !status; i++) {
      int32_t id = both[k]->ids[i];
      text_view content = vocabulary_text(&self->tokens, id);
      char* name = mem_strndup(content.data, content.length);
      if (!name) {
        status = genai_status_out_of_memory();
        break;
      }
      json_key(out, name);
      json_begin_object(out);
      export_write_view(out, "id", content);
      json_key(out, "ids");
      json_begin_array(out);
      json_write_integer(out, id);
      json_end_array(out);
      json_key(out, "tokens");
      json_begin_array(out);
      json_write_bytes(out, content.data, content.length);
      json_end_array(out);
      json_end_object(out);
      mem_free(name);
    }
  }
  json_end_object(out);
  json_end_object(out);
  return status;
}

genai_status* export_decoder(const tokenizer* self, json_writer* out) {
  const decoder* decode = &self->decode;
  json_key(out, "decoder");
  if (decode->kind == DECODE_SPACED) {
    json_write_string(out, NULL);
    return NULL;
  }
  if (decode->kind == DECODE_BYTE_LEVEL) {
    write_byte_level(out, true, true);
    return NULL;
  }
  if (decode->drop_in_first) {
    begin_typed(out, "Metaspace");
    write_string(out, "replacement", decode->replace[0].from);
    write_string(out, "prepend_scheme", "always");
    write_bool(out, "split", true);
    json_end_object(out);
    return NULL;
  }
  begin_typed(out, "Sequence");
  json_key(out, "decoders");
  json_begin_array(out);
  for (size_t i = 0; i < decode->replace_count; i++) {
    write_replace(out, NULL, text_view_of(decode->replace[i].from), text_view_of(decode->replace[i].to));
  }
  if (decode->bytes != BYTE_RUN_NONE) {
    begin_typed(out, "ByteFallback");
    json_end_object(out);
  }
  if (!decode->strip || !decode->strip_each) {
    begin_typed(out, "Fuse");
    json_end_object(out);
  }
  if (decode->strip) {
    begin_typed(out, "Strip");
    write_string(out, "content", decode->strip);
    json_key(out, "start");
    json_write_unsigned(out, decode->strip_start > UINT32_MAX ? UINT32_MAX : decode->strip_start);
    json_key(out, "stop");
    json_write_unsigned(out, decode->strip_stop);
    json_end_object(out);
  }
  json_end_array(out);
  json_end_object(out);
  return NULL;
}
