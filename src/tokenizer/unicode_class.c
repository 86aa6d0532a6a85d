/* Expands the generated run table of Unicode classes into the two-stage table that lookups use. No splitting rules live here. */
#include "tokenizer/unicode_class.h"

#include <string.h>

#include "base/memory.h"

static const uint32_t runs[] = {
#include "tokenizer/unicode_class_table.inc"
};
enum { RUN_COUNT = sizeof runs / sizeof runs[0], PAGE_COUNT = 0x1100 };

genai_status* unicode_classes_init(unicode_classes* out) {
  /* A page needs its own table when a run starts inside it. */
  size_t mixed = 0;
  for (size_t i = 0, last = SIZE_MAX; i < RUN_COUNT; i++) {
    uint32_t start = runs[i] >> 4;
    if ((start & 255) != 0 && start >> 8 != last) {
      last = start >> 8;
      mixed++;
    }
  }
  uint8_t* pages = mem_calloc(mixed + 1, 256);
  if (!pages) return genai_status_out_of_memory();
  size_t run = 0, next_page = 0;
  for (uint32_t page = 0; page < PAGE_COUNT; page++) {
    uint32_t first = page << 8, end = first + 256;
    while (run + 1 < RUN_COUNT && runs[run + 1] >> 4 <= first) run++;
    if (run + 1 == RUN_COUNT || runs[run + 1] >> 4 >= end) {
      out->index[page] = runs[run] & 15;
      continue;
    }
    uint8_t* classes = pages + 256 * next_page;
    for (uint32_t c = first; c < end; c++) {
      if (run + 1 < RUN_COUNT && runs[run + 1] >> 4 <= c) run++;
      classes[c - first] = runs[run] & 15;
    }
    out->index[page] = (uint16_t)(16 + next_page++);
  }
  out->pages = pages;
  return NULL;
}

void unicode_classes_deinit(unicode_classes* classes) {
  mem_free(classes->pages);
  classes->pages = NULL;
}

bool unicode_is_word(const unicode_classes* classes, uint32_t c) {
  if (unicode_is(classes, c, UNICODE_LETTERS | UNICODE_MARKS | UNICODE_BIT(UNICODE_ND) | UNICODE_BIT(UNICODE_NL))) return true;
  return c == '_' || c == 0x200c || c == 0x200d || c == 0x203f || c == 0x2040 || c == 0x2054 || c == 0xfe33 || c == 0xfe34 ||
         (c >= 0xfe4d && c <= 0xfe4f) || c == 0xff3f || (c >= 0x24b6 && c <= 0x24e9);
}
