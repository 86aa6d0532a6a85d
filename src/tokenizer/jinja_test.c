/* The tests of `is` (jinja2.tests). */
#include <string.h>

#include "tokenizer/jinja_evaluate.h"
#include "tokenizer/jinja_text.h"

#define TEST(name) static genai_status* name(jinja_machine* machine, const jinja_call* call, jinja_value* out)
/* A test that looks at the kind of its value only. */
#define KIND_TEST(name, condition) \
  TEST(name) {                     \
    (void)machine;                 \
    jinja_value self = call->self; \
    *out = jinja_bool(condition);  \
    return NULL;                   \
  }

KIND_TEST(is_defined, self.kind != JINJA_UNDEFINED)
KIND_TEST(is_undefined, self.kind == JINJA_UNDEFINED)
KIND_TEST(is_none, self.kind == JINJA_NONE)
KIND_TEST(is_boolean, self.kind == JINJA_BOOL)
KIND_TEST(is_true, self.kind == JINJA_BOOL && self.as.boolean)
KIND_TEST(is_false, self.kind == JINJA_BOOL && !self.as.boolean)
KIND_TEST(is_integer, self.kind == JINJA_INTEGER)
KIND_TEST(is_float, self.kind == JINJA_FLOAT)
KIND_TEST(is_number, jinja_is_number(self))
KIND_TEST(is_string, self.kind == JINJA_STRING)
KIND_TEST(is_mapping, self.kind == JINJA_DICT)
KIND_TEST(is_iterable, jinja_is_iterable(self))
KIND_TEST(is_sequence, self.kind == JINJA_UNDEFINED || self.kind == JINJA_STRING || self.kind == JINJA_LIST || self.kind == JINJA_TUPLE ||
                           self.kind == JINJA_DICT || self.kind == JINJA_RANGE)
KIND_TEST(is_callable, self.kind == JINJA_UNDEFINED || self.kind == JINJA_MACRO || self.kind == JINJA_FUNCTION ||
                           self.kind == JINJA_METHOD || self.kind == JINJA_JOINER || self.kind == JINJA_LOOP)
KIND_TEST(is_escaped, self.kind == JINJA_STRING && self.as.string->safe)
KIND_TEST(is_filter, self.kind == JINJA_STRING && jinja_find_filter(self.as.string))
KIND_TEST(is_test, self.kind == JINJA_STRING && jinja_find_test(self.as.string))

/* Is `self % divisor == remainder`? */
static genai_status* remainder_is(jinja_machine* machine, jinja_value self, jinja_value divisor, int64_t remainder, jinja_value* out) {
  GENAI_TRY(jinja_binary(machine, JINJA_OP_MODULO, self, divisor, out));
  return jinja_binary(machine, JINJA_OP_EQUAL, *out, jinja_integer(remainder), out);
}

TEST(is_odd) {
  return remainder_is(machine, call->self, jinja_integer(2), 1, out);
}
TEST(is_even) {
  return remainder_is(machine, call->self, jinja_integer(2), 0, out);
}
TEST(is_divisible) {
  return remainder_is(machine, call->self, call->arguments[0], 0, out);
}

TEST(is_equal) {
  return jinja_binary(machine, JINJA_OP_EQUAL, call->self, call->arguments[0], out);
}
TEST(is_not_equal) {
  return jinja_binary(machine, JINJA_OP_NOT_EQUAL, call->self, call->arguments[0], out);
}
TEST(is_less) {
  return jinja_binary(machine, JINJA_OP_LESS, call->self, call->arguments[0], out);
}
TEST(is_less_equal) {
  return jinja_binary(machine, JINJA_OP_LESS_EQUAL, call->self, call->arguments[0], out);
}
TEST(is_greater) {
  return jinja_binary(machine, JINJA_OP_GREATER, call->self, call->arguments[0], out);
}
TEST(is_greater_equal) {
  return jinja_binary(machine, JINJA_OP_GREATER_EQUAL, call->self, call->arguments[0], out);
}
TEST(is_in) {
  return jinja_binary(machine, JINJA_OP_IN, call->self, call->arguments[0], out);
}

TEST(is_same) { /* Python's `is`: one object; equal small integers and constants are one object there too */
  jinja_value a = call->self, b = call->arguments[0];
  (void)machine;
  bool same = a.kind == b.kind;
  switch (a.kind) {
    case JINJA_NONE:
      break;
    case JINJA_BOOL:
      same = same && a.as.boolean == b.as.boolean;
      break;
    case JINJA_INTEGER:
      same = same && a.as.integer == b.as.integer;
      break;
    case JINJA_FLOAT:
      same = same && !memcmp(&a.as.real, &b.as.real, sizeof a.as.real);
      break;
    case JINJA_STRING:
      same = same && jinja_string_equal(a.as.string, b.as.string);
      break;
    default:
      same = same && a.as.identity == b.as.identity;
      break;
  }
  *out = jinja_bool(same);
  return NULL;
}

/* str.islower and isupper: every cased letter is, and there is one. */
static genai_status* all_cased(jinja_machine* machine, const jinja_call* call, bool (*wanted)(uint32_t), bool (*other)(uint32_t),
                               jinja_value* out) {
  jinja_value text_value;
  GENAI_TRY(jinja_str(machine, call->self, &text_value));
  const jinja_string* string = text_value.as.string;
  GENAI_TRY(jinja_step(machine, string->length / 8));
  bool found = false;
  *out = jinja_bool(false);
  for (size_t at = 0; at < string->length;) {
    uint32_t codepoint;
    at += jinja_decode(string->data + at, &codepoint);
    if (other(codepoint) || jinja_is_title(codepoint)) return NULL;
    found = found || wanted(codepoint);
  }
  *out = jinja_bool(found);
  return NULL;
}

TEST(is_lower) {
  return all_cased(machine, call, jinja_is_lower, jinja_is_upper, out);
}
TEST(is_upper) {
  return all_cased(machine, call, jinja_is_upper, jinja_is_lower, out);
}

static const jinja_definition TESTS[] = {
    {"defined", is_defined, {0}, 0, 0},
    {"undefined", is_undefined, {0}, 0, 0},
    {"none", is_none, {0}, 0, 0},
    {"boolean", is_boolean, {0}, 0, 0},
    {"true", is_true, {0}, 0, 0},
    {"false", is_false, {0}, 0, 0},
    {"integer", is_integer, {0}, 0, 0},
    {"float", is_float, {0}, 0, 0},
    {"number", is_number, {0}, 0, 0},
    {"string", is_string, {0}, 0, 0},
    {"mapping", is_mapping, {0}, 0, 0},
    {"iterable", is_iterable, {0}, 0, 0},
    {"sequence", is_sequence, {0}, 0, 0},
    {"callable", is_callable, {0}, 0, JINJA_POSITIONAL_ONLY},
    {"escaped", is_escaped, {0}, 0, 0},
    {"filter", is_filter, {0}, 0, 0},
    {"test", is_test, {0}, 0, 0},
    {"odd", is_odd, {0}, 0, 0},
    {"even", is_even, {0}, 0, 0},
    {"divisibleby", is_divisible, {"num"}, 1, 0},
    {"sameas", is_same, {"other"}, 1, 0},
    {"lower", is_lower, {0}, 0, 0},
    {"upper", is_upper, {0}, 0, 0},
    {"in", is_in, {"seq"}, 1, 0},
    {"==", is_equal, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {"eq", is_equal, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {"equalto", is_equal, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {"!=", is_not_equal, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {"ne", is_not_equal, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {">", is_greater, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {"gt", is_greater, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {"greaterthan", is_greater, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {">=", is_greater_equal, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {"ge", is_greater_equal, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {"<", is_less, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {"lt", is_less, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {"lessthan", is_less, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {"<=", is_less_equal, {"other"}, 1, JINJA_POSITIONAL_ONLY},
    {"le", is_less_equal, {"other"}, 1, JINJA_POSITIONAL_ONLY},
};

const jinja_definition* jinja_find_test(const jinja_string* name) {
  return jinja_find_in(TESTS, sizeof TESTS / sizeof *TESTS, name);
}
