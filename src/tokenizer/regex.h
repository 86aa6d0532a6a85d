/* Regular expressions of tokenizer files. They are written for Oniguruma (Ruby syntax); regex_compile translates the differences and
 * compiles with PCRE2, or says which construct it cannot translate. */
#ifndef GENAI_TOKENIZER_REGEX_H
#define GENAI_TOKENIZER_REGEX_H

#include "base/text.h"
#include "genai/status.h"

typedef struct regex regex;

genai_status* regex_compile(text_view pattern, regex** out) GENAI_MUST_USE;
void regex_free(regex* self); /* accepts NULL */

/* Matches of one text, left to right, as the reference iterates them (an empty match right after another match is skipped). */
typedef struct regex_cursor {
  const regex* expression;
  void* match; /* pcre2 match data, and its JIT stack */
  void* context;
  void* stack;
} regex_cursor;

/* A cursor may be used for many texts, by one thread. */
genai_status* regex_cursor_init(regex_cursor* cursor, const regex* expression) GENAI_MUST_USE;
void regex_cursor_deinit(regex_cursor* cursor);

/* The first match at or after `from` in valid UTF-8 text: sets `*found` and, when true, the range. */
genai_status* regex_search(regex_cursor* cursor, text_view in, size_t from, bool* found, size_t* begin, size_t* end) GENAI_MUST_USE;

/* Whether PCRE2 knows a script of this name. */
genai_status* regex_is_script(text_view name, bool* out) GENAI_MUST_USE;

/* The translation, for tests: the PCRE2 pattern of an Oniguruma pattern. */
genai_status* regex_translate(text_view pattern, text* out) GENAI_MUST_USE;

#endif
