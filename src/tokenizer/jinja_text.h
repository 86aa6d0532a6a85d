/* Text as Python's str sees it: code points over UTF-8, white space, character classes, case, line boundaries. Everything here takes valid
 * UTF-8. Case and classes follow Unicode as utf8proc has it, completed by SpecialCasing.txt where one code point becomes several. */
#ifndef GENAI_TOKENIZER_JINJA_TEXT_H
#define GENAI_TOKENIZER_JINJA_TEXT_H

#include "tokenizer/jinja_value.h"

size_t jinja_count_codepoints(const char* data, size_t length);
/* Decodes at `data`; returns the bytes taken. */
size_t jinja_decode(const char* data, uint32_t* codepoint);
size_t jinja_decode_before(const char* begin, const char* end, uint32_t* codepoint); /* the last code point of [begin, end) */
size_t jinja_encode(uint32_t codepoint, char out[4]);
size_t jinja_byte_offset(const jinja_string* string, size_t index); /* of code point `index` <= count */

bool jinja_is_space(uint32_t codepoint);         /* str.isspace, str.strip and \s of Python's re */
bool jinja_is_line_boundary(uint32_t codepoint); /* str.splitlines */
bool jinja_is_printable(uint32_t codepoint);     /* what repr() leaves as it is */
bool jinja_is_alpha(uint32_t codepoint);
bool jinja_is_decimal(uint32_t codepoint);
bool jinja_is_digit(uint32_t codepoint);
bool jinja_is_numeric(uint32_t codepoint);
bool jinja_is_word(uint32_t codepoint); /* \w of Python's re */
bool jinja_is_upper(uint32_t codepoint);
bool jinja_is_lower(uint32_t codepoint);
bool jinja_is_title(uint32_t codepoint);
bool jinja_is_name_start(uint32_t codepoint); /* str.isidentifier */
bool jinja_is_name_part(uint32_t codepoint);

/* Bytes of leading and trailing white space. */
size_t jinja_leading_space(const char* data, size_t length);
size_t jinja_trailing_space(const char* data, size_t length);

typedef enum jinja_casing { JINJA_UPPER, JINJA_LOWER, JINJA_TITLE, JINJA_FOLD } jinja_casing;
genai_status* jinja_put_cased(jinja_builder* builder, jinja_casing casing, uint32_t codepoint) GENAI_MUST_USE;
/* Bytes [begin, end) of `string` in lower case: a capital sigma at the end of a word becomes a final one, judged within these bytes. */
genai_status* jinja_put_lower(jinja_builder* builder, const jinja_string* string, size_t begin, size_t end) GENAI_MUST_USE;
/* str.upper, lower, title, casefold; str.capitalize; str.swapcase. A safe string stays safe. */
genai_status* jinja_cased(jinja_machine* machine, jinja_casing casing, const jinja_string* string, jinja_value* out) GENAI_MUST_USE;
genai_status* jinja_capitalized(jinja_machine* machine, const jinja_string* string, jinja_value* out) GENAI_MUST_USE;
genai_status* jinja_swapped_case(jinja_machine* machine, const jinja_string* string, jinja_value* out) GENAI_MUST_USE;

/* str.strip and its halves: `characters` NULL for white space. */
enum { JINJA_STRIP_LEFT = 1, JINJA_STRIP_RIGHT = 2 };
genai_status* jinja_strip(jinja_machine* machine, const jinja_string* string, const jinja_string* characters, int sides,
                          jinja_value* out) GENAI_MUST_USE;
/* str.splitlines, as a list. */
genai_status* jinja_split_lines(jinja_machine* machine, const jinja_string* string, bool keep_ends, jinja_value* out) GENAI_MUST_USE;
/* str.replace; `limit` < 0: all. */
genai_status* jinja_replace(jinja_machine* machine, const jinja_string* string, const jinja_string* old, const jinja_string* new,
                            int64_t limit, jinja_value* out) GENAI_MUST_USE;
/* int() and float() of a string, Python's grammar: surrounding space, underscores between digits, inf and nan. False when it is none.
 * `*overflow`: well formed, but beyond 64 bits. */
bool jinja_parse_integer(const jinja_string* string, int base, int64_t* out, bool* overflow);
bool jinja_parse_real(const char* data, size_t length, double* out);

#endif
