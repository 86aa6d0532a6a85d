/* Methods of values: str's case, stripping and classes, and those of list, dict and the other types. How str splits, joins and searches is
 * in jinja_method_split.c. */
#include "tokenizer/jinja_method.h"

#include <string.h>

#include "tokenizer/jinja_evaluate.h"
#include "tokenizer/jinja_text.h"

#define METHOD(name) static genai_status* name(jinja_machine* machine, const jinja_call* call, jinja_value* out)
#define SELF (call->self.as.string)

METHOD(method_upper) {
  return jinja_cased(machine, JINJA_UPPER, SELF, out);
}
METHOD(method_lower) {
  return jinja_cased(machine, JINJA_LOWER, SELF, out);
}
METHOD(method_title) {
  return jinja_cased(machine, JINJA_TITLE, SELF, out);
}
METHOD(method_casefold) {
  return jinja_cased(machine, JINJA_FOLD, SELF, out);
}
METHOD(method_capitalize) {
  return jinja_capitalized(machine, SELF, out);
}
METHOD(method_swapcase) {
  return jinja_swapped_case(machine, SELF, out);
}

static genai_status* strip(jinja_machine* machine, const jinja_call* call, int sides, jinja_value* out) {
  const jinja_string* characters = NULL;
  if (jinja_given_not_none(call->arguments[0]))
    GENAI_TRY(jinja_string_argument(machine, call->arguments[0], "strip's characters", &characters));
  return jinja_strip(machine, SELF, characters, sides, out);
}

METHOD(method_strip) {
  return strip(machine, call, JINJA_STRIP_LEFT | JINJA_STRIP_RIGHT, out);
}
METHOD(method_lstrip) {
  return strip(machine, call, JINJA_STRIP_LEFT, out);
}
METHOD(method_rstrip) {
  return strip(machine, call, JINJA_STRIP_RIGHT, out);
}

METHOD(method_replace) {
  const jinja_string *old, *new;
  int64_t limit;
  jinja_value with = call->arguments[1];
  GENAI_TRY(jinja_string_argument(machine, call->arguments[0], "replace's old text", &old));
  GENAI_TRY(jinja_string_argument(machine, with, "replace's new text", &new));
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[2], "replace's count", -1, &limit));
  if (SELF->safe) {
    GENAI_TRY(jinja_escape(machine, with, &with));
    new = with.as.string;
  }
  GENAI_TRY(jinja_replace(machine, SELF, old, new, limit, out));
  return jinja_mark_safe(&machine->heap, *out, SELF->safe, out);
}

METHOD(method_format) {
  return jinja_brace_format(machine, SELF, call->given, out);
}

METHOD(method_expandtabs) {
  int64_t size;
  size_t column = 0;
  static const jinja_string SPACE = {.data = " ", .length = 1, .count = 1};
  jinja_builder builder = {.machine = machine};
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[0], "the tab size", 8, &size));
  GENAI_TRY(jinja_step(machine, SELF->length / 8));
  for (size_t at = 0; at < SELF->length;) {
    uint32_t codepoint;
    size_t bytes = jinja_decode(SELF->data + at, &codepoint);
    if (codepoint == '\t') {
      size_t spaces = size > 0 ? (size_t)size - column % (size_t)size : 0;
      GENAI_TRY(jinja_put_repeated(&builder, &SPACE, spaces));
      column += spaces;
    } else {
      GENAI_TRY(jinja_put(&builder, SELF->data + at, bytes));
      column = codepoint == '\n' || codepoint == '\r' ? 0 : column + 1;
    }
    at += bytes;
  }
  return jinja_take(&builder, out);
}

/* Every code point is of a class, and there is one. */
static genai_status* all_are(jinja_machine* machine, const jinja_string* string, bool (*is)(uint32_t), jinja_value* out) {
  GENAI_TRY(jinja_step(machine, string->length / 8));
  *out = jinja_bool(string->length > 0);
  for (size_t at = 0; at < string->length && out->as.boolean;) {
    uint32_t codepoint;
    at += jinja_decode(string->data + at, &codepoint);
    out->as.boolean = is(codepoint);
  }
  return NULL;
}

static bool is_alphanumeric(uint32_t c) {
  return jinja_is_alpha(c) || jinja_is_numeric(c);
}
static bool is_ascii(uint32_t c) {
  return c < 0x80;
}

METHOD(method_isspace) {
  return all_are(machine, SELF, jinja_is_space, out);
}
METHOD(method_isalpha) {
  return all_are(machine, SELF, jinja_is_alpha, out);
}
METHOD(method_isdigit) {
  return all_are(machine, SELF, jinja_is_digit, out);
}
METHOD(method_isdecimal) {
  return all_are(machine, SELF, jinja_is_decimal, out);
}
METHOD(method_isalnum) {
  return all_are(machine, SELF, is_alphanumeric, out);
}

METHOD(method_isascii) {
  GENAI_TRY(all_are(machine, SELF, is_ascii, out));
  *out = jinja_bool(out->as.boolean || !SELF->length);
  return NULL;
}

METHOD(method_isprintable) {
  GENAI_TRY(all_are(machine, SELF, jinja_is_printable, out));
  *out = jinja_bool(out->as.boolean || !SELF->length);
  return NULL;
}

static genai_status* run_test(jinja_machine* machine, const jinja_call* call, const char* test, jinja_value* out) {
  jinja_string name = {.data = test, .length = strlen(test), .count = strlen(test)};
  return jinja_run(machine, jinja_find_test(&name), call->self, call->given, out);
}

METHOD(method_islower) {
  return run_test(machine, call, "lower", out);
}
METHOD(method_isupper) {
  return run_test(machine, call, "upper", out);
}

METHOD(method_istitle) { /* upper case after what has no case, lower case after what has */
  bool found = false, in_word = false;
  GENAI_TRY(jinja_step(machine, SELF->length / 8));
  *out = jinja_bool(false);
  for (size_t at = 0; at < SELF->length;) {
    uint32_t codepoint;
    at += jinja_decode(SELF->data + at, &codepoint);
    bool capital = jinja_is_upper(codepoint) || jinja_is_title(codepoint), small = jinja_is_lower(codepoint);
    if ((capital && in_word) || (small && !in_word)) return NULL;
    in_word = capital || small;
    found = found || in_word;
  }
  *out = jinja_bool(found);
  return NULL;
}

static const jinja_definition STRING_METHODS[] = {
    {"upper", method_upper, {0}, 0, 0},
    {"lower", method_lower, {0}, 0, 0},
    {"title", method_title, {0}, 0, 0},
    {"capitalize", method_capitalize, {0}, 0, 0},
    {"swapcase", method_swapcase, {0}, 0, 0},
    {"casefold", method_casefold, {0}, 0, 0},
    {"strip", method_strip, {"chars"}, 0, JINJA_POSITIONAL_ONLY},
    {"lstrip", method_lstrip, {"chars"}, 0, JINJA_POSITIONAL_ONLY},
    {"rstrip", method_rstrip, {"chars"}, 0, JINJA_POSITIONAL_ONLY},
    {"replace", method_replace, {"old", "new", "count"}, 2, JINJA_POSITIONAL_ONLY},
    {"format", method_format, {0}, 0, JINJA_VARIADIC},
    {"expandtabs", method_expandtabs, {"tabsize"}, 0, 0},
    {"isspace", method_isspace, {0}, 0, 0},
    {"isalpha", method_isalpha, {0}, 0, 0},
    {"isdigit", method_isdigit, {0}, 0, 0},
    {"isdecimal", method_isdecimal, {0}, 0, 0},
    {"isalnum", method_isalnum, {0}, 0, 0},
    {"isascii", method_isascii, {0}, 0, 0},
    {"isprintable", method_isprintable, {0}, 0, 0},
    {"islower", method_islower, {0}, 0, 0},
    {"isupper", method_isupper, {0}, 0, 0},
    {"istitle", method_istitle, {0}, 0, 0},
    {"encode", NULL, {0}, 0, JINJA_VARIADIC},
    {"format_map", NULL, {0}, 0, JINJA_VARIADIC},
    {"isidentifier", NULL, {0}, 0, 0},
    {"isnumeric", NULL, {0}, 0, 0},
    {"maketrans", NULL, {0}, 0, JINJA_VARIADIC},
    {"translate", NULL, {0}, 0, JINJA_VARIADIC},
};

const jinja_definition* jinja_find_string_method(const jinja_string* name) {
  const jinja_definition* found = jinja_find_in(STRING_METHODS, sizeof STRING_METHODS / sizeof *STRING_METHODS, name);
  return found ? found : jinja_find_split_method(name);
}

METHOD(list_index) {
  int64_t start, stop, length;
  size_t count = 0;
  jinja_iterator iterator;
  jinja_length(call->self, &count);
  length = (int64_t)count;
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[1], "index's start", 0, &start));
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[2], "index's stop", length, &stop));
  if (start < 0) start = start < -length ? 0 : start + length;
  if (stop < 0) stop = stop < -length ? 0 : stop + length;
  GENAI_TRY(jinja_iterate(machine, call->self, &iterator));
  for (int64_t i = 0; i < stop; i++) {
    jinja_value item;
    bool done, equal;
    GENAI_TRY(jinja_next(machine, &iterator, &item, &done));
    if (done) break;
    if (i < start) continue;
    GENAI_TRY(jinja_equal(machine, item, call->arguments[0], &equal));
    if (!equal) continue;
    *out = jinja_integer(i);
    return NULL;
  }
  return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "index: the value is not in the '%s'", jinja_type_name(call->self));
}

METHOD(list_count) {
  int64_t count = 0;
  jinja_iterator iterator;
  GENAI_TRY(jinja_iterate(machine, call->self, &iterator));
  for (;;) {
    jinja_value item;
    bool done, equal;
    GENAI_TRY(jinja_next(machine, &iterator, &item, &done));
    if (done) break;
    GENAI_TRY(jinja_equal(machine, item, call->arguments[0], &equal));
    count += equal;
  }
  *out = jinja_integer(count);
  return NULL;
}

METHOD(list_copy) {
  return jinja_to_list(machine, call->self, out);
}

static const jinja_definition LIST_METHODS[] = {
    {"index", list_index, {"value", "start", "stop"}, 1, JINJA_POSITIONAL_ONLY},
    {"count", list_count, {"value"}, 1, JINJA_POSITIONAL_ONLY},
    {"copy", list_copy, {0}, 0, 0}, /* from here on of lists only */
    {"append", NULL, {0}, 0, JINJA_MUTATES},
    {"clear", NULL, {0}, 0, JINJA_MUTATES},
    {"extend", NULL, {0}, 0, JINJA_MUTATES},
    {"insert", NULL, {0}, 0, JINJA_MUTATES},
    {"pop", NULL, {0}, 0, JINJA_MUTATES},
    {"remove", NULL, {0}, 0, JINJA_MUTATES},
    {"reverse", NULL, {0}, 0, JINJA_MUTATES},
    {"sort", NULL, {0}, 0, JINJA_MUTATES},
};

METHOD(dict_get) {
  const jinja_value* found;
  GENAI_TRY(jinja_dict_get(machine, call->self.as.dict, call->arguments[0], &found));
  *out = found ? *found : jinja_given(call->arguments[1]) ? call->arguments[1] : JINJA_VALUE_NONE;
  return NULL;
}

static genai_status* view(const jinja_call* call, jinja_view_kind kind, jinja_value* out) {
  *out = (jinja_value){.kind = JINJA_VIEW, .view = kind, .as.dict = call->self.as.dict};
  return NULL;
}

METHOD(dict_keys) {
  (void)machine;
  return view(call, JINJA_VIEW_KEYS, out);
}
METHOD(dict_values) {
  (void)machine;
  return view(call, JINJA_VIEW_VALUES, out);
}
METHOD(dict_items) {
  (void)machine;
  return view(call, JINJA_VIEW_ITEMS, out);
}

METHOD(dict_copy) {
  GENAI_TRY(jinja_new_dict(&machine->heap, JINJA_DICT, out));
  return jinja_dict_copy(machine, call->self.as.dict, out->as.dict);
}

static const jinja_definition DICT_METHODS[] = {
    {"get", dict_get, {"key", "default"}, 1, JINJA_POSITIONAL_ONLY},
    {"keys", dict_keys, {0}, 0, 0},
    {"values", dict_values, {0}, 0, 0},
    {"items", dict_items, {0}, 0, 0},
    {"copy", dict_copy, {0}, 0, 0},
    {"fromkeys", NULL, {0}, 0, JINJA_VARIADIC},
    {"clear", NULL, {0}, 0, JINJA_MUTATES},
    {"pop", NULL, {0}, 0, JINJA_MUTATES},
    {"popitem", NULL, {0}, 0, JINJA_MUTATES},
    {"setdefault", NULL, {0}, 0, JINJA_MUTATES},
    {"update", NULL, {0}, 0, JINJA_MUTATES},
};

METHOD(loop_cycle) {
  if (!call->given->count) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "cycle: no values to cycle through");
  *out = call->given->items[(size_t)call->self.as.loop->index0 % call->given->count];
  return NULL;
}

METHOD(loop_changed) {
  jinja_loop* loop = call->self.as.loop;
  jinja_value values;
  bool same = false;
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_TUPLE, call->given->count, &values));
  for (size_t i = 0; i < call->given->count; i++) GENAI_TRY(jinja_append(&machine->heap, values.as.list, call->given->items[i]));
  if (loop->changed.kind != JINJA_MISSING) GENAI_TRY(jinja_equal(machine, loop->changed, values, &same));
  loop->changed = values;
  *out = jinja_bool(!same);
  return NULL;
}

METHOD(cycler_next) {
  (void)machine;
  jinja_cycler* cycler = call->self.as.cycler;
  *out = cycler->items[cycler->next];
  cycler->next = (cycler->next + 1) % cycler->count;
  return NULL;
}

METHOD(cycler_reset) {
  (void)machine;
  call->self.as.cycler->next = 0;
  *out = JINJA_VALUE_NONE;
  return NULL;
}

METHOD(float_is_integer) {
  (void)machine;
  double value = call->self.as.real;
  *out = jinja_bool(value == __builtin_floor(value) && value - value == 0);
  return NULL;
}

static const jinja_definition LOOP_METHODS[] = {
    {"cycle", loop_cycle, {0}, 0, JINJA_VARIADIC},
    {"changed", loop_changed, {0}, 0, JINJA_VARIADIC},
};
static const jinja_definition CYCLER_METHODS[] = {{"next", cycler_next, {0}, 0, 0}, {"reset", cycler_reset, {0}, 0, 0}};
static const jinja_definition FLOAT_METHODS[] = {{"is_integer", float_is_integer, {0}, 0, 0}};

#define COUNT(table) (sizeof(table) / sizeof *(table))

const jinja_definition* jinja_find_method(jinja_value object, const jinja_string* name) {
  switch (object.kind) {
    case JINJA_STRING:
      return jinja_find_string_method(name);
    case JINJA_LIST:
      return jinja_find_in(LIST_METHODS, COUNT(LIST_METHODS), name);
    case JINJA_TUPLE:
      return jinja_find_in(LIST_METHODS, 2, name);
    case JINJA_DICT:
      return jinja_find_in(DICT_METHODS, COUNT(DICT_METHODS), name);
    case JINJA_LOOP:
      return jinja_find_in(LOOP_METHODS, COUNT(LOOP_METHODS), name);
    case JINJA_CYCLER:
      return jinja_find_in(CYCLER_METHODS, COUNT(CYCLER_METHODS), name);
    case JINJA_FLOAT:
      return jinja_find_in(FLOAT_METHODS, COUNT(FLOAT_METHODS), name);
    default:
      return NULL;
  }
}
