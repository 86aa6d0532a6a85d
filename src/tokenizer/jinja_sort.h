/* Python's sorted(): stable, by keys that may turn out to have no order. */
#ifndef GENAI_TOKENIZER_JINJA_SORT_H
#define GENAI_TOKENIZER_JINJA_SORT_H

#include "tokenizer/jinja_value.h"

/* Sorts list->items by `keys` (as many; may be the items themselves). With `reverse` equal items keep their order too. `keys` is left in
 * any order. */
genai_status* jinja_sort(jinja_machine* machine, jinja_list* list, const jinja_value* keys, bool reverse) GENAI_MUST_USE;

#endif
