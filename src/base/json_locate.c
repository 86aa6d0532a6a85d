/* Finds where a JSON text breaks the grammar, for error messages only: simdjson reports what is wrong but not where. Nothing here builds
 * values. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/json_internal.h"
#include "base/text.h"

typedef struct scanner {
  const char* data;
  size_t size;
  size_t at;
  const char* expected; /* set once, at the error */
} scanner;

static bool wrong(scanner* s, const char* expected) {
  s->expected = expected;
  return false;
}

static int peek(const scanner* s) {
  return s->at < s->size ? (unsigned char)s->data[s->at] : -1;
}

static void skip_space(scanner* s) {
  while (s->at < s->size && memchr(" \t\r\n", s->data[s->at], 4)) ++s->at;
}

static bool is_digit(int c) {
  return c >= '0' && c <= '9';
}

static bool scan_digits(scanner* s) {
  if (!is_digit(peek(s))) return wrong(s, "a digit");
  while (is_digit(peek(s))) ++s->at;
  return true;
}

static bool scan_number(scanner* s) {
  if (peek(s) == '-') ++s->at;
  if (peek(s) == '0') {
    ++s->at;
    if (is_digit(peek(s))) return wrong(s, "no digit after a leading zero");
  } else if (!scan_digits(s)) {
    return false;
  }
  if (peek(s) == '.') {
    ++s->at;
    if (!scan_digits(s)) return false;
  }
  if (peek(s) == 'e' || peek(s) == 'E') {
    ++s->at;
    if (peek(s) == '+' || peek(s) == '-') ++s->at;
    if (!scan_digits(s)) return false;
  }
  return true;
}

static bool scan_hex4(scanner* s, uint32_t* out) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    int c = peek(s);
    int lower = c | 0x20;
    if (!is_digit(c) && !(lower >= 'a' && lower <= 'f')) return wrong(s, "four hexadecimal digits after \\u");
    value = value * 16 + (uint32_t)(is_digit(c) ? c - '0' : lower - 'a' + 10);
    ++s->at;
  }
  *out = value;
  return true;
}

static bool scan_escape(scanner* s) {
  size_t start = s->at++;
  int c = peek(s);
  if (c > 0 && strchr("\"\\/bfnrt", c)) {
    ++s->at;
    return true;
  }
  if (c != 'u') {
    s->at = start;
    return wrong(s, "one of the escapes \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
  }
  ++s->at;
  uint32_t unit = 0;
  if (!scan_hex4(s, &unit)) return false;
  if (unit < 0xD800 || unit > 0xDFFF) return true;
  uint32_t low = 0;
  if (unit < 0xDC00 && peek(s) == '\\' && s->at + 1 < s->size && s->data[s->at + 1] == 'u') {
    s->at += 2;
    if (!scan_hex4(s, &low)) return false;
  }
  if (low >= 0xDC00 && low <= 0xDFFF) return true;
  s->at = start;
  return wrong(s, "a surrogate pair, not half of one");
}

static bool scan_string(scanner* s) {
  size_t start = s->at;
  if (peek(s) != '"') return wrong(s, "a string in double quotes");
  ++s->at;
  while (s->at < s->size) {
    unsigned char c = (unsigned char)s->data[s->at];
    if (c == '"') {
      ++s->at;
      return true;
    }
    if (c < 0x20) return wrong(s, "an escape instead of a raw control character in a string");
    if (c == '\\') {
      if (!scan_escape(s)) return false;
    } else if (c < 0x80) {
      ++s->at;
    } else {
      uint32_t codepoint = 0;
      size_t length = utf8_decode(s->data + s->at, s->size - s->at, &codepoint);
      if (!length) return wrong(s, "valid UTF-8");
      s->at += length;
    }
  }
  s->at = start;
  return wrong(s, "a closing quote for the string that begins here");
}

static bool scan_scalar(scanner* s) {
  static const char* const words[] = {"true", "false", "null"};
  int c = peek(s);
  if (c == '"') return scan_string(s);
  if (c == '-' || is_digit(c)) return scan_number(s);
  for (size_t i = 0; i < 3; ++i) {
    size_t length = strlen(words[i]);
    if (s->size - s->at >= length && !memcmp(s->data + s->at, words[i], length)) {
      s->at += length;
      return true;
    }
  }
  return wrong(s, "a value");
}

/* `objects` holds one bit per open container: set for an object. */
static bool scan_document(scanner* s, uint8_t* objects, size_t max_depth) {
  enum { VALUE, KEY, AFTER_VALUE } state = VALUE;
  for (size_t depth = 0;;) {
    skip_space(s);
    int c = peek(s);
    bool in_object = depth && (objects[(depth - 1) / 8] >> (depth - 1) % 8 & 1);
    if (state == KEY) {
      if (c != '"') return wrong(s, "a key in double quotes");
      if (!scan_string(s)) return false;
      skip_space(s);
      if (peek(s) != ':') return wrong(s, "':' after the key");
      ++s->at;
      state = VALUE;
    } else if (state == VALUE && (c == '{' || c == '[')) {
      if (depth == max_depth) return wrong(s, "less deep nesting");
      unsigned bit = 1u << depth % 8;
      objects[depth / 8] = (uint8_t)(c == '{' ? objects[depth / 8] | bit : objects[depth / 8] & ~bit);
      ++depth;
      ++s->at;
      skip_space(s);
      state = peek(s) == c + 2 ? AFTER_VALUE : c == '{' ? KEY : VALUE; /* in ASCII the closing bracket is the opening one plus 2 */
    } else if (state == VALUE) {
      if (!scan_scalar(s)) return false;
      state = AFTER_VALUE;
    } else if (!depth) {
      return s->at == s->size || wrong(s, "the end of the text after the value");
    } else if (c == (in_object ? '}' : ']')) {
      ++s->at;
      --depth;
    } else if (c == ',') {
      ++s->at;
      state = in_object ? KEY : VALUE;
    } else {
      return wrong(s, in_object ? "',' or '}'" : "',' or ']'");
    }
  }
}

size_t json_locate_error(const char* data, size_t size, size_t max_depth, const char** expected) {
  uint8_t objects[1024 / 8] = {0};
  scanner s = {.data = data, .size = size};
  if (max_depth > sizeof objects * 8) max_depth = sizeof objects * 8;
  *expected = NULL;
  if (scan_document(&s, objects, max_depth)) return size;
  *expected = s.expected;
  return s.at;
}
