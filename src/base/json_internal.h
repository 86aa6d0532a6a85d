/* What the JSON files share among themselves and nobody else needs. */
#ifndef GENAI_BASE_JSON_INTERNAL_H
#define GENAI_BASE_JSON_INTERNAL_H

#include <stddef.h>

/* The first place where `data` breaks RFC 8259: its byte offset, and what was expected there in `*expected`. Returns `size` and NULL when
 * nothing is wrong. Nesting deeper than `max_depth` counts as wrong. Runs only after the fast parser, which does not say where, refused. */
size_t json_locate_error(const char* data, size_t size, size_t max_depth, const char** expected);

/* The shortest decimal form that reads back as `value` (finite), independent of the locale. Returns its length; no NUL is written. */
size_t json_format_number(double value, char out[32]);

#endif
