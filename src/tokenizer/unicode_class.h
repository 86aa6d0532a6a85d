/* Unicode classes as the reference tokenizer library sees them: the splits of a pre-tokenizer depend on them, so they follow its Unicode
 * version, not that of the system's libraries (tests/tools/make_tokenizer_unicode.py reads them from it). */
#ifndef GENAI_TOKENIZER_UNICODE_CLASS_H
#define GENAI_TOKENIZER_UNICODE_CLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "genai/status.h"

typedef enum unicode_class {
  UNICODE_OTHER, /* controls, unassigned, surrogates */
  UNICODE_LU,
  UNICODE_LL,
  UNICODE_LT,
  UNICODE_LM,
  UNICODE_LO,
  UNICODE_MARK,
  UNICODE_ND,
  UNICODE_NL,
  UNICODE_NO,
  UNICODE_NUMERIC_NEW, /* a number to Rust's standard library (Digits), not yet to Oniguruma (\p{N}) */
  UNICODE_PUNCT,
  UNICODE_PUNCT_NEW, /* \p{P}, but not for the Punctuation pre-tokenizer */
  UNICODE_SYMBOL,
  UNICODE_SYMBOL_PUNCT, /* \p{S}, but punctuation for the Punctuation pre-tokenizer */
  UNICODE_SPACE         /* White_Space, which is \s */
} unicode_class;

/* Sets of classes. */
#define UNICODE_BIT(class_) (1u << (class_))
#define UNICODE_LETTERS \
  (UNICODE_BIT(UNICODE_LU) | UNICODE_BIT(UNICODE_LL) | UNICODE_BIT(UNICODE_LT) | UNICODE_BIT(UNICODE_LM) | UNICODE_BIT(UNICODE_LO))
#define UNICODE_MARKS UNICODE_BIT(UNICODE_MARK)
#define UNICODE_NUMBERS (UNICODE_BIT(UNICODE_ND) | UNICODE_BIT(UNICODE_NL) | UNICODE_BIT(UNICODE_NO))
#define UNICODE_NUMERIC (UNICODE_NUMBERS | UNICODE_BIT(UNICODE_NUMERIC_NEW))
#define UNICODE_PUNCTUATION (UNICODE_BIT(UNICODE_PUNCT) | UNICODE_BIT(UNICODE_PUNCT_NEW))
#define UNICODE_SYMBOLS (UNICODE_BIT(UNICODE_SYMBOL) | UNICODE_BIT(UNICODE_SYMBOL_PUNCT))
#define UNICODE_SPACES UNICODE_BIT(UNICODE_SPACE)

/* Two-stage lookup: a page of 256 code points is of one class (index below 16) or has a page of classes. */
typedef struct unicode_classes {
  uint16_t index[0x1100];
  uint8_t* pages;
} unicode_classes;

genai_status* unicode_classes_init(unicode_classes* out) GENAI_MUST_USE;
void unicode_classes_deinit(unicode_classes* classes);

static inline unsigned unicode_class_of(const unicode_classes* classes, uint32_t codepoint) {
  unsigned page = classes->index[codepoint >> 8];
  return page < 16 ? page : classes->pages[(page - 16) << 8 | (codepoint & 255)];
}

static inline bool unicode_is(const unicode_classes* classes, uint32_t codepoint, uint32_t set) {
  return set >> unicode_class_of(classes, codepoint) & 1;
}

/* Regex \w of the reference's Rust regex library, near enough for single-word added tokens: letters, marks, decimal and letter numbers,
 * connector punctuation and the joiners. */
bool unicode_is_word(const unicode_classes* classes, uint32_t codepoint);

/* Bytes of the code point that starts at `*p`, which is valid UTF-8. */
static inline size_t utf8_length(const uint8_t* p) {
  return *p < 0x80 ? 1 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : 4;
}

/* The code point at `p` (valid UTF-8); `*length` is set to its bytes. */
static inline uint32_t utf8_next(const uint8_t* p, size_t* length) {
  if (p[0] < 0x80) {
    *length = 1;
    return p[0];
  }
  if (p[0] < 0xe0) {
    *length = 2;
    return (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
  }
  if (p[0] < 0xf0) {
    *length = 3;
    return (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
  }
  *length = 4;
  return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 | (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);
}

/* Where the code point before `p` starts (`begin` < `p`; valid UTF-8). */
static inline const uint8_t* utf8_previous(const uint8_t* begin, const uint8_t* p) {
  do p--;
  while (p > begin && (*p & 0xc0) == 0x80);
  return p;
}

#endif
