/* JSON out of values, as Python's json.dumps writes it. JSON into values is in chat_template.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tokenizer/jinja_builtins.h"
#include "tokenizer/jinja_sort.h"
#include "tokenizer/jinja_text.h"

typedef struct writer {
  jinja_builder builder;
  const jinja_json_style* style;
} writer;

static genai_status* put_string(writer* self, const jinja_string* string) {
  jinja_builder* out = &self->builder;
  GENAI_TRY(jinja_step(out->machine, string->length / 32));
  GENAI_TRY(jinja_put_text(out, "\""));
  size_t plain = 0; /* start of the run that needs no escape */
  for (size_t at = 0; at < string->length;) {
    uint32_t codepoint;
    size_t bytes = jinja_decode(string->data + at, &codepoint);
    char escape[16] = "";
    switch (codepoint) {
      case '"':
        strcpy(escape, "\\\"");
        break;
      case '\\':
        strcpy(escape, "\\\\");
        break;
      case '\n':
        strcpy(escape, "\\n");
        break;
      case '\r':
        strcpy(escape, "\\r");
        break;
      case '\t':
        strcpy(escape, "\\t");
        break;
      case '\f':
        strcpy(escape, "\\f");
        break;
      case '\b':
        strcpy(escape, "\\b");
        break;
      default:
        if (codepoint < 0x20 || (self->style->ensure_ascii && codepoint >= 0x7f && codepoint < 0x10000)) {
          snprintf(escape, sizeof escape, "\\u%04x", codepoint);
        } else if (self->style->ensure_ascii && codepoint >= 0x10000) {
          uint32_t high = 0xd800 + ((codepoint - 0x10000) >> 10), low = 0xdc00 + (codepoint & 0x3ff);
          snprintf(escape, sizeof escape, "\\u%04x\\u%04x", high, low);
        }
    }
    if (*escape) {
      GENAI_TRY(jinja_put(out, string->data + plain, at - plain));
      GENAI_TRY(jinja_put_text(out, escape));
      plain = at + bytes;
    }
    at += bytes;
  }
  GENAI_TRY(jinja_put(out, string->data + plain, string->length - plain));
  return jinja_put_text(out, "\"");
}

static genai_status* put_real(writer* self, double value) {
  if (isnan(value)) return jinja_put_text(&self->builder, "NaN");
  if (isinf(value)) return jinja_put_text(&self->builder, value < 0 ? "-Infinity" : "Infinity");
  return jinja_put_real(&self->builder, value);
}

static genai_status* put_line(writer* self, unsigned depth) {
  if (!self->style->indent) return NULL;
  GENAI_TRY(jinja_put_text(&self->builder, "\n"));
  for (unsigned i = 0; i < depth; i++) GENAI_TRY(jinja_put_string(&self->builder, self->style->indent));
  return NULL;
}

static genai_status* put_value(writer* self, jinja_value value, unsigned depth);

static genai_status* put_array(writer* self, const jinja_list* list, unsigned depth) {
  if (!list->count) return jinja_put_text(&self->builder, "[]");
  GENAI_TRY(jinja_put_text(&self->builder, "["));
  for (size_t i = 0; i < list->count; i++) {
    if (i) GENAI_TRY(jinja_put_string(&self->builder, self->style->item_separator));
    GENAI_TRY(put_line(self, depth + 1));
    GENAI_TRY(put_value(self, list->items[i], depth + 1));
  }
  GENAI_TRY(put_line(self, depth));
  return jinja_put_text(&self->builder, "]");
}

static genai_status* put_key(writer* self, jinja_value key, unsigned depth) {
  if (key.kind == JINJA_STRING) return put_string(self, key.as.string);
  if (key.kind != JINJA_NONE && !jinja_is_number(key)) {
    return jinja_fail(self->builder.machine, GENAI_ERROR_TEMPLATE, "tojson: a key must be a string, a number, a boolean or none, not '%s'",
                      jinja_type_name(key));
  }
  GENAI_TRY(jinja_put_text(&self->builder, "\""));
  GENAI_TRY(put_value(self, key, depth));
  return jinja_put_text(&self->builder, "\"");
}

static genai_status* put_object(writer* self, const jinja_dict* dict, unsigned depth) {
  jinja_machine* machine = self->builder.machine;
  jinja_value order;
  if (!dict->count) return jinja_put_text(&self->builder, "{}");
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, dict->count, &order));
  for (size_t i = 0; i < dict->count; i++) GENAI_TRY(jinja_append(&machine->heap, order.as.list, dict->entries[i].key));
  if (self->style->sort_keys) GENAI_TRY(jinja_sort(machine, order.as.list, order.as.list->items, false));
  GENAI_TRY(jinja_put_text(&self->builder, "{"));
  for (size_t i = 0; i < dict->count; i++) {
    const jinja_value* value = &dict->entries[i].value;
    if (self->style->sort_keys) GENAI_TRY(jinja_dict_get(machine, dict, order.as.list->items[i], &value));
    if (i) GENAI_TRY(jinja_put_string(&self->builder, self->style->item_separator));
    GENAI_TRY(put_line(self, depth + 1));
    GENAI_TRY(put_key(self, order.as.list->items[i], depth));
    GENAI_TRY(jinja_put_string(&self->builder, self->style->key_separator));
    GENAI_TRY(put_value(self, *value, depth + 1));
  }
  GENAI_TRY(put_line(self, depth));
  return jinja_put_text(&self->builder, "}");
}

static genai_status* put_value(writer* self, jinja_value value, unsigned depth) {
  jinja_machine* machine = self->builder.machine;
  char buffer[32];
  GENAI_TRY(jinja_step(machine, 1));
  if (depth > JINJA_MAX_VALUE_DEPTH) {
    return jinja_fail(machine, GENAI_ERROR_LIMIT, "tojson: the value is nested more than %d deep", JINJA_MAX_VALUE_DEPTH);
  }
  switch (value.kind) {
    case JINJA_NONE:
      return jinja_put_text(&self->builder, "null");
    case JINJA_BOOL:
      return jinja_put_text(&self->builder, value.as.boolean ? "true" : "false");
    case JINJA_INTEGER:
      snprintf(buffer, sizeof buffer, "%lld", (long long)value.as.integer);
      return jinja_put_text(&self->builder, buffer);
    case JINJA_FLOAT:
      return put_real(self, value.as.real);
    case JINJA_STRING:
      return put_string(self, value.as.string);
    case JINJA_LIST:
    case JINJA_TUPLE:
      return put_array(self, value.as.list, depth);
    case JINJA_DICT:
      return put_object(self, value.as.dict, depth);
    default:
      return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "tojson: a value of type '%s' has no JSON form; give it a default or test it first",
                        jinja_type_name(value));
  }
}

genai_status* jinja_to_json(jinja_machine* machine, jinja_value value, const jinja_json_style* style, jinja_value* out) {
  writer self = {.builder = {.machine = machine}, .style = style};
  GENAI_TRY(put_value(&self, value, 0));
  return jinja_take(&self.builder, out);
}
