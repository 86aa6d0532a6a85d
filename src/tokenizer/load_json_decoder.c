/* The "decoder" and the "post_processor" of a tokenizer.json. */
#include <string.h>

#include "base/memory.h"
#include "tokenizer/load_json.h"

enum { MAX_NESTING = 16 };

#define KNOWN_DECODERS "ByteLevel, Metaspace, or a Sequence of Replace, ByteFallback, Fuse and Strip in this order"

/* How far a sequence has come; its steps must keep this order for the decoder to work on a stream of tokens. */
typedef enum decoder_stage { STAGE_REPLACE, STAGE_BYTES, STAGE_FUSED, STAGE_STRIP, STAGE_DONE } decoder_stage;

typedef struct decoder_state {
  const char* name;
  decoder* out;
  decoder_stage stage;
  bool fused;
} decoder_state;

static genai_status* wrong_order(const decoder_state* s, text_view type) {
  return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s: the decoder's %.*s stands in an unusual place; genai knows " KNOWN_DECODERS,
                             s->name, (int)type.length, type.data);
}

static genai_status* load_metaspace(json_value value, decoder_state* s) {
  text_view replacement = json_string(json_get(value, "replacement"));
  if (!replacement.length) return json_bad_member(s->name, "replacement", "a character");
  bool never = text_view_equal_cstr(json_string(json_get(value, "prepend_scheme")), "never") ||
               !json_bool(json_get(value, "add_prefix_space"), true);
  s->out->drop_in_first = !never;
  return decoder_add_replacement(s->out, replacement, text_view_of(" "));
}

static genai_status* load_decoder_step(json_value value, unsigned depth, decoder_state* s) {
  json_value type_name = json_get(value, "type");
  text_view type = json_string(type_name);
  decoder* out = s->out;
  if (text_view_equal_cstr(type, "Sequence")) {
    if (depth == MAX_NESTING) return json_bad_member(s->name, "decoder", "fewer sequences inside each other");
    json_iterator parts = json_iterate(json_get(value, "decoders"));
    for (json_value part; json_next(&parts, NULL, &part);) GENAI_TRY(load_decoder_step(part, depth + 1, s));
    return NULL;
  }
  if (text_view_equal_cstr(type, "ByteLevel")) {
    if (s->stage != STAGE_REPLACE || out->replace_count) return wrong_order(s, type);
    out->kind = DECODE_BYTE_LEVEL;
    s->stage = STAGE_DONE;
    return NULL;
  }
  if (s->stage == STAGE_DONE && !text_view_equal_cstr(type, "Fuse")) return wrong_order(s, type);
  if (text_view_equal_cstr(type, "Metaspace")) {
    if (s->stage != STAGE_REPLACE || out->replace_count) return wrong_order(s, type);
    return load_metaspace(value, s);
  }
  if (text_view_equal_cstr(type, "Replace")) {
    text_view pattern = json_string(json_get(json_get(value, "pattern"), "String"));
    text_view content = json_string(json_get(value, "content"));
    if (!pattern.length || !content.data) return json_bad_member(s->name, "decoder's Replace", "a String pattern and a content");
    if (s->stage != STAGE_REPLACE) return wrong_order(s, type);
    return decoder_add_replacement(out, pattern, content);
  }
  if (text_view_equal_cstr(type, "ByteFallback")) {
    if (s->stage > STAGE_BYTES) return wrong_order(s, type);
    out->bytes = BYTE_RUN_WHOLE;
    s->stage = STAGE_BYTES;
    return NULL;
  }
  if (text_view_equal_cstr(type, "Fuse")) {
    s->fused = true;
    if (s->stage < STAGE_FUSED) s->stage = STAGE_FUSED;
    return NULL;
  }
  if (text_view_equal_cstr(type, "Strip")) {
    text_view content = json_string(json_get(value, "content"));
    int64_t start = json_integer(json_get(value, "start"), 0), stop = json_integer(json_get(value, "stop"), 0);
    if (!content.length || start < 0 || stop < 0) return json_bad_member(s->name, "decoder's Strip", "a character and two counts");
    if (s->stage == STAGE_STRIP || (s->fused && stop)) return wrong_order(s, type);
    s->stage = STAGE_STRIP;
    return decoder_set_strip(out, content, (size_t)start, (size_t)stop, !s->fused);
  }
  return json_unsupported_type(s->name, "decoder", type_name, KNOWN_DECODERS);
}

genai_status* load_json_decoder(json_value value, const char* name, decoder* out) {
  json_type type = json_type_of(value);
  if (type == JSON_NULL || type == JSON_ABSENT) return NULL;
  out->kind = DECODE_PIECES;
  decoder_state state = {.name = name, .out = out};
  return load_decoder_step(value, 0, &state);
}

static genai_status* add_special(json_value special, text_view id, tokenizer* self, const char* name, template_ids* out) {
  char key[256];
  if (!id.length || id.length >= sizeof key) return json_bad_member(name, "post_processor", "a token name of at most 255 bytes in each");
  memcpy(key, id.data, id.length);
  key[id.length] = 0;
  json_value ids = json_get(json_get(special, key), "ids");
  if (!json_count(ids)) return json_bad_member(name, "post_processor's special_tokens", "the ids of every token in its template");
  json_iterator at = json_iterate(ids);
  for (json_value one; json_next(&at, NULL, &one);) {
    int64_t token = json_integer(one, -1);
    if (token < 0 || token >= self->tokens.count) return json_bad_member(name, "post_processor's ids", "ids of the vocabulary");
    GENAI_TRY(template_append(out, (int32_t)token));
  }
  return NULL;
}

static genai_status* load_template(json_value value, const char* name, tokenizer* self) {
  bool after = false;
  json_iterator pieces = json_iterate(json_get(value, "single"));
  for (json_value piece; json_next(&pieces, NULL, &piece);) {
    json_value special = json_get(piece, "SpecialToken");
    if (json_type_of(special) == JSON_ABSENT) {
      after = true;
      continue;
    }
    GENAI_TRY(add_special(json_get(value, "special_tokens"), json_string(json_get(special, "id")), self, name,
                          after ? &self->suffix : &self->prefix));
  }
  return NULL;
}

/* RobertaProcessing and BertProcessing: ["token", id] before and after. */
static genai_status* load_pair(json_value pair, const char* name, tokenizer* self, template_ids* out) {
  json_iterator at = json_iterate(pair);
  json_value member = {0};
  int64_t id = -1;
  while (json_next(&at, NULL, &member)) id = json_integer(member, -1);
  if (id < 0 || id >= self->tokens.count) return json_bad_member(name, "post_processor's cls and sep", "tokens with their ids");
  return template_append(out, (int32_t)id);
}

static genai_status* load_processor(json_value value, const char* name, unsigned depth, tokenizer* self) {
  json_type json = json_type_of(value);
  if (json == JSON_NULL || json == JSON_ABSENT) return NULL;
  json_value type_name = json_get(value, "type");
  text_view type = json_string(type_name);
  if (text_view_equal_cstr(type, "Sequence")) {
    if (depth == MAX_NESTING) return json_bad_member(name, "post_processor", "fewer sequences inside each other");
    json_iterator parts = json_iterate(json_get(value, "processors"));
    for (json_value part; json_next(&parts, NULL, &part);) GENAI_TRY(load_processor(part, name, depth + 1, self));
    return NULL;
  }
  if (text_view_equal_cstr(type, "ByteLevel")) return NULL; /* moves offsets only */
  if (text_view_equal_cstr(type, "TemplateProcessing")) return load_template(value, name, self);
  if (text_view_equal_cstr(type, "RobertaProcessing") || text_view_equal_cstr(type, "BertProcessing")) {
    GENAI_TRY(load_pair(json_get(value, "cls"), name, self, &self->prefix));
    return load_pair(json_get(value, "sep"), name, self, &self->suffix);
  }
  return json_unsupported_type(name, "post_processor", type_name,
                               "Sequence, ByteLevel, TemplateProcessing, RobertaProcessing, BertProcessing");
}

genai_status* load_json_post_processor(json_value value, const char* name, tokenizer* out) {
  return load_processor(value, name, 0, out);
}
