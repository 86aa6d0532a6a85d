/* SentencePiece's compiled normalization rules: the double array (Darts-clone's unit layout) and the two ways they are applied, that of
 * SentencePiece itself and that of the reference tokenizer library. */
#include <string.h>
#include <utf8proc.h>

#include "tokenizer/normalizer.h"

#define LOWER_BLOCK "\xe2\x96\x81" /* U+2581, which stands for a space */

static uint32_t unit_at(const charsmap* map, size_t index) {
  const uint8_t* p = map->units + 4 * index;
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

genai_status* charsmap_open(const char* data, size_t length, charsmap* out) {
  *out = (charsmap){0};
  if (!length) return NULL;
  uint32_t trie = 0;
  if (length > 4) {
    const uint8_t* p = (const uint8_t*)data;
    trie = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
  }
  if (length <= 4 || trie < 4 || trie % 4 || trie >= length - 4 || data[length - 1] != 0) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "precompiled_charsmap of %zu bytes is damaged (its trie claims %u bytes)", length,
                               (unsigned)trie);
  }
  *out = (charsmap){(const uint8_t*)data + 4, trie / 4, data + 4 + trie, length - 4 - trie};
  return NULL;
}

static size_t unit_offset(uint32_t unit) {
  return (size_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

text_view charsmap_find(const charsmap* map, text_view in, bool longest, size_t* consumed) {
  text_view found = {NULL, 0};
  if (!map->unit_count) return found;
  size_t node = unit_offset(unit_at(map, 0));
  for (size_t i = 0; i < in.length; i++) {
    uint8_t label = (uint8_t)in.data[i];
    node ^= label;
    if (label == 0 || node >= map->unit_count) break;
    uint32_t unit = unit_at(map, node);
    if ((unit & (1u << 31 | 0xff)) != label) break;
    node ^= unit_offset(unit);
    if (unit >> 8 & 1) { /* a key ends here: its value is in the leaf */
      if (node >= map->unit_count) break;
      size_t value = unit_at(map, node) & ~(1u << 31);
      if (value >= map->strings_length) break;
      found = (text_view){map->strings + value, strlen(map->strings + value)};
      *consumed = i + 1;
      if (!longest) break;
    }
  }
  return found;
}

/* The reference looks a whole grapheme cluster up when it is shorter than 6 bytes, taking the rule of the shortest prefix for all of it,
 * and otherwise each code point by itself. */
genai_status* charsmap_by_grapheme(const charsmap* map, text_view in, text* out) {
  for (size_t begin = 0; begin < in.length;) {
    size_t end = begin, length, consumed;
    utf8proc_int32_t state = 0;
    uint32_t previous = utf8_next((const uint8_t*)in.data + end, &length);
    end += length;
    while (end < in.length) {
      uint32_t next = utf8_next((const uint8_t*)in.data + end, &length);
      if (utf8proc_grapheme_break_stateful((utf8proc_int32_t)previous, (utf8proc_int32_t)next, &state)) break;
      previous = next;
      end += length;
    }
    if (end - begin < 6) {
      text_view rule = charsmap_find(map, (text_view){in.data + begin, end - begin}, false, &consumed);
      if (rule.data) {
        GENAI_TRY(text_append(out, rule.data, rule.length));
        begin = end;
        continue;
      }
    }
    while (begin < end) {
      length = utf8_length((const uint8_t*)in.data + begin);
      text_view rule = charsmap_find(map, (text_view){in.data + begin, length}, false, &consumed);
      GENAI_TRY(rule.data ? text_append(out, rule.data, rule.length) : text_append(out, in.data + begin, length));
      begin += length;
    }
  }
  return NULL;
}

/* One unit of SentencePiece's normalization at the start of `in`: a user-defined piece as it is, the longest rule, or a code point. */
static text_view next_unit(const normalizer_step* step, text_view in, size_t* consumed) {
  if (step->keep) {
    const prefix_entry* kept = prefix_set_longest(step->keep, in.data, in.length);
    if (kept) {
      *consumed = kept->key.length;
      return (text_view){in.data, kept->key.length};
    }
  }
  text_view rule = charsmap_find(&step->map, in, true, consumed);
  if (rule.data) return rule;
  *consumed = utf8_length((const uint8_t*)in.data);
  return (text_view){in.data, *consumed};
}

static bool ends_with(const text* out, size_t from, const char* end) {
  size_t length = strlen(end);
  return out->length - from >= length && memcmp(out->data + out->length - length, end, length) == 0;
}

/* As sentencepiece's Normalizer::Normalize (src/normalizer.cc) does it. */
genai_status* sentencepiece_normalize(const normalizer_step* step, text_view in, text* out) {
  size_t start = out->length, consumed;
  const char* space = step->escape_whitespaces ? LOWER_BLOCK : " ";
  if (step->remove_extra_whitespaces) {
    while (in.length && text_view_equal_cstr(next_unit(step, in, &consumed), " ")) {
      in.data += consumed;
      in.length -= consumed;
    }
  }
  if (!in.length) return NULL;
  if (step->add_dummy_prefix && !step->whitespace_suffix) GENAI_TRY(text_append_cstr(out, space));
  bool after_space = step->remove_extra_whitespaces;
  while (in.length) {
    text_view unit = next_unit(step, in, &consumed);
    while (after_space && unit.length && unit.data[0] == ' ') {
      unit.data++;
      unit.length--;
    }
    for (size_t i = 0; i < unit.length; i++) {
      if (unit.data[i] == ' ')
        GENAI_TRY(text_append_cstr(out, space));
      else
        GENAI_TRY(text_append_char(out, unit.data[i]));
    }
    if (unit.length) after_space = step->remove_extra_whitespaces && unit.data[unit.length - 1] == ' ';
    in.data += consumed;
    in.length -= consumed;
  }
  if (step->remove_extra_whitespaces) {
    while (ends_with(out, start, space)) out->length -= strlen(space);
    if (out->data) out->data[out->length] = 0;
  }
  if (step->add_dummy_prefix && step->whitespace_suffix) GENAI_TRY(text_append_cstr(out, space));
  return NULL;
}
