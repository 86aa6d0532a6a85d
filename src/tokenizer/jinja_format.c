/* Python's two ways to format: "..." % values and "...".format(values). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tokenizer/jinja_evaluate.h"
#include "tokenizer/jinja_text.h"

/* How one value is to be laid out, in either language. */
typedef struct layout {
  uint32_t fill;
  char align; /* < > ^ =, 0: the type's own */
  char sign;  /* + - or space */
  bool alternate, zero;
  char grouping;            /* , or _ between thousands */
  int64_t width, precision; /* precision < 0: none */
  char type;                /* 0: the value's own */
} layout;

static bool is_among(char c, const char* set) {
  return c && strchr(set, c);
}

enum { MAX_WIDTH = 1 << 20, MAX_PRECISION = 300 };

static genai_status* bad_format(jinja_machine* machine, const char* problem) {
  return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "format string: %s", problem);
}

/* `digits` with its sign and prefix, padded to the layout's width. */
static genai_status* put_padded(jinja_builder* out, const layout* how, char default_align, const char* prefix, const jinja_string* body) {
  size_t used = body->count + strlen(prefix), padding = how->width > (int64_t)used ? (size_t)how->width - used : 0;
  char align = how->align ? how->align : default_align, fill[4];
  size_t fill_length = jinja_encode(how->fill ? how->fill : ' ', fill);
  jinja_string filler = {.data = fill, .length = fill_length, .count = 1};
  size_t before = align == '>' || align == '=' ? padding : align == '^' ? padding / 2 : 0;
  if (align == '=') GENAI_TRY(jinja_put_text(out, prefix));
  GENAI_TRY(jinja_put_repeated(out, &filler, before));
  if (align != '=') GENAI_TRY(jinja_put_text(out, prefix));
  GENAI_TRY(jinja_put_string(out, body));
  return jinja_put_repeated(out, &filler, padding - before);
}

static const char* sign_of(bool negative, char sign) {
  return negative ? "-" : sign == '+' ? "+" : sign == ' ' ? " " : "";
}

/* Inserts separators between groups of digits before the point or the exponent. */
static genai_status* group_digits(jinja_machine* machine, const char* digits, char separator, int group, jinja_value* out) {
  jinja_builder builder = {.machine = machine};
  size_t whole = strspn(digits, group == 3 ? "0123456789" : "0123456789abcdefABCDEF");
  for (size_t i = 0; i < whole; i++) {
    if (i && separator && (whole - i) % (size_t)group == 0) GENAI_TRY(jinja_put(&builder, &separator, 1));
    GENAI_TRY(jinja_put(&builder, digits + i, 1));
  }
  GENAI_TRY(jinja_put_text(&builder, digits + whole));
  return jinja_take(&builder, out);
}

static genai_status* put_integer(jinja_builder* out, const layout* how, char type, int64_t value) {
  uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  char digits[512], prefix[4], mark = (char)(type == 'X' ? 'X' : base == 16 ? 'x' : base == 8 ? 'o' : 'b');
  size_t at = sizeof digits;
  digits[--at] = 0;
  do {
    digits[--at] = (type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[magnitude % base];
    magnitude /= base;
  } while (magnitude);
  while (how->precision > 0 && (int64_t)(sizeof digits - 1 - at) < how->precision && at) digits[--at] = '0'; /* % only */
  snprintf(prefix, sizeof prefix, "%s", sign_of(value < 0, how->sign));
  if (how->alternate && base != 10) snprintf(prefix + strlen(prefix), sizeof prefix - strlen(prefix), "0%c", mark);
  jinja_value body;
  GENAI_TRY(group_digits(out->machine, digits + at, how->grouping, base == 10 ? 3 : 4, &body));
  return put_padded(out, how, '>', prefix, body.as.string);
}

/* The layout 'r' of str(): as repr, but with `precision` significant digits at most when given. */
static genai_status* put_real(jinja_builder* out, const layout* how, char type, double value) {
  char format[16], buffer[768], prefix[4];
  bool percent = type == '%';
  double magnitude = fabs(value) * (percent ? 100 : 1);
  jinja_value body;
  snprintf(prefix, sizeof prefix, "%s", sign_of(signbit(value) != 0, how->sign));
  if (isnan(value) || isinf(value)) {
    bool upper = type == 'E' || type == 'F' || type == 'G';
    if (isnan(value)) snprintf(prefix, sizeof prefix, "%s", sign_of(false, how->sign));
    snprintf(buffer, sizeof buffer, "%s%s", isnan(value) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf"), percent ? "%" : "");
  } else if (!type && how->precision < 0) {
    jinja_builder plain = {.machine = out->machine};
    GENAI_TRY(jinja_put_real(&plain, magnitude));
    snprintf(buffer, sizeof buffer, "%.*s", (int)plain.length, plain.data);
  } else {
    int precision = how->precision < 0 ? 6 : (int)how->precision;
    char letter = percent || type == 'F' ? 'f' : type ? type : 'g';
    snprintf(format, sizeof format, how->alternate ? "%%#.*%c" : "%%.*%c", letter);
    snprintf(buffer, sizeof buffer, format, precision, magnitude);
    if (!type && !strpbrk(buffer, ".e")) strcat(buffer, ".0"); /* format(3.0, '.3') is '3.0' */
    if (percent) strcat(buffer, "%");
  }
  GENAI_TRY(group_digits(out->machine, buffer, how->grouping, 3, &body));
  return put_padded(out, how, '>', prefix, body.as.string);
}

static genai_status* put_text(jinja_builder* out, const layout* how, const jinja_string* string) {
  jinja_value cut = jinja_of_string(string);
  if (how->precision >= 0 && (size_t)how->precision < string->count) {
    GENAI_TRY(jinja_substring(&out->machine->heap, string, 0, jinja_byte_offset(string, (size_t)how->precision), &cut));
  }
  return put_padded(out, how, '<', "", cut.as.string);
}

static bool parse_count(const char** at, const char* end, int64_t* out) {
  bool found = false;
  for (*out = 0; *at < end && **at >= '0' && **at <= '9'; ++*at) {
    found = true;
    if (*out <= MAX_WIDTH) *out = *out * 10 + (**at - '0');
  }
  return found;
}

typedef struct percent {
  jinja_machine* machine;
  jinja_value arguments;
  size_t next;
} percent;

static genai_status* next_argument(percent* self, jinja_value* out) {
  if (self->arguments.kind == JINJA_TUPLE ? self->next >= self->arguments.as.list->count : self->next > 0) {
    return bad_format(self->machine, "not enough values for it");
  }
  *out = self->arguments.kind == JINJA_TUPLE ? self->arguments.as.list->items[self->next] : self->arguments;
  self->next++;
  return NULL;
}

static genai_status* named_argument(percent* self, const char** at, const char* end, jinja_value* out) {
  const char* close = memchr(*at, ')', (size_t)(end - *at));
  if (!close) return bad_format(self->machine, "'%(' without ')'");
  if (self->arguments.kind != JINJA_DICT) return bad_format(self->machine, "'%(name)' needs a dict of values");
  jinja_value name;
  const jinja_value* found;
  GENAI_TRY(jinja_borrow_string(&self->machine->heap, *at + 1, (size_t)(close - *at - 1), &name));
  GENAI_TRY(jinja_dict_get(self->machine, self->arguments.as.dict, name, &found));
  if (!found) return bad_format(self->machine, "the dict of values lacks a name it uses");
  *at = close + 1;
  *out = *found;
  return NULL;
}

static genai_status* star_or_count(percent* self, const char** at, const char* end, int64_t* out) {
  if (*at < end && **at == '*') {
    jinja_value value;
    ++*at;
    GENAI_TRY(next_argument(self, &value));
    if (!jinja_as_integer(value, out)) return bad_format(self->machine, "'*' needs an integer");
    return NULL;
  }
  parse_count(at, end, out);
  return NULL;
}

static genai_status* put_percent(percent* self, jinja_builder* out, const layout* how, jinja_value value, bool safe) {
  jinja_machine* machine = self->machine;
  jinja_builder builder = {.machine = machine};
  int64_t integer;
  jinja_value body;
  switch (how->type) {
    case 's':
    case 'r':
    case 'a':
      if (how->type == 's' && safe) {
        GENAI_TRY(jinja_escape(machine, value, &body));
        GENAI_TRY(jinja_put_string(&builder, body.as.string));
      } else {
        GENAI_TRY(how->type == 's' ? jinja_put_str(&builder, value) : jinja_put_repr(&builder, value));
      }
      GENAI_TRY(jinja_take(&builder, &body));
      layout text_layout = *how;
      text_layout.fill = ' ';
      text_layout.align = how->align == '<' ? '<' : '>';
      return put_text(out, &text_layout, body.as.string);
    case 'c':
      if (jinja_as_integer(value, &integer)) {
        if (integer < 0 || integer > 0x10ffff || (integer >= 0xd800 && integer < 0xe000))
          return bad_format(machine, "%c needs a code point");
        GENAI_TRY(jinja_put_codepoint(&builder, (uint32_t)integer));
        GENAI_TRY(jinja_take(&builder, &body));
      } else if (value.kind == JINJA_STRING && value.as.string->count == 1) {
        body = value;
      } else {
        return bad_format(machine, "%c needs one character or an integer");
      }
      return put_padded(out, how, '>', "", body.as.string);
    case 'd':
    case 'i':
    case 'u':
      if (value.kind == JINJA_FLOAT && isfinite(value.as.real) && fabs(value.as.real) < 9.2e18)
        value = jinja_integer((int64_t)value.as.real);
      /* fall through */
    case 'x':
    case 'X':
    case 'o':
      if (!jinja_as_integer(value, &integer)) {
        if (value.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, value);
        return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "format string: %%%c needs a number, not '%s'", how->type, jinja_type_name(value));
      }
      return put_integer(out, how, how->type == 'i' || how->type == 'u' ? 'd' : how->type, integer);
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      if (value.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, value);
      if (!jinja_is_number(value)) {
        return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "format string: %%%c needs a number, not '%s'", how->type, jinja_type_name(value));
      }
      return put_real(out, how, how->type, jinja_as_real(value));
    default:
      return bad_format(machine, "unknown conversion after '%'");
  }
}

static genai_status* percent_item(percent* self, jinja_builder* out, const char** at, const char* end, bool safe) {
  layout how = {.precision = -1};
  jinja_value value;
  bool named = *at < end && **at == '(';
  if (named) GENAI_TRY(named_argument(self, at, end, &value));
  for (; *at < end && is_among(**at, "#0- +"); ++*at) {
    if (**at == '#') how.alternate = true;
    if (**at == '0') how.zero = true;
    if (**at == '-') how.align = '<';
    if (**at == '+' || (**at == ' ' && !how.sign)) how.sign = **at;
  }
  GENAI_TRY(star_or_count(self, at, end, &how.width));
  if (how.width < 0) {
    how.align = '<';
    how.width = -how.width;
  }
  if (*at < end && **at == '.') {
    ++*at;
    GENAI_TRY(star_or_count(self, at, end, &how.precision));
    if (how.precision < 0) how.precision = 0;
  }
  while (*at < end && is_among(**at, "hlL")) ++*at;
  if (*at == end) return bad_format(self->machine, "it ends after '%'");
  how.type = *(*at)++;
  if (how.width > MAX_WIDTH || (how.precision > MAX_PRECISION && !is_among(how.type, "sra")))
    return bad_format(self->machine, "a width is too large");
  if (how.type == '%') return jinja_put_text(out, "%");
  if (how.zero && !how.align) {
    how.align = '=';
    how.fill = '0';
  }
  if (!named) GENAI_TRY(next_argument(self, &value));
  return put_percent(self, out, &how, value, safe);
}

genai_status* jinja_percent_format(jinja_machine* machine, const jinja_string* format, jinja_value arguments, jinja_value* out) {
  percent self = {.machine = machine, .arguments = arguments};
  jinja_builder builder = {.machine = machine};
  const char *at = format->data, *end = at + format->length;
  GENAI_TRY(jinja_step(machine, format->length / 16));
  while (at < end) {
    const char* mark = memchr(at, '%', (size_t)(end - at));
    GENAI_TRY(jinja_put(&builder, at, (size_t)((mark ? mark : end) - at)));
    if (!mark) break;
    at = mark + 1;
    GENAI_TRY(percent_item(&self, &builder, &at, end, format->safe));
  }
  bool unused = arguments.kind == JINJA_TUPLE ? self.next < arguments.as.list->count
                                              : !self.next && arguments.kind != JINJA_DICT && arguments.kind != JINJA_LIST &&
                                                    arguments.kind != JINJA_UNDEFINED && arguments.kind != JINJA_RANGE;
  if (unused) return bad_format(machine, "not all values are used by it");
  GENAI_TRY(jinja_take(&builder, out));
  return jinja_mark_safe(&machine->heap, *out, format->safe, out);
}

typedef struct brace {
  jinja_machine* machine;
  const jinja_arguments* given;
  size_t next;
  bool automatic, manual; /* numbering of fields: {} or {0}, never both */
} brace;

static genai_status* put_format(brace* self, jinja_builder* out, const char* at, const char* end, unsigned depth);

/* The value of a field name such as `0.attribute[key]`. */
static genai_status* field_value(brace* self, const char* at, const char* end, jinja_value* out) {
  const char* first = at;
  while (at < end && *at != '.' && *at != '[') at++;
  const char* number = first;
  int64_t index;
  bool is_number = parse_count(&number, at, &index) && number == at;
  if (first == at || is_number) {
    if (first == at) index = (int64_t)self->next++;
    if (first == at ? self->manual : self->automatic) return bad_format(self->machine, "it mixes {} and {0}");
    self->automatic = self->automatic || first == at;
    self->manual = self->manual || first != at;
    if (index >= (int64_t)self->given->count) return bad_format(self->machine, "not enough values for it");
    *out = self->given->items[index];
  } else {
    jinja_string name = {.data = first, .length = (size_t)(at - first), .count = jinja_count_codepoints(first, (size_t)(at - first))};
    const jinja_value* found = self->given->keywords ? jinja_dict_find(self->given->keywords, &name) : NULL;
    if (!found) return bad_format(self->machine, "a name it uses is not among the values");
    *out = *found;
  }
  while (at < end) {
    bool is_item = *at == '[';
    if (!is_item && *at != '.') return bad_format(self->machine, "only '.' or '[' may follow ']'");
    const char* begin = ++at;
    while (at < end && (is_item ? *at != ']' : *at != '.' && *at != '[')) at++;
    if ((is_item && at == end) || begin == at) return bad_format(self->machine, "an empty attribute, or '[' without ']'");
    jinja_value key;
    const char* digits = begin;
    GENAI_TRY(jinja_borrow_string(&self->machine->heap, begin, (size_t)(at - begin), &key));
    if (!is_item) {
      GENAI_TRY(jinja_attribute(self->machine, *out, key.as.string, out));
    } else {
      if (parse_count(&digits, at, &index) && digits == at) key = jinja_integer(index);
      GENAI_TRY(jinja_item(self->machine, *out, key, out));
      at++;
    }
  }
  return NULL;
}

/* [[fill]align][sign][#][0][width][,][.precision][type] */
static genai_status* parse_layout(jinja_machine* machine, const jinja_string* spec, layout* out) {
  const char *at = spec->data, *end = at + spec->length;
  *out = (layout){.precision = -1};
  uint32_t first;
  size_t bytes = at < end ? jinja_decode(at, &first) : 0;
  if (bytes && at + bytes < end && is_among(at[bytes], "<>^=")) {
    out->fill = first;
    out->align = at[bytes];
    at += bytes + 1;
  } else if (at < end && is_among(*at, "<>^=")) {
    out->align = *at++;
  }
  if (at < end && is_among(*at, "+- ")) out->sign = *at++;
  if (at < end && *at == '#') {
    out->alternate = true;
    at++;
  }
  if (at < end && *at == '0') {
    if (!out->align) out->align = '=';
    if (!out->fill) out->fill = '0';
    out->zero = true;
    at++;
  }
  parse_count(&at, end, &out->width);
  if (at < end && (*at == ',' || *at == '_')) out->grouping = *at++;
  if (at < end && *at == '.') {
    at++;
    if (!parse_count(&at, end, &out->precision)) return bad_format(machine, "'.' without a precision");
  }
  if (at < end) out->type = *at++;
  if (at < end) return bad_format(machine, "an invalid format specification");
  if (out->width > MAX_WIDTH || out->precision > MAX_WIDTH) return bad_format(machine, "a width is too large");
  return NULL;
}

static genai_status* put_field(jinja_machine* machine, jinja_builder* out, jinja_value value, const jinja_string* spec) {
  layout how;
  int64_t integer;
  if (!spec->length) return jinja_put_str(out, value);
  GENAI_TRY(parse_layout(machine, spec, &how));
  if (value.kind == JINJA_STRING && (!how.type || how.type == 's') && how.align != '=' && !how.sign && !how.grouping) {
    return put_text(out, &how, value.as.string);
  }
  if (value.kind == JINJA_STRING && how.zero && (!how.type || how.type == 's') && !how.sign && !how.grouping) {
    how.align = '<'; /* '0' before the width of a string pads on the right */
    return put_text(out, &how, value.as.string);
  }
  if (jinja_as_integer(value, &integer) && (!how.type || is_among(how.type, "bdoxXn"))) {
    if (how.precision >= 0) return bad_format(machine, "an integer takes no precision");
    return put_integer(out, &how, how.type ? how.type : 'd', integer);
  }
  if (jinja_as_integer(value, &integer) && how.type == 'c') {
    if (integer < 0 || integer > 0x10ffff || (integer >= 0xd800 && integer < 0xe000)) return bad_format(machine, "'c' needs a code point");
    return jinja_put_codepoint(out, (uint32_t)integer);
  }
  if (jinja_is_number(value) && (!how.type || is_among(how.type, "eEfFgGn%"))) {
    if (how.precision > MAX_PRECISION) return bad_format(machine, "a precision is too large");
    return put_real(out, &how, how.type == 'n' ? 'g' : how.type, jinja_as_real(value));
  }
  return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "format string: the specification does not go with a value of type '%s'",
                    jinja_type_name(value));
}

static genai_status* brace_item(brace* self, jinja_builder* out, const char* at, const char* end, unsigned depth) {
  jinja_machine* machine = self->machine;
  const char *name = at, *name_end;
  char conversion = 0;
  jinja_value value, spec;
  jinja_builder builder = {.machine = machine}, converted = {.machine = machine};
  for (bool in_key = false; at < end && (in_key || (*at != '!' && *at != ':')); at++) in_key = *at == '[' || (in_key && *at != ']');
  name_end = at;
  if (at < end && *at == '!') {
    if (end - at < 2 || (end - at > 2 && at[2] != ':')) return bad_format(machine, "expected one letter after '!'");
    conversion = at[1];
    at += 2;
  }
  GENAI_TRY(field_value(self, name, name_end, &value));
  if (at < end) GENAI_TRY(put_format(self, &builder, at + 1, end, depth + 1));
  GENAI_TRY(jinja_take(&builder, &spec));
  if (conversion) {
    if (!is_among(conversion, "sra")) return bad_format(machine, "expected s, r or a after '!'");
    GENAI_TRY(conversion == 's' ? jinja_put_str(&converted, value) : jinja_put_repr(&converted, value));
    GENAI_TRY(jinja_take(&converted, &value));
  }
  return put_field(machine, out, value, spec.as.string);
}

static genai_status* put_format(brace* self, jinja_builder* out, const char* at, const char* end, unsigned depth) {
  if (depth > 2) return bad_format(self->machine, "fields nested too deeply");
  while (at < end) {
    char c = *at;
    if (c != '{' && c != '}') {
      GENAI_TRY(jinja_put(out, at++, 1));
      continue;
    }
    if (at + 1 < end && at[1] == c) {
      GENAI_TRY(jinja_put(out, at, 1));
      at += 2;
      continue;
    }
    if (c == '}') return bad_format(self->machine, "a single '}'; write '}}' for the character");
    const char* begin = ++at;
    unsigned open = 1;
    for (; at < end; at++) {
      open += *at == '{';
      if (*at == '}' && !--open) break;
    }
    if (at == end) return bad_format(self->machine, "'{' without '}'");
    GENAI_TRY(brace_item(self, out, begin, at, depth));
    at++;
  }
  return NULL;
}

genai_status* jinja_brace_format(jinja_machine* machine, const jinja_string* format, const jinja_arguments* arguments, jinja_value* out) {
  brace self = {.machine = machine, .given = arguments};
  jinja_builder builder = {.machine = machine};
  if (format->safe) return jinja_fail(machine, GENAI_ERROR_UNSUPPORTED, "format of a string marked safe is not supported");
  GENAI_TRY(jinja_step(machine, format->length / 8));
  GENAI_TRY(put_format(&self, &builder, format->data, format->data + format->length, 0));
  return jinja_take(&builder, out);
}
