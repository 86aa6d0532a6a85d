/* The lazy filters: map, select, reject, selectattr, rejectattr. What they are asked to do is looked at with the first item, as Python's
 * generators do, so an empty or unused sequence never fails. */
#include "tokenizer/jinja_evaluate.h"
#include "tokenizer/jinja_filter.h"

typedef struct plan {
  jinja_arguments given; /* to the filter itself */
  bool prepared, by_attribute, reject;
  jinja_value path; /* attribute to look at; MISSING: the item itself */
  jinja_value fallback;
  const jinja_definition* definition; /* the filter or test to apply; NULL: none */
  jinja_arguments rest;               /* its arguments */
} plan;

static genai_status* new_plan(jinja_machine* machine, const jinja_call* call, plan** out) {
  *out = jinja_alloc(&machine->heap, 1, sizeof **out);
  if (!*out) return jinja_heap_status(&machine->heap);
  **out = (plan){.given = *call->given, .path = {.kind = JINJA_MISSING}, .fallback = {.kind = JINJA_MISSING}};
  return NULL;
}

/* The filter or test that argument `index` names, with the arguments after it. */
static genai_status* find_definition(jinja_machine* machine, plan* self, size_t index, bool is_filter) {
  const jinja_string* name;
  const char* what = is_filter ? "filter" : "test";
  GENAI_TRY(jinja_string_argument(machine, self->given.items[index], is_filter ? "the filter's name" : "the test's name", &name));
  self->definition = is_filter ? jinja_find_filter(name) : jinja_find_test(name);
  if (!self->definition) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "there is no %s named '%.*s'", what, name->length > 100 ? 100 : (int)name->length,
                      name->data);
  }
  self->rest =
      (jinja_arguments){.items = self->given.items + index + 1, .count = self->given.count - index - 1, .keywords = self->given.keywords};
  return NULL;
}

static genai_status* prepare_map(jinja_machine* machine, plan* self) {
  self->prepared = true;
  const jinja_dict* keywords = self->given.keywords;
  const jinja_value* attribute = keywords ? jinja_dict_find_text(keywords, "attribute") : NULL;
  if (self->given.count || !attribute) {
    if (!self->given.count) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "map needs the name of a filter, or attribute=...");
    return find_definition(machine, self, 0, true);
  }
  const jinja_value* fallback = jinja_dict_find_text(keywords, "default");
  if (keywords->count > (fallback ? 2u : 1u)) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "map takes attribute and default only as keyword arguments");
  }
  if (fallback) self->fallback = *fallback;
  return jinja_attribute_path(machine, *attribute, &self->path);
}

static genai_status* map_item(jinja_machine* machine, void* user, jinja_value item, jinja_value* out, bool* keep) {
  plan* self = user;
  *keep = true;
  if (!self->prepared) GENAI_TRY(prepare_map(machine, self));
  if (self->definition) return jinja_run(machine, self->definition, item, &self->rest, out);
  return jinja_follow_path(machine, self->path.as.list, self->fallback, item, out);
}

JINJA_FILTER(map) {
  plan* self;
  GENAI_TRY(new_plan(machine, call, &self));
  return jinja_lazy(machine, call->self, map_item, self, out);
}

static genai_status* prepare_select(jinja_machine* machine, plan* self) {
  self->prepared = true;
  size_t index = 0;
  if (self->by_attribute) {
    if (!self->given.count) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "selectattr and rejectattr need the name of an attribute");
    GENAI_TRY(jinja_attribute_path(machine, self->given.items[0], &self->path));
    index = 1;
  }
  return self->given.count > index ? find_definition(machine, self, index, false) : NULL;
}

static genai_status* select_item(jinja_machine* machine, void* user, jinja_value item, jinja_value* out, bool* keep) {
  plan* self = user;
  jinja_value looked_at = item;
  if (!self->prepared) GENAI_TRY(prepare_select(machine, self));
  if (self->by_attribute) GENAI_TRY(jinja_follow_path(machine, self->path.as.list, self->fallback, item, &looked_at));
  if (self->definition) GENAI_TRY(jinja_run(machine, self->definition, looked_at, &self->rest, &looked_at));
  *keep = jinja_truth(looked_at) != self->reject;
  *out = item;
  return NULL;
}

static genai_status* select_from(jinja_machine* machine, const jinja_call* call, bool by_attribute, bool reject, jinja_value* out) {
  plan* self;
  GENAI_TRY(new_plan(machine, call, &self));
  self->by_attribute = by_attribute;
  self->reject = reject;
  return jinja_lazy(machine, call->self, select_item, self, out);
}

JINJA_FILTER(select) {
  return select_from(machine, call, false, false, out);
}
JINJA_FILTER(reject) {
  return select_from(machine, call, false, true, out);
}
JINJA_FILTER(selectattr) {
  return select_from(machine, call, true, false, out);
}
JINJA_FILTER(rejectattr) {
  return select_from(machine, call, true, true, out);
}
