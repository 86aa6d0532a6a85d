/* Filters that take sequences apart and put them together. */
#include "tokenizer/jinja_evaluate.h"
#include "tokenizer/jinja_filter.h"

genai_status* jinja_attribute_path(jinja_machine* machine, jinja_value attribute, jinja_value* out) {
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, 0, out));
  if (!jinja_given_not_none(attribute)) return NULL;
  if (attribute.kind != JINJA_STRING) return jinja_append(&machine->heap, out->as.list, attribute);
  const jinja_string* string = attribute.as.string;
  for (size_t begin = 0; begin <= string->length;) {
    size_t end = begin;
    bool digits = true;
    while (end < string->length && string->data[end] != '.') {
      digits = digits && string->data[end] >= '0' && string->data[end] <= '9';
      end++;
    }
    jinja_value part;
    GENAI_TRY(jinja_substring(&machine->heap, string, begin, end, &part));
    if (digits && end > begin && end - begin < 18) {
      int64_t index = 0;
      for (size_t i = begin; i < end; i++) index = index * 10 + (string->data[i] - '0');
      part = jinja_integer(index);
    }
    GENAI_TRY(jinja_append(&machine->heap, out->as.list, part));
    begin = end + 1;
  }
  return NULL;
}

genai_status* jinja_follow_path(jinja_machine* machine, const jinja_list* path, jinja_value fallback, jinja_value item, jinja_value* out) {
  for (size_t i = 0; i < path->count; i++) {
    GENAI_TRY(jinja_item(machine, item, path->items[i], &item));
    if (item.kind == JINJA_UNDEFINED && jinja_given_not_none(fallback)) item = fallback;
  }
  *out = item;
  return NULL;
}

typedef struct deferred_filter {
  jinja_call call;
  jinja_builtin collect;
} deferred_filter;

static genai_status* collect_deferred(jinja_machine* machine, const void* user, jinja_value* out) {
  const deferred_filter* self = user;
  return self->collect(machine, &self->call, out);
}

genai_status* jinja_defer_filter(jinja_machine* machine, const jinja_call* call, jinja_builtin collect, jinja_value* out) {
  deferred_filter* self = jinja_alloc(&machine->heap, 1, sizeof *self);
  if (!self) return jinja_heap_status(&machine->heap);
  *self = (deferred_filter){.call = *call, .collect = collect};
  self->call.given = NULL; /* the caller's, gone by then */
  return jinja_deferred(machine, collect_deferred, self, out);
}

JINJA_FILTER(length) {
  size_t length = 0;
  if (call->self.kind == JINJA_LOOP) {
    GENAI_TRY(jinja_loop_length(machine, call->self.as.loop, &length));
  } else if (!jinja_length(call->self, &length)) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "a value of type '%s' has no length", jinja_type_name(call->self));
  }
  *out = jinja_integer((int64_t)length);
  return NULL;
}

JINJA_FILTER(first) {
  jinja_iterator iterator;
  bool done;
  GENAI_TRY(jinja_iterate(machine, call->self, &iterator));
  GENAI_TRY(jinja_next(machine, &iterator, out, &done));
  return done ? jinja_undefined_hint(&machine->heap, "No first item, sequence was empty.", out) : NULL;
}

JINJA_FILTER(last) {
  jinja_iterator iterator;
  bool reversible, done;
  jinja_iterate_backwards(call->self, &iterator, &reversible);
  if (!reversible) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "a value of type '%s' has no last item; turn it into a list first",
                      jinja_type_name(call->self));
  }
  GENAI_TRY(jinja_next(machine, &iterator, out, &done));
  return done ? jinja_undefined_hint(&machine->heap, "No last item, sequence was empty.", out) : NULL;
}

JINJA_FILTER(list) {
  return jinja_to_list(machine, call->self, out);
}

static genai_status* collect_items(jinja_machine* machine, const jinja_call* call, jinja_value* out) {
  jinja_value source = call->self;
  if (source.kind != JINJA_UNDEFINED && source.kind != JINJA_DICT) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "items: expected a dict, not '%s'", jinja_type_name(source));
  }
  if (source.kind == JINJA_DICT) source = (jinja_value){.kind = JINJA_VIEW, .view = JINJA_VIEW_ITEMS, .as.dict = source.as.dict};
  *out = source;
  return NULL;
}

JINJA_FILTER(items) {
  return jinja_defer_filter(machine, call, collect_items, out);
}

JINJA_FILTER(reverse) {
  jinja_iterator iterator;
  bool reversible;
  jinja_value list;
  if (call->self.kind == JINJA_STRING) {
    const jinja_value bounds[3] = {JINJA_VALUE_NONE, JINJA_VALUE_NONE, jinja_integer(-1)};
    return jinja_slice(machine, call->self, bounds, out);
  }
  jinja_iterate_backwards(call->self, &iterator, &reversible);
  if (reversible) return jinja_iterator_value(machine, &iterator, out);
  GENAI_TRY(jinja_to_list(machine, call->self, &list));
  jinja_list* items = list.as.list;
  for (size_t i = 0; i < items->count / 2; i++) {
    jinja_value swap = items->items[i];
    items->items[i] = items->items[items->count - 1 - i];
    items->items[items->count - 1 - i] = swap;
  }
  *out = list;
  return NULL;
}

static genai_status* collect_batches(jinja_machine* machine, const jinja_call* call, jinja_value* out) {
  int64_t size;
  jinja_value batches, batch = {.kind = JINJA_MISSING}, fill = call->arguments[1];
  jinja_iterator iterator;
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[0], "batch's size", 0, &size));
  GENAI_TRY(jinja_iterate(machine, call->self, &iterator));
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, 0, &batches));
  for (;;) {
    jinja_value item;
    bool done;
    GENAI_TRY(jinja_next(machine, &iterator, &item, &done));
    if (done) break;
    if (batch.kind == JINJA_MISSING || (int64_t)batch.as.list->count == size) {
      if (batch.kind == JINJA_MISSING && !size) { /* the reference starts with an empty batch, which is full at once */
        GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, 0, &batch));
        GENAI_TRY(jinja_append(&machine->heap, batches.as.list, batch));
      }
      GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, 0, &batch));
      GENAI_TRY(jinja_append(&machine->heap, batches.as.list, batch));
    }
    GENAI_TRY(jinja_append(&machine->heap, batch.as.list, item));
  }
  if (batch.kind != JINJA_MISSING && jinja_given_not_none(fill)) {
    while ((int64_t)batch.as.list->count < size) {
      GENAI_TRY(jinja_step(machine, 1));
      GENAI_TRY(jinja_append(&machine->heap, batch.as.list, fill));
    }
  }
  *out = batches;
  return NULL;
}

JINJA_FILTER(batch) {
  return jinja_defer_filter(machine, call, collect_batches, out);
}

static genai_status* collect_slices(jinja_machine* machine, const jinja_call* call, jinja_value* out) {
  int64_t slices;
  jinja_value items, parts, fill = call->arguments[1];
  GENAI_TRY(jinja_integer_argument(machine, call->arguments[0], "slice's number of slices", 0, &slices));
  GENAI_TRY(jinja_to_list(machine, call->self, &items));
  if (!slices) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "slice: the number of slices is 0; expected at least 1");
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, 0, &parts));
  size_t next = 0;
  for (int64_t i = 0; i < slices; i++) {
    bool longer = i < (int64_t)(items.as.list->count % (size_t)slices);
    size_t count = items.as.list->count / (size_t)slices + longer;
    jinja_value part;
    GENAI_TRY(jinja_step(machine, 1));
    GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, count, &part));
    for (size_t j = 0; j < count; j++) GENAI_TRY(jinja_append(&machine->heap, part.as.list, items.as.list->items[next++]));
    if (jinja_given_not_none(fill) && !longer) GENAI_TRY(jinja_append(&machine->heap, part.as.list, fill));
    GENAI_TRY(jinja_append(&machine->heap, parts.as.list, part));
  }
  *out = parts;
  return NULL;
}

JINJA_FILTER(slice) {
  return jinja_defer_filter(machine, call, collect_slices, out);
}

JINJA_FILTER(sum) {
  jinja_value path, sum = jinja_given(call->arguments[1]) ? call->arguments[1] : jinja_integer(0);
  jinja_iterator iterator;
  GENAI_TRY(jinja_attribute_path(machine, call->arguments[0], &path));
  GENAI_TRY(jinja_iterate(machine, call->self, &iterator));
  if (sum.kind == JINJA_STRING) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "sum: strings cannot be summed; use join");
  for (;;) {
    jinja_value item;
    bool done;
    GENAI_TRY(jinja_next(machine, &iterator, &item, &done));
    if (done) break;
    GENAI_TRY(jinja_follow_path(machine, path.as.list, (jinja_value){.kind = JINJA_MISSING}, item, &item));
    GENAI_TRY(jinja_binary(machine, JINJA_OP_ADD, sum, item, &sum));
  }
  *out = sum;
  return NULL;
}
