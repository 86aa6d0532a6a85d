/* The filters, tests, methods and functions that templates can call, and how arguments reach them. */
#ifndef GENAI_TOKENIZER_JINJA_BUILTINS_H
#define GENAI_TOKENIZER_JINJA_BUILTINS_H

#include "tokenizer/jinja_value.h"

enum { JINJA_MAX_PARAMETERS = 5 };

/* Arguments as the template gave them. */
typedef struct jinja_arguments {
  const jinja_value* items;
  size_t count;
  const jinja_dict* keywords; /* string keys; NULL when there are none */
} jinja_arguments;

typedef struct jinja_call {
  jinja_value self;                            /* the value filtered or tested, the object of a method */
  jinja_value arguments[JINJA_MAX_PARAMETERS]; /* JINJA_MISSING where not given */
  const jinja_arguments* given;                /* for definitions with JINJA_VARIADIC, whose `arguments` are not set */
} jinja_call;

typedef genai_status* (*jinja_builtin)(jinja_machine* machine, const jinja_call* call, jinja_value* out);

enum {
  JINJA_VARIADIC = 1,        /* takes any arguments and looks at them itself */
  JINJA_POSITIONAL_ONLY = 2, /* as Python's built-in functions do */
  JINJA_MUTATES = 4,         /* a method the sandbox refuses: reading it gives an undefined value */
};

struct jinja_definition {
  const char* name;
  jinja_builtin run;                            /* NULL: jinja2 has it, genai does not */
  const char* parameters[JINJA_MAX_PARAMETERS]; /* after the value filtered or tested */
  uint8_t required;                             /* of those */
  uint8_t flags;
};

const jinja_definition* jinja_find_filter(const jinja_string* name); /* NULL when there is none */
const jinja_definition* jinja_find_test(const jinja_string* name);
const jinja_definition* jinja_find_method(jinja_value object, const jinja_string* name);
const jinja_definition* jinja_find_in(const jinja_definition* table, size_t count, const jinja_string* name);
/* Adds range, dict, namespace ... to `variables`. */
genai_status* jinja_add_functions(jinja_machine* machine, jinja_dict* variables) GENAI_MUST_USE;

/* Binds `given` to the definition's parameters and runs it. */
genai_status* jinja_run(jinja_machine* machine, const jinja_definition* definition, jinja_value self, const jinja_arguments* given,
                        jinja_value* out) GENAI_MUST_USE;

/* What several builtins need of an argument: `fallback` when it is missing. */
genai_status* jinja_integer_argument(jinja_machine* machine, jinja_value argument, const char* what, int64_t fallback,
                                     int64_t* out) GENAI_MUST_USE;
genai_status* jinja_string_argument(jinja_machine* machine, jinja_value argument, const char* what,
                                    const jinja_string** out) GENAI_MUST_USE;
static inline bool jinja_given(jinja_value argument) {
  return argument.kind != JINJA_MISSING;
}
static inline bool jinja_given_not_none(jinja_value argument) {
  return argument.kind != JINJA_MISSING && argument.kind != JINJA_NONE;
}

/* "%" and str.format, strftime, JSON: jinja_format.c and jinja_json.c. */
genai_status* jinja_percent_format(jinja_machine* machine, const jinja_string* format, jinja_value arguments,
                                   jinja_value* out) GENAI_MUST_USE;
genai_status* jinja_brace_format(jinja_machine* machine, const jinja_string* format, const jinja_arguments* arguments,
                                 jinja_value* out) GENAI_MUST_USE;

typedef struct jinja_json_style {
  bool ensure_ascii, sort_keys;
  const jinja_string* indent; /* NULL: one line */
  const jinja_string *item_separator, *key_separator;
} jinja_json_style;
genai_status* jinja_to_json(jinja_machine* machine, jinja_value value, const jinja_json_style* style, jinja_value* out) GENAI_MUST_USE;

#endif
