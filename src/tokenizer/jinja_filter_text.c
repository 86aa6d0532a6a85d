/* Filters that make text: case, trimming, replacing, wrapping, escaping, joining. */
#include <stdio.h>
#include <string.h>

#include "tokenizer/jinja_filter.h"
#include "tokenizer/jinja_iterate.h"
#include "tokenizer/jinja_text.h"

/* The value as text, a safe string staying safe. */
static genai_status* soft(jinja_machine* machine, const jinja_call* call, const jinja_string** out) {
  jinja_value value;
  GENAI_TRY(jinja_soft_str(machine, call->self, &value));
  *out = value.as.string;
  return NULL;
}

JINJA_FILTER(upper) {
  const jinja_string* string;
  GENAI_TRY(soft(machine, call, &string));
  return jinja_cased(machine, JINJA_UPPER, string, out);
}

JINJA_FILTER(lower) {
  const jinja_string* string;
  GENAI_TRY(soft(machine, call, &string));
  return jinja_cased(machine, JINJA_LOWER, string, out);
}

JINJA_FILTER(capitalize) {
  const jinja_string* string;
  GENAI_TRY(soft(machine, call, &string));
  return jinja_capitalized(machine, string, out);
}

static bool separates_words(uint32_t c) {
  return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || jinja_is_space(c);
}

/* Unlike str.title: words begin after white space and opening brackets, and their first letter gets its upper case. */
JINJA_FILTER(title) {
  const jinja_string* string;
  jinja_builder builder = {.machine = machine};
  GENAI_TRY(soft(machine, call, &string));
  GENAI_TRY(jinja_step(machine, string->length / 8));
  for (size_t at = 0; at < string->length;) {
    uint32_t codepoint;
    size_t first = at + jinja_decode(string->data + at, &codepoint), end = first;
    if (separates_words(codepoint)) {
      GENAI_TRY(jinja_put_codepoint(&builder, codepoint));
      at = first;
      continue;
    }
    GENAI_TRY(jinja_put_cased(&builder, JINJA_UPPER, codepoint));
    while (end < string->length) {
      size_t bytes = jinja_decode(string->data + end, &codepoint);
      if (separates_words(codepoint)) break;
      end += bytes;
    }
    GENAI_TRY(jinja_put_lower(&builder, string, first, end));
    at = end;
  }
  return jinja_take(&builder, out);
}

JINJA_FILTER(trim) {
  const jinja_string *string, *characters = NULL;
  GENAI_TRY(soft(machine, call, &string));
  if (jinja_given_not_none(call->arguments[0]))
    GENAI_TRY(jinja_string_argument(machine, call->arguments[0], "trim's characters", &characters));
  return jinja_strip(machine, string, characters, JINJA_STRIP_LEFT | JINJA_STRIP_RIGHT, out);
}

JINJA_FILTER(replace) {
  jinja_value string, old, new;
  int64_t limit = -1;
  GENAI_TRY(jinja_str(machine, call->self, &string));
  GENAI_TRY(jinja_str(machine, call->arguments[0], &old));
  GENAI_TRY(jinja_str(machine, call->arguments[1], &new));
  if (call->arguments[2].kind != JINJA_NONE) GENAI_TRY(jinja_integer_argument(machine, call->arguments[2], "replace's count", -1, &limit));
  return jinja_replace(machine, string.as.string, old.as.string, new.as.string, limit, out);
}

JINJA_FILTER(string) {
  return jinja_soft_str(machine, call->self, out);
}

JINJA_FILTER(safe) {
  jinja_value plain;
  GENAI_TRY(jinja_str(machine, call->self, &plain));
  return jinja_mark_safe(&machine->heap, plain, true, out);
}

JINJA_FILTER(escape) {
  return jinja_escape(machine, call->self, out);
}

JINJA_FILTER(forceescape) {
  jinja_value plain;
  GENAI_TRY(jinja_str(machine, call->self, &plain));
  return jinja_escape(machine, plain, out);
}

JINJA_FILTER(format) {
  const jinja_string* string;
  jinja_value arguments;
  GENAI_TRY(soft(machine, call, &string));
  if (call->given->count && call->given->keywords) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "format takes positional or keyword arguments, not both");
  }
  if (call->given->keywords) {
    GENAI_TRY(jinja_new_dict(&machine->heap, JINJA_DICT, &arguments));
    GENAI_TRY(jinja_dict_copy(machine, call->given->keywords, arguments.as.dict));
  } else {
    GENAI_TRY(jinja_new_list(&machine->heap, JINJA_TUPLE, call->given->count, &arguments));
    for (size_t i = 0; i < call->given->count; i++) GENAI_TRY(jinja_append(&machine->heap, arguments.as.list, call->given->items[i]));
  }
  return jinja_percent_format(machine, string, arguments, out);
}

JINJA_FILTER(indent) {
  const jinja_string* string;
  jinja_value width = call->arguments[0], lines;
  jinja_builder indent = {.machine = machine}, builder = {.machine = machine};
  GENAI_TRY(jinja_string_argument(machine, call->self, "the text to indent", &string));
  if (width.kind == JINJA_STRING) {
    GENAI_TRY(jinja_put_string(&indent, width.as.string));
  } else {
    static const jinja_string SPACE = {.data = " ", .length = 1, .count = 1};
    int64_t spaces;
    GENAI_TRY(jinja_integer_argument(machine, width, "indent's width", 4, &spaces));
    GENAI_TRY(jinja_put_repeated(&indent, &SPACE, spaces > 0 ? (size_t)spaces : 0));
  }
  bool first = jinja_truth(call->arguments[1]), blank = jinja_truth(call->arguments[2]);
  GENAI_TRY(jinja_split_lines(machine, string, false, &lines));
  /* The reference splits the text with one line end added, so an empty last line counts when there was one. */
  uint32_t last = 0;
  if (string->length) jinja_decode_before(string->data, string->data + string->length, &last);
  if (!string->length || jinja_is_line_boundary(last)) {
    jinja_value empty;
    GENAI_TRY(jinja_static_string(&machine->heap, "", &empty));
    if (!(last == '\r')) GENAI_TRY(jinja_append(&machine->heap, lines.as.list, empty)); /* '\r' and the added '\n' are one end */
  }
  if (first) GENAI_TRY(jinja_put(&builder, indent.data, indent.length));
  for (size_t i = 0; i < lines.as.list->count; i++) {
    const jinja_string* line = lines.as.list->items[i].as.string;
    if (i) GENAI_TRY(jinja_put_text(&builder, "\n"));
    if (i && (blank || line->length)) GENAI_TRY(jinja_put(&builder, indent.data, indent.length));
    GENAI_TRY(jinja_put_string(&builder, line));
  }
  GENAI_TRY(jinja_take(&builder, out));
  return jinja_mark_safe(&machine->heap, *out, string->safe, out);
}

JINJA_FILTER(truncate) {
  const jinja_string *string, *end = NULL;
  int64_t length, leeway;
  jinja_value ellipsis;
  size_t count = 0;
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[0], "truncate's length", 255, &length));
  GENAI_TRY(jinja_static_string(&machine->heap, "...", &ellipsis));
  if (jinja_given(call->arguments[2])) ellipsis = call->arguments[2];
  GENAI_TRY(jinja_string_argument(machine, ellipsis, "truncate's end", &end));
  leeway = 5;
  if (jinja_given_not_none(call->arguments[3]))
    GENAI_TRY(jinja_integer_argument(machine, call->arguments[3], "truncate's leeway", 5, &leeway));
  if (length < (int64_t)end->count || leeway < 0) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "truncate: expected a length of at least %zu and a leeway of at least 0", end->count);
  }
  if (jinja_length(call->self, &count) && (count <= (size_t)length || count - (size_t)length <= (size_t)leeway)) {
    *out = call->self; /* whatever has a length, as in the reference */
    return NULL;
  }
  GENAI_TRY(jinja_string_argument(machine, call->self, "the text to truncate", &string));
  size_t cut = jinja_byte_offset(string, (size_t)length - end->count);
  if (!jinja_truth(call->arguments[1])) { /* back to the last space, if there is one */
    const char* space = memrchr(string->data, ' ', cut);
    if (space) cut = (size_t)(space - string->data);
  }
  jinja_builder builder = {.machine = machine};
  GENAI_TRY(jinja_put(&builder, string->data, cut));
  GENAI_TRY(jinja_put_string(&builder, end));
  return jinja_take(&builder, out);
}

JINJA_FILTER(center) {
  const jinja_string* string;
  int64_t width;
  static const jinja_string SPACE = {.data = " ", .length = 1, .count = 1};
  jinja_builder builder = {.machine = machine};
  GENAI_TRY(soft(machine, call, &string));
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[0], "center's width", 80, &width));
  size_t padding = width > (int64_t)string->count ? (size_t)width - string->count : 0;
  size_t left = padding / 2 + (padding & (size_t)width & 1); /* str.center's choice of the odd space */
  GENAI_TRY(jinja_put_repeated(&builder, &SPACE, left));
  GENAI_TRY(jinja_put_string(&builder, string));
  GENAI_TRY(jinja_put_repeated(&builder, &SPACE, padding - left));
  GENAI_TRY(jinja_take(&builder, out));
  return jinja_mark_safe(&machine->heap, *out, string->safe, out);
}

JINJA_FILTER(wordcount) {
  const jinja_string* string;
  int64_t words = 0;
  bool inside = false;
  GENAI_TRY(soft(machine, call, &string));
  GENAI_TRY(jinja_step(machine, string->length / 8));
  for (size_t at = 0; at < string->length;) {
    uint32_t codepoint;
    at += jinja_decode(string->data + at, &codepoint);
    bool word = jinja_is_word(codepoint);
    words += word && !inside;
    inside = word;
  }
  *out = jinja_integer(words);
  return NULL;
}

static genai_status* put_quoted(jinja_builder* builder, jinja_value value, bool in_query) {
  jinja_value quoted;
  GENAI_TRY(jinja_str(builder->machine, value, &quoted));
  const jinja_string* string = quoted.as.string;
  GENAI_TRY(jinja_step(builder->machine, string->length / 8));
  for (size_t i = 0; i < string->length; i++) {
    char c = string->data[i];
    bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c && strchr("_.-~", c)) || (c == '/' && !in_query);
    char escape[8];
    if (plain) {
      GENAI_TRY(jinja_put(builder, &c, 1));
    } else if (c == ' ' && in_query) {
      GENAI_TRY(jinja_put_text(builder, "+"));
    } else {
      snprintf(escape, sizeof escape, "%%%02X", (unsigned char)c);
      GENAI_TRY(jinja_put_text(builder, escape));
    }
  }
  return NULL;
}

JINJA_FILTER(urlencode) {
  jinja_builder builder = {.machine = machine};
  if (call->self.kind == JINJA_STRING || !jinja_is_iterable(call->self)) {
    GENAI_TRY(put_quoted(&builder, call->self, false));
    return jinja_take(&builder, out);
  }
  jinja_value source = call->self;
  if (source.kind == JINJA_DICT) source = (jinja_value){.kind = JINJA_VIEW, .view = JINJA_VIEW_ITEMS, .as.dict = source.as.dict};
  jinja_iterator iterator;
  GENAI_TRY(jinja_iterate(machine, source, &iterator));
  for (bool first = true;; first = false) {
    jinja_value pair;
    bool done;
    GENAI_TRY(jinja_next(machine, &iterator, &pair, &done));
    if (done) return jinja_take(&builder, out);
    GENAI_TRY(jinja_to_list(machine, pair, &pair));
    if (pair.as.list->count != 2) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "urlencode: expected pairs of a name and a value");
    if (!first) GENAI_TRY(jinja_put_text(&builder, "&"));
    GENAI_TRY(put_quoted(&builder, pair.as.list->items[0], true));
    GENAI_TRY(jinja_put_text(&builder, "="));
    GENAI_TRY(put_quoted(&builder, pair.as.list->items[1], true));
  }
}

JINJA_FILTER(join) {
  jinja_builder builder = {.machine = machine};
  jinja_value path, separator = call->arguments[0];
  jinja_iterator iterator;
  if (!jinja_given(separator)) separator = (jinja_value){.kind = JINJA_UNDEFINED};
  GENAI_TRY(jinja_attribute_path(machine, call->arguments[1], &path));
  GENAI_TRY(jinja_iterate(machine, call->self, &iterator));
  for (bool first = true;; first = false) {
    jinja_value item;
    bool done;
    GENAI_TRY(jinja_next(machine, &iterator, &item, &done));
    if (done) return jinja_take(&builder, out);
    if (!first) GENAI_TRY(jinja_put_str(&builder, separator));
    GENAI_TRY(jinja_follow_path(machine, path.as.list, (jinja_value){.kind = JINJA_MISSING}, item, &item));
    GENAI_TRY(jinja_put_str(&builder, item));
  }
}
