/* What a Jinja expression evaluates to: Python's values as far as chat templates meet them, with Python's printing, comparison and hashing
 * (Python 3.11; jinja2 3.1's Undefined and Namespace; markupsafe's Markup as a flag on strings). Values are immutable except namespaces,
 * iterators, cyclers and joiners, and live as long as the heap they were made in. */
#ifndef GENAI_TOKENIZER_JINJA_VALUE_H
#define GENAI_TOKENIZER_JINJA_VALUE_H

#include "tokenizer/jinja_heap.h"

typedef enum jinja_kind {
  JINJA_MISSING, /* no value at all: an argument not given, a name not bound */
  JINJA_UNDEFINED,
  JINJA_NONE,
  JINJA_BOOL,
  JINJA_INTEGER, /* 64 bits; Python's integers have no limit, so overflow is an error here, never a wrong number */
  JINJA_FLOAT,
  JINJA_STRING,
  JINJA_LIST,
  JINJA_TUPLE,
  JINJA_DICT,
  JINJA_NAMESPACE,
  JINJA_RANGE,
  JINJA_VIEW,     /* dict.keys(), .values(), .items() */
  JINJA_ITERATOR, /* Python's generators and reversed(): always true, without a length, consumed once */
  JINJA_LOOP,
  JINJA_MACRO,
  JINJA_FUNCTION,
  JINJA_METHOD, /* a function bound to its object */
  JINJA_CYCLER,
  JINJA_JOINER
} jinja_kind;

typedef struct jinja_value jinja_value;
typedef struct jinja_machine jinja_machine;
typedef struct jinja_iterator jinja_iterator;
typedef struct jinja_loop jinja_loop;
typedef struct jinja_macro jinja_macro;
typedef struct jinja_definition jinja_definition;

typedef struct jinja_string {
  const char* data; /* valid UTF-8, not NUL-terminated, may hold NUL */
  size_t length;    /* bytes */
  size_t count;     /* code points; equal to `length` exactly when the text is ASCII */
  bool safe;        /* markupsafe's Markup: operators escape what they join to it */
} jinja_string;

typedef struct jinja_list {
  jinja_value* items;
  size_t count;
  size_t capacity;
  bool group; /* a groupby tuple, whose members also have the names grouper and list */
} jinja_list;

typedef struct jinja_dict_entry jinja_dict_entry;
typedef struct jinja_dict { /* in insertion order */
  jinja_dict_entry* entries;
  size_t count;
  size_t capacity;
  uint32_t* index; /* open addressing over entries + 1, present from 16 entries on */
  size_t index_capacity;
} jinja_dict;

typedef struct jinja_range {
  int64_t start, step;
  size_t count;
  int64_t stop; /* as written, for printing */
} jinja_range;

typedef struct jinja_undefined jinja_undefined;

typedef enum jinja_view_kind { JINJA_VIEW_KEYS, JINJA_VIEW_VALUES, JINJA_VIEW_ITEMS } jinja_view_kind;

typedef struct jinja_method {
  jinja_value* self;
  const jinja_definition* definition;
} jinja_method;

typedef struct jinja_cycler {
  const jinja_value* items;
  size_t count;
  size_t next;
} jinja_cycler;

typedef struct jinja_joiner {
  const jinja_string* separator;
  bool used;
} jinja_joiner;

struct jinja_value {
  jinja_kind kind;
  uint32_t view; /* jinja_view_kind of a JINJA_VIEW */
  union {
    bool boolean;
    int64_t integer;
    double real;
    const jinja_string* string;
    jinja_list* list; /* JINJA_LIST, JINJA_TUPLE */
    jinja_dict* dict; /* JINJA_DICT, JINJA_NAMESPACE, JINJA_VIEW */
    const jinja_range* range;
    const jinja_undefined* undefined;
    jinja_iterator* iterator;
    jinja_loop* loop;
    const jinja_macro* macro;
    const jinja_definition* function;
    const jinja_method* method;
    jinja_cycler* cycler;
    jinja_joiner* joiner;
    const void* identity; /* any of the pointers above */
  } as;
};

struct jinja_dict_entry {
  uint64_t hash;
  jinja_value key;
  jinja_value value;
};

/* Why a value is undefined; the text an error about it carries (jinja2.runtime.Undefined). */
struct jinja_undefined {
  const char* hint;   /* the whole message, or NULL: composed from the two below */
  const char* object; /* "dict object" ..., NULL for a variable */
  jinja_value name;
};

#define JINJA_VALUE_NONE ((jinja_value){.kind = JINJA_NONE})
static inline jinja_value jinja_bool(bool value) {
  return (jinja_value){.kind = JINJA_BOOL, .as.boolean = value};
}
static inline jinja_value jinja_integer(int64_t value) {
  return (jinja_value){.kind = JINJA_INTEGER, .as.integer = value};
}
static inline jinja_value jinja_real(double value) {
  return (jinja_value){.kind = JINJA_FLOAT, .as.real = value};
}
static inline jinja_value jinja_of_string(const jinja_string* value) {
  return (jinja_value){.kind = JINJA_STRING, .as.string = value};
}
static inline bool jinja_is_string(jinja_value value) {
  return value.kind == JINJA_STRING;
}
static inline bool jinja_is_number(jinja_value value) {
  return value.kind == JINJA_BOOL || value.kind == JINJA_INTEGER || value.kind == JINJA_FLOAT;
}
/* True for integers and, as in Python, booleans; `*out` then is the number. */
bool jinja_as_integer(jinja_value value, int64_t* out);
double jinja_as_real(jinja_value value); /* of a number */

/* What evaluation shares: memory, the place errors name, and the counters that bound a hostile template. */
struct jinja_machine {
  jinja_heap heap; /* first: a machine is a heap */
  text_view source;
  size_t at;      /* byte offset of the node being evaluated */
  uint64_t steps; /* spent so far */
  unsigned depth; /* of evaluation, macros included */
  jinja_dict* variables;
  int64_t now; /* seconds since the epoch, for strftime_now */
};

enum {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  JINJA_MAX_STEPS = 200000, /* a fuzzer has no time for templates that only run long */
#else
  JINJA_MAX_STEPS = 20000000, /* node evaluations; about a second */
#endif
  JINJA_MAX_DEPTH = 1200, /* nested evaluations; keeps the C stack below about 1 MiB */
  JINJA_MAX_VALUE_DEPTH = 300,
  JINJA_MAX_TEXT = 64 << 20, /* bytes of one string, and so of the output */
};

/* An error at machine->at. Kind GENAI_ERROR_TEMPLATE for what the reference would raise. */
#define jinja_fail(machine, kind, ...) jinja_error_at((machine)->source, (machine)->at, kind, __VA_ARGS__)
genai_status* jinja_fail_undefined(const jinja_machine* machine, jinja_value undefined) GENAI_MUST_USE JINJA_NEVER_NULL;
/* Counts `steps`; GENAI_ERROR_LIMIT when the budget is spent. */
genai_status* jinja_step(jinja_machine* machine, uint64_t steps) GENAI_MUST_USE;

/* Making values. */
genai_status* jinja_borrow_string(jinja_heap* heap, const char* data, size_t length, jinja_value* out) GENAI_MUST_USE; /* valid UTF-8 */
genai_status* jinja_copy_string(jinja_heap* heap, const char* data, size_t length, jinja_value* out) GENAI_MUST_USE;
genai_status* jinja_static_string(jinja_heap* heap, const char* literal, jinja_value* out) GENAI_MUST_USE;
/* Bytes [begin, end) of `string`, sharing its memory. */
genai_status* jinja_substring(jinja_heap* heap, const jinja_string* string, size_t begin, size_t end, jinja_value* out) GENAI_MUST_USE;
genai_status* jinja_mark_safe(jinja_heap* heap, jinja_value string, bool safe, jinja_value* out) GENAI_MUST_USE;

genai_status* jinja_new_list(jinja_heap* heap, jinja_kind kind, size_t capacity, jinja_value* out) GENAI_MUST_USE; /* or JINJA_TUPLE */
genai_status* jinja_append(jinja_heap* heap, jinja_list* list, jinja_value item) GENAI_MUST_USE;
genai_status* jinja_pair(jinja_heap* heap, jinja_value first, jinja_value second, jinja_value* out) GENAI_MUST_USE; /* a tuple */

genai_status* jinja_new_dict(jinja_heap* heap, jinja_kind kind, jinja_value* out) GENAI_MUST_USE; /* JINJA_DICT or JINJA_NAMESPACE */
genai_status* jinja_dict_set(jinja_machine* machine, jinja_dict* dict, jinja_value key, jinja_value value) GENAI_MUST_USE;
/* `*out` is NULL when the key is absent; an unhashable key is an error (jinja_hash). */
genai_status* jinja_dict_get(jinja_machine* machine, const jinja_dict* dict, jinja_value key, const jinja_value** out) GENAI_MUST_USE;
const jinja_value* jinja_dict_find(const jinja_dict* dict, const jinja_string* key); /* string keys cannot fail */
const jinja_value* jinja_dict_find_text(const jinja_dict* dict, const char* key);
genai_status* jinja_dict_set_string(jinja_heap* heap, jinja_dict* dict, const jinja_string* key, jinja_value value) GENAI_MUST_USE;
genai_status* jinja_dict_copy(jinja_machine* machine, const jinja_dict* from, jinja_dict* to) GENAI_MUST_USE; /* adds to `to` */
void jinja_dict_clear(jinja_dict* dict);

genai_status* jinja_undefined_hint(jinja_heap* heap, const char* hint, jinja_value* out) GENAI_MUST_USE; /* `hint` is borrowed */
genai_status* jinja_undefined_name(jinja_heap* heap, const jinja_string* name, jinja_value* out) GENAI_MUST_USE;
genai_status* jinja_undefined_member(jinja_heap* heap, jinja_value object, jinja_value name, jinja_value* out) GENAI_MUST_USE;

/* Python's protocols. */
const char* jinja_type_name(jinja_value value); /* "int", "str", "Undefined" ... */
bool jinja_truth(jinja_value value);
/* len(); false when the type has none. */
bool jinja_length(jinja_value value, size_t* out);
/* `==`; fails only when the values nest too deeply or the steps run out. */
genai_status* jinja_equal(jinja_machine* machine, jinja_value a, jinja_value b, bool* out) GENAI_MUST_USE;
/* `<` (or `<=`, `>`, `>=`): what types have no order is an error. */
typedef enum jinja_order { JINJA_LESS, JINJA_LESS_EQUAL, JINJA_GREATER, JINJA_GREATER_EQUAL } jinja_order;
genai_status* jinja_compare(jinja_machine* machine, jinja_order order, jinja_value a, jinja_value b, bool* out) GENAI_MUST_USE;
genai_status* jinja_contains(jinja_machine* machine, jinja_value container, jinja_value item, bool* out) GENAI_MUST_USE;
int jinja_string_compare(const jinja_string* a, const jinja_string* b); /* by code point */
bool jinja_string_equal(const jinja_string* a, const jinja_string* b);
bool jinja_string_is(const jinja_string* string, const char* literal);

/* Text. */
/* A string under construction. */
typedef struct jinja_builder {
  jinja_machine* machine;
  char* data;
  size_t length;
  size_t capacity;
} jinja_builder;
genai_status* jinja_put(jinja_builder* builder, const char* data, size_t length) GENAI_MUST_USE;
genai_status* jinja_reserve(jinja_builder* builder, size_t length) GENAI_MUST_USE; /* so many bytes will follow */
genai_status* jinja_put_text(jinja_builder* builder, const char* literal) GENAI_MUST_USE;
genai_status* jinja_put_string(jinja_builder* builder, const jinja_string* string) GENAI_MUST_USE;
genai_status* jinja_put_codepoint(jinja_builder* builder, uint32_t codepoint) GENAI_MUST_USE;
genai_status* jinja_put_repeated(jinja_builder* builder, const jinja_string* string, size_t times) GENAI_MUST_USE;
genai_status* jinja_take(jinja_builder* builder, jinja_value* out) GENAI_MUST_USE; /* the builder's memory becomes the string's */

genai_status* jinja_put_str(jinja_builder* builder, jinja_value value) GENAI_MUST_USE;  /* str() */
genai_status* jinja_put_repr(jinja_builder* builder, jinja_value value) GENAI_MUST_USE; /* repr() */
genai_status* jinja_put_real(jinja_builder* builder, double value) GENAI_MUST_USE;      /* float.__repr__ */
/* str(): a string is returned as it is, but plain. */
genai_status* jinja_str(jinja_machine* machine, jinja_value value, jinja_value* out) GENAI_MUST_USE;
/* markupsafe.soft_str: as jinja_str, but a safe string stays safe. */
genai_status* jinja_soft_str(jinja_machine* machine, jinja_value value, jinja_value* out) GENAI_MUST_USE;
/* markupsafe.escape: `*out` is safe. */
genai_status* jinja_escape(jinja_machine* machine, jinja_value value, jinja_value* out) GENAI_MUST_USE;

#endif
