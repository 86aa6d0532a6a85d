/* Filters that order, group and compare. */
#include "tokenizer/jinja_evaluate.h"
#include "tokenizer/jinja_filter.h"
#include "tokenizer/jinja_sort.h"
#include "tokenizer/jinja_text.h"

genai_status* jinja_ignore_case(jinja_machine* machine, jinja_value value, jinja_value* out) {
  if (value.kind == JINJA_STRING) return jinja_cased(machine, JINJA_LOWER, value.as.string, out);
  *out = value;
  return NULL;
}

/* How an item is looked at: through a path, and without case unless told otherwise. */
typedef struct getter {
  jinja_value path;
  jinja_value fallback;
  bool ignore_case;
} getter;

static genai_status* new_getter(jinja_machine* machine, jinja_value attribute, jinja_value case_sensitive, getter* out) {
  *out = (getter){.fallback = {.kind = JINJA_MISSING}, .ignore_case = !jinja_truth(case_sensitive)};
  return jinja_attribute_path(machine, attribute, &out->path);
}

static genai_status* get(jinja_machine* machine, const getter* self, jinja_value item, jinja_value* out) {
  GENAI_TRY(jinja_follow_path(machine, self->path.as.list, self->fallback, item, out));
  return self->ignore_case ? jinja_ignore_case(machine, *out, out) : NULL;
}

/* sort's attribute may be several, separated by commas: the key is the list of them all. */
static genai_status* sort_keys(jinja_machine* machine, const jinja_list* items, jinja_value attribute, jinja_value case_sensitive,
                               jinja_value* out) {
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, items->count, out));
  for (size_t i = 0; i < items->count; i++) {
    jinja_value key;
    GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, 1, &key));
    GENAI_TRY(jinja_append(&machine->heap, out->as.list, key));
  }
  size_t begin = 0;
  do {
    jinja_value part = attribute;
    size_t end = 0;
    if (attribute.kind == JINJA_STRING) {
      const jinja_string* names = attribute.as.string;
      for (end = begin; end < names->length && names->data[end] != ',';) end++;
      GENAI_TRY(jinja_substring(&machine->heap, names, begin, end, &part));
    }
    getter look;
    GENAI_TRY(new_getter(machine, part, case_sensitive, &look));
    for (size_t i = 0; i < items->count; i++) {
      jinja_value value;
      GENAI_TRY(get(machine, &look, items->items[i], &value));
      GENAI_TRY(jinja_append(&machine->heap, out->as.list->items[i].as.list, value));
    }
    begin = end + 1;
  } while (attribute.kind == JINJA_STRING && begin <= attribute.as.string->length);
  return NULL;
}

JINJA_FILTER(sort) {
  jinja_value keys;
  GENAI_TRY(jinja_to_list(machine, call->self, out));
  GENAI_TRY(sort_keys(machine, out->as.list, call->arguments[2], call->arguments[1], &keys));
  return jinja_sort(machine, out->as.list, keys.as.list->items, jinja_truth(call->arguments[0]));
}

JINJA_FILTER(dictsort) {
  jinja_value by = call->arguments[1], keys;
  bool by_value = by.kind == JINJA_STRING && jinja_string_is(by.as.string, "value");
  if (jinja_given(by) && !by_value && !(by.kind == JINJA_STRING && jinja_string_is(by.as.string, "key"))) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "dictsort sorts by 'key' or 'value' only");
  }
  if (call->self.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, call->self);
  if (call->self.kind != JINJA_DICT) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "dictsort: expected a dict, not '%s'", jinja_type_name(call->self));
  }
  const jinja_dict* dict = call->self.as.dict;
  GENAI_TRY(jinja_to_list(machine, (jinja_value){.kind = JINJA_VIEW, .view = JINJA_VIEW_ITEMS, .as.dict = call->self.as.dict}, out));
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, dict->count, &keys));
  for (size_t i = 0; i < dict->count; i++) {
    jinja_value key = by_value ? dict->entries[i].value : dict->entries[i].key;
    if (!jinja_truth(call->arguments[0])) GENAI_TRY(jinja_ignore_case(machine, key, &key));
    GENAI_TRY(jinja_append(&machine->heap, keys.as.list, key));
  }
  return jinja_sort(machine, out->as.list, keys.as.list->items, jinja_truth(call->arguments[2]));
}

static genai_status* collect_unique(jinja_machine* machine, const jinja_call* call, jinja_value* out) {
  getter look;
  jinja_value seen;
  jinja_iterator iterator;
  GENAI_TRY(new_getter(machine, call->arguments[1], call->arguments[0], &look));
  GENAI_TRY(jinja_new_dict(&machine->heap, JINJA_DICT, &seen));
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, 0, out));
  GENAI_TRY(jinja_iterate(machine, call->self, &iterator));
  for (;;) {
    jinja_value item, key;
    const jinja_value* before;
    bool done;
    GENAI_TRY(jinja_next(machine, &iterator, &item, &done));
    if (done) return NULL;
    GENAI_TRY(get(machine, &look, item, &key));
    GENAI_TRY(jinja_dict_get(machine, seen.as.dict, key, &before));
    if (before) continue;
    GENAI_TRY(jinja_dict_set(machine, seen.as.dict, key, JINJA_VALUE_NONE));
    GENAI_TRY(jinja_append(&machine->heap, out->as.list, item));
  }
}

JINJA_FILTER(unique) {
  return jinja_defer_filter(machine, call, collect_unique, out);
}

static genai_status* extreme(jinja_machine* machine, const jinja_call* call, jinja_order order, jinja_value* out) {
  getter look;
  jinja_value best = {.kind = JINJA_MISSING}, best_key = {.kind = JINJA_MISSING};
  jinja_iterator iterator;
  GENAI_TRY(new_getter(machine, call->arguments[1], call->arguments[0], &look));
  GENAI_TRY(jinja_iterate(machine, call->self, &iterator));
  for (;;) {
    jinja_value item, key;
    bool done, better = true;
    GENAI_TRY(jinja_next(machine, &iterator, &item, &done));
    if (done) break;
    GENAI_TRY(get(machine, &look, item, &key));
    if (best.kind != JINJA_MISSING) GENAI_TRY(jinja_compare(machine, order, key, best_key, &better));
    if (!better) continue;
    best = item;
    best_key = key;
  }
  if (best.kind == JINJA_MISSING) return jinja_undefined_hint(&machine->heap, "No aggregated item, sequence was empty.", out);
  *out = best;
  return NULL;
}

JINJA_FILTER(min) {
  return extreme(machine, call, JINJA_LESS, out);
}
JINJA_FILTER(max) {
  return extreme(machine, call, JINJA_GREATER, out);
}

JINJA_FILTER(groupby) {
  getter look;
  jinja_value items, keys, last = {.kind = JINJA_MISSING};
  GENAI_TRY(new_getter(machine, call->arguments[0], call->arguments[2], &look));
  look.fallback = call->arguments[1];
  GENAI_TRY(jinja_to_list(machine, call->self, &items));
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, items.as.list->count, &keys));
  for (size_t i = 0; i < items.as.list->count; i++) {
    jinja_value key;
    GENAI_TRY(get(machine, &look, items.as.list->items[i], &key));
    GENAI_TRY(jinja_append(&machine->heap, keys.as.list, key));
  }
  GENAI_TRY(jinja_sort(machine, items.as.list, keys.as.list->items, false));
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, 0, out));
  for (size_t i = 0; i < items.as.list->count; i++) {
    jinja_value key, group, pair, name, item = items.as.list->items[i];
    bool same = false;
    GENAI_TRY(get(machine, &look, item, &key));
    if (last.kind != JINJA_MISSING) GENAI_TRY(jinja_equal(machine, key, last, &same));
    if (same) {
      GENAI_TRY(jinja_append(&machine->heap, out->as.list->items[out->as.list->count - 1].as.list->items[1].as.list, item));
      continue;
    }
    last = key;
    GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, 1, &group));
    GENAI_TRY(jinja_append(&machine->heap, group.as.list, item));
    GENAI_TRY(jinja_follow_path(machine, look.path.as.list, look.fallback, item, &name)); /* as the first of the group writes it */
    GENAI_TRY(jinja_pair(&machine->heap, name, group, &pair));
    pair.as.list->group = true;
    GENAI_TRY(jinja_append(&machine->heap, out->as.list, pair));
  }
  return NULL;
}
