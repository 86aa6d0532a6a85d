/* Unicode normal forms with utf8proc, which is asked only where a text can change: most text is passed through untouched. */
#include <utf8proc.h>

#include "base/memory.h"
#include "tokenizer/normalizer.h"

/* Whether no normal form changes `c`, nor composes it with what stands before it, whatever that is. */
static bool is_inert(uint32_t c) {
  if ((c >= 0x1100 && c < 0x1200) || (c >= 0xac00 && c < 0xd7a4)) return false; /* Hangul composes by rule, not by table */
  const utf8proc_property_t* property = utf8proc_get_property((utf8proc_int32_t)c);
  return property->combining_class == 0 && property->decomp_seqindex == UINT16_MAX && property->comb_index == UINT16_MAX;
}

static genai_status* normalize_part(utf8proc_option_t options, text_view in, text* out) {
  utf8proc_int32_t fixed[64];
  utf8proc_int32_t* points = fixed;
  utf8proc_ssize_t count = utf8proc_decompose((const utf8proc_uint8_t*)in.data, (utf8proc_ssize_t)in.length, points, 64, options);
  genai_status* status = NULL;
  if (count > 64) {
    points = mem_realloc_array(NULL, (size_t)count, sizeof *points);
    if (!points) return genai_status_out_of_memory();
    count = utf8proc_decompose((const utf8proc_uint8_t*)in.data, (utf8proc_ssize_t)in.length, points, count, options);
  }
  if (count > 0) count = utf8proc_normalize_utf32(points, count, options);
  if (count < 0) {
    status = genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the text cannot be normalized: %s", utf8proc_errmsg(count));
  }
  for (utf8proc_ssize_t i = 0; !status && i < count; i++) status = text_append_codepoint(out, (uint32_t)points[i]);
  if (points != fixed) mem_free(points);
  return status;
}

genai_status* normalize_unicode(normalizer_kind form, text_view in, text* out) {
  utf8proc_option_t options = UTF8PROC_STABLE;
  options |= form == NORMALIZE_NFC || form == NORMALIZE_NFKC ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NORMALIZE_NFKC || form == NORMALIZE_NFKD) options |= UTF8PROC_COMPAT;
  /* Below these, code points are their own normal form and never compose with what stands before them. */
  const uint32_t plain = form == NORMALIZE_NFC ? 0x300 : form == NORMALIZE_NFD ? 0xc0 : 0xa0;
  const uint8_t *p = (const uint8_t*)in.data, *end = p + in.length, *copied = p;
  while (p < end) {
    size_t length;
    uint32_t c = utf8_next(p, &length);
    const uint8_t* part = p;
    bool changes = c >= plain && !is_inert(c);
    p += length;
    while (p < end) { /* what may compose with or reorder behind it */
      c = utf8_next(p, &length);
      if (c < 0x300 || is_inert(c)) break;
      changes = true;
      p += length;
    }
    if (!changes) continue;
    GENAI_TRY(text_append(out, (const char*)copied, (size_t)(part - copied)));
    GENAI_TRY(normalize_part(options, (text_view){(const char*)part, (size_t)(p - part)}, out));
    copied = p;
  }
  return text_append(out, (const char*)copied, (size_t)(end - copied));
}
