/* Python's truth, length, equality, order, containment and hashes of values. */
#include "tokenizer/jinja_compare.h"

#include <math.h>
#include <string.h>

#include "tokenizer/jinja_iterate.h"

const char* jinja_type_name(jinja_value value) {
  switch (value.kind) {
    case JINJA_MISSING:
    case JINJA_UNDEFINED:
      return "Undefined";
    case JINJA_NONE:
      return "None";
    case JINJA_BOOL:
      return "bool";
    case JINJA_INTEGER:
      return "int";
    case JINJA_FLOAT:
      return "float";
    case JINJA_STRING:
      return value.as.string->safe ? "markupsafe.Markup" : "str";
    case JINJA_LIST:
      return "list";
    case JINJA_TUPLE:
      return "tuple";
    case JINJA_DICT:
      return "dict";
    case JINJA_NAMESPACE:
      return "namespace";
    case JINJA_RANGE:
      return "range";
    case JINJA_VIEW:
      return value.view == JINJA_VIEW_KEYS ? "dict_keys" : value.view == JINJA_VIEW_VALUES ? "dict_values" : "dict_items";
    case JINJA_ITERATOR:
      return "generator";
    case JINJA_LOOP:
      return "loop";
    case JINJA_MACRO:
      return "macro";
    case JINJA_FUNCTION:
      return "function";
    case JINJA_METHOD:
      return "method";
    case JINJA_CYCLER:
      return "cycler";
    case JINJA_JOINER:
      return "joiner";
  }
  return "value";
}

bool jinja_length(jinja_value value, size_t* out) {
  switch (value.kind) {
    case JINJA_UNDEFINED:
      *out = 0;
      return true;
    case JINJA_STRING:
      *out = value.as.string->count;
      return true;
    case JINJA_LIST:
    case JINJA_TUPLE:
      *out = value.as.list->count;
      return true;
    case JINJA_DICT:
    case JINJA_VIEW:
      *out = value.as.dict->count;
      return true;
    case JINJA_RANGE:
      *out = value.as.range->count;
      return true;
    default:
      return false;
  }
}

bool jinja_truth(jinja_value value) {
  size_t length;
  switch (value.kind) {
    case JINJA_MISSING:
    case JINJA_NONE:
      return false;
    case JINJA_BOOL:
      return value.as.boolean;
    case JINJA_INTEGER:
      return value.as.integer != 0;
    case JINJA_FLOAT:
      return value.as.real != 0;
    default:
      return !jinja_length(value, &length) || length;
  }
}

bool jinja_string_equal(const jinja_string* a, const jinja_string* b) {
  return a->length == b->length && (a->data == b->data || !memcmp(a->data, b->data, a->length));
}

bool jinja_string_is(const jinja_string* string, const char* literal) {
  return string->length == strlen(literal) && !memcmp(string->data, literal, string->length);
}

int jinja_string_compare(const jinja_string* a, const jinja_string* b) { /* UTF-8 bytes order as their code points do */
  size_t shared = a->length < b->length ? a->length : b->length;
  int order = memcmp(a->data, b->data, shared);
  if (order) return order;
  return a->length < b->length ? -1 : a->length > b->length;
}

/* -1, 0, 1, or 2 when one is not a number. long double holds every int64 and every double exactly on the machines genai runs on. */
static int compare_numbers(jinja_value a, jinja_value b) {
  int64_t x, y;
  if (jinja_as_integer(a, &x) && jinja_as_integer(b, &y)) return x < y ? -1 : x > y;
  long double left = jinja_as_integer(a, &x) ? (long double)x : (long double)a.as.real;
  long double right = jinja_as_integer(b, &y) ? (long double)y : (long double)b.as.real;
  if (isnan(left) || isnan(right)) return 2;
  return left < right ? -1 : left > right;
}

static genai_status* equal(jinja_machine* machine, jinja_value a, jinja_value b, unsigned depth, bool* out);

static genai_status* equal_lists(jinja_machine* machine, const jinja_list* a, const jinja_list* b, unsigned depth, bool* out) {
  *out = a->count == b->count;
  for (size_t i = 0; *out && i < a->count; i++) GENAI_TRY(equal(machine, a->items[i], b->items[i], depth, out));
  return NULL;
}

static genai_status* equal_dicts(jinja_machine* machine, const jinja_dict* a, const jinja_dict* b, unsigned depth, bool* out) {
  *out = a->count == b->count;
  for (size_t i = 0; *out && i < a->count; i++) {
    const jinja_value* other;
    GENAI_TRY(jinja_dict_get(machine, b, a->entries[i].key, &other));
    *out = other != NULL;
    if (other) GENAI_TRY(equal(machine, a->entries[i].value, *other, depth, out));
  }
  return NULL;
}

static genai_status* equal_ranges(const jinja_range* a, const jinja_range* b, bool* out) {
  *out = a->count == b->count && (!a->count || a->start == b->start) && (a->count < 2 || a->step == b->step);
  return NULL;
}

static genai_status* equal(jinja_machine* machine, jinja_value a, jinja_value b, unsigned depth, bool* out) {
  GENAI_TRY(jinja_step(machine, 1));
  if (depth > JINJA_MAX_VALUE_DEPTH) {
    return jinja_fail(machine, GENAI_ERROR_LIMIT, "cannot compare values nested more than %d deep", JINJA_MAX_VALUE_DEPTH);
  }
  if (jinja_is_number(a) && jinja_is_number(b)) {
    *out = compare_numbers(a, b) == 0;
    return NULL;
  }
  *out = false;
  if (a.kind != b.kind) return NULL;
  switch (a.kind) {
    case JINJA_MISSING:
    case JINJA_NONE:
    case JINJA_UNDEFINED:
      *out = true;
      return NULL;
    case JINJA_STRING:
      *out = jinja_string_equal(a.as.string, b.as.string);
      return jinja_step(machine, a.as.string->length / 64);
    case JINJA_LIST:
    case JINJA_TUPLE:
      return equal_lists(machine, a.as.list, b.as.list, depth + 1, out);
    case JINJA_DICT:
      return equal_dicts(machine, a.as.dict, b.as.dict, depth + 1, out);
    case JINJA_RANGE:
      return equal_ranges(a.as.range, b.as.range, out);
    default:
      *out = a.as.identity == b.as.identity && a.view == b.view;
      return NULL;
  }
}

genai_status* jinja_equal(jinja_machine* machine, jinja_value a, jinja_value b, bool* out) {
  return equal(machine, a, b, 0, out);
}

static bool holds(jinja_order order, int comparison) {
  switch (order) {
    case JINJA_LESS:
      return comparison < 0;
    case JINJA_LESS_EQUAL:
      return comparison <= 0;
    case JINJA_GREATER:
      return comparison > 0;
    default:
      return comparison >= 0;
  }
}

static genai_status* compare(jinja_machine* machine, jinja_order order, jinja_value a, jinja_value b, unsigned depth, bool* out);

/* Python compares the first pair of items that differ, and the lengths when none does. */
static genai_status* compare_lists(jinja_machine* machine, jinja_order order, const jinja_list* a, const jinja_list* b, unsigned depth,
                                   bool* out) {
  for (size_t i = 0; i < a->count && i < b->count; i++) {
    bool same;
    GENAI_TRY(equal(machine, a->items[i], b->items[i], depth, &same));
    if (!same) return compare(machine, order, a->items[i], b->items[i], depth, out);
  }
  *out = holds(order, a->count < b->count ? -1 : a->count > b->count);
  return NULL;
}

static genai_status* compare(jinja_machine* machine, jinja_order order, jinja_value a, jinja_value b, unsigned depth, bool* out) {
  GENAI_TRY(jinja_step(machine, 1));
  if (depth > JINJA_MAX_VALUE_DEPTH) {
    return jinja_fail(machine, GENAI_ERROR_LIMIT, "cannot compare values nested more than %d deep", JINJA_MAX_VALUE_DEPTH);
  }
  if (a.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, a);
  if (b.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, b);
  if (jinja_is_number(a) && jinja_is_number(b)) {
    int comparison = compare_numbers(a, b);
    *out = comparison != 2 && holds(order, comparison);
    return NULL;
  }
  if (jinja_is_string(a) && jinja_is_string(b)) {
    *out = holds(order, jinja_string_compare(a.as.string, b.as.string));
    return NULL;
  }
  if (a.kind == b.kind && (a.kind == JINJA_LIST || a.kind == JINJA_TUPLE)) {
    return compare_lists(machine, order, a.as.list, b.as.list, depth + 1, out);
  }
  return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "a value of type '%s' has no order relative to one of type '%s'", jinja_type_name(a),
                    jinja_type_name(b));
}

genai_status* jinja_compare(jinja_machine* machine, jinja_order order, jinja_value a, jinja_value b, bool* out) {
  return compare(machine, order, a, b, 0, out);
}

static bool same_object(jinja_value a, jinja_value b) {
  return a.kind == b.kind && a.kind == JINJA_FLOAT && !memcmp(&a.as.real, &b.as.real, sizeof a.as.real);
}

genai_status* jinja_contains(jinja_machine* machine, jinja_value container, jinja_value item, bool* out) {
  if (container.kind == JINJA_STRING) {
    if (item.kind != JINJA_STRING) {
      return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "'in <string>' needs a string on its left, not '%s'", jinja_type_name(item));
    }
    const jinja_string *haystack = container.as.string, *needle = item.as.string;
    GENAI_TRY(jinja_step(machine, haystack->length / 64));
    *out = !needle->length || memmem(haystack->data, haystack->length, needle->data, needle->length);
    return NULL;
  }
  if (container.kind == JINJA_DICT || (container.kind == JINJA_VIEW && container.view == JINJA_VIEW_KEYS)) {
    const jinja_value* found;
    GENAI_TRY(jinja_dict_get(machine, container.as.dict, item, &found));
    *out = found != NULL;
    return NULL;
  }
  jinja_iterator iterator;
  GENAI_TRY(jinja_iterate(machine, container, &iterator));
  *out = false;
  for (;;) {
    jinja_value candidate;
    bool done;
    GENAI_TRY(jinja_next(machine, &iterator, &candidate, &done));
    if (done) return NULL;
    GENAI_TRY(jinja_equal(machine, candidate, item, out));
    if (*out || (*out = same_object(candidate, item))) return NULL; /* Python's `in` takes identity for equality: nan in [nan] */
  }
}

static uint64_t mix(uint64_t value) { /* the finaliser of SplitMix64 (Steele, Lea, Flood 2014) */
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

uint64_t jinja_hash_string(const jinja_string* string) {
  uint64_t hash = string->length;
  const char* data = string->data;
  size_t left = string->length;
  while (left >= 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    hash = mix(hash ^ word) + 0x9e3779b97f4a7c15u;
    data += 8;
    left -= 8;
  }
  uint64_t tail = 0;
  if (left) memcpy(&tail, data, left);
  return mix(hash ^ tail ^ 0xa5a5a5a5u);
}

static genai_status* hash_value(jinja_machine* machine, jinja_value value, unsigned depth, uint64_t* out) {
  GENAI_TRY(jinja_step(machine, 1));
  if (depth > JINJA_MAX_VALUE_DEPTH) {
    return jinja_fail(machine, GENAI_ERROR_LIMIT, "cannot hash a tuple nested more than %d deep", JINJA_MAX_VALUE_DEPTH);
  }
  int64_t integer;
  switch (value.kind) {
    case JINJA_BOOL:
    case JINJA_INTEGER:
      jinja_as_integer(value, &integer);
      *out = mix((uint64_t)integer + 1);
      return NULL;
    case JINJA_FLOAT:
      if (value.as.real >= -9.2e18 && value.as.real <= 9.2e18 && value.as.real == floor(value.as.real)) {
        *out = mix((uint64_t)(int64_t)value.as.real + 1);
      } else {
        uint64_t bits;
        memcpy(&bits, &value.as.real, 8);
        *out = mix(bits);
      }
      return NULL;
    case JINJA_STRING:
      *out = jinja_hash_string(value.as.string);
      return jinja_step(machine, value.as.string->length / 64);
    case JINJA_TUPLE:
      *out = 3;
      for (size_t i = 0; i < value.as.list->count; i++) {
        uint64_t item;
        GENAI_TRY(hash_value(machine, value.as.list->items[i], depth + 1, &item));
        *out = mix(*out ^ item);
      }
      return NULL;
    case JINJA_LIST:
    case JINJA_DICT:
      return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "a '%s' cannot be a key or a member of a set: it is unhashable",
                        jinja_type_name(value));
    case JINJA_RANGE:
      *out = mix(value.as.range->count);
      return NULL;
    case JINJA_MISSING:
    case JINJA_NONE:
    case JINJA_UNDEFINED:
      *out = mix(value.kind);
      return NULL;
    default:
      *out = mix((uintptr_t)value.as.identity);
      return NULL;
  }
}

static bool is_hashable(jinja_value value, unsigned depth) {
  if (value.kind != JINJA_TUPLE) return value.kind != JINJA_LIST && value.kind != JINJA_DICT;
  if (depth > JINJA_MAX_VALUE_DEPTH) return true; /* hashing it says why it cannot */
  for (size_t i = 0; i < value.as.list->count; i++) {
    if (!is_hashable(value.as.list->items[i], depth + 1)) return false;
  }
  return true;
}

bool jinja_is_hashable(jinja_value value) {
  return is_hashable(value, 0);
}

genai_status* jinja_hash(jinja_machine* machine, jinja_value value, uint64_t* out) {
  return hash_value(machine, value, 0, out);
}
