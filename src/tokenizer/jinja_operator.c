/* What the binary operators mean: Python's arithmetic, concatenation, repetition, comparison and containment. */
#include <math.h>

#include "tokenizer/jinja_evaluate.h"

static const char* const SYMBOLS[] = {
    [JINJA_OP_ADD] = "+",           [JINJA_OP_SUBTRACT] = "-", [JINJA_OP_MULTIPLY] = "*", [JINJA_OP_DIVIDE] = "/",
    [JINJA_OP_FLOOR_DIVIDE] = "//", [JINJA_OP_MODULO] = "%",   [JINJA_OP_POWER] = "**",
};

static genai_status* no_such_operation(jinja_machine* machine, jinja_operator op, jinja_value a, jinja_value b) {
  return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "the operator %s does not go with values of types '%s' and '%s'", SYMBOLS[op],
                    jinja_type_name(a), jinja_type_name(b));
}

static genai_status* overflow(jinja_machine* machine) {
  return jinja_fail(machine, GENAI_ERROR_LIMIT, "an integer grows beyond 64 bits, the limit here");
}

static genai_status* division_by_zero(jinja_machine* machine) {
  return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "division by zero");
}

static genai_status* integer_power(jinja_machine* machine, int64_t base, int64_t exponent, jinja_value* out) {
  if (exponent < 0) {
    if (!base) return division_by_zero(machine);
    *out = jinja_real(pow((double)base, (double)exponent));
    return NULL;
  }
  int64_t result = 1;
  if (base == 0 || base == 1) result = exponent ? base : 1;
  if (base == -1) result = exponent % 2 ? -1 : 1;
  bool trivial = base >= -1 && base <= 1;
  for (int64_t i = 0; !trivial && i < exponent; i++) { /* overflows within 64 rounds */
    if (__builtin_mul_overflow(result, base, &result)) return overflow(machine);
  }
  *out = jinja_integer(result);
  return NULL;
}

static genai_status* integer_arithmetic(jinja_machine* machine, jinja_operator op, int64_t a, int64_t b, jinja_value* out) {
  int64_t result;
  switch (op) {
    case JINJA_OP_ADD:
      if (__builtin_add_overflow(a, b, &result)) return overflow(machine);
      break;
    case JINJA_OP_SUBTRACT:
      if (__builtin_sub_overflow(a, b, &result)) return overflow(machine);
      break;
    case JINJA_OP_MULTIPLY:
      if (__builtin_mul_overflow(a, b, &result)) return overflow(machine);
      break;
    case JINJA_OP_DIVIDE:
      if (!b) return division_by_zero(machine);
      *out = jinja_real((double)((long double)a / (long double)b));
      return NULL;
    case JINJA_OP_FLOOR_DIVIDE:
      if (!b) return division_by_zero(machine);
      if (a == INT64_MIN && b == -1) return overflow(machine);
      result = a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
      break;
    case JINJA_OP_MODULO: /* the result has the divisor's sign */
      if (!b) return division_by_zero(machine);
      result = b == -1 ? 0 : a % b;
      if (result && ((result < 0) != (b < 0))) result += b;
      break;
    default:
      return integer_power(machine, a, b, out);
  }
  *out = jinja_integer(result);
  return NULL;
}

/* float.__floordiv__ and __mod__ (CPython Objects/floatobject.c, float_divmod). */
static void float_divmod(double a, double b, double* quotient, double* remainder) {
  double mod = fmod(a, b), div = (a - mod) / b;
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) {
      mod += b;
      div -= 1;
    }
  } else {
    mod = copysign(0, b);
  }
  if (div != 0) {
    *quotient = floor(div);
    if (div - *quotient > 0.5) *quotient += 1;
  } else {
    *quotient = copysign(0, a / b);
  }
  *remainder = mod;
}

static genai_status* float_arithmetic(jinja_machine* machine, jinja_operator op, double a, double b, jinja_value* out) {
  double quotient, remainder;
  switch (op) {
    case JINJA_OP_ADD:
      *out = jinja_real(a + b);
      return NULL;
    case JINJA_OP_SUBTRACT:
      *out = jinja_real(a - b);
      return NULL;
    case JINJA_OP_MULTIPLY:
      *out = jinja_real(a * b);
      return NULL;
    case JINJA_OP_POWER:
      if (a == 0 && b < 0) return division_by_zero(machine);
      if (a < 0 && isfinite(a) && isfinite(b) && b != floor(b)) {
        return jinja_fail(machine, GENAI_ERROR_UNSUPPORTED, "a fractional power of a negative number is complex, which is not supported");
      }
      *out = jinja_real(pow(a, b));
      if (isinf(out->as.real) && isfinite(a) && isfinite(b))
        return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "the power is too large for a float");
      return NULL;
    default:
      break;
  }
  if (b == 0) return division_by_zero(machine);
  if (op == JINJA_OP_DIVIDE) {
    *out = jinja_real(a / b);
    return NULL;
  }
  float_divmod(a, b, &quotient, &remainder);
  *out = jinja_real(op == JINJA_OP_MODULO ? remainder : quotient);
  return NULL;
}

static genai_status* concatenate(jinja_machine* machine, jinja_value a, jinja_value b, jinja_value* out) {
  if (a.kind == JINJA_STRING) {
    bool safe = a.as.string->safe || b.as.string->safe;
    jinja_builder builder = {.machine = machine};
    if (safe) { /* the plain one of the two is escaped */
      GENAI_TRY(jinja_escape(machine, a, &a));
      GENAI_TRY(jinja_escape(machine, b, &b));
    }
    GENAI_TRY(jinja_reserve(&builder, a.as.string->length + b.as.string->length));
    GENAI_TRY(jinja_put_string(&builder, a.as.string));
    GENAI_TRY(jinja_put_string(&builder, b.as.string));
    GENAI_TRY(jinja_take(&builder, out));
    return jinja_mark_safe(&machine->heap, *out, safe, out);
  }
  const jinja_list *left = a.as.list, *right = b.as.list;
  GENAI_TRY(jinja_step(machine, (left->count + right->count) / 8));
  GENAI_TRY(jinja_new_list(&machine->heap, a.kind, left->count + right->count, out));
  for (size_t i = 0; i < left->count; i++) GENAI_TRY(jinja_append(&machine->heap, out->as.list, left->items[i]));
  for (size_t i = 0; i < right->count; i++) GENAI_TRY(jinja_append(&machine->heap, out->as.list, right->items[i]));
  return NULL;
}

static genai_status* repeat(jinja_machine* machine, jinja_value sequence, int64_t times, jinja_value* out) {
  size_t count = times > 0 ? (size_t)times : 0;
  if (sequence.kind == JINJA_STRING) {
    jinja_builder builder = {.machine = machine};
    GENAI_TRY(jinja_put_repeated(&builder, sequence.as.string, count));
    GENAI_TRY(jinja_take(&builder, out));
    return jinja_mark_safe(&machine->heap, *out, sequence.as.string->safe, out);
  }
  const jinja_list* list = sequence.as.list;
  size_t total;
  if (!size_mul(list->count, count, &total)) total = SIZE_MAX / 2;
  GENAI_TRY(jinja_step(machine, total / 8));
  GENAI_TRY(jinja_new_list(&machine->heap, sequence.kind, total, out));
  for (size_t i = 0; i < total; i++) GENAI_TRY(jinja_append(&machine->heap, out->as.list, list->items[i % list->count]));
  return NULL;
}

static bool is_sequence(jinja_value value) {
  return value.kind == JINJA_STRING || value.kind == JINJA_LIST || value.kind == JINJA_TUPLE;
}

static genai_status* arithmetic(jinja_machine* machine, jinja_operator op, jinja_value a, jinja_value b, jinja_value* out) {
  int64_t x, y;
  if (op == JINJA_OP_MODULO && a.kind == JINJA_STRING) return jinja_percent_format(machine, a.as.string, b, out);
  if (a.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, a);
  if (b.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, b);
  if (jinja_is_number(a) && jinja_is_number(b)) {
    if (jinja_as_integer(a, &x) && jinja_as_integer(b, &y)) return integer_arithmetic(machine, op, x, y, out);
    return float_arithmetic(machine, op, jinja_as_real(a), jinja_as_real(b), out);
  }
  if (op == JINJA_OP_ADD && a.kind == b.kind && is_sequence(a)) return concatenate(machine, a, b, out);
  if (op == JINJA_OP_MULTIPLY && is_sequence(a) && jinja_as_integer(b, &y)) return repeat(machine, a, y, out);
  if (op == JINJA_OP_MULTIPLY && is_sequence(b) && jinja_as_integer(a, &x)) return repeat(machine, b, x, out);
  return no_such_operation(machine, op, a, b);
}

genai_status* jinja_binary(jinja_machine* machine, jinja_operator op, jinja_value a, jinja_value b, jinja_value* out) {
  bool result;
  switch (op) {
    case JINJA_OP_EQUAL:
    case JINJA_OP_NOT_EQUAL:
      GENAI_TRY(jinja_equal(machine, a, b, &result));
      *out = jinja_bool(result == (op == JINJA_OP_EQUAL));
      return NULL;
    case JINJA_OP_LESS:
    case JINJA_OP_LESS_EQUAL:
    case JINJA_OP_GREATER:
    case JINJA_OP_GREATER_EQUAL:
      GENAI_TRY(jinja_compare(machine, (jinja_order)(op - JINJA_OP_LESS), a, b, &result));
      *out = jinja_bool(result);
      return NULL;
    case JINJA_OP_IN:
    case JINJA_OP_NOT_IN:
      GENAI_TRY(jinja_contains(machine, b, a, &result));
      *out = jinja_bool(result == (op == JINJA_OP_IN));
      return NULL;
    default:
      return arithmetic(machine, op, a, b, out);
  }
}
