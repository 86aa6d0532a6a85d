/* Runs the splitting steps. The patterns themselves are in scanner.c and regex.c; which steps a tokenizer has is decided by its loader. */
#include "tokenizer/segmenter.h"

#include <string.h>

#include "base/memory.h"
#include "tokenizer/normalizer.h"

segment_step* segmenter_add(segmenter* self, segment_kind kind) {
  segment_step* steps = mem_realloc_array(self->steps, self->count + 1, sizeof *steps);
  if (!steps) return NULL;
  self->steps = steps;
  steps[self->count] = (segment_step){.kind = kind};
  return &steps[self->count++];
}

genai_status* segmenter_add_regex(segmenter* self, text_view expression, split_behavior behavior, bool invert) {
  const scanner* scan = scanner_find(expression);
  /* Where every match follows the last one, isolated matches, inverted or not, and removed gaps come to the same. */
  if (scan && (behavior == SPLIT_ISOLATED || (behavior == SPLIT_REMOVED && invert))) {
    segment_step* step = segmenter_add(self, SEGMENT_SCANNER);
    if (!step) return genai_status_out_of_memory();
    step->scan = scan;
    return NULL;
  }
  segment_step* step = segmenter_add(self, SEGMENT_REGEX);
  if (!step) return genai_status_out_of_memory();
  step->behavior = behavior;
  step->invert = invert;
  step->source = mem_strndup(expression.data, expression.length);
  if (!step->source) return genai_status_out_of_memory();
  return regex_compile(expression, &step->expression);
}

void segmenter_deinit(segmenter* self) {
  for (size_t i = 0; i < self->count; i++) {
    mem_free(self->steps[i].source);
    regex_free(self->steps[i].expression);
    mem_free(self->steps[i].string);
  }
  mem_free(self->steps);
  *self = (segmenter){0};
}

genai_status* segmenter_scratch_init(segmenter_scratch* scratch, const segmenter* self) {
  *scratch = (segmenter_scratch){0};
  if (!self->count) return NULL;
  scratch->cursors = mem_calloc(self->count, sizeof *scratch->cursors);
  scratch->buffers = mem_calloc(2 * self->count, sizeof *scratch->buffers);
  if (!scratch->cursors || !scratch->buffers) {
    segmenter_scratch_deinit(scratch);
    return genai_status_out_of_memory();
  }
  scratch->count = self->count;
  return NULL;
}

void segmenter_scratch_deinit(segmenter_scratch* scratch) {
  for (size_t i = 0; i < scratch->count; i++) {
    regex_cursor_deinit(&scratch->cursors[i]);
    text_deinit(&scratch->buffers[2 * i]);
    text_deinit(&scratch->buffers[2 * i + 1]);
  }
  mem_free(scratch->cursors);
  mem_free(scratch->buffers);
  *scratch = (segmenter_scratch){0};
}

typedef struct run {
  const segmenter* self;
  const unicode_classes* classes;
  segmenter_scratch* scratch;
  segment_sink sink;
  void* user;
} run;

static genai_status* run_from(const run* r, size_t step, text_view piece, bool at_start);

/* Collects the matches and gaps of one piece and passes them on as the behaviour says. */
typedef struct splitter {
  const run* r;
  size_t next_step;
  split_behavior behavior;
  bool invert;
  text_view piece;
  bool at_start;
  size_t begin, end; /* the piece being collected */
  bool pending, pending_is_match, previous_match;
} splitter;

static genai_status* pass_on(splitter* s, size_t begin, size_t end) {
  if (begin == end) return NULL;
  return run_from(s->r, s->next_step, (text_view){s->piece.data + begin, end - begin}, s->at_start && begin == 0);
}

static genai_status* flush(splitter* s) {
  if (!s->pending) return NULL;
  s->pending = false;
  return pass_on(s, s->begin, s->end);
}

static genai_status* feed(splitter* s, size_t begin, size_t end, bool is_match) {
  is_match ^= s->invert;
  bool extend = false;
  switch (s->behavior) {
    case SPLIT_ISOLATED:
      return pass_on(s, begin, end);
    case SPLIT_REMOVED:
      return is_match ? NULL : pass_on(s, begin, end);
    case SPLIT_CONTIGUOUS:
      extend = s->pending && is_match == s->previous_match;
      break;
    case SPLIT_WITH_PREVIOUS:
      extend = s->pending && is_match && !s->previous_match;
      break;
    case SPLIT_WITH_NEXT:
      extend = s->pending && s->pending_is_match && !is_match;
      break;
  }
  s->previous_match = is_match;
  if (extend) {
    s->end = end;
    s->pending_is_match = false;
    return NULL;
  }
  GENAI_TRY(flush(s));
  s->begin = begin;
  s->end = end;
  s->pending = true;
  s->pending_is_match = is_match;
  return NULL;
}

static genai_status* split_by_regex(const run* r, size_t index, splitter* s) {
  regex_cursor* cursor = &r->scratch->cursors[index];
  if (!cursor->expression) GENAI_TRY(regex_cursor_init(cursor, r->self->steps[index].expression));
  size_t gap = 0, from = 0, begin, end, last_end = SIZE_MAX;
  bool found;
  while (from <= s->piece.length) {
    GENAI_TRY(regex_search(cursor, s->piece, from, &found, &begin, &end));
    if (!found) break;
    from = end;
    if (begin == end) {
      from = end < s->piece.length ? end + utf8_length((const uint8_t*)s->piece.data + end) : end + 1;
      if (begin == last_end) continue;
    }
    last_end = end;
    if (gap < begin) GENAI_TRY(feed(s, gap, begin, false));
    GENAI_TRY(feed(s, begin, end, true));
    gap = end;
  }
  if (gap < s->piece.length) GENAI_TRY(feed(s, gap, s->piece.length, false));
  return flush(s);
}

static genai_status* split_by_string(const segment_step* step, splitter* s) {
  size_t gap = 0;
  while (step->string_length && s->piece.length - gap >= step->string_length) {
    const char* at = memmem(s->piece.data + gap, s->piece.length - gap, step->string, step->string_length);
    if (!at) break;
    size_t begin = (size_t)(at - s->piece.data);
    if (gap < begin) GENAI_TRY(feed(s, gap, begin, false));
    gap = begin + step->string_length;
    GENAI_TRY(feed(s, begin, gap, true));
  }
  if (gap < s->piece.length) GENAI_TRY(feed(s, gap, s->piece.length, false));
  return flush(s);
}

/* The Punctuation pre-tokenizer's set: ASCII punctuation and what an older Unicode version called punctuation. */
static bool is_punctuation(const unicode_classes* classes, uint32_t c) {
  if (c < 128) return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  return c == 0x111c9 || unicode_is(classes, c, UNICODE_BIT(UNICODE_PUNCT) | UNICODE_BIT(UNICODE_SYMBOL_PUNCT));
}

static genai_status* split_by_class(const segment_step* step, splitter* s) {
  size_t gap = 0, length;
  for (size_t i = 0; i < s->piece.length; i += length) {
    uint32_t c = utf8_next((const uint8_t*)s->piece.data + i, &length);
    bool match = step->kind == SEGMENT_PUNCTUATION ? is_punctuation(s->r->classes, c) : unicode_is(s->r->classes, c, step->set);
    if (!match) continue;
    if (gap < i) GENAI_TRY(feed(s, gap, i, false));
    gap = i + length;
    GENAI_TRY(feed(s, i, gap, true));
  }
  if (gap < s->piece.length) GENAI_TRY(feed(s, gap, s->piece.length, false));
  return flush(s);
}

static genai_status* split_words(const run* r, size_t next, text_view piece, bool at_start) {
  enum { SPACE, WORD, OTHER } kind, run_kind = SPACE;
  size_t begin = 0, length;
  for (size_t i = 0; i < piece.length; i += length) {
    uint32_t c = utf8_next((const uint8_t*)piece.data + i, &length);
    kind = unicode_is(r->classes, c, UNICODE_SPACES) ? SPACE : unicode_is_word(r->classes, c) ? WORD : OTHER;
    if (kind == run_kind) continue;
    if (run_kind != SPACE) GENAI_TRY(run_from(r, next, (text_view){piece.data + begin, i - begin}, at_start && !begin));
    begin = i;
    run_kind = kind;
  }
  if (run_kind == SPACE) return NULL;
  return run_from(r, next, (text_view){piece.data + begin, piece.length - begin}, at_start && !begin);
}

static genai_status* split_fixed(const run* r, size_t next, size_t count, text_view piece, bool at_start) {
  for (size_t begin = 0, end = 0; begin < piece.length; begin = end) {
    for (size_t i = 0; i < count && end < piece.length; i++) end += utf8_length((const uint8_t*)piece.data + end);
    GENAI_TRY(run_from(r, next, (text_view){piece.data + begin, end - begin}, at_start && !begin));
  }
  return NULL;
}

static genai_status* metaspace(const run* r, size_t index, text_view piece, bool at_start) {
  const segment_step* step = &r->self->steps[index];
  text* buffer = &r->scratch->buffers[2 * index];
  text_clear(buffer);
  bool has_one = piece.length && (piece.data[0] == ' ' ||
                                  (piece.length >= step->string_length && memcmp(piece.data, step->string, step->string_length) == 0));
  if (!has_one && (step->prepend == PREPEND_ALWAYS || (step->prepend == PREPEND_FIRST && at_start))) {
    GENAI_TRY(text_append(buffer, step->string, step->string_length));
  }
  for (size_t i = 0; i < piece.length;) {
    const char* space = memchr(piece.data + i, ' ', piece.length - i);
    size_t end = space ? (size_t)(space - piece.data) : piece.length;
    GENAI_TRY(text_append(buffer, piece.data + i, end - i));
    if (space) GENAI_TRY(text_append(buffer, step->string, step->string_length));
    i = end + (space != NULL);
  }
  splitter s = {.r = r, .next_step = index + 1, .behavior = SPLIT_WITH_NEXT, .piece = {buffer->data, buffer->length}, .at_start = at_start};
  return step->split ? split_by_string(step, &s) : pass_on(&s, 0, buffer->length);
}

static genai_status* byte_level_word(const run* r, size_t index, text_view word, bool at_start) {
  if (!r->self->steps[index].map) return run_from(r, index + 1, word, at_start);
  text* buffer = &r->scratch->buffers[2 * index + 1];
  text_clear(buffer);
  GENAI_TRY(byte_level_append(word, buffer));
  return run_from(r, index + 1, (text_view){buffer->data, buffer->length}, at_start);
}

static genai_status* byte_level(const run* r, size_t index, text_view piece, bool at_start) {
  const segment_step* step = &r->self->steps[index];
  if (step->prepend == PREPEND_ALWAYS && piece.data[0] != ' ') {
    text* buffer = &r->scratch->buffers[2 * index];
    text_clear(buffer);
    GENAI_TRY(text_append_char(buffer, ' '));
    GENAI_TRY(text_append(buffer, piece.data, piece.length));
    piece = (text_view){buffer->data, buffer->length};
  }
  if (!step->split) return byte_level_word(r, index, piece, at_start);
  const uint8_t *p = (const uint8_t*)piece.data, *end = p + piece.length;
  while (p < end) {
    size_t length = scanner_next(step->scan, r->classes, p, end);
    GENAI_TRY(byte_level_word(r, index, (text_view){(const char*)p, length}, at_start && p == (const uint8_t*)piece.data));
    p += length;
  }
  return NULL;
}

static genai_status* run_from(const run* r, size_t index, text_view piece, bool at_start) {
  if (!piece.length) return NULL;
  if (index == r->self->count) return r->sink(r->user, piece);
  const segment_step* step = &r->self->steps[index];
  splitter s = {.r = r, .next_step = index + 1, .behavior = step->behavior, .invert = step->invert, .piece = piece, .at_start = at_start};
  switch (step->kind) {
    case SEGMENT_SCANNER: {
      const uint8_t *p = (const uint8_t*)piece.data, *end = p + piece.length;
      while (p < end) {
        size_t length = scanner_next(step->scan, r->classes, p, end);
        GENAI_TRY(run_from(r, index + 1, (text_view){(const char*)p, length}, at_start && p == (const uint8_t*)piece.data));
        p += length;
      }
      return NULL;
    }
    case SEGMENT_REGEX:
      return split_by_regex(r, index, &s);
    case SEGMENT_STRING:
      return split_by_string(step, &s);
    case SEGMENT_CLASS:
    case SEGMENT_PUNCTUATION:
      return split_by_class(step, &s);
    case SEGMENT_WORDS:
      return split_words(r, index + 1, piece, at_start);
    case SEGMENT_METASPACE:
      return metaspace(r, index, piece, at_start);
    case SEGMENT_BYTE_LEVEL:
      return byte_level(r, index, piece, at_start);
    case SEGMENT_FIXED:
      return split_fixed(r, index + 1, step->length, piece, at_start);
  }
  return genai_status_create(GENAI_ERROR_INTERNAL, "unknown segmenter step %d", (int)step->kind);
}

genai_status* segmenter_run(const segmenter* self, const unicode_classes* classes, segmenter_scratch* scratch, text_view piece,
                            bool at_start, segment_sink sink, void* user) {
  run r = {self, classes, scratch, sink, user};
  return run_from(&r, 0, piece, at_start);
}
