/* From template text to tokens: text between tags, white space control, comments, raw blocks, literals and operators. No grammar here. */
#include "tokenizer/jinja_lexer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tokenizer/jinja_text.h"

typedef struct lexer {
  jinja_heap* heap;
  text_view source;
  jinja_tokens* out;
  size_t at;
  bool line_starting; /* the last match ended with a line end */
} lexer;

static const char* here(const lexer* self) {
  return self->source.data + self->at;
}
static size_t left(const lexer* self) {
  return self->source.length - self->at;
}

static bool looking_at(const lexer* self, size_t at, const char* literal) {
  size_t length = strlen(literal);
  return self->source.length - at >= length && !memcmp(self->source.data + at, literal, length);
}

static genai_status* add(lexer* self, jinja_token token) {
  GENAI_TRY(jinja_grow(self->heap, &self->out->items, self->out->count, &self->out->capacity, sizeof token));
  self->out->items[self->out->count++] = token;
  return NULL;
}

static genai_status* add_data(lexer* self, size_t begin, size_t end) {
  if (begin == end) return NULL;
  jinja_token token = {.kind = JINJA_TOKEN_DATA, .at = (uint32_t)begin};
  GENAI_TRY(jinja_borrow_string(self->heap, self->source.data + begin, end - begin, &token.value));
  return add(self, token);
}

#define fail(self, where, ...) jinja_error_at((self)->source, where, GENAI_ERROR_BAD_FILE, __VA_ARGS__)

/* The end of the text [begin, end) before a tag with this sign: `-` strips all white space; else, before blocks and comments, the white
 * space since the start of the line goes (lstrip_blocks) unless the sign is `+`. */
static size_t trimmed_end(const lexer* self, size_t begin, size_t end, char sign, bool is_variable) {
  const char* data = self->source.data + begin;
  size_t length = end - begin;
  if (sign == '-') return end - jinja_trailing_space(data, length);
  if (sign == '+' || is_variable) return end;
  const char* line = memrchr(data, '\n', length);
  size_t start = line ? (size_t)(line - data) + 1 : 0;
  if (!start && !self->line_starting) return end;
  return jinja_leading_space(data + start, length - start) == length - start ? begin + start : end;
}

/* Steps over what follows a closing tag: all white space after `-`, one line end after none (trim_blocks), nothing after `+`. */
static void after_tag(lexer* self, char sign, bool trims_line) {
  size_t begin = self->at;
  if (sign == '-') {
    self->at += jinja_leading_space(here(self), left(self));
  } else if (sign != '+' && trims_line && left(self) && *here(self) == '\n') {
    self->at++;
  }
  self->line_starting = self->at > begin && self->source.data[self->at - 1] == '\n';
}

static char sign_at(const lexer* self, size_t at) {
  char sign = at < self->source.length ? self->source.data[at] : 0;
  return sign == '-' || sign == '+' ? sign : 0;
}

/* Matches `{%`, an optional sign, white space, `word`, white space, and a closing `%}` with an optional sign of `signs`, at `at`. `*end` is
 * just after the tag, `*closing` its closing sign. */
static bool matches_word_tag(const lexer* self, size_t at, const char* word, const char* signs, size_t* end, char* closing) {
  if (!looking_at(self, at, "{%")) return false;
  at += 2;
  if (sign_at(self, at)) at++;
  at += jinja_leading_space(self->source.data + at, self->source.length - at);
  if (!looking_at(self, at, word)) return false;
  at += strlen(word);
  at += jinja_leading_space(self->source.data + at, self->source.length - at);
  *closing = sign_at(self, at);
  if (*closing && !strchr(signs, *closing)) return false;
  if (*closing) at++;
  if (!looking_at(self, at, "%}")) return false;
  *end = at + 2;
  return true;
}

static genai_status* lex_raw(lexer* self, size_t tag, size_t tag_end, char closing) {
  self->at = tag_end;
  after_tag(self, closing, false); /* no trim_blocks here, as in the reference */
  size_t begin = self->at;
  for (size_t at = begin; at < self->source.length; at++) {
    const char* found = memchr(self->source.data + at, '{', self->source.length - at);
    if (!found) break;
    at = (size_t)(found - self->source.data);
    size_t end;
    if (!matches_word_tag(self, at, "endraw", "-+", &end, &closing)) continue;
    GENAI_TRY(add_data(self, begin, trimmed_end(self, begin, at, sign_at(self, at + 2), false)));
    self->at = end;
    after_tag(self, closing, true);
    return NULL;
  }
  self->at = begin;
  if (!left(self)) return NULL; /* the reference does not mind one that starts where the template ends */
  return fail(self, tag, "this raw block never ends; expected '{%% endraw %%}'");
}

static genai_status* lex_comment(lexer* self, size_t tag) {
  if (!left(self)) return NULL; /* nor a comment */
  const char* end = memmem(here(self), left(self), "#}", 2);
  if (!end) return fail(self, tag, "this comment never ends; expected '#}'");
  char sign = end > here(self) && (end[-1] == '-' || end[-1] == '+') ? end[-1] : 0;
  self->at = (size_t)(end - self->source.data) + 2;
  after_tag(self, sign, true);
  return NULL;
}

static size_t digits_at(const lexer* self, size_t at, bool (*is_digit)(char)) { /* (_?digit)* */
  size_t begin = at;
  for (;;) {
    size_t next = at;
    if (next > begin && next < self->source.length && self->source.data[next] == '_') next++;
    if (next >= self->source.length || !is_digit(self->source.data[next])) return at - begin;
    at = next + 1;
  }
}

static bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}
static bool is_binary(char c) {
  return c == '0' || c == '1';
}
static bool is_octal(char c) {
  return c >= '0' && c <= '7';
}
static bool is_hexadecimal(char c) {
  return is_decimal(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
static bool is_zero(char c) {
  return c == '0';
}

/* Bytes of a float literal at the current place, 0 when there is none: it needs a fraction or an exponent. */
static size_t float_length(const lexer* self) {
  if (self->at && self->source.data[self->at - 1] == '.') return 0; /* x.0.1 is two items */
  size_t at = self->at, whole = digits_at(self, at, is_decimal);
  if (!whole) return 0;
  at += whole;
  bool is_float = false;
  if (looking_at(self, at, ".")) {
    size_t fraction = digits_at(self, at + 1, is_decimal);
    if (fraction) {
      at += 1 + fraction;
      is_float = true;
    }
  }
  if (looking_at(self, at, "e") || looking_at(self, at, "E")) {
    size_t next = at + 1;
    if (looking_at(self, next, "-") || looking_at(self, next, "+")) next++;
    size_t exponent = digits_at(self, next, is_decimal);
    if (exponent) {
      at = next + exponent;
      is_float = true;
    }
  }
  return is_float ? at - self->at : 0;
}

static size_t integer_length(const lexer* self) {
  if (*here(self) == '0' && left(self) > 1) {
    char mark = (char)(here(self)[1] | 0x20);
    bool (*is_digit)(char) = mark == 'x' ? is_hexadecimal : mark == 'o' ? is_octal : mark == 'b' ? is_binary : NULL;
    size_t skip = is_digit && left(self) > 2 && here(self)[2] == '_' ? 3 : 2;
    size_t digits = is_digit ? digits_at(self, self->at + skip, is_digit) : 0;
    if (digits) return skip + digits;
  }
  return digits_at(self, self->at, *here(self) == '0' ? is_zero : is_decimal);
}

static genai_status* lex_number(lexer* self) {
  jinja_token token = {.at = (uint32_t)self->at};
  size_t length = float_length(self);
  if (length) {
    double value;
    if (!jinja_parse_real(here(self), length, &value) || isinf(value)) {
      return fail(self, self->at, "the number is too large for a float");
    }
    token.kind = JINJA_TOKEN_FLOAT;
    token.value = jinja_real(value);
  } else {
    length = integer_length(self);
    jinja_string literal = {.data = here(self), .length = length, .count = length};
    int64_t value;
    bool overflow;
    if (!jinja_parse_integer(&literal, 0, &value, &overflow) || overflow) {
      return fail(self, self->at, "the number is too large; integers here have 64 bits");
    }
    token.kind = JINJA_TOKEN_INTEGER;
    token.value = jinja_integer(value);
  }
  self->at += length;
  return add(self, token);
}

/* Reads `digits` hexadecimal digits of an escape at `*at`. */
static bool hexadecimal(const char* data, size_t end, size_t* at, int digits, uint32_t* out) {
  *out = 0;
  for (int i = 0; i < digits; i++, ++*at) {
    if (*at >= end || !is_hexadecimal(data[*at])) return false;
    char c = data[*at];
    *out = *out << 4 | (uint32_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return true;
}

/* Python's unicode-escape: unknown escapes keep their backslash. */
static genai_status* put_escape(lexer* self, char* buffer, size_t* used, size_t* at, size_t end) {
  const char* data = self->source.data;
  size_t begin = *at - 1;
  char mark = data[(*at)++];
  static const char FROM[] = "abfnrtv\\'\"", TO[] = "\a\b\f\n\r\t\v\\'\"";
  const char* simple = mark ? strchr(FROM, mark) : NULL;
  uint32_t codepoint;
  if (simple) {
    buffer[(*used)++] = TO[simple - FROM];
    return NULL;
  }
  if (mark == '\n') return NULL;
  if (is_octal(mark)) {
    codepoint = (uint32_t)(mark - '0');
    for (int i = 0; i < 2 && *at < end && is_octal(data[*at]); i++) codepoint = codepoint * 8 + (uint32_t)(data[(*at)++] - '0');
  } else if (mark == 'x' || mark == 'u' || mark == 'U') {
    if (!hexadecimal(data, end, at, mark == 'x' ? 2 : mark == 'u' ? 4 : 8, &codepoint)) {
      return fail(self, begin, "the escape \\%c needs %d hexadecimal digits", mark, mark == 'x' ? 2 : mark == 'u' ? 4 : 8);
    }
    if (codepoint > 0x10ffff || (codepoint >= 0xd800 && codepoint < 0xe000)) {
      return fail(self, begin, "U+%04X is no code point that text can hold; write the character itself or its \\U form", codepoint);
    }
  } else if (mark == 'N') {
    return jinja_error_at(self->source, begin, GENAI_ERROR_UNSUPPORTED,
                          "the escape \\N{name} is not supported; write the character itself");
  } else {
    buffer[(*used)++] = '\\';
    buffer[(*used)++] = mark;
    return NULL;
  }
  *used += jinja_encode(codepoint, buffer + *used);
  return NULL;
}

static genai_status* lex_string(lexer* self) {
  char quote = *here(self);
  const char* data = self->source.data;
  size_t begin = self->at + 1, end = begin;
  while (end < self->source.length && data[end] != quote) end += data[end] == '\\' ? 2 : 1;
  if (end >= self->source.length) return fail(self, self->at, "this string never ends; expected %c", quote);
  jinja_token token = {.kind = JINJA_TOKEN_STRING, .at = (uint32_t)self->at};
  if (!memchr(data + begin, '\\', end - begin)) {
    GENAI_TRY(jinja_borrow_string(self->heap, data + begin, end - begin, &token.value));
  } else {
    char* buffer = jinja_alloc(self->heap, end - begin + 4, 1); /* no escape is shorter than what it stands for */
    if (!buffer) return jinja_heap_status(self->heap);
    size_t used = 0;
    for (size_t at = begin; at < end;) {
      if (data[at] == '\\') {
        at++;
        GENAI_TRY(put_escape(self, buffer, &used, &at, end));
      } else {
        buffer[used++] = data[at++];
      }
    }
    GENAI_TRY(jinja_borrow_string(self->heap, buffer, used, &token.value));
  }
  self->at = end + 1;
  return add(self, token);
}

static genai_status* lex_operator(lexer* self, char* open, size_t* depth) {
  static const char* const OPERATORS[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                          "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
  for (size_t i = 0; i < sizeof OPERATORS / sizeof *OPERATORS; i++) {
    if (!looking_at(self, self->at, OPERATORS[i])) continue;
    char c = OPERATORS[i][0];
    if (strchr("([{", c)) {
      if (*depth == JINJA_MAX_DEPTH) return fail(self, self->at, "brackets nested more than %d deep", JINJA_MAX_DEPTH);
      open[(*depth)++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (strchr(")]}", c)) {
      if (!*depth) return fail(self, self->at, "unexpected '%c': no bracket is open", c);
      if (open[--*depth] != c) return fail(self, self->at, "unexpected '%c'; expected '%c'", c, open[*depth]);
    }
    jinja_token token = {.kind = JINJA_TOKEN_OPERATOR, .at = (uint32_t)self->at};
    snprintf(token.op, sizeof token.op, "%s", OPERATORS[i]);
    self->at += strlen(OPERATORS[i]);
    return add(self, token);
  }
  uint32_t codepoint;
  jinja_decode(here(self), &codepoint);
  return codepoint >= 0x21 && codepoint < 0x7f ? fail(self, self->at, "unexpected character '%c'", (char)codepoint)
                                               : fail(self, self->at, "unexpected character U+%04X", codepoint);
}

/* At a closing tag? `-` and `+` may stand before `%}`, `-` before `}}`. */
static bool at_tag_end(const lexer* self, bool is_block, char* sign) {
  *sign = sign_at(self, self->at);
  if (*sign == '+' && !is_block) *sign = 0;
  return looking_at(self, self->at + (*sign ? 1 : 0), is_block ? "%}" : "}}");
}

static genai_status* lex_tag(lexer* self, bool is_block) {
  char open[JINJA_MAX_DEPTH];
  size_t depth = 0;
  while (left(self)) {
    char sign;
    if (!depth && at_tag_end(self, is_block, &sign)) {
      GENAI_TRY(add(self, (jinja_token){.kind = is_block ? JINJA_TOKEN_BLOCK_END : JINJA_TOKEN_VARIABLE_END, .at = (uint32_t)self->at}));
      self->at += sign ? 3 : 2;
      after_tag(self, sign, is_block);
      return NULL;
    }
    size_t space = jinja_leading_space(here(self), left(self));
    if (space) {
      self->at += space;
      continue;
    }
    char c = *here(self);
    uint32_t codepoint;
    size_t bytes = jinja_decode(here(self), &codepoint);
    if (is_decimal(c)) {
      GENAI_TRY(lex_number(self));
    } else if (c == '"' || c == '\'') {
      GENAI_TRY(lex_string(self));
    } else if (jinja_is_name_start(codepoint)) {
      jinja_token token = {.kind = JINJA_TOKEN_NAME, .at = (uint32_t)self->at};
      size_t begin = self->at;
      do {
        self->at += bytes;
        if (!left(self)) break;
        bytes = jinja_decode(here(self), &codepoint);
      } while (jinja_is_name_part(codepoint));
      GENAI_TRY(jinja_borrow_string(self->heap, self->source.data + begin, self->at - begin, &token.value));
      GENAI_TRY(add(self, token));
    } else {
      GENAI_TRY(lex_operator(self, open, &depth));
    }
  }
  return NULL; /* the parser says what was expected before the end */
}

genai_status* jinja_lex(jinja_heap* heap, text_view source, jinja_tokens* out) {
  lexer self = {.heap = heap, .source = source, .out = out, .line_starting = true};
  while (left(&self)) {
    size_t tag = self.at;
    for (;; tag++) {
      const char* brace = memchr(source.data + tag, '{', source.length - tag);
      tag = brace ? (size_t)(brace - source.data) : source.length;
      if (tag + 1 >= source.length) break;
      char next = source.data[tag + 1];
      if (next == '{' || next == '%' || next == '#') break;
    }
    if (tag + 1 >= source.length) {
      GENAI_TRY(add_data(&self, self.at, source.length));
      break;
    }
    char mark = source.data[tag + 1], sign = sign_at(&self, tag + 2);
    GENAI_TRY(add_data(&self, self.at, trimmed_end(&self, self.at, tag, sign, mark == '{')));
    size_t raw_end;
    char closing;
    if (mark == '%' && matches_word_tag(&self, tag, "raw", "-", &raw_end, &closing)) {
      GENAI_TRY(lex_raw(&self, tag, raw_end, closing));
      continue;
    }
    self.at = tag + (sign ? 3 : 2);
    if (mark == '#') {
      GENAI_TRY(lex_comment(&self, tag));
      continue;
    }
    GENAI_TRY(add(&self, (jinja_token){.kind = mark == '%' ? JINJA_TOKEN_BLOCK_BEGIN : JINJA_TOKEN_VARIABLE_BEGIN, .at = (uint32_t)tag}));
    GENAI_TRY(lex_tag(&self, mark == '%'));
  }
  return add(&self, (jinja_token){.kind = JINJA_TOKEN_END, .at = (uint32_t)source.length});
}

void jinja_describe_token(const jinja_token* token, char* buffer, size_t capacity) {
  switch (token->kind) {
    case JINJA_TOKEN_END:
      snprintf(buffer, capacity, "the end of the template");
      break;
    case JINJA_TOKEN_DATA:
      snprintf(buffer, capacity, "template text");
      break;
    case JINJA_TOKEN_BLOCK_BEGIN:
      snprintf(buffer, capacity, "'{%%'");
      break;
    case JINJA_TOKEN_BLOCK_END:
      snprintf(buffer, capacity, "'%%}'");
      break;
    case JINJA_TOKEN_VARIABLE_BEGIN:
      snprintf(buffer, capacity, "'{{'");
      break;
    case JINJA_TOKEN_VARIABLE_END:
      snprintf(buffer, capacity, "'}}'");
      break;
    case JINJA_TOKEN_STRING:
      snprintf(buffer, capacity, "a string");
      break;
    case JINJA_TOKEN_INTEGER:
    case JINJA_TOKEN_FLOAT:
      snprintf(buffer, capacity, "a number");
      break;
    case JINJA_TOKEN_OPERATOR:
      snprintf(buffer, capacity, "'%s'", token->op);
      break;
    case JINJA_TOKEN_NAME: {
      const jinja_string* name = token->value.as.string;
      snprintf(buffer, capacity, "'%.*s'", name->length > 100 ? 100 : (int)name->length, name->data);
      break;
    }
  }
}
