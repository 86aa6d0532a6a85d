/* The writing half of json.h: JSON appended to a text, with commas, quoting and indentation. Reading is json.cpp. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/json_internal.h"

static void put(json_writer* writer, const char* data, size_t length) {
  if (!writer->status) writer->status = text_append(writer->out, data, length);
}

static void new_line(json_writer* writer) {
  if (!writer->pretty) return;
  put(writer, "\n", 1);
  for (unsigned i = 0; i < writer->depth; ++i) put(writer, "  ", 2);
}

/* What stands before a key or an array's item; nothing between a key and its value. */
static void separate(json_writer* writer) {
  if (writer->after_key) {
    writer->after_key = false;
    return;
  }
  if (!writer->depth) return;
  bool* has_item = &writer->has_item[writer->depth - 1];
  if (*has_item) put(writer, ",", 1);
  *has_item = true;
  new_line(writer);
}

static void begin(json_writer* writer, const char* bracket) {
  if (writer->status) return;
  if (writer->depth == sizeof writer->has_item / sizeof writer->has_item[0]) {
    writer->status = genai_status_create(GENAI_ERROR_INTERNAL, "JSON writer: more than %u nested containers", writer->depth);
    return;
  }
  separate(writer);
  put(writer, bracket, 1);
  writer->has_item[writer->depth++] = false;
}

static void end(json_writer* writer, const char* bracket) {
  if (writer->status) return;
  if (!writer->depth || writer->after_key) {
    writer->status = genai_status_create(GENAI_ERROR_INTERNAL, "JSON writer: '%s' without its beginning or after a key", bracket);
    return;
  }
  --writer->depth;
  if (writer->has_item[writer->depth]) new_line(writer);
  put(writer, bracket, 1);
}

static void quote(json_writer* writer, const char* data, size_t length) {
  put(writer, "\"", 1);
  size_t plain = 0; /* start of the run that needs no change */
  for (size_t i = 0; i < length && !writer->status;) {
    unsigned char c = (unsigned char)data[i];
    char escape[8] = "";
    size_t width = 1;
    uint32_t codepoint = 0;
    if (c == '"' || c == '\\') {
      escape[0] = '\\';
      escape[1] = (char)c;
    } else if (c < 0x20) {
      static const char letters[] = "\bb\ff\nn\rr\tt";
      const char* letter = memchr(letters, c, sizeof letters - 1);
      static const char hex[] = "0123456789abcdef";
      memcpy(escape, letter ? "\\" : "\\u00", letter ? 2 : 5);
      if (letter) {
        escape[1] = letter[1];
      } else {
        escape[4] = hex[c >> 4];
        escape[5] = hex[c & 15];
      }
    } else if (c >= 0x80) {
      width = utf8_decode(data + i, length - i, &codepoint);
      if (!width) {
        memcpy(escape, "\xEF\xBF\xBD", 4);
        width = 1;
      }
    }
    if (escape[0]) {
      put(writer, data + plain, i - plain);
      put(writer, escape, strlen(escape));
      plain = i + width;
    }
    i += width;
  }
  put(writer, data + plain, length - plain);
  put(writer, "\"", 1);
}

void json_writer_init(json_writer* writer, text* out, bool pretty) {
  *writer = (json_writer){.out = out, .pretty = pretty};
}

void json_begin_object(json_writer* writer) {
  begin(writer, "{");
}
void json_end_object(json_writer* writer) {
  end(writer, "}");
}
void json_begin_array(json_writer* writer) {
  begin(writer, "[");
}
void json_end_array(json_writer* writer) {
  end(writer, "]");
}

void json_key(json_writer* writer, const char* key) {
  separate(writer);
  quote(writer, key, strlen(key));
  put(writer, writer->pretty ? ": " : ":", writer->pretty ? 2 : 1);
  writer->after_key = true;
}

static void word(json_writer* writer, const char* characters, size_t length) {
  separate(writer);
  put(writer, characters, length);
}

void json_write_bytes(json_writer* writer, const char* data, size_t length) {
  separate(writer);
  quote(writer, data, length);
}

void json_write_string(json_writer* writer, const char* string) {
  if (string) {
    json_write_bytes(writer, string, strlen(string));
  } else {
    word(writer, "null", 4);
  }
}

/* Digits of `value`, written from the end of `buffer` backwards. */
static char* digits(uint64_t value, char* end_of_buffer) {
  char* at = end_of_buffer;
  do {
    *--at = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  return at;
}

void json_write_unsigned(json_writer* writer, uint64_t value) {
  char buffer[24];
  char* at = digits(value, buffer + sizeof buffer);
  word(writer, at, (size_t)(buffer + sizeof buffer - at));
}

void json_write_integer(json_writer* writer, int64_t value) {
  char buffer[24];
  char* at = digits(value < 0 ? 0 - (uint64_t)value : (uint64_t)value, buffer + sizeof buffer);
  if (value < 0) *--at = '-';
  word(writer, at, (size_t)(buffer + sizeof buffer - at));
}

void json_write_number(json_writer* writer, double value) {
  char buffer[32];
  if (isfinite(value)) {
    word(writer, buffer, json_format_number(value, buffer));
  } else {
    word(writer, "null", 4);
  }
}

void json_write_bool(json_writer* writer, bool value) {
  word(writer, value ? "true" : "false", value ? 4 : 5);
}

genai_status* json_writer_finish(json_writer* writer) {
  if (!writer->status && (writer->depth || writer->after_key))
    writer->status = genai_status_create(GENAI_ERROR_INTERNAL, "JSON writer: finished with %u containers open", writer->depth);
  genai_status* status = writer->status;
  writer->status = NULL;
  return status;
}
