/* Code points, character classes, case and the plain text operations that filters and methods share. Formatting is in jinja_format.c. */
#include "tokenizer/jinja_text.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "tokenizer/jinja_casing_table.h"

size_t jinja_count_codepoints(const char* data, size_t length) {
  size_t count = 0;
  for (size_t i = 0; i < length; i++) count += ((unsigned char)data[i] & 0xc0) != 0x80;
  return count;
}

size_t jinja_decode(const char* data, uint32_t* codepoint) {
  const unsigned char* byte = (const unsigned char*)data;
  if (byte[0] < 0x80) {
    *codepoint = byte[0];
    return 1;
  }
  if (byte[0] < 0xe0) {
    *codepoint = (uint32_t)(byte[0] & 0x1f) << 6 | (byte[1] & 0x3f);
    return 2;
  }
  if (byte[0] < 0xf0) {
    *codepoint = (uint32_t)(byte[0] & 0x0f) << 12 | (uint32_t)(byte[1] & 0x3f) << 6 | (byte[2] & 0x3f);
    return 3;
  }
  *codepoint = (uint32_t)(byte[0] & 0x07) << 18 | (uint32_t)(byte[1] & 0x3f) << 12 | (uint32_t)(byte[2] & 0x3f) << 6 | (byte[3] & 0x3f);
  return 4;
}

size_t jinja_decode_before(const char* begin, const char* end, uint32_t* codepoint) {
  const char* at = end - 1;
  while (at > begin && ((unsigned char)*at & 0xc0) == 0x80) at--;
  return jinja_decode(at, codepoint);
}

size_t jinja_encode(uint32_t codepoint, char out[4]) {
  return (size_t)utf8proc_encode_char((utf8proc_int32_t)codepoint, (utf8proc_uint8_t*)out);
}

size_t jinja_byte_offset(const jinja_string* string, size_t index) {
  if (string->count == string->length) return index;
  size_t at = 0;
  for (; at < string->length; at++) {
    if (((unsigned char)string->data[at] & 0xc0) == 0x80) continue;
    if (!index--) break;
  }
  return at;
}

bool jinja_is_space(uint32_t c) { /* bidirectional type WS, B or S, or category Zs */
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool jinja_is_line_boundary(uint32_t c) {
  return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

static utf8proc_category_t category(uint32_t c) {
  return utf8proc_category((utf8proc_int32_t)c);
}

bool jinja_is_printable(uint32_t c) {
  if (c < 0x7f) return c >= 0x20;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool jinja_is_alpha(uint32_t c) {
  utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool jinja_is_decimal(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}

bool jinja_is_digit(uint32_t c) {
  if (jinja_is_decimal(c)) return true;
  static const uint32_t RANGES[][2] = {
      /* Numeric_Type=Digit of UnicodeData.txt */
      {0xb2, 0xb3},     {0xb9, 0xb9},     {0x1369, 0x1371},   {0x19da, 0x19da},   {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},
      {0x2460, 0x2468}, {0x2474, 0x247c}, {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},   {0x24ff, 0x24ff},   {0x2776, 0x277e},
      {0x2780, 0x2788}, {0x278a, 0x2792}, {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a},
  };
  for (size_t i = 0; i < sizeof RANGES / sizeof *RANGES; i++) {
    if (c >= RANGES[i][0] && c <= RANGES[i][1]) return true;
  }
  return false;
}

bool jinja_is_numeric(uint32_t c) {
  utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool jinja_is_word(uint32_t c) {
  return c == '_' || jinja_is_alpha(c) || jinja_is_numeric(c);
}

/* The derived properties Uppercase and Lowercase: the categories Lu and Ll, and the Other_ lists of PropList.txt. */
bool jinja_is_upper(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || (c >= 0x2160 && c <= 0x216f) || (c >= 0x24b6 && c <= 0x24cf) ||
         (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

bool jinja_is_lower(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL || c == 0xaa || c == 0xba || (c >= 0x2b0 && c <= 0x2b8) || c == 0x2c0 || c == 0x2c1 ||
         (c >= 0x2e0 && c <= 0x2e4) || c == 0x345 || c == 0x37a || (c >= 0x1d2c && c <= 0x1d6a) || c == 0x1d78 ||
         (c >= 0x1d9b && c <= 0x1dbf) || c == 0x2071 || c == 0x207f || (c >= 0x2090 && c <= 0x209c) || (c >= 0x2170 && c <= 0x217f) ||
         (c >= 0x24d0 && c <= 0x24e9) || c == 0x2c7c || c == 0x2c7d || c == 0xa69c || c == 0xa69d || c == 0xa770 || c == 0xa7f8 ||
         c == 0xa7f9 || (c >= 0xab5c && c <= 0xab5f) || c == 0x10780 || (c >= 0x10783 && c <= 0x10785) || (c >= 0x10787 && c <= 0x107b0) ||
         (c >= 0x107b2 && c <= 0x107ba);
}

bool jinja_is_title(uint32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LT;
}

static bool is_cased(uint32_t c) {
  return jinja_is_upper(c) || jinja_is_lower(c) || jinja_is_title(c);
}

static bool is_case_ignorable(uint32_t c) { /* Case_Ignorable of DerivedCoreProperties.txt */
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xb7 || c == 0x387 || c == 0x55f || c == 0x5f4 || c == 0x2018 || c == 0x2019 ||
             c == 0x2024 || c == 0x2027 || c == 0xfe13 || c == 0xfe52 || c == 0xfe55 || c == 0xff07 || c == 0xff0e || c == 0xff1a;
  }
}

bool jinja_is_name_start(uint32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  return jinja_is_alpha(c) || category(c) == UTF8PROC_CATEGORY_NL;
}

bool jinja_is_name_part(uint32_t c) {
  if (c < 0x80) return jinja_is_name_start(c) || (c >= '0' && c <= '9');
  utf8proc_category_t kind = category(c);
  return jinja_is_name_start(c) || kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC || kind == UTF8PROC_CATEGORY_ND ||
         kind == UTF8PROC_CATEGORY_PC || c == 0xb7;
}

size_t jinja_leading_space(const char* data, size_t length) {
  size_t at = 0;
  uint32_t codepoint;
  while (at < length) {
    size_t bytes = jinja_decode(data + at, &codepoint);
    if (!jinja_is_space(codepoint)) break;
    at += bytes;
  }
  return at;
}

size_t jinja_trailing_space(const char* data, size_t length) {
  size_t end = length;
  uint32_t codepoint;
  while (end) {
    size_t bytes = jinja_decode_before(data, data + end, &codepoint);
    if (!jinja_is_space(codepoint)) break;
    end -= bytes;
  }
  return length - end;
}

static const special_casing* special_case(uint32_t codepoint) {
  size_t low = 0, high = sizeof SPECIAL_CASING / sizeof *SPECIAL_CASING;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (SPECIAL_CASING[middle].code == codepoint) return &SPECIAL_CASING[middle];
    if (SPECIAL_CASING[middle].code < codepoint) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return NULL;
}

genai_status* jinja_put_cased(jinja_builder* builder, jinja_casing casing, uint32_t codepoint) {
  utf8proc_int32_t code = (utf8proc_int32_t)codepoint;
  if (casing == JINJA_FOLD) {
    utf8proc_int32_t folded[4];
    int boundary = 0;
    utf8proc_ssize_t count = utf8proc_decompose_char(code, folded, 4, UTF8PROC_CASEFOLD, &boundary);
    for (utf8proc_ssize_t i = 0; i < count && i < 4; i++) GENAI_TRY(jinja_put_codepoint(builder, (uint32_t)folded[i]));
    return NULL;
  }
  if (casing == JINJA_LOWER) {
    if (codepoint == 0x130) { /* the one code point whose lower case is two: capital I with a dot above */
      GENAI_TRY(jinja_put_codepoint(builder, 'i'));
      return jinja_put_codepoint(builder, 0x307);
    }
    return jinja_put_codepoint(builder, (uint32_t)utf8proc_tolower(code));
  }
  const special_casing* special = codepoint < 0x80 ? NULL : special_case(codepoint);
  if (!special) return jinja_put_codepoint(builder, (uint32_t)(casing == JINJA_UPPER ? utf8proc_toupper(code) : utf8proc_totitle(code)));
  const uint32_t* mapped = casing == JINJA_UPPER ? special->upper : special->title;
  for (int i = 0; i < 3 && mapped[i]; i++) GENAI_TRY(jinja_put_codepoint(builder, mapped[i]));
  return NULL;
}

/* Final_Sigma of SpecialCasing.txt: a cased letter before, none after, case-ignorable ones between not counting. */
static bool is_final_sigma(const char* begin, const char* at, const char* end) {
  uint32_t c = 0;
  bool found = false;
  for (const char* before = at; before > begin;) {
    before -= jinja_decode_before(begin, before, &c);
    if (is_case_ignorable(c)) continue;
    found = is_cased(c);
    break;
  }
  if (!found) return false;
  for (const char* after = at + 2; after < end;) {
    after += jinja_decode(after, &c);
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

static genai_status* put_lower_at(jinja_builder* builder, const char* begin, const char* at, const char* end, uint32_t codepoint) {
  if (codepoint == 0x3a3) return jinja_put_codepoint(builder, is_final_sigma(begin, at, end) ? 0x3c2 : 0x3c3);
  return jinja_put_cased(builder, JINJA_LOWER, codepoint);
}

genai_status* jinja_put_lower(jinja_builder* builder, const jinja_string* string, size_t from, size_t to) {
  const char *begin = string->data + from, *end = string->data + to;
  for (const char* at = begin; at < end;) {
    uint32_t codepoint;
    size_t bytes = jinja_decode(at, &codepoint);
    GENAI_TRY(put_lower_at(builder, begin, at, end, codepoint));
    at += bytes;
  }
  return NULL;
}

static genai_status* take_like(jinja_builder* builder, const jinja_string* model, jinja_value* out) {
  jinja_value plain;
  GENAI_TRY(jinja_take(builder, &plain));
  return jinja_mark_safe(&builder->machine->heap, plain, model->safe, out);
}

genai_status* jinja_cased(jinja_machine* machine, jinja_casing casing, const jinja_string* string, jinja_value* out) {
  jinja_builder builder = {.machine = machine};
  GENAI_TRY(jinja_step(machine, string->length / 8));
  const char *begin = string->data, *end = string->data + string->length;
  bool in_word = false;
  for (const char* at = begin; at < end;) {
    uint32_t codepoint;
    size_t bytes = jinja_decode(at, &codepoint);
    if (casing == JINJA_LOWER || (casing == JINJA_TITLE && in_word)) {
      GENAI_TRY(put_lower_at(&builder, begin, at, end, codepoint));
    } else {
      GENAI_TRY(jinja_put_cased(&builder, casing, codepoint));
    }
    in_word = casing == JINJA_TITLE && is_cased(codepoint);
    at += bytes;
  }
  return take_like(&builder, string, out);
}

genai_status* jinja_capitalized(jinja_machine* machine, const jinja_string* string, jinja_value* out) {
  jinja_builder builder = {.machine = machine};
  GENAI_TRY(jinja_step(machine, string->length / 8));
  const char *begin = string->data, *end = string->data + string->length;
  for (const char* at = begin; at < end;) {
    uint32_t codepoint;
    size_t bytes = jinja_decode(at, &codepoint);
    if (at == begin) {
      GENAI_TRY(jinja_put_cased(&builder, JINJA_TITLE, codepoint));
    } else {
      GENAI_TRY(put_lower_at(&builder, begin, at, end, codepoint));
    }
    at += bytes;
  }
  return take_like(&builder, string, out);
}

genai_status* jinja_swapped_case(jinja_machine* machine, const jinja_string* string, jinja_value* out) {
  jinja_builder builder = {.machine = machine};
  GENAI_TRY(jinja_step(machine, string->length / 8));
  const char *begin = string->data, *end = string->data + string->length;
  for (const char* at = begin; at < end;) {
    uint32_t codepoint;
    size_t bytes = jinja_decode(at, &codepoint);
    if (jinja_is_upper(codepoint)) {
      GENAI_TRY(put_lower_at(&builder, begin, at, end, codepoint));
    } else if (jinja_is_lower(codepoint)) {
      GENAI_TRY(jinja_put_cased(&builder, JINJA_UPPER, codepoint));
    } else {
      GENAI_TRY(jinja_put_codepoint(&builder, codepoint));
    }
    at += bytes;
  }
  return take_like(&builder, string, out);
}

static bool strips(const jinja_string* characters, uint32_t codepoint) {
  if (!characters) return jinja_is_space(codepoint);
  for (size_t i = 0; i < characters->length;) {
    uint32_t candidate;
    i += jinja_decode(characters->data + i, &candidate);
    if (candidate == codepoint) return true;
  }
  return false;
}

genai_status* jinja_strip(jinja_machine* machine, const jinja_string* string, const jinja_string* characters, int sides, jinja_value* out) {
  size_t begin = 0, end = string->length;
  uint32_t codepoint;
  GENAI_TRY(jinja_step(machine, string->length / 64 * (characters ? characters->length + 1 : 1)));
  while ((sides & JINJA_STRIP_LEFT) && begin < end) {
    size_t bytes = jinja_decode(string->data + begin, &codepoint);
    if (!strips(characters, codepoint)) break;
    begin += bytes;
  }
  while ((sides & JINJA_STRIP_RIGHT) && end > begin) {
    size_t bytes = jinja_decode_before(string->data + begin, string->data + end, &codepoint);
    if (!strips(characters, codepoint)) break;
    end -= bytes;
  }
  return jinja_substring(&machine->heap, string, begin, end, out);
}

genai_status* jinja_split_lines(jinja_machine* machine, const jinja_string* string, bool keep_ends, jinja_value* out) {
  GENAI_TRY(jinja_step(machine, string->length / 32));
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, 0, out));
  size_t line = 0;
  for (size_t at = 0; at < string->length;) {
    uint32_t codepoint;
    size_t end = at;
    at += jinja_decode(string->data + at, &codepoint);
    if (!jinja_is_line_boundary(codepoint)) continue;
    if (codepoint == '\r' && at < string->length && string->data[at] == '\n') at++;
    jinja_value item;
    GENAI_TRY(jinja_substring(&machine->heap, string, line, keep_ends ? at : end, &item));
    GENAI_TRY(jinja_append(&machine->heap, out->as.list, item));
    line = at;
  }
  if (line == string->length) return NULL;
  jinja_value item;
  GENAI_TRY(jinja_substring(&machine->heap, string, line, string->length, &item));
  return jinja_append(&machine->heap, out->as.list, item);
}

genai_status* jinja_replace(jinja_machine* machine, const jinja_string* string, const jinja_string* old, const jinja_string* new,
                            int64_t limit, jinja_value* out) {
  jinja_builder builder = {.machine = machine};
  GENAI_TRY(jinja_step(machine, string->length / 32));
  size_t at = 0;
  while (limit) {
    if (old->length) {
      const char* found = memmem(string->data + at, string->length - at, old->data, old->length);
      if (!found) break;
      GENAI_TRY(jinja_put(&builder, string->data + at, (size_t)(found - string->data) - at));
      at = (size_t)(found - string->data) + old->length;
      GENAI_TRY(jinja_put_string(&builder, new));
    } else { /* an empty needle matches before every code point and at the end */
      GENAI_TRY(jinja_put_string(&builder, new));
      if (at == string->length) break;
      uint32_t codepoint;
      size_t bytes = jinja_decode(string->data + at, &codepoint);
      GENAI_TRY(jinja_put(&builder, string->data + at, bytes));
      at += bytes;
    }
    if (limit > 0) limit--;
  }
  GENAI_TRY(jinja_put(&builder, string->data + at, string->length - at));
  return jinja_take(&builder, out);
}

static int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

bool jinja_parse_integer(const jinja_string* string, int base, int64_t* out, bool* overflow) {
  size_t lead = jinja_leading_space(string->data, string->length);
  const char *at = string->data + lead, *end = string->data + string->length;
  end -= jinja_trailing_space(at, (size_t)(end - at));
  bool negative = false;
  *overflow = false;
  if (at < end && (*at == '-' || *at == '+')) negative = *at++ == '-';
  bool prefixed = false;
  if (end - at > 2 && *at == '0') {
    char mark = (char)(at[1] | 0x20);
    int named = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (named && (base == named || base == 0)) {
      base = named;
      at += 2;
      prefixed = true;
    }
  }
  bool leading_zero = at < end && *at == '0';
  bool decimal_zero_rule = base == 0; /* base 0: no leading zeros, as in Python's source */
  if (base == 0) base = 10;
  uint64_t value = 0;
  bool digit_before = prefixed; /* an underscore may follow a prefix or a digit */
  size_t digits = 0;
  for (; at < end; at++) {
    if (*at == '_') {
      if (!digit_before) return false;
      digit_before = false;
      continue;
    }
    int digit = digit_value(*at);
    if (digit >= base) return false;
    if (__builtin_mul_overflow(value, (uint64_t)base, &value) || __builtin_add_overflow(value, (uint64_t)digit, &value)) *overflow = true;
    digit_before = true;
    digits++;
  }
  if (!digits || !digit_before) return false;
  if (decimal_zero_rule && leading_zero && digits > 1 && (value || *overflow)) return false;
  if (value > (uint64_t)INT64_MAX + (negative ? 1 : 0)) *overflow = true;
  *out = negative ? (int64_t)(0 - value) : (int64_t)value;
  return true;
}

bool jinja_parse_real(const char* data, size_t length, double* out) {
  size_t lead = jinja_leading_space(data, length);
  data += lead;
  length -= lead;
  length -= jinja_trailing_space(data, length);
  char buffer[1024]; /* longer digit strings are no number a template means */
  size_t used = 0;
  if (!length || length >= sizeof buffer) return false;
  for (size_t i = 0; i < length; i++) {
    char c = data[i];
    if (c == '_') { /* only between digits */
      if (!i || i + 1 == length || digit_value(data[i - 1]) > 9 || digit_value(data[i + 1]) > 9) return false;
      continue;
    }
    if (c == 'x' || c == 'X' || c == '(' || c == 'p' || c == 'P') return false; /* strtod's hexadecimal and nan(...) */
    if (!c || (unsigned char)c >= 0x80) return false;
    buffer[used++] = c;
  }
  buffer[used] = 0;
  locale_t plain = newlocale(LC_ALL_MASK, "C", NULL); /* the host program may have set a decimal comma */
  if (!plain) return false;
  char* stop;
  *out = strtod_l(buffer, &stop, plain);
  freelocale(plain);
  return stop == buffer + used;
}
