/* Hand-written scanners for the splitting patterns that most language models use: the same matches as the regular expression, many times
 * faster. Every one of these patterns matches at every place of a text, so a text is a gapless sequence of matches. */
#ifndef GENAI_TOKENIZER_SCANNER_H
#define GENAI_TOKENIZER_SCANNER_H

#include "base/text.h"
#include "tokenizer/unicode_class.h"

typedef enum scanner_pattern { SCANNER_GPT2, SCANNER_WORDS, SCANNER_CASED } scanner_pattern;

typedef struct scanner {
  scanner_pattern pattern;
  const char* regex;        /* the pattern it stands for, as in tokenizer.json */
  uint32_t letters;         /* SCANNER_WORDS: classes of a word: letters, for some families also marks */
  uint8_t max_digits;       /* digits in a match; 0: any number */
  bool contractions;        /* 's 't 're 've 'm 'll 'd, any case */
  bool slash_after_symbols; /* a run of symbols takes '/' along with line ends */
  bool no_line_ends;        /* a run of symbols takes no line ends */
} scanner;

/* The scanner for exactly this regular expression, or NULL when there is none. */
const scanner* scanner_find(text_view regex);

/* Bytes of the match at `begin` (< `end`; valid UTF-8). The text is taken to end at `end`. */
size_t scanner_next(const scanner* self, const unicode_classes* classes, const uint8_t* begin, const uint8_t* end);

extern const char scanner_gpt2_regex[];

#endif
