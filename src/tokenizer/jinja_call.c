/* Calls: evaluating arguments, binding them to parameters, running macros and builtins. */
#include <stdio.h>
#include <string.h>

#include "tokenizer/jinja_evaluate.h"

static genai_status* spread_keywords(jinja_machine* machine, jinja_value value, jinja_dict* keywords) {
  if (value.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, value);
  if (value.kind != JINJA_DICT) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "the argument after ** must be a dict, not '%s'", jinja_type_name(value));
  }
  for (size_t i = 0; i < value.as.dict->count; i++) {
    const jinja_dict_entry* entry = &value.as.dict->entries[i];
    if (entry->key.kind != JINJA_STRING) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "the keys of the dict after ** must be strings");
    if (jinja_dict_find(keywords, entry->key.as.string)) {
      return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "the argument '%.*s' is given twice", (int)entry->key.as.string->length,
                        entry->key.as.string->data);
    }
    GENAI_TRY(jinja_dict_set(machine, keywords, entry->key, entry->value));
  }
  return NULL;
}

genai_status* jinja_evaluate_arguments(jinja_machine* machine, const jinja_node_list* nodes, jinja_scope* scope, jinja_arguments* out) {
  *out = (jinja_arguments){0};
  if (!nodes->count) return NULL;
  jinja_value positional, keywords = {.kind = JINJA_MISSING};
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, nodes->count, &positional));
  for (const jinja_node* node = nodes->first; node; node = node->next) {
    bool special = node->kind == JINJA_NODE_SPREAD || node->kind == JINJA_NODE_SPREAD_KEYWORDS || node->kind == JINJA_NODE_KEYWORD;
    jinja_value value;
    GENAI_TRY(jinja_evaluate(machine, special ? node->a : node, scope, &value));
    machine->at = node->at;
    if (node->kind == JINJA_NODE_SPREAD) {
      GENAI_TRY(jinja_to_list(machine, value, &value));
      for (size_t i = 0; i < value.as.list->count; i++) {
        GENAI_TRY(jinja_append(&machine->heap, positional.as.list, value.as.list->items[i]));
      }
      continue;
    }
    if (!special) {
      GENAI_TRY(jinja_append(&machine->heap, positional.as.list, value));
      continue;
    }
    if (keywords.kind == JINJA_MISSING) GENAI_TRY(jinja_new_dict(&machine->heap, JINJA_DICT, &keywords));
    if (node->kind == JINJA_NODE_SPREAD_KEYWORDS) {
      GENAI_TRY(spread_keywords(machine, value, keywords.as.dict));
    } else if (jinja_dict_find(keywords.as.dict, node->name)) {
      return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "the argument '%.*s' is given twice", (int)node->name->length, node->name->data);
    } else {
      GENAI_TRY(jinja_dict_set_string(&machine->heap, keywords.as.dict, node->name, value));
    }
  }
  *out = (jinja_arguments){.items = positional.as.list->items,
                           .count = positional.as.list->count,
                           .keywords = keywords.kind == JINJA_MISSING ? NULL : keywords.as.dict};
  return NULL;
}

typedef struct macro_call {
  const jinja_macro* macro;
  const jinja_arguments* given;
  jinja_scope* scope;
  size_t keywords_used;
  bool caller_bound;
} macro_call;

static const jinja_string CALLER = {.data = "caller", .length = 6, .count = 6};
static const jinja_string KWARGS = {.data = "kwargs", .length = 6, .count = 6};
static const jinja_string VARARGS = {.data = "varargs", .length = 7, .count = 7};

static const jinja_value* keyword(const jinja_arguments* given, const jinja_string* name) {
  return given->keywords ? jinja_dict_find(given->keywords, name) : NULL;
}

static genai_status* bind_parameters(jinja_machine* machine, macro_call* call) {
  const jinja_node* node = call->macro->node;
  size_t index = 0;
  for (const jinja_node* parameter = node->list2.first; parameter; parameter = parameter->next, index++) {
    jinja_value value = {.kind = JINJA_MISSING};
    if (jinja_string_equal(parameter->name, &CALLER)) call->caller_bound = true;
    if (index < call->given->count) {
      value = call->given->items[index];
    } else if (keyword(call->given, parameter->name)) {
      value = *keyword(call->given, parameter->name);
      call->keywords_used++;
    }
    GENAI_TRY(jinja_bind(machine, call->scope, parameter->name, value));
  }
  for (const jinja_node* parameter = node->list2.first; parameter; parameter = parameter->next) { /* defaults see the arguments */
    jinja_value value = *jinja_dict_find(&call->scope->names, parameter->name);
    if (value.kind != JINJA_MISSING) continue;
    if (parameter->a) {
      GENAI_TRY(jinja_evaluate(machine, parameter->a, call->scope, &value));
    } else {
      char* hint = jinja_printf(&machine->heap, "parameter '%.*s' was not provided",
                                parameter->name->length > 100 ? 100 : (int)parameter->name->length, parameter->name->data);
      if (!hint) return jinja_heap_status(&machine->heap);
      GENAI_TRY(jinja_undefined_hint(&machine->heap, hint, &value));
    }
    GENAI_TRY(jinja_bind(machine, call->scope, parameter->name, value));
  }
  return NULL;
}

static genai_status* bind_specials(jinja_machine* machine, macro_call* call) {
  const jinja_node* node = call->macro->node;
  const jinja_arguments* given = call->given;
  jinja_value value;
  const jinja_value* caller = keyword(given, &CALLER);
  if (node->uses_caller && !call->caller_bound) {
    if (caller) call->keywords_used++;
    if (caller && caller->kind != JINJA_NONE) {
      value = *caller;
    } else {
      GENAI_TRY(jinja_undefined_hint(&machine->heap, "No caller defined", &value));
    }
    GENAI_TRY(jinja_bind(machine, call->scope, &CALLER, value));
  }
  if (node->uses_kwargs) {
    GENAI_TRY(jinja_new_dict(&machine->heap, JINJA_DICT, &value));
    size_t first_by_keyword = given->count < node->list2.count ? given->count : node->list2.count;
    for (size_t i = 0; given->keywords && i < given->keywords->count; i++) {
      const jinja_dict_entry* entry = &given->keywords->entries[i];
      bool used = node->uses_caller && !call->caller_bound && jinja_string_equal(entry->key.as.string, &CALLER);
      size_t index = 0;
      for (const jinja_node* parameter = node->list2.first; parameter && !used; parameter = parameter->next, index++) {
        used = index >= first_by_keyword && jinja_string_equal(parameter->name, entry->key.as.string);
      }
      if (!used) GENAI_TRY(jinja_dict_set(machine, value.as.dict, entry->key, entry->value));
    }
    GENAI_TRY(jinja_bind(machine, call->scope, &KWARGS, value));
  } else if (given->keywords && given->keywords->count > call->keywords_used) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE,
                      caller ? "this macro was called by a call block, but does not use caller()"
                             : "this macro got a keyword argument that it does not take");
  }
  if (node->uses_varargs) {
    GENAI_TRY(jinja_new_list(&machine->heap, JINJA_TUPLE, 0, &value));
    for (size_t i = node->list2.count; i < given->count; i++) GENAI_TRY(jinja_append(&machine->heap, value.as.list, given->items[i]));
    return jinja_bind(machine, call->scope, &VARARGS, value);
  }
  if (given->count <= node->list2.count) return NULL;
  return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "this macro takes at most %zu arguments, and got %zu", node->list2.count, given->count);
}

static genai_status* call_macro(jinja_machine* machine, const jinja_macro* macro, const jinja_arguments* given, jinja_value* out) {
  macro_call call = {.macro = macro, .given = given};
  jinja_builder builder = {.machine = machine};
  jinja_flow flow = JINJA_FLOW_ON;
  size_t at = machine->at;
  GENAI_TRY(jinja_deeper(machine));
  GENAI_TRY(jinja_new_scope(machine, macro->scope, &macro->node->scope, &call.scope));
  GENAI_TRY(bind_parameters(machine, &call));
  machine->at = at;
  GENAI_TRY(bind_specials(machine, &call));
  GENAI_TRY(jinja_execute(machine, &macro->node->list, call.scope, &builder, &flow));
  machine->at = at;
  machine->depth--;
  return jinja_take(&builder, out);
}

const jinja_definition* jinja_find_in(const jinja_definition* table, size_t count, const jinja_string* name) {
  for (size_t i = 0; i < count; i++) {
    if (jinja_string_is(name, table[i].name)) return &table[i];
  }
  return NULL;
}

static size_t parameter_count(const jinja_definition* definition) {
  size_t count = 0;
  while (count < JINJA_MAX_PARAMETERS && definition->parameters[count]) count++;
  return count;
}

static genai_status* bind_keywords(jinja_machine* machine, const jinja_definition* definition, const jinja_dict* keywords,
                                   jinja_call* call) {
  size_t count = parameter_count(definition);
  for (size_t i = 0; keywords && i < keywords->count; i++) {
    const jinja_string* name = keywords->entries[i].key.as.string;
    size_t at = 0;
    while (at < count && !jinja_string_is(name, definition->parameters[at])) at++;
    if (at == count || definition->flags & JINJA_POSITIONAL_ONLY) {
      return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "'%s' takes no keyword argument '%.*s'", definition->name,
                        name->length > 100 ? 100 : (int)name->length, name->data);
    }
    if (jinja_given(call->arguments[at])) {
      return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "'%s' is given its argument '%s' twice", definition->name,
                        definition->parameters[at]);
    }
    call->arguments[at] = keywords->entries[i].value;
  }
  return NULL;
}

genai_status* jinja_run(jinja_machine* machine, const jinja_definition* definition, jinja_value self, const jinja_arguments* given,
                        jinja_value* out) {
  jinja_call call = {.self = self, .given = given};
  GENAI_TRY(jinja_step(machine, 1));
  if (!definition->run) {
    return jinja_fail(machine, GENAI_ERROR_UNSUPPORTED, "'%s' is part of jinja2 or Python, but not supported here", definition->name);
  }
  if (!(definition->flags & JINJA_VARIADIC)) {
    size_t count = parameter_count(definition);
    if (given->count > count) {
      return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "'%s' takes at most %zu arguments, and got %zu", definition->name, count,
                        given->count);
    }
    for (size_t i = 0; i < given->count; i++) call.arguments[i] = given->items[i];
    GENAI_TRY(bind_keywords(machine, definition, given->keywords, &call));
    for (size_t i = 0; i < definition->required; i++) {
      if (jinja_given(call.arguments[i])) continue;
      return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "'%s' needs the argument '%s'", definition->name, definition->parameters[i]);
    }
  }
  size_t at = machine->at;
  GENAI_TRY(jinja_deeper(machine));
  GENAI_TRY(definition->run(machine, &call, out));
  machine->depth--;
  machine->at = at;
  return NULL;
}

genai_status* jinja_call_value(jinja_machine* machine, jinja_value callee, const jinja_arguments* arguments, jinja_value* out) {
  switch (callee.kind) {
    case JINJA_UNDEFINED:
      return jinja_fail_undefined(machine, callee);
    case JINJA_MACRO:
      return call_macro(machine, callee.as.macro, arguments, out);
    case JINJA_FUNCTION:
      return jinja_run(machine, callee.as.function, (jinja_value){.kind = JINJA_MISSING}, arguments, out);
    case JINJA_METHOD:
      return jinja_run(machine, callee.as.method->definition, *callee.as.method->self, arguments, out);
    case JINJA_JOINER:
      if (arguments->count || arguments->keywords) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "a joiner takes no arguments");
      if (callee.as.joiner->used) {
        *out = jinja_of_string(callee.as.joiner->separator);
        return NULL;
      }
      callee.as.joiner->used = true;
      return jinja_static_string(&machine->heap, "", out);
    case JINJA_LOOP:
      return jinja_fail(machine, GENAI_ERROR_UNSUPPORTED, "recursive loops are not supported; use a macro that calls itself");
    default:
      return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "a value of type '%s' cannot be called", jinja_type_name(callee));
  }
}

genai_status* jinja_integer_argument(jinja_machine* machine, jinja_value argument, const char* what, int64_t fallback, int64_t* out) {
  *out = fallback;
  if (!jinja_given(argument) || jinja_as_integer(argument, out)) return NULL;
  if (argument.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, argument);
  return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "%s must be an integer, not '%s'", what, jinja_type_name(argument));
}

genai_status* jinja_string_argument(jinja_machine* machine, jinja_value argument, const char* what, const jinja_string** out) {
  if (argument.kind == JINJA_STRING) {
    *out = argument.as.string;
    return NULL;
  }
  if (argument.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, argument);
  return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "%s must be a string, not '%s'", what, jinja_type_name(argument));
}
