/* The table of filters, and those that are about neither text nor sequences: defaults, numbers, attributes, JSON. */
#include "tokenizer/jinja_filter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/jinja_evaluate.h"
#include "tokenizer/jinja_text.h"

static JINJA_FILTER(default) {
  bool replace = call->self.kind == JINJA_UNDEFINED || (jinja_truth(call->arguments[1]) && !jinja_truth(call->self));
  *out = call->self;
  if (!replace) return NULL;
  if (!jinja_given(call->arguments[0])) return jinja_static_string(&machine->heap, "", out);
  *out = call->arguments[0];
  return NULL;
}

/* foo|attr("bar"): foo.bar without the detour to foo["bar"]. */
static JINJA_FILTER(attr) {
  const jinja_string* name;
  GENAI_TRY(jinja_string_argument(machine, call->arguments[0], "the attribute's name", &name));
  if (call->self.kind == JINJA_DICT && !jinja_find_method(call->self, name)) {
    return jinja_undefined_member(&machine->heap, call->self, call->arguments[0], out);
  }
  return jinja_attribute(machine, call->self, name, out);
}

static JINJA_FILTER(abs) {
  int64_t integer;
  if (call->self.kind == JINJA_FLOAT) {
    *out = jinja_real(fabs(call->self.as.real));
    return NULL;
  }
  if (!jinja_as_integer(call->self, &integer)) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "abs: expected a number, not '%s'", jinja_type_name(call->self));
  }
  return jinja_binary(machine, integer < 0 ? JINJA_OP_SUBTRACT : JINJA_OP_ADD, jinja_integer(0), jinja_integer(integer), out);
}

static genai_status* truncate_real(jinja_machine* machine, double value, jinja_value* out) {
  value = trunc(value);
  if (value < -9223372036854775808.0 || value >= 9223372036854775808.0) {
    return jinja_fail(machine, GENAI_ERROR_LIMIT, "an integer grows beyond 64 bits, the limit here");
  }
  *out = jinja_integer((int64_t)value);
  return NULL;
}

static JINJA_FILTER(int) {
  jinja_value self = call->self;
  int64_t integer, base;
  bool overflow;
  *out = jinja_given(call->arguments[0]) ? call->arguments[0] : jinja_integer(0);
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[1], "int's base", 10, &base));
  if (self.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, self);
  if (jinja_as_integer(self, &integer)) {
    *out = jinja_integer(integer);
    return NULL;
  }
  if (self.kind == JINJA_FLOAT) {
    if (isinf(self.as.real)) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "int: infinity is no integer");
    return isnan(self.as.real) ? NULL : truncate_real(machine, self.as.real, out);
  }
  if (self.kind != JINJA_STRING) return NULL;
  double real;
  bool valid_base = base == 0 || (base >= 2 && base <= 36);
  if (valid_base && jinja_parse_integer(self.as.string, (int)base, &integer, &overflow)) {
    if (overflow) return jinja_fail(machine, GENAI_ERROR_LIMIT, "an integer grows beyond 64 bits, the limit here");
    *out = jinja_integer(integer);
    return NULL;
  }
  if (!jinja_parse_real(self.as.string->data, self.as.string->length, &real) || !isfinite(real)) return NULL;
  return truncate_real(machine, real, out);
}

static JINJA_FILTER(float) {
  double real;
  *out = jinja_given(call->arguments[0]) ? call->arguments[0] : jinja_real(0);
  if (call->self.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, call->self);
  if (jinja_is_number(call->self)) *out = jinja_real(jinja_as_real(call->self));
  if (call->self.kind == JINJA_STRING && jinja_parse_real(call->self.as.string->data, call->self.as.string->length, &real)) {
    *out = jinja_real(real);
  }
  return NULL;
}

/* round() of Python: to the nearest decimal, exact ties to the even digit. printf rounds the binary value exactly and so does the same. */
static double round_common(double value, int64_t digits) {
  char buffer[512];
  if (!isfinite(value) || digits > 323) return value;
  if (digits >= 0) {
    snprintf(buffer, sizeof buffer, "%.*f", (int)digits < 160 ? (int)digits : 160, value);
    return digits < 160 ? strtod(buffer, NULL) : value;
  }
  int exponent = value == 0 ? 0 : (int)floor(log10(fabs(value)));
  int64_t kept = exponent + digits; /* digits after the first one */
  if (kept < -1) return copysign(0, value);
  if (kept == -1) { /* the first digit itself rounds to 0 or 10^-digits */
    double unit = pow(10, (double)-digits);
    return copysign(fabs(value) > unit / 2 ? unit : 0, value);
  }
  snprintf(buffer, sizeof buffer, "%.*e", (int)kept, value);
  return strtod(buffer, NULL);
}

static genai_status* round_integer(jinja_machine* machine, int64_t value, int64_t digits, jinja_value* out) {
  if (digits >= 0) {
    *out = jinja_integer(value);
    return NULL;
  }
  if (digits < -18) {
    *out = jinja_integer(0);
    return NULL;
  }
  int64_t unit = 1;
  for (int64_t i = digits; i < 0; i++) unit *= 10;
  int64_t rest = value % unit, down = value - rest, half = unit / 2;
  if (rest < 0) {
    rest += unit;
    if (__builtin_sub_overflow(down, unit, &down))
      return jinja_fail(machine, GENAI_ERROR_LIMIT, "an integer grows beyond 64 bits, the limit here");
  }
  bool up = rest > half || (rest == half && (down / unit) % 2 != 0);
  if (up && __builtin_add_overflow(down, unit, &down)) {
    return jinja_fail(machine, GENAI_ERROR_LIMIT, "an integer grows beyond 64 bits, the limit here");
  }
  *out = jinja_integer(down);
  return NULL;
}

static JINJA_FILTER(round) {
  int64_t digits, integer;
  jinja_value method = call->arguments[1];
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[0], "round's precision", 0, &digits));
  bool common = !jinja_given(method) || (method.kind == JINJA_STRING && jinja_string_is(method.as.string, "common"));
  bool ceiling = method.kind == JINJA_STRING && jinja_string_is(method.as.string, "ceil");
  if (!common && !ceiling && !(method.kind == JINJA_STRING && jinja_string_is(method.as.string, "floor"))) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "round's method must be 'common', 'ceil' or 'floor'");
  }
  if (!jinja_is_number(call->self)) {
    if (call->self.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, call->self);
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "round: expected a number, not '%s'", jinja_type_name(call->self));
  }
  if (common && jinja_as_integer(call->self, &integer)) return round_integer(machine, integer, digits, out);
  if (common) {
    *out = jinja_real(round_common(call->self.as.real, digits));
    return NULL;
  }
  double value = jinja_as_real(call->self), scale = pow(10, (double)digits), scaled = value * scale;
  if (!isfinite(scaled)) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "round: the number is too large");
  *out = jinja_real((ceiling ? ceil(scaled) : floor(scaled)) / scale);
  return NULL;
}

/* A separator of tojson's argument `separators`, a pair. */
static genai_status* json_separators(jinja_machine* machine, jinja_value pair, jinja_json_style* style) {
  GENAI_TRY(jinja_to_list(machine, pair, &pair));
  if (pair.as.list->count != 2) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "tojson: separators must be a pair, such as (',', ':')");
  GENAI_TRY(jinja_string_argument(machine, pair.as.list->items[0], "tojson's first separator", &style->item_separator));
  return jinja_string_argument(machine, pair.as.list->items[1], "tojson's second separator", &style->key_separator);
}

static JINJA_FILTER(tojson) {
  static const jinja_string COMMA = {.data = ",", .length = 1, .count = 1}, COMMA_SPACE = {.data = ", ", .length = 2, .count = 2},
                            COLON_SPACE = {.data = ": ", .length = 2, .count = 2}, SPACE = {.data = " ", .length = 1, .count = 1};
  jinja_json_style style = {.item_separator = &COMMA_SPACE, .key_separator = &COLON_SPACE};
  jinja_value indent = call->arguments[1], spaces;
  if (jinja_given_not_none(indent)) {
    if (indent.kind != JINJA_STRING) {
      int64_t width;
      jinja_builder builder = {.machine = machine};
      GENAI_TRY(jinja_integer_argument(machine, indent, "tojson's indent", 0, &width));
      GENAI_TRY(jinja_put_repeated(&builder, &SPACE, width > 0 ? (size_t)width : 0));
      GENAI_TRY(jinja_take(&builder, &spaces));
      indent = spaces;
    }
    style.indent = indent.as.string;
    style.item_separator = &COMMA;
  }
  style.ensure_ascii = jinja_truth(call->arguments[0]);
  style.sort_keys = jinja_truth(call->arguments[3]);
  if (jinja_given_not_none(call->arguments[2])) GENAI_TRY(json_separators(machine, call->arguments[2], &style));
  return jinja_to_json(machine, call->self, &style, out);
}

#define PLAIN(name) \
  { #name, jinja_filter_##name, {0 }, 0, 0 }
static const jinja_definition FILTERS[] = {
    PLAIN(upper),
    PLAIN(lower),
    PLAIN(capitalize),
    PLAIN(title),
    PLAIN(string),
    PLAIN(safe),
    PLAIN(forceescape),
    PLAIN(wordcount),
    PLAIN(urlencode),
    PLAIN(first),
    PLAIN(last),
    PLAIN(list),
    PLAIN(items),
    PLAIN(reverse),
    {"abs", jinja_filter_abs, {0}, 0, JINJA_POSITIONAL_ONLY},
    {"attr", jinja_filter_attr, {"name"}, 1, 0},
    {"batch", jinja_filter_batch, {"linecount", "fill_with"}, 1, 0},
    {"center", jinja_filter_center, {"width"}, 0, 0},
    {"count", jinja_filter_length, {0}, 0, JINJA_POSITIONAL_ONLY},
    {"d", jinja_filter_default, {"default_value", "boolean"}, 0, 0},
    {"default", jinja_filter_default, {"default_value", "boolean"}, 0, 0},
    {"dictsort", jinja_filter_dictsort, {"case_sensitive", "by", "reverse"}, 0, 0},
    {"e", jinja_filter_escape, {0}, 0, JINJA_POSITIONAL_ONLY},
    {"escape", jinja_filter_escape, {0}, 0, JINJA_POSITIONAL_ONLY},
    {"float", jinja_filter_float, {"default"}, 0, 0},
    {"format", jinja_filter_format, {0}, 0, JINJA_VARIADIC},
    {"groupby", jinja_filter_groupby, {"attribute", "default", "case_sensitive"}, 1, 0},
    {"indent", jinja_filter_indent, {"width", "first", "blank"}, 0, 0},
    {"int", jinja_filter_int, {"default", "base"}, 0, 0},
    {"join", jinja_filter_join, {"d", "attribute"}, 0, 0},
    {"length", jinja_filter_length, {0}, 0, JINJA_POSITIONAL_ONLY},
    {"map", jinja_filter_map, {0}, 0, JINJA_VARIADIC},
    {"max", jinja_filter_max, {"case_sensitive", "attribute"}, 0, 0},
    {"min", jinja_filter_min, {"case_sensitive", "attribute"}, 0, 0},
    {"reject", jinja_filter_reject, {0}, 0, JINJA_VARIADIC},
    {"rejectattr", jinja_filter_rejectattr, {0}, 0, JINJA_VARIADIC},
    {"replace", jinja_filter_replace, {"old", "new", "count"}, 2, 0},
    {"round", jinja_filter_round, {"precision", "method"}, 0, 0},
    {"select", jinja_filter_select, {0}, 0, JINJA_VARIADIC},
    {"selectattr", jinja_filter_selectattr, {0}, 0, JINJA_VARIADIC},
    {"slice", jinja_filter_slice, {"slices", "fill_with"}, 1, 0},
    {"sort", jinja_filter_sort, {"reverse", "case_sensitive", "attribute"}, 0, 0},
    {"sum", jinja_filter_sum, {"attribute", "start"}, 0, 0},
    {"tojson", jinja_filter_tojson, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, 0},
    {"trim", jinja_filter_trim, {"chars"}, 0, 0},
    {"truncate", jinja_filter_truncate, {"length", "killwords", "end", "leeway"}, 0, 0},
    {"unique", jinja_filter_unique, {"case_sensitive", "attribute"}, 0, 0},
    /* jinja2 has these too; chat templates have no use for them. */
    {"filesizeformat", NULL, {0}, 0, 0},
    {"pprint", NULL, {0}, 0, 0},
    {"random", NULL, {0}, 0, 0},
    {"striptags", NULL, {0}, 0, 0},
    {"urlize", NULL, {0}, 0, 0},
    {"wordwrap", NULL, {0}, 0, 0},
    {"xmlattr", NULL, {0}, 0, 0},
};

const jinja_definition* jinja_find_filter(const jinja_string* name) {
  return jinja_find_in(FILTERS, sizeof FILTERS / sizeof *FILTERS, name);
}
