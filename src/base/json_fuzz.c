/* Fuzz target of JSON reading and writing: what is accepted is written again, and must read back as the same text; what is refused by the parser
 * must be found wrong by the locator too, but for numbers out of range and depth. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_internal.h"

/* The writer nests 32 deep; deeper values are left out on both passes. */
static void copy_value(json_writer* writer, json_value value, int depth) {
  text_view string = json_string(value);
  json_iterator iterator = json_iterate(value);
  text_view key;
  json_value member;
  switch (json_type_of(value)) {
    case JSON_NULL:
      json_write_string(writer, NULL);
      break;
    case JSON_BOOL:
      json_write_bool(writer, json_bool(value, false));
      break;
    case JSON_INTEGER:
      json_write_integer(writer, json_integer(value, 0));
      break;
    case JSON_NUMBER:
      json_write_number(writer, json_number(value, 0));
      break;
    case JSON_STRING:
      json_write_bytes(writer, string.data, string.length);
      break;
    case JSON_ARRAY:
      json_begin_array(writer);
      while (json_next(&iterator, NULL, &member)) {
        if (depth < 30) copy_value(writer, member, depth + 1);
      }
      json_end_array(writer);
      break;
    case JSON_OBJECT:
      json_begin_object(writer);
      while (json_next(&iterator, &key, &member)) {
        if (depth >= 30 || memchr(key.data, 0, key.length)) continue; /* json_key takes C strings */
        char* name = strndup(key.data, key.length);
        if (json_type_of(json_get(value, name)) == JSON_ABSENT) abort();
        json_key(writer, name);
        copy_value(writer, member, depth + 1);
        free(name);
      }
      json_end_object(writer);
      break;
    default:
      abort();
  }
}

static text write_again(const json_document* document) {
  text out = {0};
  json_writer writer;
  json_writer_init(&writer, &out, true);
  copy_value(&writer, json_root(document), 0);
  if (json_writer_finish(&writer)) abort();
  return out;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  json_document* document = NULL;
  const char* expected = NULL;
  genai_status* status = json_parse((const char*)data, size, "fuzz", &document);
  bool marked = size >= 3 && !memcmp(data, "\xEF\xBB\xBF", 3);
  size_t at = json_locate_error((const char*)data, size, 1024, &expected);
  if (at > size) abort();
  if (status) {
    genai_status_free(status);
    return 0;
  }
  if (expected && !marked) abort();
  text first = write_again(document);
  json_free(document);
  if (json_parse(first.data, first.length, "again", &document)) abort();
  text second = write_again(document);
  if (first.length != second.length || memcmp(first.data, second.data, first.length)) abort();
  json_free(document);
  text_deinit(&first);
  text_deinit(&second);
  return 0;
}
