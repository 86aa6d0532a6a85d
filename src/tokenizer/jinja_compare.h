/* Hashes that agree with jinja_equal, for the dict. */
#ifndef GENAI_TOKENIZER_JINJA_COMPARE_H
#define GENAI_TOKENIZER_JINJA_COMPARE_H

#include "tokenizer/jinja_value.h"

uint64_t jinja_hash_string(const jinja_string* string);
/* Equal values have equal hashes, across int, float and bool. Lists, dicts and tuples that hold them are unhashable: an error. */
genai_status* jinja_hash(jinja_machine* machine, jinja_value value, uint64_t* out) GENAI_MUST_USE;

bool jinja_is_hashable(jinja_value value);

#endif
