/* Iteration over values, forwards, backwards and lazily. */
#include "tokenizer/jinja_iterate.h"

#include "tokenizer/jinja_text.h"

bool jinja_is_iterable(jinja_value value) {
  switch (value.kind) {
    case JINJA_UNDEFINED:
    case JINJA_STRING:
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_DICT:
    case JINJA_RANGE:
    case JINJA_VIEW:
    case JINJA_ITERATOR:
    case JINJA_LOOP:
      return true;
    default:
      return false;
  }
}

genai_status* jinja_iterate(jinja_machine* machine, jinja_value value, jinja_iterator* out) {
  if (!jinja_is_iterable(value)) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "a value of type '%s' cannot be iterated over", jinja_type_name(value));
  }
  if (value.kind == JINJA_LOOP) return jinja_fail(machine, GENAI_ERROR_UNSUPPORTED, "iterating over 'loop' itself is not supported");
  *out = (jinja_iterator){.source = value};
  if (value.kind == JINJA_ITERATOR) *out = (jinja_iterator){.inner = value.as.iterator};
  return NULL;
}

void jinja_iterate_backwards(jinja_value value, jinja_iterator* out, bool* reversible) {
  *reversible = value.kind == JINJA_UNDEFINED || value.kind == JINJA_STRING || value.kind == JINJA_LIST || value.kind == JINJA_TUPLE ||
                value.kind == JINJA_DICT || value.kind == JINJA_RANGE || value.kind == JINJA_VIEW;
  *out = (jinja_iterator){.source = value, .backwards = true};
  if (!*reversible) return;
  if (value.kind == JINJA_STRING) {
    out->next = value.as.string->length;
  } else {
    jinja_length(value, &out->next);
  }
}

static genai_status* view_item(jinja_machine* machine, jinja_value view, size_t index, jinja_value* out) {
  const jinja_dict_entry* entry = &view.as.dict->entries[index];
  if (view.view == JINJA_VIEW_ITEMS) return jinja_pair(&machine->heap, entry->key, entry->value, out);
  *out = view.view == JINJA_VIEW_KEYS ? entry->key : entry->value;
  return NULL;
}

static genai_status* next_character(jinja_machine* machine, jinja_iterator* iterator, jinja_value* out, bool* done) {
  const jinja_string* string = iterator->source.as.string;
  uint32_t codepoint;
  *done = iterator->backwards ? !iterator->next : iterator->next >= string->length;
  if (*done) return NULL;
  size_t begin = iterator->next, end = iterator->next;
  if (iterator->backwards) {
    begin = iterator->next -= jinja_decode_before(string->data, string->data + end, &codepoint);
  } else {
    end = iterator->next += jinja_decode(string->data + begin, &codepoint);
  }
  GENAI_TRY(jinja_substring(&machine->heap, string, begin, end, out));
  return jinja_mark_safe(&machine->heap, *out, false, out);
}

static genai_status* next_of_source(jinja_machine* machine, jinja_iterator* iterator, jinja_value* out, bool* done) {
  jinja_value source = iterator->source;
  if (source.kind == JINJA_STRING) return next_character(machine, iterator, out, done);
  size_t length = 0;
  jinja_length(source, &length);
  *done = iterator->backwards ? !iterator->next : iterator->next >= length;
  if (*done) return NULL;
  size_t index = iterator->backwards ? --iterator->next : iterator->next++;
  if (index >= length) { /* the collection is gone */
    *done = true;
    return NULL;
  }
  switch (source.kind) {
    case JINJA_LIST:
    case JINJA_TUPLE:
      *out = source.as.list->items[index];
      return NULL;
    case JINJA_DICT:
      *out = source.as.dict->entries[index].key;
      return NULL;
    case JINJA_VIEW:
      return view_item(machine, source, index, out);
    case JINJA_RANGE:
      *out = jinja_integer(source.as.range->start + (int64_t)index * source.as.range->step);
      return NULL;
    default:
      *done = true;
      return NULL; /* undefined is empty */
  }
}

/* A lazy sequence asks its source for an iterator when its own first item is asked for. */
static genai_status* start(jinja_machine* machine, jinja_iterator* iterator) {
  jinja_value source = iterator->source;
  iterator->started = true;
  if (iterator->prepare) {
    GENAI_TRY(iterator->prepare(machine, iterator->user, &source));
  } else if (!jinja_truth(source)) {
    source = (jinja_value){.kind = JINJA_UNDEFINED};
  }
  iterator->inner = jinja_alloc(&machine->heap, 1, sizeof *iterator->inner);
  return iterator->inner ? jinja_iterate(machine, source, iterator->inner) : jinja_heap_status(&machine->heap);
}

/* A chain of iterators is followed in a loop where they have no step, and recursed into where they have: the depth counts. */
genai_status* jinja_next(jinja_machine* machine, jinja_iterator* iterator, jinja_value* out, bool* done) {
  GENAI_TRY(jinja_step(machine, 1));
  for (;;) {
    if ((iterator->step || iterator->prepare) && !iterator->started) GENAI_TRY(start(machine, iterator));
    if (iterator->step || !iterator->inner) break;
    iterator = iterator->inner;
  }
  if (!iterator->step) return next_of_source(machine, iterator, out, done);
  if (++machine->depth > JINJA_MAX_DEPTH) {
    return jinja_fail(machine, GENAI_ERROR_LIMIT, "evaluation nested more than %d deep, the limit for one template", JINJA_MAX_DEPTH);
  }
  for (;;) {
    jinja_value item;
    GENAI_TRY(jinja_next(machine, iterator->inner, &item, done));
    if (*done) break;
    bool keep = true;
    GENAI_TRY(iterator->step(machine, iterator->user, item, out, &keep));
    if (keep) break;
  }
  machine->depth--;
  return NULL;
}

genai_status* jinja_iterator_value(jinja_machine* machine, const jinja_iterator* iterator, jinja_value* out) {
  jinja_iterator* copy = jinja_alloc(&machine->heap, 1, sizeof *copy);
  if (!copy) return jinja_heap_status(&machine->heap);
  *copy = *iterator;
  *out = (jinja_value){.kind = JINJA_ITERATOR, .as.iterator = copy};
  return NULL;
}

genai_status* jinja_lazy(jinja_machine* machine, jinja_value source, jinja_step_function step, void* user, jinja_value* out) {
  jinja_iterator iterator = {.source = source, .step = step, .user = user};
  return jinja_iterator_value(machine, &iterator, out);
}

genai_status* jinja_deferred(jinja_machine* machine, jinja_prepare_function prepare, void* user, jinja_value* out) {
  jinja_iterator iterator = {.prepare = prepare, .user = user};
  return jinja_iterator_value(machine, &iterator, out);
}

genai_status* jinja_to_list(jinja_machine* machine, jinja_value value, jinja_value* out) {
  jinja_iterator iterator;
  size_t length = 0;
  GENAI_TRY(jinja_iterate(machine, value, &iterator));
  jinja_length(value, &length);
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, length, out));
  for (;;) {
    jinja_value item;
    bool done;
    GENAI_TRY(jinja_next(machine, &iterator, &item, &done));
    if (done) return NULL;
    GENAI_TRY(jinja_append(&machine->heap, out->as.list, item));
  }
}
