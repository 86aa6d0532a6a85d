/* The sequence of normalizing steps. The Unicode normal forms are in unicode_normal.c, SentencePiece's rules in charsmap.c. */
#include "tokenizer/normalizer.h"

#include <string.h>
#include <utf8proc.h>

#include "base/memory.h"

/* The most all steps may make of a text: rules of real tokenizers at most triple it, those of a damaged file could double it at every step. */
enum { MAX_GROWTH = 64, MAX_GROWTH_BYTES = 1 << 20 };

normalizer_step* normalizer_add(normalizer* self, normalizer_kind kind) {
  normalizer_step* steps = mem_realloc_array(self->steps, self->count + 1, sizeof *steps);
  if (!steps) return NULL;
  self->steps = steps;
  steps[self->count] = (normalizer_step){.kind = kind};
  return &steps[self->count++];
}

void normalizer_deinit(normalizer* self) {
  for (size_t i = 0; i < self->count; i++) {
    normalizer_step* step = &self->steps[i];
    mem_free(step->pattern);
    mem_free(step->source);
    regex_free(step->expression);
    mem_free(step->content);
    mem_free(step->blob);
  }
  mem_free(self->steps);
  *self = (normalizer){0};
}

static genai_status* replace_string(const normalizer_step* step, text_view in, text* out) {
  size_t copied = 0;
  for (size_t i = 0; step->pattern_length && i + step->pattern_length <= in.length;) {
    const char* at = memchr(in.data + i, step->pattern[0], in.length - i - step->pattern_length + 1);
    if (!at) break;
    i = (size_t)(at - in.data);
    if (memcmp(at, step->pattern, step->pattern_length) != 0) {
      i++;
      continue;
    }
    GENAI_TRY(text_append(out, in.data + copied, i - copied));
    GENAI_TRY(text_append(out, step->content, step->content_length));
    i += step->pattern_length;
    copied = i;
  }
  return text_append(out, in.data + copied, in.length - copied);
}

static genai_status* replace_regex(const normalizer_step* step, text_view in, text* out) {
  regex_cursor cursor;
  GENAI_TRY(regex_cursor_init(&cursor, step->expression));
  genai_status* status = NULL;
  size_t copied = 0, from = 0, begin, end, last_end = SIZE_MAX;
  bool found;
  while (!status && from <= in.length) {
    status = regex_search(&cursor, in, from, &found, &begin, &end);
    if (status || !found) break;
    from = end;
    if (begin == end) {
      from = end < in.length ? end + utf8_length((const uint8_t*)in.data + end) : end + 1;
      if (begin == last_end) continue;
    }
    last_end = end;
    status = text_append(out, in.data + copied, begin - copied);
    if (!status) status = text_append(out, step->content, step->content_length);
    copied = end;
  }
  if (!status) status = text_append(out, in.data + copied, in.length - copied);
  regex_cursor_deinit(&cursor);
  return status;
}

static genai_status* lowercase(text_view in, text* out) {
  for (size_t i = 0, length; i < in.length; i += length) {
    uint32_t c = utf8_next((const uint8_t*)in.data + i, &length);
    GENAI_TRY(text_append_codepoint(out, c == 0x130 ? 'i' : (uint32_t)utf8proc_tolower((utf8proc_int32_t)c)));
    if (c == 0x130) GENAI_TRY(text_append_codepoint(out, 0x307)); /* the one lower case of two code points */
  }
  return NULL;
}

static genai_status* strip(const normalizer_step* step, const unicode_classes* classes, text_view in, text* out) {
  const uint8_t *begin = (const uint8_t*)in.data, *end = begin + in.length;
  size_t length;
  while (step->left && begin < end && unicode_is(classes, utf8_next(begin, &length), UNICODE_SPACES)) begin += length;
  while (step->right && begin < end) {
    const uint8_t* last = utf8_previous(begin, end);
    if (!unicode_is(classes, utf8_next(last, &length), UNICODE_SPACES)) break;
    end = last;
  }
  return text_append(out, (const char*)begin, (size_t)(end - begin));
}

static genai_status* strip_accents(const unicode_classes* classes, text_view in, text* out) {
  for (size_t i = 0, length; i < in.length; i += length) {
    uint32_t c = utf8_next((const uint8_t*)in.data + i, &length);
    if (!unicode_is(classes, c, UNICODE_MARKS)) GENAI_TRY(text_append(out, in.data + i, length));
  }
  return NULL;
}

static genai_status* nmt(text_view in, text* out) {
  for (size_t i = 0, length; i < in.length; i += length) {
    uint32_t c = utf8_next((const uint8_t*)in.data + i, &length);
    if ((c >= 1 && c <= 8) || c == 0x0b || (c >= 0x0e && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f) continue;
    bool space = c == 9 || c == 0x0a || c == 0x0c || c == 0x0d || c == 0x1680 || (c >= 0x200b && c <= 0x200f) || c == 0x2028 ||
                 c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
    GENAI_TRY(space ? text_append_char(out, ' ') : text_append(out, in.data + i, length));
  }
  return NULL;
}

static genai_status* run_step(const normalizer_step* step, const unicode_classes* classes, text_view in, text* out) {
  switch (step->kind) {
    case NORMALIZE_NFC:
    case NORMALIZE_NFD:
    case NORMALIZE_NFKC:
    case NORMALIZE_NFKD:
      return normalize_unicode(step->kind, in, out);
    case NORMALIZE_LOWERCASE:
      return lowercase(in, out);
    case NORMALIZE_STRIP:
      return strip(step, classes, in, out);
    case NORMALIZE_STRIP_ACCENTS:
      return strip_accents(classes, in, out);
    case NORMALIZE_PREPEND:
      if (in.length) GENAI_TRY(text_append(out, step->content, step->content_length));
      return text_append(out, in.data, in.length);
    case NORMALIZE_REPLACE:
      return step->expression ? replace_regex(step, in, out) : replace_string(step, in, out);
    case NORMALIZE_NMT:
      return nmt(in, out);
    case NORMALIZE_BYTE_LEVEL:
      return byte_level_append(in, out);
    case NORMALIZE_CHARSMAP:
      return charsmap_by_grapheme(&step->map, in, out);
    case NORMALIZE_SENTENCEPIECE:
      return sentencepiece_normalize(step, in, out);
  }
  return genai_status_create(GENAI_ERROR_INTERNAL, "unknown normalizer %d", (int)step->kind);
}

genai_status* normalizer_run(const normalizer* self, const unicode_classes* classes, text_view in, text* out, text* spare,
                             text_view* result) {
  text *target = out, *other = spare;
  size_t most = in.length * MAX_GROWTH + MAX_GROWTH_BYTES;
  for (size_t i = 0; i < self->count; i++) {
    text_clear(target);
    GENAI_TRY(run_step(&self->steps[i], classes, in, target));
    if (target->length > most) {
      return genai_status_create(GENAI_ERROR_LIMIT,
                                 "normalizing makes a text of %zu bytes out of %zu: the tokenizer's rules do not fit text", target->length,
                                 in.length);
    }
    in = (text_view){target->data ? target->data : "", target->length};
    text* used = target;
    target = other;
    other = used;
  }
  *result = in;
  return NULL;
}
