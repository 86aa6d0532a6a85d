/* The scanners. Each follows its regular expression alternative by alternative, with the backtracking that the expression implies worked
 * out by hand; tests compare them with the reference on texts of every Unicode class. */
#include "tokenizer/scanner.h"

#include <string.h>

#define SPACED_TAIL "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define BEFORE_WORD "[^\\r\\n\\p{L}\\p{N}]?"

const char scanner_gpt2_regex[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

static const scanner scanners[] = {
    {.pattern = SCANNER_GPT2, .regex = scanner_gpt2_regex},
    /* llama3 */
    {.pattern = SCANNER_WORDS,
     .max_digits = 3,
     .contractions = true,
     .letters = UNICODE_LETTERS,
     .regex = CONTRACTIONS "|" BEFORE_WORD "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACED_TAIL},
    /* qwen2 */
    {.pattern = SCANNER_WORDS,
     .max_digits = 1,
     .contractions = true,
     .letters = UNICODE_LETTERS,
     .regex = CONTRACTIONS "|" BEFORE_WORD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACED_TAIL},
    /* cl100k with any number of digits */
    {.pattern = SCANNER_WORDS,
     .max_digits = 0,
     .contractions = true,
     .letters = UNICODE_LETTERS,
     .regex = CONTRACTIONS "|" BEFORE_WORD "\\p{L}+|\\p{N}+| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACED_TAIL},
    /* qwen3.5 */
    {.pattern = SCANNER_WORDS,
     .max_digits = 1,
     .contractions = true,
     .letters = UNICODE_LETTERS | UNICODE_MARKS,
     .regex = CONTRACTIONS "|" BEFORE_WORD "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" SPACED_TAIL},
    /* seed-coder */
    {.pattern = SCANNER_WORDS,
     .max_digits = 1,
     .contractions = true,
     .letters = UNICODE_LETTERS,
     .no_line_ends = true,
     .regex = CONTRACTIONS "|" BEFORE_WORD "\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+" SPACED_TAIL},
    /* bailing */
    {.pattern = SCANNER_WORDS,
     .max_digits = 1,
     .contractions = true,
     .letters = UNICODE_LETTERS,
     .regex = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"},
    /* o200k: gpt-4o, llama4 */
    {.pattern = SCANNER_CASED,
     .max_digits = 3,
     .contractions = true,
     .slash_after_symbols = true,
     .regex = BEFORE_WORD UPPER "*" LOWER "+" CONTRACTIONS "?|" BEFORE_WORD UPPER "+" LOWER "*" CONTRACTIONS
                                "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACED_TAIL},
    /* tekken */
    {.pattern = SCANNER_CASED,
     .max_digits = 1,
     .slash_after_symbols = true,
     .regex = BEFORE_WORD UPPER "*" LOWER "+|" BEFORE_WORD UPPER "+" LOWER "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACED_TAIL},
};

const scanner* scanner_find(text_view regex) {
  for (size_t i = 0; i < sizeof scanners / sizeof scanners[0]; i++) {
    if (text_view_equal_cstr(regex, scanners[i].regex)) return &scanners[i];
  }
  return NULL;
}

/* The end of the run of code points whose class is in `set`. */
static const uint8_t* run_of(const unicode_classes* classes, uint32_t set, const uint8_t* p, const uint8_t* end) {
  size_t length;
  while (p < end && unicode_is(classes, utf8_next(p, &length), set)) p += length;
  return p;
}

/* 's 't 're 've 'm 'll 'd at `p`: the bytes it takes, or 0. Ignoring case, U+017F (long s) is an s. */
static size_t contraction(const uint8_t* p, const uint8_t* end, bool ignore_case) {
  if (end - p < 2 || p[0] != '\'') return 0;
  uint8_t fold = ignore_case ? 0x20 : 0;
  uint8_t a = p[1] >= 0x80 ? 0 : p[1] | fold;
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  if (ignore_case && end - p >= 3 && p[1] == 0xc5 && p[2] == 0xbf) return 3;
  if (end - p < 3 || p[2] >= 0x80) return 0;
  uint8_t b = p[2] | fold;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return 3;
  return 0;
}

/* White space at `p`, when nothing else matched: all of it at the end of the text, otherwise all but the last, which goes with what
 * follows, unless it is the only one. */
static const uint8_t* white_space(const unicode_classes* classes, const uint8_t* p, const uint8_t* end) {
  const uint8_t* q = run_of(classes, UNICODE_SPACES, p, end);
  if (q == end) return q;
  const uint8_t* last = utf8_previous(p, q);
  return last > p ? last : q;
}

static size_t next_gpt2(const unicode_classes* classes, const uint8_t* p, const uint8_t* end) {
  size_t length = contraction(p, end, false);
  if (length) return length;
  const uint8_t* q = p;
  uint32_t c = utf8_next(q, &length);
  if (c == ' ' && q + 1 < end) c = utf8_next(++q, &length);
  unsigned class = unicode_class_of(classes, c);
  const uint32_t other = ~(UNICODE_SPACES | UNICODE_LETTERS | UNICODE_NUMBERS);
  if (class == UNICODE_SPACE) return (size_t)(white_space(classes, p, end) - p);
  uint32_t set = UNICODE_LETTERS >> class & 1 ? UNICODE_LETTERS : UNICODE_NUMBERS >> class & 1 ? UNICODE_NUMBERS : other;
  return (size_t)(run_of(classes, set, q + length, end) - p);
}

/* The alternatives after words, which the cl100k and o200k patterns share: digits, symbols, white space. */
static size_t next_after_words(const scanner* self, const unicode_classes* classes, const uint8_t* p, const uint8_t* end,
                               uint32_t not_symbols) {
  size_t length;
  uint32_t c = utf8_next(p, &length);
  unsigned class = unicode_class_of(classes, c);
  if (UNICODE_NUMBERS >> class & 1) {
    const uint8_t* q = p + length;
    if (!self->max_digits) return (size_t)(run_of(classes, UNICODE_NUMBERS, q, end) - p);
    for (unsigned i = 1; i < self->max_digits && q < end && unicode_is(classes, utf8_next(q, &length), UNICODE_NUMBERS); i++) q += length;
    return (size_t)(q - p);
  }
  const uint8_t* q = p;
  if (c == ' ' && q + 1 < end) class = unicode_class_of(classes, utf8_next(++q, &length));
  if (!(not_symbols >> class & 1)) {
    q = run_of(classes, ~not_symbols, q + length, end);
    while (!self->no_line_ends && q < end && (*q == '\r' || *q == '\n' || (self->slash_after_symbols && *q == '/'))) q++;
    return (size_t)(q - p);
  }
  /* White space: up to the last line end in the run, when there is one. */
  const uint8_t* run = run_of(classes, UNICODE_SPACES, p, end);
  for (const uint8_t* last = run; last > p; last--) {
    if (last[-1] != '\r' && last[-1] != '\n') continue;
    return (size_t)(last - p);
  }
  return (size_t)(white_space(classes, p, end) - p);
}

static bool is_line_end(uint32_t c) {
  return c == '\r' || c == '\n';
}

static size_t next_words(const scanner* self, const unicode_classes* classes, const uint8_t* p, const uint8_t* end) {
  size_t length;
  if (*p == '\'' && self->contractions) {
    length = contraction(p, end, true);
    if (length) return length;
  }
  uint32_t c = utf8_next(p, &length);
  unsigned class = unicode_class_of(classes, c);
  if (self->letters >> class & 1) return (size_t)(run_of(classes, self->letters, p + length, end) - p);
  if (!is_line_end(c) && !(UNICODE_NUMBERS >> class & 1) && p + length < end) {
    size_t next;
    if (unicode_is(classes, utf8_next(p + length, &next), self->letters)) {
      return (size_t)(run_of(classes, self->letters, p + length + next, end) - p);
    }
  }
  return next_after_words(self, classes, p, end, UNICODE_SPACES | self->letters | UNICODE_NUMBERS);
}

/* U*W+ at `p`, where U are upper-case-like and W lower-case-like classes, which share some: the end of the match, or NULL. After the
 * longest U*, W+ either goes on behind it or takes back the last shared code point. */
static const uint8_t* upper_then_lower(const unicode_classes* classes, const uint8_t* p, const uint8_t* end) {
  const uint32_t shared = UNICODE_BIT(UNICODE_LM) | UNICODE_BIT(UNICODE_LO) | UNICODE_BIT(UNICODE_MARK);
  const uint32_t upper = UNICODE_BIT(UNICODE_LU) | UNICODE_BIT(UNICODE_LT) | shared, lower = UNICODE_BIT(UNICODE_LL) | shared;
  const uint8_t* u = run_of(classes, upper, p, end);
  const uint8_t* w = run_of(classes, lower, u, end);
  if (w > u) return w;
  while (u > p) {
    const uint8_t* before = utf8_previous(p, u);
    size_t length;
    if (unicode_is(classes, utf8_next(before, &length), shared)) return u;
    u = before;
  }
  return NULL;
}

static size_t next_cased(const scanner* self, const unicode_classes* classes, const uint8_t* p, const uint8_t* end) {
  size_t length;
  uint32_t c = utf8_next(p, &length);
  unsigned class = unicode_class_of(classes, c);
  /* One code point that is no letter, number or line end may come before the word. */
  const uint8_t* after = !is_line_end(c) && !((UNICODE_LETTERS | UNICODE_NUMBERS) >> class & 1) ? p + length : NULL;
  const uint8_t* word = after ? upper_then_lower(classes, after, end) : NULL;
  if (!word) word = upper_then_lower(classes, p, end);
  if (!word) { /* U+W*: there is no W, or the first form would have matched */
    const uint32_t upper = UNICODE_BIT(UNICODE_LU) | UNICODE_BIT(UNICODE_LT);
    const uint8_t* from = after ? after : p;
    const uint8_t* run = run_of(classes, upper, from, end);
    if (run > from) word = run;
  }
  if (word) {
    if (self->contractions) word += contraction(word, end, true);
    return (size_t)(word - p);
  }
  return next_after_words(self, classes, p, end, UNICODE_SPACES | UNICODE_LETTERS | UNICODE_NUMBERS);
}

size_t scanner_next(const scanner* self, const unicode_classes* classes, const uint8_t* begin, const uint8_t* end) {
  switch (self->pattern) {
    case SCANNER_GPT2:
      return next_gpt2(classes, begin, end);
    case SCANNER_WORDS:
      return next_words(self, classes, begin, end);
    case SCANNER_CASED:
      break;
  }
  return next_cased(self, classes, begin, end);
}
