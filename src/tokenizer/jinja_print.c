/* Building text, and Python's str() and repr() of every value. Format strings are in jinja_format.c, JSON in jinja_json.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/jinja_evaluate.h"
#include "tokenizer/jinja_iterate.h"
#include "tokenizer/jinja_text.h"
#include "tokenizer/jinja_value.h"

genai_status* jinja_reserve(jinja_builder* builder, size_t length) {
  if (length > JINJA_MAX_TEXT || builder->length + length > JINJA_MAX_TEXT) {
    return jinja_fail(builder->machine, GENAI_ERROR_LIMIT, "the text grows beyond %d MiB, the limit for one template",
                      JINJA_MAX_TEXT >> 20);
  }
  if (builder->capacity - builder->length >= length) return NULL;
  size_t wanted = builder->capacity * 2 < 64 ? 64 : builder->capacity * 2;
  if (wanted < builder->length + length) wanted = builder->length + length;
  char* grown = jinja_alloc(&builder->machine->heap, wanted, 1);
  if (!grown) return jinja_heap_status(&builder->machine->heap);
  if (builder->length) memcpy(grown, builder->data, builder->length);
  builder->data = grown;
  builder->capacity = wanted;
  return NULL;
}

genai_status* jinja_put(jinja_builder* builder, const char* data, size_t length) {
  if (!length) return NULL;
  GENAI_TRY(jinja_reserve(builder, length));
  memcpy(builder->data + builder->length, data, length);
  builder->length += length;
  return NULL;
}

genai_status* jinja_put_text(jinja_builder* builder, const char* literal) {
  return jinja_put(builder, literal, strlen(literal));
}

genai_status* jinja_put_string(jinja_builder* builder, const jinja_string* string) {
  return jinja_put(builder, string->data, string->length);
}

genai_status* jinja_put_codepoint(jinja_builder* builder, uint32_t codepoint) {
  char bytes[4];
  return jinja_put(builder, bytes, jinja_encode(codepoint, bytes));
}

genai_status* jinja_put_repeated(jinja_builder* builder, const jinja_string* string, size_t times) {
  size_t total;
  if (!size_mul(string->length, times, &total)) total = SIZE_MAX;
  GENAI_TRY(jinja_reserve(builder, total));
  GENAI_TRY(jinja_step(builder->machine, total / 64));
  for (size_t i = 0; string->length && i < times; i++) GENAI_TRY(jinja_put_string(builder, string));
  return NULL;
}

genai_status* jinja_take(jinja_builder* builder, jinja_value* out) {
  GENAI_TRY(jinja_step(builder->machine, builder->length / 64));
  return jinja_borrow_string(&builder->machine->heap, builder->data, builder->length, out);
}

/* The shortest decimal digits that read back as `value` (finite, not negative), and the exponent of the first. */
static int shortest_digits(double value, char digits[32], int* exponent) {
  char buffer[64];
  for (int precision = 0; precision < 17; precision++) {
    snprintf(buffer, sizeof buffer, "%.*e", precision, value);
    if (strtod(buffer, NULL) == value) break; /* printing and reading agree on the decimal point, whatever the locale */
  }
  int count = 0;
  const char* at = buffer;
  for (; *at && *at != 'e'; at++) {
    if (*at >= '0' && *at <= '9') digits[count++] = *at;
  }
  *exponent = *at ? atoi(at + 1) : 0;
  while (count > 1 && digits[count - 1] == '0') count--;
  return count;
}

genai_status* jinja_put_real(jinja_builder* builder, double value) {
  if (isnan(value)) return jinja_put_text(builder, "nan");
  if (signbit(value)) GENAI_TRY(jinja_put_text(builder, "-"));
  value = fabs(value);
  if (isinf(value)) return jinja_put_text(builder, "inf");
  char digits[32];
  int exponent, count = shortest_digits(value, digits, &exponent);
  if (exponent < -4 || exponent >= 16) { /* repr's switch to scientific notation */
    GENAI_TRY(jinja_put(builder, digits, 1));
    if (count > 1) {
      GENAI_TRY(jinja_put_text(builder, "."));
      GENAI_TRY(jinja_put(builder, digits + 1, (size_t)count - 1));
    }
    char scale[16];
    snprintf(scale, sizeof scale, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    return jinja_put_text(builder, scale);
  }
  if (exponent < 0) {
    GENAI_TRY(jinja_put_text(builder, "0."));
    for (int i = -1; i > exponent; i--) GENAI_TRY(jinja_put_text(builder, "0"));
    return jinja_put(builder, digits, (size_t)count);
  }
  for (int i = 0; i <= exponent; i++) GENAI_TRY(jinja_put(builder, i < count ? digits + i : "0", 1));
  GENAI_TRY(jinja_put_text(builder, "."));
  if (count <= exponent + 1) return jinja_put_text(builder, "0");
  return jinja_put(builder, digits + exponent + 1, (size_t)(count - exponent - 1));
}

static genai_status* put_integer(jinja_builder* builder, int64_t value) {
  char buffer[32];
  snprintf(buffer, sizeof buffer, "%lld", (long long)value);
  return jinja_put_text(builder, buffer);
}

static genai_status* put_string_repr(jinja_builder* builder, const jinja_string* string) {
  bool has_single = memchr(string->data, '\'', string->length) != NULL;
  bool has_double = memchr(string->data, '"', string->length) != NULL;
  char quote = has_single && !has_double ? '"' : '\'';
  GENAI_TRY(jinja_step(builder->machine, string->length / 16));
  GENAI_TRY(jinja_put(builder, &quote, 1));
  for (size_t at = 0; at < string->length;) {
    uint32_t codepoint;
    size_t bytes = jinja_decode(string->data + at, &codepoint);
    char escape[16];
    if (codepoint == (uint32_t)quote || codepoint == '\\') {
      snprintf(escape, sizeof escape, "\\%c", (char)codepoint);
    } else if (codepoint == '\n' || codepoint == '\r' || codepoint == '\t') {
      snprintf(escape, sizeof escape, "\\%c", codepoint == '\n' ? 'n' : codepoint == '\r' ? 'r' : 't');
    } else if (jinja_is_printable(codepoint)) {
      memcpy(escape, string->data + at, bytes);
      escape[bytes] = 0;
    } else {
      snprintf(escape, sizeof escape, codepoint < 0x100 ? "\\x%02x" : codepoint < 0x10000 ? "\\u%04x" : "\\U%08x", codepoint);
    }
    GENAI_TRY(jinja_put_text(builder, escape));
    at += bytes;
  }
  return jinja_put(builder, &quote, 1);
}

static genai_status* put_repr(jinja_builder* builder, jinja_value value, unsigned depth);

static genai_status* put_items(jinja_builder* builder, const jinja_list* list, unsigned depth) {
  for (size_t i = 0; i < list->count; i++) {
    if (i) GENAI_TRY(jinja_put_text(builder, ", "));
    GENAI_TRY(put_repr(builder, list->items[i], depth));
  }
  return NULL;
}

static genai_status* put_dict(jinja_builder* builder, const jinja_dict* dict, unsigned depth) {
  GENAI_TRY(jinja_put_text(builder, "{"));
  for (size_t i = 0; i < dict->count; i++) {
    if (i) GENAI_TRY(jinja_put_text(builder, ", "));
    GENAI_TRY(put_repr(builder, dict->entries[i].key, depth));
    GENAI_TRY(jinja_put_text(builder, ": "));
    GENAI_TRY(put_repr(builder, dict->entries[i].value, depth));
  }
  return jinja_put_text(builder, "}");
}

static genai_status* put_view(jinja_builder* builder, jinja_value view, unsigned depth) {
  GENAI_TRY(jinja_put_text(builder, jinja_type_name(view)));
  GENAI_TRY(jinja_put_text(builder, "(["));
  for (size_t i = 0; i < view.as.dict->count; i++) {
    const jinja_dict_entry* entry = &view.as.dict->entries[i];
    if (i) GENAI_TRY(jinja_put_text(builder, ", "));
    if (view.view == JINJA_VIEW_ITEMS) GENAI_TRY(jinja_put_text(builder, "("));
    if (view.view != JINJA_VIEW_VALUES) GENAI_TRY(put_repr(builder, entry->key, depth));
    if (view.view == JINJA_VIEW_ITEMS) GENAI_TRY(jinja_put_text(builder, ", "));
    if (view.view != JINJA_VIEW_KEYS) GENAI_TRY(put_repr(builder, entry->value, depth));
    if (view.view == JINJA_VIEW_ITEMS) GENAI_TRY(jinja_put_text(builder, ")"));
  }
  return jinja_put_text(builder, "])");
}

static genai_status* put_range(jinja_builder* builder, const jinja_range* range) {
  char buffer[96];
  if (range->step == 1) {
    snprintf(buffer, sizeof buffer, "range(%lld, %lld)", (long long)range->start, (long long)range->stop);
  } else {
    snprintf(buffer, sizeof buffer, "range(%lld, %lld, %lld)", (long long)range->start, (long long)range->stop, (long long)range->step);
  }
  return jinja_put_text(builder, buffer);
}

static genai_status* put_loop(jinja_builder* builder, jinja_loop* loop) {
  size_t length;
  char buffer[64];
  GENAI_TRY(jinja_loop_length(builder->machine, loop, &length));
  snprintf(buffer, sizeof buffer, "<LoopContext %lld/%zu>", (long long)loop->index0 + 1, length);
  return jinja_put_text(builder, buffer);
}

static genai_status* put_repr(jinja_builder* builder, jinja_value value, unsigned depth) {
  GENAI_TRY(jinja_step(builder->machine, 1));
  if (depth > JINJA_MAX_VALUE_DEPTH) {
    return jinja_fail(builder->machine, GENAI_ERROR_LIMIT, "cannot print a value nested more than %d deep", JINJA_MAX_VALUE_DEPTH);
  }
  switch (value.kind) {
    case JINJA_MISSING:
    case JINJA_UNDEFINED:
      return jinja_put_text(builder, "Undefined");
    case JINJA_NONE:
      return jinja_put_text(builder, "None");
    case JINJA_BOOL:
      return jinja_put_text(builder, value.as.boolean ? "True" : "False");
    case JINJA_INTEGER:
      return put_integer(builder, value.as.integer);
    case JINJA_FLOAT:
      return jinja_put_real(builder, value.as.real);
    case JINJA_STRING:
      if (!value.as.string->safe) return put_string_repr(builder, value.as.string);
      GENAI_TRY(jinja_put_text(builder, "Markup("));
      GENAI_TRY(put_string_repr(builder, value.as.string));
      return jinja_put_text(builder, ")");
    case JINJA_LIST:
      GENAI_TRY(jinja_put_text(builder, "["));
      GENAI_TRY(put_items(builder, value.as.list, depth + 1));
      return jinja_put_text(builder, "]");
    case JINJA_TUPLE:
      GENAI_TRY(jinja_put_text(builder, "("));
      GENAI_TRY(put_items(builder, value.as.list, depth + 1));
      return jinja_put_text(builder, value.as.list->count == 1 ? ",)" : ")");
    case JINJA_DICT:
      return put_dict(builder, value.as.dict, depth + 1);
    case JINJA_NAMESPACE:
      GENAI_TRY(jinja_put_text(builder, "<Namespace "));
      GENAI_TRY(put_dict(builder, value.as.dict, depth + 1));
      return jinja_put_text(builder, ">");
    case JINJA_RANGE:
      return put_range(builder, value.as.range);
    case JINJA_VIEW:
      return put_view(builder, value, depth + 1);
    case JINJA_LOOP:
      return put_loop(builder, value.as.loop);
    case JINJA_MACRO:
      GENAI_TRY(jinja_put_text(builder, "<Macro "));
      if (value.as.macro->name) {
        GENAI_TRY(put_string_repr(builder, value.as.macro->name));
      } else {
        GENAI_TRY(jinja_put_text(builder, "anonymous"));
      }
      return jinja_put_text(builder, ">");
    default: /* Python prints an address here: no two runs agree */
      GENAI_TRY(jinja_put_text(builder, "<"));
      GENAI_TRY(jinja_put_text(builder, jinja_type_name(value)));
      return jinja_put_text(builder, " object>");
  }
}

genai_status* jinja_put_repr(jinja_builder* builder, jinja_value value) {
  return put_repr(builder, value, 0);
}

genai_status* jinja_put_str(jinja_builder* builder, jinja_value value) {
  if (value.kind == JINJA_STRING) return jinja_put_string(builder, value.as.string);
  if (value.kind == JINJA_UNDEFINED) return NULL;
  return put_repr(builder, value, 0);
}

genai_status* jinja_soft_str(jinja_machine* machine, jinja_value value, jinja_value* out) {
  if (value.kind == JINJA_STRING) {
    *out = value;
    return NULL;
  }
  jinja_builder builder = {.machine = machine};
  GENAI_TRY(jinja_put_str(&builder, value));
  return jinja_take(&builder, out);
}

genai_status* jinja_str(jinja_machine* machine, jinja_value value, jinja_value* out) {
  GENAI_TRY(jinja_soft_str(machine, value, out));
  return jinja_mark_safe(&machine->heap, *out, false, out);
}

genai_status* jinja_escape(jinja_machine* machine, jinja_value value, jinja_value* out) {
  jinja_value plain;
  GENAI_TRY(jinja_soft_str(machine, value, &plain));
  if (plain.as.string->safe) {
    *out = plain;
    return NULL;
  }
  jinja_builder builder = {.machine = machine};
  const jinja_string* string = plain.as.string;
  GENAI_TRY(jinja_step(machine, string->length / 16));
  for (size_t i = 0; i < string->length; i++) {
    switch (string->data[i]) {
      case '&':
        GENAI_TRY(jinja_put_text(&builder, "&amp;"));
        break;
      case '<':
        GENAI_TRY(jinja_put_text(&builder, "&lt;"));
        break;
      case '>':
        GENAI_TRY(jinja_put_text(&builder, "&gt;"));
        break;
      case '\'':
        GENAI_TRY(jinja_put_text(&builder, "&#39;"));
        break;
      case '"':
        GENAI_TRY(jinja_put_text(&builder, "&#34;"));
        break;
      default:
        GENAI_TRY(jinja_put(&builder, string->data + i, 1));
        break;
    }
  }
  GENAI_TRY(jinja_take(&builder, &plain));
  return jinja_mark_safe(&machine->heap, plain, true, out);
}
