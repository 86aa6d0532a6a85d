/* From Oniguruma's Ruby syntax to PCRE2's. What differs in the patterns that tokenizers carry:
 *   \s \S \w \W \b \B   other sets than PCRE2's with UCP (U+180E, marks), so they are written out;
 *   \h \H         hexadecimal digits in Ruby;
 *   X{n,m}+       a repeated group in Ruby, possessive in PCRE2;
 *   \uHHHH        \x{HHHH};
 *   [a&&[^b]]     intersections, here with one negated class at the end: (?![b])[a];
 *   ^ $           lines, always: PCRE2_MULTILINE is set by regex.c.
 * Everything else is copied. */
#include <string.h>

#include "tokenizer/regex.h"

#define SPACE_SET "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define WORD_SET "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"

enum { MAX_GROUPS = 64 };

typedef struct translation {
  text_view in;
  size_t at;
  text* out;
  size_t atom;               /* where the last atom starts in `out`; SIZE_MAX when there is none to repeat */
  size_t groups[MAX_GROUPS]; /* where the open groups start */
  unsigned depth;
} translation;

static genai_status* unsupported(const translation* t, const char* what) {
  return genai_status_create(GENAI_ERROR_UNSUPPORTED, "the regular expression \"%.*s\" uses %s at byte %zu, which cannot be translated",
                             (int)(t->in.length > 200 ? 200 : t->in.length), t->in.data, what, t->at);
}

/* One escape, at the backslash. */
static genai_status* translate_escape(translation* t, bool in_class) {
  const char* p = t->in.data + t->at;
  size_t left = t->in.length - t->at;
  if (left < 2) return unsupported(t, "a backslash at its end");
  const char* written = NULL;
  switch (p[1]) {
    case 's':
      written = in_class ? SPACE_SET : "[" SPACE_SET "]";
      break;
    case 'w':
      written = in_class ? WORD_SET : "[" WORD_SET "]";
      break;
    case 'h':
      written = in_class ? "0-9a-fA-F" : "[0-9a-fA-F]";
      break;
    case 'b':
      written = in_class ? NULL : "(?:(?<=[" WORD_SET "])(?![" WORD_SET "])|(?<![" WORD_SET "])(?=[" WORD_SET "]))";
      break;
    case 'B':
      written = in_class ? NULL : "(?:(?<=[" WORD_SET "])(?=[" WORD_SET "])|(?<![" WORD_SET "])(?![" WORD_SET "]))";
      break;
    case 'S':
      written = in_class ? NULL : "[^" SPACE_SET "]";
      break;
    case 'W':
      written = in_class ? NULL : "[^" WORD_SET "]";
      break;
    case 'H':
      written = in_class ? NULL : "[^0-9a-fA-F]";
      break;
    case 'u':
      if (left < 6) return unsupported(t, "a short \\u");
      GENAI_TRY(text_printf(t->out, "\\x{%.4s}", p + 2));
      t->at += 6;
      return NULL;
    case 'p':
    case 'P': {
      const char* close = left > 2 && p[2] == '{' ? memchr(p, '}', left) : NULL;
      if (!close) return unsupported(t, "a property without {}");
      size_t length = (size_t)(close - p) + 1;
      GENAI_TRY(text_append(t->out, p, length));
      t->at += length;
      return NULL;
    }
    case 'x': {
      const char* close = left > 2 && p[2] == '{' ? memchr(p, '}', left) : NULL;
      size_t length = close ? (size_t)(close - p) + 1 : 2;
      GENAI_TRY(text_append(t->out, p, length));
      t->at += length;
      return NULL;
    }
    default:
      break;
  }
  if (!written && (p[1] == 'S' || p[1] == 'W' || p[1] == 'H')) return unsupported(t, "a negated set inside a class");
  size_t length = 1 + utf8_complete_prefix(p + 1, 1);
  while (length < left && ((uint8_t)p[length] & 0xc0) == 0x80) length++; /* an escaped character beyond ASCII */
  if (length < 2) length = 2;
  t->at += length;
  return written ? text_append_cstr(t->out, written) : text_append(t->out, p, length);
}

/* A character class, at its '['. */
static genai_status* translate_class(translation* t) {
  size_t start = t->out->length;
  GENAI_TRY(text_append_char(t->out, '['));
  t->at++;
  if (t->at < t->in.length && t->in.data[t->at] == '^') {
    GENAI_TRY(text_append_char(t->out, '^'));
    t->at++;
  }
  for (bool first = true; t->at < t->in.length; first = false) {
    char c = t->in.data[t->at];
    if (c == ']' && !first) {
      t->at++;
      return text_append_char(t->out, ']');
    }
    if (c == '\\') {
      GENAI_TRY(translate_escape(t, true));
    } else if (c == '[' && t->in.length - t->at > 1 && t->in.data[t->at + 1] == ':') {
      const char* close = memchr(t->in.data + t->at, ']', t->in.length - t->at);
      if (!close) return unsupported(t, "an open POSIX class");
      size_t length = (size_t)(close - (t->in.data + t->at)) + 1;
      GENAI_TRY(text_append(t->out, t->in.data + t->at, length));
      t->at += length;
    } else if (c == '[') {
      return unsupported(t, "a class inside a class");
    } else if (c == '&' && t->in.length - t->at > 4 && memcmp(t->in.data + t->at, "&&[^", 4) == 0) {
      /* [left&&[^right]] is (?:(?![right])[left]) */
      text left = {0};
      genai_status* status = text_append(&left, t->out->data + start, t->out->length - start);
      t->out->length = start;
      if (!status) status = text_append_cstr(t->out, "(?:(?!");
      t->at += 2;
      /* The negated class is read as a plain one. */
      size_t at = t->out->length;
      if (!status) status = translate_class(t);
      if (!status && t->out->length > at + 1) {
        memmove(t->out->data + at + 1, t->out->data + at + 2, t->out->length - at - 2);
        t->out->length--;
      }
      if (!status) status = text_append_char(t->out, ')');
      if (!status) status = text_append(t->out, left.data, left.length);
      if (!status) status = text_append_cstr(t->out, "])");
      text_deinit(&left);
      if (status) return status;
      if (t->at >= t->in.length || t->in.data[t->at] != ']') return unsupported(t, "an intersection that goes on");
      t->at++;
      return NULL;
    } else {
      GENAI_TRY(text_append_char(t->out, c));
      t->at++;
    }
  }
  return unsupported(t, "an open character class");
}

/* {n}, {n,m} ... followed by '+': the atom's repetition repeated, not a possessive one. */
static genai_status* translate_interval(translation* t) {
  const char* p = t->in.data + t->at;
  const char* close = memchr(p, '}', t->in.length - t->at);
  size_t length = close ? (size_t)(close - p) + 1 : 0;
  for (size_t i = 1; i + 1 < length; i++) {
    if (!(p[i] >= '0' && p[i] <= '9') && p[i] != ',') length = 0;
  }
  if (!length || t->atom == SIZE_MAX) { /* a literal brace */
    t->atom = t->out->length;
    t->at++;
    return text_append_cstr(t->out, "\\{");
  }
  GENAI_TRY(text_append(t->out, p, length));
  t->at += length;
  if (t->at < t->in.length && t->in.data[t->at] == '+') {
    text atom = {0};
    genai_status* status = text_append(&atom, t->out->data + t->atom, t->out->length - t->atom);
    t->out->length = t->atom;
    if (!status) status = text_append_cstr(t->out, "(?:");
    if (!status) status = text_append(t->out, atom.data, atom.length);
    if (!status) status = text_append_cstr(t->out, ")+");
    text_deinit(&atom);
    t->at++;
    return status;
  }
  return NULL;
}

genai_status* regex_translate(text_view pattern, text* out) {
  translation t = {.in = pattern, .out = out, .atom = SIZE_MAX};
  while (t.at < pattern.length) {
    char c = pattern.data[t.at];
    size_t start = out->length;
    switch (c) {
      case '\\':
        GENAI_TRY(translate_escape(&t, false));
        t.atom = start;
        break;
      case '[':
        GENAI_TRY(translate_class(&t));
        t.atom = start;
        break;
      case '{':
        GENAI_TRY(translate_interval(&t));
        break;
      case '(':
        if (t.depth == MAX_GROUPS) return unsupported(&t, "too many open groups");
        t.groups[t.depth++] = start;
        t.atom = SIZE_MAX;
        GENAI_TRY(text_append_char(out, c));
        t.at++;
        if (t.at < pattern.length && pattern.data[t.at] == '?') { /* the group's kind, not a repetition */
          GENAI_TRY(text_append_char(out, '?'));
          t.at++;
        }
        break;
      case ')':
        if (!t.depth) return unsupported(&t, "a parenthesis that was not opened");
        t.atom = t.groups[--t.depth];
        GENAI_TRY(text_append_char(out, c));
        t.at++;
        break;
      case '|':
        t.atom = SIZE_MAX;
        GENAI_TRY(text_append_char(out, c));
        t.at++;
        break;
      case '*':
      case '+':
      case '?':
        GENAI_TRY(text_append_char(out, c));
        t.at++;
        break;
      default: {
        size_t length = 1;
        while (t.at + length < pattern.length && ((uint8_t)pattern.data[t.at + length] & 0xc0) == 0x80) length++;
        GENAI_TRY(text_append(out, pattern.data + t.at, length));
        t.at += length;
        t.atom = start;
      }
    }
  }
  return text_append(out, "", 0);
}
