/* GPT-2's printable alphabet for bytes: printable Latin-1 stands for itself, the other 68 bytes for U+0100 onwards in order. */
#include "tokenizer/normalizer.h"

static bool stands_for_itself(uint32_t c) {
  return (c >= '!' && c <= '~') || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
}

uint32_t byte_level_codepoint(uint8_t byte) {
  if (stands_for_itself(byte)) return byte;
  if (byte <= ' ') return 0x100u + byte;
  if (byte <= 0xa0) return 0x100u + 33 + (byte - 0x7fu);
  return 0x143; /* 0xad */
}

int byte_level_byte(uint32_t c) {
  if (c < 0x100) return stands_for_itself(c) ? (int)c : -1;
  if (c <= 0x120) return (int)(c - 0x100);
  if (c <= 0x142) return (int)(c - 0x121 + 0x7f);
  return c == 0x143 ? 0xad : -1;
}

genai_status* byte_level_append(text_view bytes, text* out) {
  for (size_t i = 0; i < bytes.length; i++) {
    uint8_t byte = (uint8_t)bytes.data[i];
    if (byte > ' ' && byte < 0x7f)
      GENAI_TRY(text_append_char(out, (char)byte));
    else
      GENAI_TRY(text_append_codepoint(out, byte_level_codepoint(byte)));
  }
  return NULL;
}
