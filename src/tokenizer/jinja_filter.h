/* The filters (jinja2.filters), in three files: text, sequences, and the rest with the table. */
#ifndef GENAI_TOKENIZER_JINJA_FILTER_H
#define GENAI_TOKENIZER_JINJA_FILTER_H

#include "tokenizer/jinja_builtins.h"

#define JINJA_FILTER(name) genai_status* jinja_filter_##name(jinja_machine* machine, const jinja_call* call, jinja_value* out)

/* jinja_filter_text.c */
JINJA_FILTER(upper);
JINJA_FILTER(lower);
JINJA_FILTER(capitalize);
JINJA_FILTER(title);
JINJA_FILTER(trim);
JINJA_FILTER(replace);
JINJA_FILTER(string);
JINJA_FILTER(safe);
JINJA_FILTER(escape);
JINJA_FILTER(forceescape);
JINJA_FILTER(format);
JINJA_FILTER(indent);
JINJA_FILTER(truncate);
JINJA_FILTER(center);
JINJA_FILTER(wordcount);
JINJA_FILTER(urlencode);
JINJA_FILTER(join);

/* jinja_filter_sequence.c */
JINJA_FILTER(length);
JINJA_FILTER(first);
JINJA_FILTER(last);
JINJA_FILTER(list);
JINJA_FILTER(items);
JINJA_FILTER(reverse);
JINJA_FILTER(batch);
JINJA_FILTER(slice);
JINJA_FILTER(sum);

/* jinja_filter_order.c */
JINJA_FILTER(sort);
JINJA_FILTER(dictsort);
JINJA_FILTER(unique);
JINJA_FILTER(min);
JINJA_FILTER(max);
JINJA_FILTER(groupby);

/* jinja_filter_select.c */
JINJA_FILTER(map);
JINJA_FILTER(select);
JINJA_FILTER(reject);
JINJA_FILTER(selectattr);
JINJA_FILTER(rejectattr);

/* A filter that is a generator in the reference: `collect` gives its items as a list, but only when the first is asked for. */
genai_status* jinja_defer_filter(jinja_machine* machine, const jinja_call* call, jinja_builtin collect, jinja_value* out) GENAI_MUST_USE;
/* The parts of an attribute such as "address.city" or 0 (jinja2's make_attrgetter), as a list; empty for none. */
genai_status* jinja_attribute_path(jinja_machine* machine, jinja_value attribute, jinja_value* out) GENAI_MUST_USE;
/* Follows them from `item`; `fallback` (unless missing or none) stands in for what is undefined on the way. */
genai_status* jinja_follow_path(jinja_machine* machine, const jinja_list* path, jinja_value fallback, jinja_value item,
                                jinja_value* out) GENAI_MUST_USE;
/* Strings in lower case, other values as they are. */
genai_status* jinja_ignore_case(jinja_machine* machine, jinja_value value, jinja_value* out) GENAI_MUST_USE;

#endif
