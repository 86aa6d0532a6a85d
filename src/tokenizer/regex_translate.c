/* From Oniguruma's Ruby syntax to PCRE2's. What differs in the patterns that tokenizers carry:
 *   \s \S \w \W \b \B   other sets than PCRE2's with UCP (U+180E, marks), so they are written out; [:punct:] and its like too;
 *   \p{Han} ...   a script; to PCRE2 also what other scripts share with it (U+3001), unless it is called \p{sc:Han};
 *   \p{L} ...     of a newer Unicode version than PCRE2's, so what is newer is added;
 *   \h \H         hexadecimal digits in Ruby;
 *   X{n,m}+       a repeated group in Ruby, possessive in PCRE2;
 *   \uHHHH        \x{HHHH};
 *   [a&&[^b]]     intersections, here with one negated class at the end: (?![b])[a];
 *   [a[bc]] [a\S]  classes and complements of sets inside a class;
 *   ^ $           lines, always: PCRE2_MULTILINE is set by regex.c.
 * Everything else is copied. */
#include <string.h>

#include "tokenizer/regex.h"
#include "tokenizer/unicode_class.h"

#define SPACE_SET "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
/* Connector punctuation, and what is alphabetic or a digit to Oniguruma without being a letter or a number's digit. */
#define WORD_EXTRA "\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"

/* \w outside classes alone: superscripts and fractions, to which Oniguruma's table of the first 256 characters says yes and its ranges no. */
#define WORD_OUTSIDE "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"
/* Extensions H and I, which PCRE2's Unicode version may not have. */
#define NEWER_HAN "\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}"

enum { MAX_GROUPS = 64, MAX_CLASS_NESTING = 8, MAX_TRANSLATED = 1 << 20 };

typedef struct translation {
  text_view in;
  size_t at;
  text* out;
  size_t atom;               /* where the last atom starts in `out`; SIZE_MAX when there is none to repeat */
  size_t groups[MAX_GROUPS]; /* where the open groups start */
  unsigned depth;
  unsigned class_depth;
} translation;

static genai_status* unsupported(const translation* t, const char* what) {
  return genai_status_create(GENAI_ERROR_UNSUPPORTED, "the regular expression \"%.*s\" uses %s at byte %zu, which cannot be translated",
                             (int)(t->in.length > 200 ? 200 : t->in.length), t->in.data, what, t->at);
}

/* Code points that PCRE2's Unicode version may not have assigned yet, with the class the reference gives them. */
static const struct {
  uint32_t first, last;
  unicode_class class;
} newer[] = {
#include "tokenizer/unicode_newer_table.inc"
};

/* The classes of a general category, 0 for one that is not kept here. */
static uint32_t property_classes(text_view name) {
  static const struct {
    const char* name;
    uint32_t classes;
  } properties[] = {
      {"L", UNICODE_LETTERS},
      {"Lu", UNICODE_BIT(UNICODE_LU)},
      {"Ll", UNICODE_BIT(UNICODE_LL)},
      {"Lt", UNICODE_BIT(UNICODE_LT)},
      {"Lm", UNICODE_BIT(UNICODE_LM)},
      {"Lo", UNICODE_BIT(UNICODE_LO)},
      {"M", UNICODE_MARKS},
      {"N", UNICODE_NUMBERS},
      {"Nd", UNICODE_BIT(UNICODE_ND)},
      {"Nl", UNICODE_BIT(UNICODE_NL)},
      {"No", UNICODE_BIT(UNICODE_NO)},
      {"P", UNICODE_PUNCTUATION},
      {"S", UNICODE_SYMBOLS},
  };
  for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++) {
    if (text_view_equal_cstr(name, properties[i].name)) return properties[i].classes;
  }
  return 0;
}

/* \p{NAME} of a general category with its newer code points, as the inside of a class. */
static genai_status* append_category(text* out, text_view name) {
  GENAI_TRY(text_printf(out, "\\p{%.*s}", (int)name.length, name.data));
  uint32_t classes = property_classes(name);
  for (size_t i = 0; i < sizeof newer / sizeof newer[0]; i++) {
    if (classes >> newer[i].class & 1) GENAI_TRY(text_printf(out, "\\x{%x}-\\x{%x}", (unsigned)newer[i].first, (unsigned)newer[i].last));
  }
  return NULL;
}

/* What \w stands for, as the inside of a class. */
static genai_status* append_word_set(text* out, bool in_class) {
  static const char* const names[] = {"L", "M", "Nd", "Nl"};
  for (size_t i = 0; i < 4; i++) GENAI_TRY(append_category(out, text_view_of(names[i])));
  if (!in_class) GENAI_TRY(text_append_cstr(out, WORD_OUTSIDE));
  return text_append_cstr(out, WORD_EXTRA);
}

/* Oniguruma's POSIX names, of brackets and of properties; `*known` says whether this is one that PCRE2 reads otherwise. Punctuation in
 * brackets includes symbols. */
static genai_status* append_posix(text* out, text_view name, bool bracket, bool* known) {
  static const struct {
    const char *name, *property;
    const char* categories[2]; /* whose newer code points belong to it */
  } sets[] = {{"alpha", "\\p{Alphabetic}", {"L"}},
              {"alnum", "\\p{Alphabetic}", {"L", "Nd"}},
              {"upper", "\\p{Uppercase}", {NULL}},
              {"lower", "\\p{Lowercase}", {NULL}},
              {"digit", "", {"Nd"}},
              {"space", SPACE_SET, {NULL}},
              {"punct", "", {"P", "S"}}};
  *known = true;
  char lower[16] = "";
  for (size_t i = 0; i < name.length && name.length < sizeof lower; i++)
    lower[i] = (char)(name.data[i] >= 'A' && name.data[i] <= 'Z' ? name.data[i] + 32 : name.data[i]);
  if (!strcmp(lower, "word")) return append_word_set(out, bracket);
  for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
    if (strcmp(lower, sets[i].name) != 0) continue;
    GENAI_TRY(text_append_cstr(out, sets[i].property));
    for (size_t j = 0; j < 2 && sets[i].categories[j]; j++) {
      if (!bracket && !strcmp(sets[i].categories[j], "S")) continue;
      GENAI_TRY(append_category(out, text_view_of(sets[i].categories[j])));
    }
    return NULL;
  }
  *known = false;
  return NULL;
}

/* \p{NAME}, as the inside of a class: a category, a POSIX name, a script, or what both libraries call the same. */
static genai_status* append_property(text* out, text_view name) {
  static const char* const long_names[][2] = {{"Letter", "L"}, {"Mark", "M"},      {"Number", "N"},         {"Punctuation", "P"},
                                              {"Symbol", "S"}, {"Separator", "Z"}, {"Decimal_Number", "Nd"}};
  for (size_t i = 0; i < sizeof long_names / sizeof long_names[0]; i++) {
    if (text_view_equal_cstr(name, long_names[i][0])) return append_category(out, text_view_of(long_names[i][1]));
  }
  if (name.length <= 2) return append_category(out, name);
  bool known;
  GENAI_TRY(append_posix(out, name, false, &known));
  if (known) return NULL;
  bool script;
  GENAI_TRY(regex_is_script(name, &script));
  GENAI_TRY(text_printf(out, "\\p{%s%.*s}", script ? "sc:" : "", (int)name.length, name.data));
  return script && text_view_equal_cstr(name, "Han") ? text_append_cstr(out, NEWER_HAN) : NULL;
}

/* A set written out as Oniguruma has it inside a class or outside: bare, or as a class of its own. */
static genai_status* append_set(translation* t, char letter, bool in_class, bool bare) {
  bool negated = letter >= 'A' && letter <= 'Z';
  if (!bare) GENAI_TRY(text_append_cstr(t->out, negated ? "[^" : "["));
  switch (letter | 0x20) {
    case 's':
      GENAI_TRY(text_append_cstr(t->out, SPACE_SET));
      break;
    case 'h':
      GENAI_TRY(text_append_cstr(t->out, "0-9a-fA-F"));
      break;
    case 'd':
      GENAI_TRY(append_category(t->out, text_view_of("Nd")));
      break;
    default:
      GENAI_TRY(append_word_set(t->out, in_class));
      break;
  }
  return bare ? NULL : text_append_char(t->out, ']');
}

/* \b and \B: between a word character and none, in either order; or not. */
static genai_status* append_boundary(translation* t, bool boundary) {
  for (int side = 0; side < 2; side++) {
    GENAI_TRY(text_append_cstr(t->out, side ? "|(?<![" : "(?:(?<=["));
    GENAI_TRY(append_word_set(t->out, false));
    GENAI_TRY(text_append_cstr(t->out, (side == 0) == boundary ? "])(?![" : "])(?=["));
    GENAI_TRY(append_word_set(t->out, false));
    GENAI_TRY(text_append_cstr(t->out, "])"));
  }
  return text_append_char(t->out, ')');
}

/* \p{NAME}, \P{NAME} and \x{HEX} at the backslash. */
static genai_status* translate_braced(translation* t, bool in_class) {
  const char* p = t->in.data + t->at;
  size_t left = t->in.length - t->at;
  const char* close = left > 2 && p[2] == '{' ? memchr(p, '}', left) : NULL;
  if (!close && p[1] != 'x') return unsupported(t, "a property without {}");
  size_t length = close ? (size_t)(close - p) + 1 : 2;
  t->at += length;
  bool negated = p[1] == 'P' || (p[1] == 'p' && p[3] == '^');
  if (p[1] == 'x' || (negated && in_class)) return text_append(t->out, p, length);
  size_t name = p[1] == 'p' && negated ? 4 : 3;
  if (!in_class) GENAI_TRY(text_append_cstr(t->out, negated ? "[^" : "["));
  GENAI_TRY(append_property(t->out, (text_view){p + name, length - 1 - name}));
  return in_class ? NULL : text_append_char(t->out, ']');
}

/* One escape, at the backslash. */
static genai_status* translate_escape(translation* t, bool in_class) {
  const char* p = t->in.data + t->at;
  size_t left = t->in.length - t->at;
  if (left < 2) return unsupported(t, "a backslash at its end");
  if (strchr("swhdSWH", p[1]) || (p[1] == 'D' && !in_class)) {
    GENAI_TRY(append_set(t, p[1], in_class, in_class));
    t->at += 2;
    return NULL;
  }
  if (p[1] == 'p' || p[1] == 'P' || p[1] == 'x') return translate_braced(t, in_class);
  if (!in_class && (p[1] == 'b' || p[1] == 'B')) {
    t->at += 2;
    return append_boundary(t, p[1] == 'b');
  }
  if (p[1] == 'u') {
    if (left < 6) return unsupported(t, "a short \\u");
    t->at += 6;
    return text_printf(t->out, "\\x{%.4s}", p + 2);
  }
  size_t length = 2;
  while (length < left && ((uint8_t)p[length] & 0xc0) == 0x80) length++; /* an escaped character beyond ASCII */
  t->at += length;
  return text_append(t->out, p, length);
}

/* Ends the class that began at `start` with the complement of a set in it (\S, \W, ...), which PCRE2 cannot have written out inside: [a\S] is
 * (?:[a]|[^\s]), and [^a\S] is (?:(?![a])[\s]). `letter` 0: there is none. */
static genai_status* finish_class(translation* t, size_t start, char letter) {
  if (!letter) return text_append_char(t->out, ']');
  if (t->class_depth > 1) return unsupported(t, "a negated set inside a class of an intersection");
  bool negated = t->out->data[start + 1] == '^';
  text rest = {0};
  size_t begin = start + (negated ? 2 : 1);
  genai_status* status = text_append(&rest, t->out->data + begin, t->out->length - begin);
  t->out->length = start;
  if (!status) status = text_append_cstr(t->out, "(?:");
  if (!status && rest.length) status = text_printf(t->out, negated ? "(?![%s])" : "[%s]|", rest.data);
  if (!status) status = append_set(t, negated ? (char)(letter | 0x20) : letter, true, false);
  if (!status) status = text_append_char(t->out, ')');
  text_deinit(&rest);
  return status;
}

/* A character class, at its '['. */
static genai_status* translate_class(translation* t) {
  size_t start = t->out->length;
  char complement = 0;
  unsigned nested = 0; /* classes inside are one union with what is around them */
  if (++t->class_depth > MAX_CLASS_NESTING) return unsupported(t, "too many intersections inside each other");
  GENAI_TRY(text_append_char(t->out, '['));
  t->at++;
  if (t->at < t->in.length && t->in.data[t->at] == '^') {
    GENAI_TRY(text_append_char(t->out, '^'));
    t->at++;
  }
  for (bool first = true; t->at < t->in.length; first = false) {
    char c = t->in.data[t->at];
    if (c == ']' && nested) {
      nested--;
      t->at++;
    } else if (c == ']' && !first) {
      GENAI_TRY(finish_class(t, start, complement));
      t->at++;
      t->class_depth--;
      return NULL;
    } else if (c == '\\' && t->in.length - t->at > 1 && memchr("SWHD", t->in.data[t->at + 1], 4)) {
      if (complement && complement != t->in.data[t->at + 1]) return unsupported(t, "two negated sets inside a class");
      complement = t->in.data[t->at + 1];
      t->at += 2;
    } else if (c == '\\') {
      GENAI_TRY(translate_escape(t, true));
    } else if (c == '[' && t->in.length - t->at > 1 && t->in.data[t->at + 1] == ':') {
      const char* close = memchr(t->in.data + t->at, ']', t->in.length - t->at);
      if (!close) return unsupported(t, "an open POSIX class");
      size_t length = (size_t)(close - (t->in.data + t->at)) + 1;
      const char* name = t->in.data + t->at + 2;
      bool known = false;
      if (length > 4) GENAI_TRY(append_posix(t->out, (text_view){name, length - 4}, true, &known));
      if (!known) GENAI_TRY(text_append(t->out, t->in.data + t->at, length));
      t->at += length;
    } else if (c == '[') {
      if (t->in.length - t->at > 1 && t->in.data[t->at + 1] == '^') return unsupported(t, "a negated class inside a class");
      nested++;
      t->at++;
    } else if (c == '&' && (nested || complement) && t->in.length - t->at > 1 && t->in.data[t->at + 1] == '&') {
      return unsupported(t, "an intersection inside a class with other sets");
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
      t->class_depth--;
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
    if (start > MAX_TRANSLATED) return unsupported(&t, "more sets than fit");
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
