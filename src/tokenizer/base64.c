/* Base64 (RFC 4648), in which tokenizer files hold bytes. */
#include "tokenizer/load_json.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(text_view in, text* out, genai_status** status) {
  while (in.length && in.data[in.length - 1] == '=') in.length--;
  uint32_t bits = 0;
  unsigned count = 0;
  *status = NULL;
  for (size_t i = 0; i < in.length && !*status; i++) {
    int value = digit_value(in.data[i]);
    if (value < 0) return false;
    bits = bits << 6 | (uint32_t)value;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    *status = text_append_char(out, (char)(bits >> count & 0xff));
  }
  return *status == NULL && count < 6;
}

bool base64_encode(text_view in, text* out, genai_status** status) {
  *status = NULL;
  for (size_t i = 0; i < in.length && !*status; i += 3) {
    uint32_t bits = 0;
    size_t n = in.length - i < 3 ? in.length - i : 3;
    for (size_t k = 0; k < 3; k++) bits = bits << 8 | (k < n ? (uint8_t)in.data[i + k] : 0);
    char quad[4];
    for (size_t k = 0; k < 4; k++) quad[k] = k <= n ? alphabet[bits >> (18 - 6 * k) & 63] : '=';
    *status = text_append(out, quad, 4);
  }
  return *status == NULL;
}
