/* Normalizers: text to text, before the text is split. A tokenizer has a sequence of them; each is one step. */
#ifndef GENAI_TOKENIZER_NORMALIZER_H
#define GENAI_TOKENIZER_NORMALIZER_H

#include "tokenizer/prefix_set.h"
#include "tokenizer/regex.h"
#include "tokenizer/unicode_class.h"

typedef enum normalizer_kind {
  NORMALIZE_NFC,
  NORMALIZE_NFD,
  NORMALIZE_NFKC,
  NORMALIZE_NFKD,
  NORMALIZE_LOWERCASE,
  NORMALIZE_STRIP,         /* white space at the ends */
  NORMALIZE_STRIP_ACCENTS, /* combining marks */
  NORMALIZE_PREPEND,       /* `content` before a text that is not empty */
  NORMALIZE_REPLACE,       /* `pattern` or `expression` by `content` */
  NORMALIZE_NMT,           /* the control and space rules of SentencePiece's nmt */
  NORMALIZE_BYTE_LEVEL,    /* every byte as its printable character */
  NORMALIZE_CHARSMAP,      /* SentencePiece's compiled rules, grapheme by grapheme (the reference's Precompiled) */
  NORMALIZE_SENTENCEPIECE  /* SentencePiece's own normalizer: compiled rules longest first, spaces, dummy prefix */
} normalizer_kind;

/* SentencePiece's precompiled_charsmap: a Darts double array and the replacement strings it points into. Borrows `data`. */
typedef struct charsmap {
  const uint8_t* units; /* little-endian 32-bit, unaligned */
  size_t unit_count;
  const char* strings; /* NUL-terminated strings */
  size_t strings_length;
} charsmap;

typedef struct normalizer_step {
  normalizer_kind kind;
  bool left, right; /* STRIP */
  char* pattern;    /* REPLACE of a string; owned */
  size_t pattern_length;
  char* source;      /* REPLACE of a regular expression: as it stands in the file; owned */
  regex* expression; /* owned */
  char* content;     /* PREPEND, REPLACE; owned */
  size_t content_length;
  char* blob; /* CHARSMAP, SENTENCEPIECE; owned */
  size_t blob_length;
  charsmap map;                                                                           /* into blob */
  bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces, whitespace_suffix; /* SENTENCEPIECE */
  const prefix_set* keep; /* SENTENCEPIECE: user-defined pieces, which no rule touches; borrowed */
} normalizer_step;

typedef struct normalizer {
  normalizer_step* steps;
  size_t count;
} normalizer;

/* Appends a zeroed step and returns it; NULL when memory is out. */
normalizer_step* normalizer_add(normalizer* self, normalizer_kind kind);
void normalizer_deinit(normalizer* self);

/* Normalizes valid UTF-8 `in` into `out` (cleared first), with `spare` as working memory. `*result` views `in` when nothing changed. */
genai_status* normalizer_run(const normalizer* self, const unicode_classes* classes, text_view in, text* out, text* spare,
                             text_view* result) GENAI_MUST_USE;

/* NFC, NFD, NFKC or NFKD of `in`, appended. */
genai_status* normalize_unicode(normalizer_kind form, text_view in, text* out) GENAI_MUST_USE;

/* Checks a precompiled_charsmap and finds its parts. */
genai_status* charsmap_open(const char* data, size_t length, charsmap* out) GENAI_MUST_USE;
/* The replacement of the longest (or shortest) prefix of `in` that has a rule: {NULL, 0} when there is none; `*consumed` is its length. */
text_view charsmap_find(const charsmap* map, text_view in, bool longest, size_t* consumed);
/* The two ways to apply it. */
genai_status* charsmap_by_grapheme(const charsmap* map, text_view in, text* out) GENAI_MUST_USE;
genai_status* sentencepiece_normalize(const normalizer_step* step, text_view in, text* out) GENAI_MUST_USE;

/* GPT-2's printable alphabet: byte to code point, and back (-1 for a code point outside it). */
uint32_t byte_level_codepoint(uint8_t byte);
int byte_level_byte(uint32_t codepoint);
genai_status* byte_level_append(text_view bytes, text* out) GENAI_MUST_USE;

#endif
