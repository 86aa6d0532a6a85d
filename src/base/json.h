/* JSON in and out. Reading is simdjson behind a C façade (json.cpp): see docs/architecture.md for the measurement that chose it. */
#ifndef GENAI_BASE_JSON_H
#define GENAI_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "genai/status.h"

typedef enum json_type { JSON_NULL, JSON_BOOL, JSON_INTEGER, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT, JSON_ABSENT } json_type;

typedef struct json_document json_document;

/* A value inside a document; valid while the document lives. The zero value is not valid: take it from a document. */
typedef struct json_value {
  const void* document;
  size_t index;
} json_value;

/* Parses UTF-8 text (copied). `name` names the source in errors, which carry the byte offset where known. */
genai_status* json_parse(const char* data, size_t size, const char* name, json_document** out) GENAI_MUST_USE;
genai_status* json_parse_file(const char* path, size_t max_size, json_document** out) GENAI_MUST_USE;
void json_free(json_document* document); /* accepts NULL */

json_value json_root(const json_document* document);
json_type json_type_of(json_value value); /* JSON_ABSENT for an absent member */

json_value json_get(json_value object, const char* key); /* absent when missing or when `object` is not an object; last key wins */
bool json_bool(json_value value, bool fallback);
int64_t json_integer(json_value value, int64_t fallback); /* also takes a number with an integral value */
double json_number(json_value value, double fallback);    /* takes integers too; JSON5 Infinity and NaN are refused by the parser */
text_view json_string(json_value value);                  /* {NULL, 0} when it is not a string; may hold NUL bytes */

size_t json_count(json_value array_or_object);
/* Iteration. Start with json_first; `key` is set for objects ({NULL,0} in arrays; may be NULL). */
typedef struct json_iterator {
  json_value container;
  size_t next;
  size_t end;
} json_iterator;
json_iterator json_iterate(json_value array_or_object);
bool json_next(json_iterator* iterator, text_view* key, json_value* value);

/* Writing: appends to a text. Commas and quoting are taken care of; the caller balances begin and end. */
typedef struct json_writer {
  text* out;
  genai_status* status; /* the first failure; later calls do nothing. Take it with json_writer_finish. */
  unsigned depth;
  bool pretty;
  bool has_item[32];
  bool after_key;
} json_writer;

void json_writer_init(json_writer* writer, text* out, bool pretty);
void json_begin_object(json_writer* writer);
void json_end_object(json_writer* writer);
void json_begin_array(json_writer* writer);
void json_end_array(json_writer* writer);
void json_key(json_writer* writer, const char* key);
void json_write_string(json_writer* writer, const char* string);             /* NULL writes null */
void json_write_bytes(json_writer* writer, const char* data, size_t length); /* invalid UTF-8 becomes U+FFFD */
void json_write_integer(json_writer* writer, int64_t value);
void json_write_unsigned(json_writer* writer, uint64_t value);
void json_write_number(json_writer* writer, double value); /* shortest form that reads back equal; not finite writes null */
void json_write_bool(json_writer* writer, bool value);
genai_status* json_writer_finish(json_writer* writer) GENAI_MUST_USE;

#endif
