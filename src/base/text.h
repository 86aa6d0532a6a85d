/* Growing byte strings, and helpers on text. */
#ifndef GENAI_BASE_TEXT_H
#define GENAI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "genai/status.h"

/* A byte string that grows. Zero-initialise to start. `data` is NUL-terminated whenever it is not NULL; the NUL is not counted. */
typedef struct text {
  char* data;
  size_t length;
  size_t capacity;
} text;

genai_status* text_append(text* out, const char* data, size_t length) GENAI_MUST_USE;
genai_status* text_append_cstr(text* out, const char* string) GENAI_MUST_USE;
genai_status* text_append_char(text* out, char c) GENAI_MUST_USE;
genai_status* text_append_codepoint(text* out, uint32_t codepoint) GENAI_MUST_USE; /* as UTF-8 */
genai_status* text_printf(text* out, const char* format, ...) GENAI_PRINTF(2, 3) GENAI_MUST_USE;
void text_clear(text* out);   /* length 0, keeps the memory */
char* text_detach(text* out); /* the caller owns the result (mem_free); `out` is empty again; never NULL unless memory is out */
void text_deinit(text* out);

/* A view of bytes that someone else owns. */
typedef struct text_view {
  const char* data;
  size_t length;
} text_view;

text_view text_view_of(const char* string);
bool text_view_equal(text_view a, text_view b);
bool text_view_equal_cstr(text_view a, const char* b);

/* Decodes one code point at `data[0..length)`. Returns the bytes it takes, or 0 when they are not valid UTF-8 (overlong forms, surrogates
 * and values above U+10FFFF are invalid). `*codepoint` is set on success only. */
size_t utf8_decode(const char* data, size_t length, uint32_t* codepoint);
bool utf8_is_valid(const char* data, size_t length);
/* Length of the longest prefix that does not end inside a code point which more bytes could complete. Invalid bytes count as complete. */
size_t utf8_complete_prefix(const char* data, size_t length);

/* Damerau-Levenshtein distance, ASCII case ignored; for suggestions. */
size_t text_distance(const char* a, const char* b);
/* The nearest of `names` to `name`, or NULL when none is near (distance over half its length). */
const char* text_nearest(const char* name, const char* const* names, size_t count);

#endif
