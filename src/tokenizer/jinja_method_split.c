/* Methods of str that split, join, pad and look for text. */
#include <string.h>

#include "tokenizer/jinja_iterate.h"
#include "tokenizer/jinja_method.h"
#include "tokenizer/jinja_text.h"

#define METHOD(name) static genai_status* name(jinja_machine* machine, const jinja_call* call, jinja_value* out)
#define SELF (call->self.as.string)

static genai_status* add_piece(jinja_machine* machine, jinja_value* list, const jinja_string* string, size_t begin, size_t end) {
  jinja_value piece;
  GENAI_TRY(jinja_substring(&machine->heap, string, begin, end, &piece));
  return jinja_append(&machine->heap, list->as.list, piece);
}

static void reverse_items(jinja_list* list) {
  for (size_t i = 0; i < list->count / 2; i++) {
    jinja_value swap = list->items[i];
    list->items[i] = list->items[list->count - 1 - i];
    list->items[list->count - 1 - i] = swap;
  }
}

static genai_status* split_at_space(jinja_machine* machine, const jinja_string* string, int64_t limit, jinja_value* out) {
  size_t at = 0;
  uint32_t codepoint;
  for (;;) {
    at += jinja_leading_space(string->data + at, string->length - at);
    if (at == string->length) return NULL;
    if (limit >= 0 && (int64_t)out->as.list->count == limit) return add_piece(machine, out, string, at, string->length);
    size_t end = at;
    while (end < string->length) {
      size_t bytes = jinja_decode(string->data + end, &codepoint);
      if (jinja_is_space(codepoint)) break;
      end += bytes;
    }
    GENAI_TRY(add_piece(machine, out, string, at, end));
    at = end;
  }
}

static genai_status* split_at_space_backwards(jinja_machine* machine, const jinja_string* string, int64_t limit, jinja_value* out) {
  size_t end = string->length;
  uint32_t codepoint;
  for (;;) {
    end -= jinja_trailing_space(string->data, end);
    if (!end) break;
    if (limit >= 0 && (int64_t)out->as.list->count == limit) {
      GENAI_TRY(add_piece(machine, out, string, 0, end));
      break;
    }
    size_t begin = end;
    while (begin) {
      size_t bytes = jinja_decode_before(string->data, string->data + begin, &codepoint);
      if (jinja_is_space(codepoint)) break;
      begin -= bytes;
    }
    GENAI_TRY(add_piece(machine, out, string, begin, end));
    end = begin;
  }
  reverse_items(out->as.list);
  return NULL;
}

/* The last place of `needle` in data[0, length), or NULL. */
static const char* find_last(const char* data, size_t length, const jinja_string* needle) {
  if (needle->length > length) return NULL;
  for (size_t at = length - needle->length + 1; at--;) {
    if (!memcmp(data + at, needle->data, needle->length)) return data + at;
  }
  return NULL;
}

static genai_status* split_at(jinja_machine* machine, const jinja_string* string, const jinja_string* separator, int64_t limit,
                              jinja_value* out) {
  size_t at = 0;
  while (limit < 0 || (int64_t)out->as.list->count < limit) {
    const char* found = memmem(string->data + at, string->length - at, separator->data, separator->length);
    if (!found) break;
    GENAI_TRY(add_piece(machine, out, string, at, (size_t)(found - string->data)));
    at = (size_t)(found - string->data) + separator->length;
  }
  return add_piece(machine, out, string, at, string->length);
}

static genai_status* split_at_backwards(jinja_machine* machine, const jinja_string* string, const jinja_string* separator, int64_t limit,
                                        jinja_value* out) {
  size_t end = string->length;
  while (limit < 0 || (int64_t)out->as.list->count < limit) {
    const char* found = find_last(string->data, end, separator);
    if (!found) break;
    GENAI_TRY(add_piece(machine, out, string, (size_t)(found - string->data) + separator->length, end));
    end = (size_t)(found - string->data);
  }
  GENAI_TRY(add_piece(machine, out, string, 0, end));
  reverse_items(out->as.list);
  return NULL;
}

static genai_status* split(jinja_machine* machine, const jinja_call* call, bool backwards, jinja_value* out) {
  int64_t limit;
  const jinja_string* separator = NULL;
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[1], "split's maxsplit", -1, &limit));
  if (jinja_given_not_none(call->arguments[0]))
    GENAI_TRY(jinja_string_argument(machine, call->arguments[0], "split's separator", &separator));
  if (separator && !separator->length) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "split: the separator is empty");
  GENAI_TRY(jinja_step(machine, SELF->length / 16 * (separator && backwards ? 1 + separator->length / 16 : 1)));
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, 0, out));
  if (separator) return (backwards ? split_at_backwards : split_at)(machine, SELF, separator, limit, out);
  return (backwards ? split_at_space_backwards : split_at_space)(machine, SELF, limit, out);
}

METHOD(method_split) {
  return split(machine, call, false, out);
}
METHOD(method_rsplit) {
  return split(machine, call, true, out);
}

METHOD(method_splitlines) {
  return jinja_split_lines(machine, SELF, jinja_truth(call->arguments[0]), out);
}

static genai_status* partition(jinja_machine* machine, const jinja_call* call, bool backwards, jinja_value* out) {
  const jinja_string* separator;
  jinja_value empty;
  GENAI_TRY(jinja_string_argument(machine, call->arguments[0], "partition's separator", &separator));
  if (!separator->length) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "partition: the separator is empty");
  GENAI_TRY(jinja_step(machine, SELF->length / 16 * (backwards ? 1 + separator->length / 16 : 1)));
  GENAI_TRY(jinja_static_string(&machine->heap, "", &empty));
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_TUPLE, 3, out));
  const char* found =
      backwards ? find_last(SELF->data, SELF->length, separator) : memmem(SELF->data, SELF->length, separator->data, separator->length);
  if (found) {
    size_t at = (size_t)(found - SELF->data);
    GENAI_TRY(add_piece(machine, out, SELF, 0, at));
    GENAI_TRY(jinja_append(&machine->heap, out->as.list, call->arguments[0]));
    return add_piece(machine, out, SELF, at + separator->length, SELF->length);
  }
  for (int i = 0; i < 3; i++) GENAI_TRY(jinja_append(&machine->heap, out->as.list, i == (backwards ? 2 : 0) ? call->self : empty));
  return NULL;
}

METHOD(method_partition) {
  return partition(machine, call, false, out);
}
METHOD(method_rpartition) {
  return partition(machine, call, true, out);
}

METHOD(method_join) {
  jinja_builder builder = {.machine = machine};
  jinja_iterator iterator;
  jinja_value items;
  GENAI_TRY(jinja_iterate(machine, call->arguments[0], &iterator));
  GENAI_TRY(jinja_to_list(machine, call->arguments[0], &items));
  for (size_t i = 0; i < items.as.list->count; i++) {
    jinja_value item = items.as.list->items[i];
    if (item.kind != JINJA_STRING && !SELF->safe) {
      return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "join: item %zu is no string but '%s'; use the filter join for other values", i,
                        jinja_type_name(item));
    }
    if (SELF->safe) GENAI_TRY(jinja_escape(machine, item, &item));
    if (i) GENAI_TRY(jinja_put_string(&builder, SELF));
    GENAI_TRY(jinja_put_string(&builder, item.as.string));
  }
  GENAI_TRY(jinja_take(&builder, out));
  return jinja_mark_safe(&machine->heap, *out, SELF->safe, out);
}

/* The bytes that the optional arguments start and end (arguments[1] and [2]) leave of the string; false when start lies beyond its end. */
static genai_status* bounds_of(jinja_machine* machine, const jinja_call* call, size_t* begin, size_t* end, bool* valid) {
  int64_t limits[2] = {0, (int64_t)SELF->count}, length = (int64_t)SELF->count;
  for (int i = 0; i < 2; i++) {
    if (!jinja_given_not_none(call->arguments[i + 1])) continue;
    GENAI_TRY(jinja_integer_argument(machine, call->arguments[i + 1], "a position", 0, &limits[i]));
    if (limits[i] < 0) limits[i] = limits[i] < -length ? 0 : limits[i] + length;
    if (i && limits[i] > length) limits[i] = length;
  }
  *valid = limits[0] <= limits[1];
  *begin = *valid ? jinja_byte_offset(SELF, (size_t)limits[0]) : 0;
  *end = *valid ? jinja_byte_offset(SELF, (size_t)limits[1]) : 0;
  return jinja_step(machine, SELF->length / 32);
}

static genai_status* find_text(jinja_machine* machine, const jinja_call* call, bool backwards, int64_t* out) {
  const jinja_string* needle;
  size_t begin, end;
  bool valid;
  *out = -1;
  GENAI_TRY(jinja_string_argument(machine, call->arguments[0], "the text to look for", &needle));
  GENAI_TRY(bounds_of(machine, call, &begin, &end, &valid));
  if (backwards) GENAI_TRY(jinja_step(machine, SELF->length / 16 * (1 + needle->length / 16)));
  if (!valid) return NULL;
  const char* found = backwards ? find_last(SELF->data + begin, end - begin, needle)
                                : memmem(SELF->data + begin, end - begin, needle->data, needle->length);
  if (!needle->length) found = SELF->data + (backwards ? end : begin);
  if (found) *out = (int64_t)jinja_count_codepoints(SELF->data, (size_t)(found - SELF->data));
  return NULL;
}

static genai_status* find_method(jinja_machine* machine, const jinja_call* call, bool backwards, bool required, jinja_value* out) {
  int64_t index;
  GENAI_TRY(find_text(machine, call, backwards, &index));
  if (index < 0 && required) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "index: the text is not in the string");
  *out = jinja_integer(index);
  return NULL;
}

METHOD(method_find) {
  return find_method(machine, call, false, false, out);
}
METHOD(method_rfind) {
  return find_method(machine, call, true, false, out);
}
METHOD(method_index) {
  return find_method(machine, call, false, true, out);
}
METHOD(method_rindex) {
  return find_method(machine, call, true, true, out);
}

METHOD(method_count) {
  const jinja_string* needle;
  size_t begin, end;
  bool valid;
  int64_t count = 0;
  GENAI_TRY(jinja_string_argument(machine, call->arguments[0], "the text to count", &needle));
  GENAI_TRY(bounds_of(machine, call, &begin, &end, &valid));
  if (valid && !needle->length) count = (int64_t)jinja_count_codepoints(SELF->data + begin, end - begin) + 1;
  while (valid && needle->length) {
    const char* found = memmem(SELF->data + begin, end - begin, needle->data, needle->length);
    if (!found) break;
    begin = (size_t)(found - SELF->data) + needle->length;
    count++;
  }
  *out = jinja_integer(count);
  return NULL;
}

/* startswith and endswith: one text, or any of a tuple. */
static genai_status* has_affix(jinja_machine* machine, const jinja_call* call, bool at_end, jinja_value* out) {
  size_t begin, end;
  bool valid, tuple = call->arguments[0].kind == JINJA_TUPLE;
  size_t count = tuple ? call->arguments[0].as.list->count : 1;
  GENAI_TRY(bounds_of(machine, call, &begin, &end, &valid));
  *out = jinja_bool(false);
  for (size_t i = 0; i < count && !out->as.boolean; i++) {
    const jinja_string* affix;
    GENAI_TRY(
        jinja_string_argument(machine, tuple ? call->arguments[0].as.list->items[i] : call->arguments[0], "the text to look for", &affix));
    if (!valid || affix->length > end - begin) continue;
    const char* at = SELF->data + (at_end ? end - affix->length : begin);
    out->as.boolean = !memcmp(at, affix->data, affix->length);
  }
  return NULL;
}

METHOD(method_startswith) {
  return has_affix(machine, call, false, out);
}
METHOD(method_endswith) {
  return has_affix(machine, call, true, out);
}

static genai_status* remove_affix(jinja_machine* machine, const jinja_call* call, bool at_end, jinja_value* out) {
  const jinja_string* affix;
  GENAI_TRY(jinja_string_argument(machine, call->arguments[0], "the text to remove", &affix));
  *out = call->self;
  if (affix->length > SELF->length) return NULL;
  size_t rest = SELF->length - affix->length;
  if (memcmp(SELF->data + (at_end ? rest : 0), affix->data, affix->length)) return NULL;
  return jinja_substring(&machine->heap, SELF, at_end ? 0 : affix->length, at_end ? rest : SELF->length, out);
}

METHOD(method_removeprefix) {
  return remove_affix(machine, call, false, out);
}
METHOD(method_removesuffix) {
  return remove_affix(machine, call, true, out);
}

static genai_status* pad(jinja_machine* machine, const jinja_call* call, char where, jinja_value* out) {
  static const jinja_string SPACE = {.data = " ", .length = 1, .count = 1};
  int64_t width;
  const jinja_string* fill = &SPACE;
  jinja_builder builder = {.machine = machine};
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[0], "the width", 0, &width));
  if (jinja_given(call->arguments[1])) GENAI_TRY(jinja_string_argument(machine, call->arguments[1], "the fill character", &fill));
  if (fill->count != 1) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "the fill character must be one character");
  size_t padding = width > (int64_t)SELF->count ? (size_t)width - SELF->count : 0;
  size_t before = where == 'l' ? 0 : where == 'r' ? padding : padding / 2 + (padding & (size_t)width & 1);
  GENAI_TRY(jinja_put_repeated(&builder, fill, before));
  GENAI_TRY(jinja_put_string(&builder, SELF));
  GENAI_TRY(jinja_put_repeated(&builder, fill, padding - before));
  GENAI_TRY(jinja_take(&builder, out));
  return jinja_mark_safe(&machine->heap, *out, SELF->safe, out);
}

METHOD(method_ljust) {
  return pad(machine, call, 'l', out);
}
METHOD(method_rjust) {
  return pad(machine, call, 'r', out);
}
METHOD(method_center) {
  return pad(machine, call, 'c', out);
}

METHOD(method_zfill) {
  static const jinja_string ZERO = {.data = "0", .length = 1, .count = 1};
  int64_t width;
  jinja_builder builder = {.machine = machine};
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[0], "the width", 0, &width));
  size_t sign = SELF->length && (SELF->data[0] == '-' || SELF->data[0] == '+');
  GENAI_TRY(jinja_put(&builder, SELF->data, sign));
  GENAI_TRY(jinja_put_repeated(&builder, &ZERO, width > (int64_t)SELF->count ? (size_t)width - SELF->count : 0));
  GENAI_TRY(jinja_put(&builder, SELF->data + sign, SELF->length - sign));
  GENAI_TRY(jinja_take(&builder, out));
  return jinja_mark_safe(&machine->heap, *out, SELF->safe, out);
}

static const jinja_definition METHODS[] = {
    {"split", method_split, {"sep", "maxsplit"}, 0, 0},
    {"rsplit", method_rsplit, {"sep", "maxsplit"}, 0, 0},
    {"splitlines", method_splitlines, {"keepends"}, 0, 0},
    {"partition", method_partition, {"sep"}, 1, JINJA_POSITIONAL_ONLY},
    {"rpartition", method_rpartition, {"sep"}, 1, JINJA_POSITIONAL_ONLY},
    {"join", method_join, {"iterable"}, 1, JINJA_POSITIONAL_ONLY},
    {"find", method_find, {"sub", "start", "end"}, 1, JINJA_POSITIONAL_ONLY},
    {"rfind", method_rfind, {"sub", "start", "end"}, 1, JINJA_POSITIONAL_ONLY},
    {"index", method_index, {"sub", "start", "end"}, 1, JINJA_POSITIONAL_ONLY},
    {"rindex", method_rindex, {"sub", "start", "end"}, 1, JINJA_POSITIONAL_ONLY},
    {"count", method_count, {"sub", "start", "end"}, 1, JINJA_POSITIONAL_ONLY},
    {"startswith", method_startswith, {"prefix", "start", "end"}, 1, JINJA_POSITIONAL_ONLY},
    {"endswith", method_endswith, {"suffix", "start", "end"}, 1, JINJA_POSITIONAL_ONLY},
    {"removeprefix", method_removeprefix, {"prefix"}, 1, JINJA_POSITIONAL_ONLY},
    {"removesuffix", method_removesuffix, {"suffix"}, 1, JINJA_POSITIONAL_ONLY},
    {"ljust", method_ljust, {"width", "fillchar"}, 1, JINJA_POSITIONAL_ONLY},
    {"rjust", method_rjust, {"width", "fillchar"}, 1, JINJA_POSITIONAL_ONLY},
    {"center", method_center, {"width", "fillchar"}, 1, JINJA_POSITIONAL_ONLY},
    {"zfill", method_zfill, {"width"}, 1, JINJA_POSITIONAL_ONLY},
};

const jinja_definition* jinja_find_split_method(const jinja_string* name) {
  return jinja_find_in(METHODS, sizeof METHODS / sizeof *METHODS, name);
}
