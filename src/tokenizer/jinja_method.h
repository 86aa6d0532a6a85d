/* The methods of strings, in two files. */
#ifndef GENAI_TOKENIZER_JINJA_METHOD_H
#define GENAI_TOKENIZER_JINJA_METHOD_H

#include "tokenizer/jinja_builtins.h"

const jinja_definition* jinja_find_string_method(const jinja_string* name);
const jinja_definition* jinja_find_split_method(const jinja_string* name); /* those that split, join, pad and look for text */

#endif
