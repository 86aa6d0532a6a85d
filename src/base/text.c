/* Growing byte strings, UTF-8, and nearest-name search. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static genai_status* reserve(text* out, size_t extra) {
  size_t needed;
  if (!size_add(out->length, extra, &needed) || !size_add(needed, 1, &needed)) return genai_status_out_of_memory();
  if (needed <= out->capacity) return NULL;
  size_t capacity = out->capacity ? out->capacity : 64;
  while (capacity < needed) {
    if (!size_mul(capacity, 2, &capacity)) return genai_status_out_of_memory();
  }
  char* data = mem_realloc_array(out->data, capacity, 1);
  if (!data) return genai_status_out_of_memory();
  out->data = data;
  out->capacity = capacity;
  return NULL;
}

genai_status* text_append(text* out, const char* data, size_t length) {
  GENAI_TRY(reserve(out, length));
  if (length) memcpy(out->data + out->length, data, length);
  out->length += length;
  out->data[out->length] = 0;
  return NULL;
}

genai_status* text_append_cstr(text* out, const char* string) {
  return text_append(out, string, strlen(string));
}

genai_status* text_append_char(text* out, char c) {
  return text_append(out, &c, 1);
}

genai_status* text_append_codepoint(text* out, uint32_t codepoint) {
  char bytes[4];
  size_t n;
  if (codepoint < 0x80) {
    bytes[0] = (char)codepoint;
    n = 1;
  } else if (codepoint < 0x800) {
    bytes[0] = (char)(0xC0 | codepoint >> 6);
    bytes[1] = (char)(0x80 | (codepoint & 0x3F));
    n = 2;
  } else if (codepoint < 0x10000) {
    bytes[0] = (char)(0xE0 | codepoint >> 12);
    bytes[1] = (char)(0x80 | (codepoint >> 6 & 0x3F));
    bytes[2] = (char)(0x80 | (codepoint & 0x3F));
    n = 3;
  } else {
    bytes[0] = (char)(0xF0 | codepoint >> 18);
    bytes[1] = (char)(0x80 | (codepoint >> 12 & 0x3F));
    bytes[2] = (char)(0x80 | (codepoint >> 6 & 0x3F));
    bytes[3] = (char)(0x80 | (codepoint & 0x3F));
    n = 4;
  }
  return text_append(out, bytes, n);
}

genai_status* text_printf(text* out, const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  genai_status* status =
      length < 0 ? genai_status_create(GENAI_ERROR_INTERNAL, "text_printf: bad format \"%s\"", format) : reserve(out, (size_t)length);
  if (!status) {
    vsnprintf(out->data + out->length, (size_t)length + 1, format, arguments);
    out->length += (size_t)length;
  }
  va_end(arguments);
  return status;
}

void text_clear(text* out) {
  out->length = 0;
  if (out->data) out->data[0] = 0;
}

char* text_detach(text* out) {
  char* data = out->data ? out->data : mem_strdup("");
  *out = (text){0};
  return data;
}

void text_deinit(text* out) {
  mem_free(out->data);
  *out = (text){0};
}

text_view text_view_of(const char* string) {
  return (text_view){string, string ? strlen(string) : 0};
}

bool text_view_equal(text_view a, text_view b) {
  return a.length == b.length && (!a.length || !memcmp(a.data, b.data, a.length));
}

bool text_view_equal_cstr(text_view a, const char* b) {
  return text_view_equal(a, text_view_of(b));
}

size_t utf8_decode(const char* data, size_t length, uint32_t* codepoint) {
  const uint8_t* p = (const uint8_t*)data;
  if (!length) return 0;
  if (p[0] < 0x80) {
    *codepoint = p[0];
    return 1;
  }
  size_t n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
  if (p[0] < 0xC2 || p[0] > 0xF4 || length < n) return 0;
  uint32_t value = p[0] & (0x7Fu >> n);
  for (size_t i = 1; i < n; i++) {
    if ((p[i] & 0xC0) != 0x80) return 0;
    value = value << 6 | (p[i] & 0x3Fu);
  }
  static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < smallest[n] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 0;
  *codepoint = value;
  return n;
}

bool utf8_is_valid(const char* data, size_t length) {
  for (size_t i = 0; i < length;) {
    if ((uint8_t)data[i] < 0x80) {
      i++;
      continue;
    }
    uint32_t codepoint;
    size_t n = utf8_decode(data + i, length - i, &codepoint);
    if (!n) return false;
    i += n;
  }
  return true;
}

size_t utf8_complete_prefix(const char* data, size_t length) {
  /* Look back at most three bytes for a lead byte whose sequence is cut off but could still become valid. */
  for (size_t back = 1; back <= 3 && back <= length; back++) {
    const uint8_t* lead = (const uint8_t*)data + length - back;
    if ((lead[0] & 0xC0) == 0x80) continue;
    size_t n = lead[0] >= 0xF0 && lead[0] <= 0xF4 ? 4 : lead[0] >= 0xE0 && lead[0] < 0xF0 ? 3 : lead[0] >= 0xC2 && lead[0] < 0xE0 ? 2 : 1;
    if (n <= back) return length;
    if (back >= 2) { /* the second byte decides between overlong, surrogate and too large */
      uint8_t low = lead[0] == 0xE0 ? 0xA0 : lead[0] == 0xF0 ? 0x90 : 0x80, high = lead[0] == 0xED ? 0x9F : lead[0] == 0xF4 ? 0x8F : 0xBF;
      if (lead[1] < low || lead[1] > high) return length;
    }
    return length - back;
  }
  return length;
}

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

size_t text_distance(const char* a, const char* b) {
  enum { MAX = 128 };
  size_t n = strlen(a), m = strlen(b);
  if (n > MAX || m > MAX) return n > m ? n : m;
  size_t rows[3][MAX + 1];
  size_t *previous2 = rows[0], *previous = rows[1], *current = rows[2];
  for (size_t j = 0; j <= m; j++) previous[j] = j;
  for (size_t i = 1; i <= n; i++) {
    current[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t cost = lower(a[i - 1]) != lower(b[j - 1]);
      size_t best = previous[j - 1] + cost;
      if (previous[j] + 1 < best) best = previous[j] + 1;
      if (current[j - 1] + 1 < best) best = current[j - 1] + 1;
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]) && previous2[j - 2] + 1 < best)
        best = previous2[j - 2] + 1;
      current[j] = best;
    }
    size_t* spare = previous2;
    previous2 = previous;
    previous = current;
    current = spare;
  }
  return previous[m];
}

const char* text_nearest(const char* name, const char* const* names, size_t count) {
  const char* nearest = NULL;
  size_t best = (strlen(name) + 1) / 2 + 1;
  for (size_t i = 0; i < count; i++) {
    size_t distance = text_distance(name, names[i]);
    if (distance < best) {
      best = distance;
      nearest = names[i];
    }
  }
  return nearest;
}
