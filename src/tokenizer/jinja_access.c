/* Attributes, items, slices and the variable `loop`: what `object.name` and `object[key]` find (jinja2.sandbox's getattr and getitem). */
#include <stdio.h>
#include <string.h>

#include "tokenizer/jinja_compare.h"
#include "tokenizer/jinja_evaluate.h"
#include "tokenizer/jinja_text.h"

static genai_status* look_ahead(jinja_machine* machine, jinja_loop* loop) {
  if (loop->has_after || loop->ended) return NULL;
  bool done;
  GENAI_TRY(jinja_next(machine, &loop->iterator, &loop->after, &done));
  loop->has_after = !done;
  loop->ended = done;
  return NULL;
}

genai_status* jinja_loop_next(jinja_machine* machine, jinja_loop* loop, jinja_value* out, bool* done) {
  GENAI_TRY(look_ahead(machine, loop));
  *done = !loop->has_after;
  if (*done) return NULL;
  loop->has_after = false;
  loop->index0++;
  loop->before = loop->current;
  loop->current = loop->after;
  *out = loop->current;
  return NULL;
}

genai_status* jinja_loop_length(jinja_machine* machine, jinja_loop* loop, size_t* out) {
  if (!loop->has_length && !jinja_length(loop->iterable, &loop->length)) { /* what is left is read now, and read again from there */
    jinja_value rest;
    jinja_iterator copy = loop->iterator;
    jinja_iterator* shared = jinja_alloc(&machine->heap, 1, sizeof *shared);
    if (!shared) return jinja_heap_status(&machine->heap);
    *shared = copy;
    GENAI_TRY(jinja_to_list(machine, (jinja_value){.kind = JINJA_ITERATOR, .as.iterator = shared}, &rest));
    loop->iterator = (jinja_iterator){.source = rest};
    loop->length = rest.as.list->count + (size_t)(loop->index0 + 1) + loop->has_after;
  }
  loop->has_length = true;
  *out = loop->length;
  return NULL;
}

genai_status* jinja_loop_attribute(jinja_machine* machine, jinja_loop* loop, const jinja_string* name, jinja_value* out) {
  size_t length;
  if (jinja_string_is(name, "index")) {
    *out = jinja_integer(loop->index0 + 1);
  } else if (jinja_string_is(name, "index0")) {
    *out = jinja_integer(loop->index0);
  } else if (jinja_string_is(name, "first")) {
    *out = jinja_bool(loop->index0 == 0);
  } else if (jinja_string_is(name, "last")) {
    GENAI_TRY(look_ahead(machine, loop));
    *out = jinja_bool(!loop->has_after);
  } else if (jinja_string_is(name, "length")) {
    GENAI_TRY(jinja_loop_length(machine, loop, &length));
    *out = jinja_integer((int64_t)length);
  } else if (jinja_string_is(name, "revindex")) {
    GENAI_TRY(jinja_loop_length(machine, loop, &length));
    *out = jinja_integer((int64_t)length - loop->index0);
  } else if (jinja_string_is(name, "revindex0")) {
    GENAI_TRY(jinja_loop_length(machine, loop, &length));
    *out = jinja_integer((int64_t)length - loop->index0 - 1);
  } else if (jinja_string_is(name, "previtem")) {
    if (!loop->index0) return jinja_undefined_hint(&machine->heap, "there is no previous item", out);
    *out = loop->before;
  } else if (jinja_string_is(name, "nextitem")) {
    GENAI_TRY(look_ahead(machine, loop));
    if (!loop->has_after) return jinja_undefined_hint(&machine->heap, "there is no next item", out);
    *out = loop->after;
  } else if (jinja_string_is(name, "depth")) { /* of a recursive loop, which there is none of */
    *out = jinja_integer(loop->depth0 + 1);
  } else if (jinja_string_is(name, "depth0")) {
    *out = jinja_integer(loop->depth0);
  } else {
    return jinja_undefined_member(&machine->heap, (jinja_value){.kind = JINJA_LOOP, .as.loop = loop}, jinja_of_string(name), out);
  }
  return NULL;
}

static genai_status* unsafe(jinja_machine* machine, jinja_value object, const jinja_string* name, jinja_value* out) {
  char* hint =
      jinja_printf(&machine->heap,
                   "access to the attribute '%.*s' of a '%s' is refused: chat templates may not change values or reach Python's internals",
                   name->length > 100 ? 100 : (int)name->length, name->data, jinja_type_name(object));
  if (!hint) return jinja_heap_status(&machine->heap);
  return jinja_undefined_hint(&machine->heap, hint, out);
}

static genai_status* bind_method(jinja_machine* machine, jinja_value object, const jinja_definition* definition, jinja_value* out) {
  jinja_method* method = jinja_alloc(&machine->heap, 1, sizeof *method);
  jinja_value* self = jinja_alloc(&machine->heap, 1, sizeof *self);
  if (!method || !self) return jinja_heap_status(&machine->heap);
  *self = object;
  *method = (jinja_method){.self = self, .definition = definition};
  *out = (jinja_value){.kind = JINJA_METHOD, .as.method = method};
  return NULL;
}

static bool is_internal(const jinja_string* name) {
  return name->length > 4 && !memcmp(name->data, "__", 2) && !memcmp(name->data + name->length - 2, "__", 2);
}

/* What Python's getattr finds; `*found` false when there is nothing. */
static genai_status* find_attribute(jinja_machine* machine, jinja_value object, const jinja_string* name, jinja_value* out, bool* found) {
  *found = true;
  if (object.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, object);
  if (is_internal(name)) return unsafe(machine, object, name, out);
  const jinja_definition* method = jinja_find_method(object, name);
  if (method && method->flags & JINJA_MUTATES) return unsafe(machine, object, name, out);
  if (method) return bind_method(machine, object, method, out);
  const jinja_value* member;
  switch (object.kind) {
    case JINJA_NAMESPACE:
      member = jinja_dict_find(object.as.dict, name);
      if (!member) break;
      *out = *member;
      return NULL;
    case JINJA_LOOP:
      GENAI_TRY(jinja_loop_attribute(machine, object.as.loop, name, out));
      *found = out->kind != JINJA_UNDEFINED || jinja_string_is(name, "previtem") || jinja_string_is(name, "nextitem");
      return NULL;
    case JINJA_TUPLE:
      if (!object.as.list->group) break;
      if (!jinja_string_is(name, "grouper") && !jinja_string_is(name, "list")) break;
      *out = object.as.list->items[jinja_string_is(name, "list")];
      return NULL;
    case JINJA_CYCLER:
      if (!jinja_string_is(name, "current")) break;
      *out = object.as.cycler->items[object.as.cycler->next];
      return NULL;
    case JINJA_MACRO:
      if (!jinja_string_is(name, "name")) break;
      *out = object.as.macro->name ? jinja_of_string(object.as.macro->name) : JINJA_VALUE_NONE;
      return NULL;
    default:
      break;
  }
  *found = false;
  return NULL;
}

/* What Python's object[key] finds; `*found` false for TypeError, KeyError and IndexError alike. */
static genai_status* find_item(jinja_machine* machine, jinja_value object, jinja_value key, jinja_value* out, bool* found) {
  int64_t index;
  size_t length = 0;
  *found = false;
  if (object.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, object);
  if (object.kind == JINJA_DICT) {
    if (!jinja_is_hashable(key)) return NULL;
    const jinja_value* member;
    GENAI_TRY(jinja_dict_get(machine, object.as.dict, key, &member));
    *found = member != NULL;
    if (member) *out = *member;
    return NULL;
  }
  bool indexed = object.kind == JINJA_LIST || object.kind == JINJA_TUPLE || object.kind == JINJA_STRING || object.kind == JINJA_RANGE;
  if (!indexed || !jinja_as_integer(key, &index)) return NULL;
  jinja_length(object, &length);
  if (index < 0) index += (int64_t)length;
  if (index < 0 || index >= (int64_t)length) return NULL;
  *found = true;
  if (object.kind == JINJA_STRING) {
    const jinja_string* string = object.as.string;
    uint32_t codepoint;
    size_t begin = jinja_byte_offset(string, (size_t)index);
    GENAI_TRY(jinja_step(machine, string->count == string->length ? 0 : string->length / 64));
    return jinja_substring(&machine->heap, string, begin, begin + jinja_decode(string->data + begin, &codepoint), out);
  }
  *out = object.kind == JINJA_RANGE ? jinja_integer(object.as.range->start + index * object.as.range->step) : object.as.list->items[index];
  return NULL;
}

genai_status* jinja_attribute(jinja_machine* machine, jinja_value object, const jinja_string* name, jinja_value* out) {
  bool found;
  GENAI_TRY(find_attribute(machine, object, name, out, &found));
  if (!found) GENAI_TRY(find_item(machine, object, jinja_of_string(name), out, &found));
  if (found && object.kind == JINJA_NAMESPACE && name->length && name->data[0] == '_') return unsafe(machine, object, name, out);
  return found ? NULL : jinja_undefined_member(&machine->heap, object, jinja_of_string(name), out);
}

genai_status* jinja_item(jinja_machine* machine, jinja_value object, jinja_value key, jinja_value* out) {
  bool found;
  GENAI_TRY(find_item(machine, object, key, out, &found));
  if (!found && key.kind == JINJA_STRING) GENAI_TRY(find_attribute(machine, object, key.as.string, out, &found));
  return found ? NULL : jinja_undefined_member(&machine->heap, object, key, out);
}

/* slice.indices: brings start, stop and step into [−1, length] and gives the number of items. */
static genai_status* slice_indices(jinja_machine* machine, const jinja_value bounds[3], int64_t length, int64_t* start, int64_t* step,
                                   size_t* count) {
  int64_t limits[3] = {0, 0, 1};
  bool given[3];
  for (int i = 0; i < 3; i++) {
    given[i] = bounds[i].kind != JINJA_NONE;
    if (given[i] && !jinja_as_integer(bounds[i], &limits[i])) {
      if (bounds[i].kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, bounds[i]);
      return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "slice bounds must be integers or none, not '%s'", jinja_type_name(bounds[i]));
    }
  }
  if (!limits[2]) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "a slice's step cannot be zero");
  bool backwards = limits[2] < 0;
  int64_t lowest = backwards ? -1 : 0, highest = backwards ? length - 1 : length;
  for (int i = 0; i < 2; i++) {
    if (!given[i]) {
      limits[i] = (i == 0) == backwards ? highest : lowest;
    } else {
      if (limits[i] < 0) limits[i] = limits[i] < -length ? -1 : limits[i] + length;
      if (limits[i] < lowest) limits[i] = lowest;
      if (limits[i] > highest) limits[i] = highest;
    }
  }
  *start = limits[0];
  *step = limits[2];
  int64_t span = backwards ? limits[0] - limits[1] : limits[1] - limits[0];
  uint64_t stride = backwards ? 0 - (uint64_t)limits[2] : (uint64_t)limits[2];
  *count = span > 0 ? (size_t)(((uint64_t)span - 1) / stride + 1) : 0;
  return NULL;
}

static genai_status* slice_string(jinja_machine* machine, const jinja_string* string, int64_t start, int64_t step, size_t count,
                                  jinja_value* out) {
  GENAI_TRY(jinja_step(machine, string->count == string->length ? 0 : string->length / 64));
  if (!count) return jinja_substring(&machine->heap, string, 0, 0, out);
  if (step == 1) {
    size_t begin = jinja_byte_offset(string, (size_t)start);
    return jinja_substring(&machine->heap, string, begin, jinja_byte_offset(string, (size_t)start + count), out);
  }
  size_t* offsets = NULL; /* of each code point, where they differ from its number */
  GENAI_TRY(jinja_step(machine, string->count));
  if (string->count != string->length) {
    offsets = jinja_alloc(&machine->heap, string->count, sizeof *offsets);
    if (!offsets) return jinja_heap_status(&machine->heap);
    size_t number = 0;
    for (size_t at = 0; at < string->length; at++) {
      if (((unsigned char)string->data[at] & 0xc0) != 0x80) offsets[number++] = at;
    }
  }
  jinja_builder builder = {.machine = machine};
  for (size_t i = 0; i < count; i++) {
    size_t index = (size_t)(start + (int64_t)i * step);
    const char* at = string->data + (offsets ? offsets[index] : index);
    uint32_t codepoint;
    GENAI_TRY(jinja_put(&builder, at, jinja_decode(at, &codepoint)));
  }
  GENAI_TRY(jinja_take(&builder, out));
  return jinja_mark_safe(&machine->heap, *out, string->safe, out);
}

genai_status* jinja_slice(jinja_machine* machine, jinja_value object, const jinja_value bounds[3], jinja_value* out) {
  size_t length = 0, count = 0;
  int64_t start = 0, step = 1;
  if (object.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, object);
  if (object.kind != JINJA_STRING && object.kind != JINJA_LIST && object.kind != JINJA_TUPLE && object.kind != JINJA_RANGE) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "a value of type '%s' cannot be sliced", jinja_type_name(object));
  }
  jinja_length(object, &length);
  GENAI_TRY(slice_indices(machine, bounds, (int64_t)length, &start, &step, &count));
  if (object.kind == JINJA_STRING) return slice_string(machine, object.as.string, start, step, count, out);
  GENAI_TRY(jinja_step(machine, count));
  if (object.kind == JINJA_RANGE) {
    jinja_range* range = jinja_alloc(&machine->heap, 1, sizeof *range);
    if (!range) return jinja_heap_status(&machine->heap);
    const jinja_range* from = object.as.range;
    range->start = (int64_t)((uint64_t)from->start + (uint64_t)start * (uint64_t)from->step); /* may wrap only where it is empty */
    range->step = count > 1 ? step * from->step : from->step;
    range->count = count;
    range->stop = (int64_t)((uint64_t)range->start + count * (uint64_t)range->step);
    *out = (jinja_value){.kind = JINJA_RANGE, .as.range = range};
    return NULL;
  }
  GENAI_TRY(jinja_new_list(&machine->heap, object.kind, count, out));
  for (size_t i = 0; i < count; i++) {
    GENAI_TRY(jinja_append(&machine->heap, out->as.list, object.as.list->items[start + (int64_t)i * step]));
  }
  return NULL;
}
