/* Iteration: Python's iter() and next() over every iterable value, and the lazy sequences that filters make. */
#ifndef GENAI_TOKENIZER_JINJA_ITERATE_H
#define GENAI_TOKENIZER_JINJA_ITERATE_H

#include "tokenizer/jinja_value.h"

/* What a lazy sequence does to each item of its source. `*keep` false drops the item. */
typedef genai_status* (*jinja_step_function)(jinja_machine* machine, void* user, jinja_value item, jinja_value* out, bool* keep);

/* Gives the collection a lazy sequence stands for, when its first item is asked for. */
typedef genai_status* (*jinja_prepare_function)(jinja_machine* machine, const void* user, jinja_value* out);

struct jinja_iterator {
  jinja_value source;    /* a collection, or missing */
  jinja_iterator* inner; /* of a lazy sequence, or of a value that is an iterator itself */
  jinja_step_function step;
  jinja_prepare_function prepare;
  void* user;
  size_t next;    /* index or byte offset into source */
  bool backwards; /* from the last item; `next` counts what is left */
  bool started;
};

/* iter(value): an error for what cannot be iterated over. Strings give their code points, dicts their keys. */
genai_status* jinja_iterate(jinja_machine* machine, jinja_value value, jinja_iterator* out) GENAI_MUST_USE;
/* reversed(value): `*reversible` false for what has no order or no length. */
void jinja_iterate_backwards(jinja_value value, jinja_iterator* out, bool* reversible);
bool jinja_is_iterable(jinja_value value);
genai_status* jinja_next(jinja_machine* machine, jinja_iterator* iterator, jinja_value* out, bool* done) GENAI_MUST_USE;

/* A value that iterates over `source` through `step`. The source is asked for its iterator at the first item, as a Python generator does;
 * one that is false gives nothing (as map and select do in jinja2). */
genai_status* jinja_lazy(jinja_machine* machine, jinja_value source, jinja_step_function step, void* user, jinja_value* out) GENAI_MUST_USE;
genai_status* jinja_iterator_value(jinja_machine* machine, const jinja_iterator* iterator, jinja_value* out) GENAI_MUST_USE;
/* A value that iterates over what `prepare` gives. */
genai_status* jinja_deferred(jinja_machine* machine, jinja_prepare_function prepare, void* user, jinja_value* out) GENAI_MUST_USE;
/* list(value) */
genai_status* jinja_to_list(jinja_machine* machine, jinja_value value, jinja_value* out) GENAI_MUST_USE;

#endif
