/* Statements: scopes, output, branches, loops, assignments, macros. Expressions are in jinja_expression.c. */
#include "tokenizer/jinja_evaluate.h"

genai_status* jinja_enter_scope(jinja_machine* machine, jinja_scope* scope, const jinja_scope_names* names) {
  jinja_dict_clear(&scope->names);
  for (size_t i = 0; i < names->count; i++) {
    GENAI_TRY(jinja_dict_set_string(&machine->heap, &scope->names, names->names[i], (jinja_value){.kind = JINJA_MISSING}));
  }
  return NULL;
}

genai_status* jinja_new_scope(jinja_machine* machine, jinja_scope* parent, const jinja_scope_names* names, jinja_scope** out) {
  *out = jinja_alloc(&machine->heap, 1, sizeof **out);
  if (!*out) return jinja_heap_status(&machine->heap);
  (*out)->parent = parent;
  return jinja_enter_scope(machine, *out, names);
}

genai_status* jinja_bind(jinja_machine* machine, jinja_scope* scope, const jinja_string* name, jinja_value value) {
  return jinja_dict_set_string(&machine->heap, &scope->names, name, value);
}

genai_status* jinja_lookup(jinja_machine* machine, const jinja_scope* scope, const jinja_string* name, jinja_value* out) {
  const jinja_value* found = NULL;
  for (; scope && !found; scope = scope->parent) {
    found = jinja_dict_find(&scope->names, name);
    GENAI_TRY(jinja_step(machine, 1));
  }
  if (!found) found = jinja_dict_find(machine->variables, name);
  if (!found || found->kind == JINJA_MISSING) return jinja_undefined_name(&machine->heap, name, out);
  *out = *found;
  return NULL;
}

genai_status* jinja_deeper(jinja_machine* machine) {
  if (++machine->depth <= JINJA_MAX_DEPTH) return NULL;
  return jinja_fail(machine, GENAI_ERROR_LIMIT, "evaluation nested more than %d deep, the limit for one template", JINJA_MAX_DEPTH);
}

static genai_status* set_member(jinja_machine* machine, const jinja_node* target, jinja_scope* scope, jinja_value value) {
  jinja_value object;
  const jinja_string* attribute = target->value.as.string;
  GENAI_TRY(jinja_lookup(machine, scope, target->name, &object));
  machine->at = target->at;
  if (object.kind != JINJA_NAMESPACE) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE,
                      "cannot set an attribute of a value of type '%s'; only a namespace() has assignable ones", jinja_type_name(object));
  }
  if (attribute->length && attribute->data[0] == '_') {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "a namespace cannot have the attribute '%.*s': names that start with _ are refused",
                      attribute->length > 100 ? 100 : (int)attribute->length, attribute->data);
  }
  return jinja_dict_set(machine, object.as.dict, target->value, value);
}

static genai_status* assign(jinja_machine* machine, const jinja_node* target, jinja_scope* scope, jinja_value value) {
  if (target->kind == JINJA_NODE_NAME) return jinja_bind(machine, scope, target->name, value);
  if (target->kind == JINJA_NODE_MEMBER) return set_member(machine, target, scope, value);
  jinja_iterator iterator;
  bool done;
  machine->at = target->at;
  GENAI_TRY(jinja_iterate(machine, value, &iterator));
  jinja_value items;
  GENAI_TRY(jinja_new_list(&machine->heap, JINJA_LIST, target->list.count + 1, &items));
  for (size_t i = 0; i <= target->list.count; i++) { /* all are read before any is assigned */
    jinja_value item;
    GENAI_TRY(jinja_next(machine, &iterator, &item, &done));
    if (done) break;
    GENAI_TRY(jinja_append(&machine->heap, items.as.list, item));
  }
  if (items.as.list->count != target->list.count) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "%s values to unpack: expected %zu",
                      items.as.list->count < target->list.count ? "not enough" : "too many", target->list.count);
  }
  const jinja_value* item = items.as.list->items;
  for (const jinja_node* part = target->list.first; part; part = part->next) GENAI_TRY(assign(machine, part, scope, *item++));
  return NULL;
}

/* `text` through the chain of filters that ends at `filter`; the first in the chain has no input of its own. */
static genai_status* apply_filters(jinja_machine* machine, const jinja_node* filter, jinja_scope* scope, jinja_value* value) {
  GENAI_TRY(jinja_deeper(machine));
  if (filter->a) GENAI_TRY(apply_filters(machine, filter->a, scope, value));
  jinja_arguments arguments;
  jinja_value input = *value;
  GENAI_TRY(jinja_evaluate_arguments(machine, &filter->list, scope, &arguments));
  machine->at = filter->at;
  machine->depth--;
  return jinja_run_filter(machine, filter, input, &arguments, value);
}

/* Runs the body of `node` in a scope of its own and gives its output. `flow` may be a jump out of it, whose output is dropped then. */
static genai_status* capture(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out, jinja_flow* flow) {
  jinja_scope* inner;
  jinja_builder builder = {.machine = machine};
  GENAI_TRY(jinja_new_scope(machine, scope, &node->scope, &inner));
  GENAI_TRY(jinja_execute(machine, &node->list, inner, &builder, flow));
  GENAI_TRY(jinja_take(&builder, out));
  if (*flow != JINJA_FLOW_ON || !node->b) return NULL;
  return apply_filters(machine, node->b, inner, out);
}

typedef struct loop_filter {
  const jinja_node* node;
  jinja_scope* scope;
} loop_filter;

static genai_status* filter_item(jinja_machine* machine, void* user, jinja_value item, jinja_value* out, bool* keep) {
  const loop_filter* filter = user;
  jinja_value result;
  GENAI_TRY(assign(machine, filter->node->a, filter->scope, item));
  GENAI_TRY(jinja_evaluate(machine, filter->node->c, filter->scope, &result));
  *keep = jinja_truth(result);
  *out = item;
  return NULL;
}

static genai_status* start_loop(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_loop** out) {
  static const jinja_scope_names NONE;
  jinja_value iterable;
  GENAI_TRY(jinja_evaluate(machine, node->b, scope, &iterable));
  jinja_loop* loop = jinja_alloc(&machine->heap, 1, sizeof *loop);
  if (!loop) return jinja_heap_status(&machine->heap);
  *loop = (jinja_loop){.index0 = -1, .iterable = iterable};
  machine->at = node->b->at;
  if (node->c) {
    loop_filter* filter = jinja_alloc(&machine->heap, 1, sizeof *filter);
    if (!filter) return jinja_heap_status(&machine->heap);
    filter->node = node;
    GENAI_TRY(jinja_new_scope(machine, scope, &NONE, &filter->scope));
    GENAI_TRY(jinja_iterate(machine, iterable, &loop->iterator)); /* Python fails here too when it cannot be */
    loop->iterator = (jinja_iterator){.source = iterable, .step = filter_item, .user = filter};
    loop->iterable = (jinja_value){.kind = JINJA_MISSING};
  } else {
    GENAI_TRY(jinja_iterate(machine, iterable, &loop->iterator));
  }
  *out = loop;
  return NULL;
}

static genai_status* execute_for(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_builder* out, jinja_flow* flow) {
  static const jinja_string LOOP = {.data = "loop", .length = 4, .count = 4};
  jinja_loop* loop;
  jinja_scope* inner;
  bool completed = false; /* a body ran to its end: break and continue do not count, as in the reference */
  GENAI_TRY(start_loop(machine, node, scope, &loop));
  GENAI_TRY(jinja_new_scope(machine, scope, &node->scope, &inner));
  for (;;) {
    jinja_value item;
    bool done;
    jinja_flow jump = JINJA_FLOW_ON;
    machine->at = node->at;
    GENAI_TRY(jinja_loop_next(machine, loop, &item, &done));
    if (done) break;
    GENAI_TRY(jinja_enter_scope(machine, inner, &node->scope));
    GENAI_TRY(jinja_bind(machine, inner, &LOOP, (jinja_value){.kind = JINJA_LOOP, .as.loop = loop}));
    GENAI_TRY(assign(machine, node->a, inner, item));
    GENAI_TRY(jinja_execute(machine, &node->list, inner, out, &jump));
    if (jump == JINJA_FLOW_BREAK) break;
    if (jump == JINJA_FLOW_ON) completed = true;
  }
  for (size_t i = 0; i < inner->names.count; i++) inner->names.entries[i].value = (jinja_value){.kind = JINJA_MISSING};
  if (completed || !node->list2.count) return NULL;
  GENAI_TRY(jinja_new_scope(machine, scope, &node->scope2, &inner));
  return jinja_execute(machine, &node->list2, inner, out, flow);
}

static genai_status* new_macro(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  jinja_macro* macro = jinja_alloc(&machine->heap, 1, sizeof *macro);
  if (!macro) return jinja_heap_status(&machine->heap);
  *macro = (jinja_macro){.node = node, .name = node->name, .scope = scope};
  *out = (jinja_value){.kind = JINJA_MACRO, .as.macro = macro};
  return NULL;
}

static genai_status* execute_call_block(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_builder* out) {
  static const jinja_string CALLER = {.data = "caller", .length = 6, .count = 6};
  jinja_value callee, caller, result, keywords;
  jinja_arguments arguments;
  GENAI_TRY(new_macro(machine, node, scope, &caller));
  GENAI_TRY(jinja_evaluate(machine, node->a->a, scope, &callee));
  GENAI_TRY(jinja_evaluate_arguments(machine, &node->a->list, scope, &arguments));
  GENAI_TRY(jinja_new_dict(&machine->heap, JINJA_DICT, &keywords));
  if (arguments.keywords) GENAI_TRY(jinja_dict_copy(machine, arguments.keywords, keywords.as.dict));
  GENAI_TRY(jinja_dict_set_string(&machine->heap, keywords.as.dict, &CALLER, caller));
  arguments.keywords = keywords.as.dict;
  machine->at = node->a->at;
  GENAI_TRY(jinja_call_value(machine, callee, &arguments, &result));
  return jinja_put_str(out, result);
}

static genai_status* execute_with(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_builder* out,
                                  jinja_flow* flow) {
  jinja_scope* inner;
  GENAI_TRY(jinja_new_scope(machine, scope, &node->scope, &inner));
  for (const jinja_node* pair = node->list2.first; pair; pair = pair->next) {
    jinja_value value;
    GENAI_TRY(jinja_evaluate(machine, pair->b, scope, &value)); /* in the outer scope: they do not see each other */
    GENAI_TRY(assign(machine, pair->a, inner, value));
  }
  return jinja_execute(machine, &node->list, inner, out, flow);
}

static genai_status* execute_one(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_builder* out, jinja_flow* flow) {
  jinja_value value;
  GENAI_TRY(jinja_step(machine, 1));
  switch (node->kind) {
    case JINJA_NODE_DATA:
      return jinja_put_string(out, node->value.as.string);
    case JINJA_NODE_OUTPUT:
      GENAI_TRY(jinja_evaluate(machine, node->a, scope, &value));
      machine->at = node->at;
      return jinja_put_str(out, value);
    case JINJA_NODE_IF:
      GENAI_TRY(jinja_evaluate(machine, node->a, scope, &value));
      return jinja_execute(machine, jinja_truth(value) ? &node->list : &node->list2, scope, out, flow);
    case JINJA_NODE_FOR:
      return execute_for(machine, node, scope, out, flow);
    case JINJA_NODE_SET:
      GENAI_TRY(jinja_evaluate(machine, node->b, scope, &value));
      return assign(machine, node->a, scope, value);
    case JINJA_NODE_SET_BLOCK:
      GENAI_TRY(capture(machine, node, scope, &value, flow));
      return *flow == JINJA_FLOW_ON ? assign(machine, node->a, scope, value) : NULL;
    case JINJA_NODE_FILTER_BLOCK:
    case JINJA_NODE_GENERATION: /* marks the assistant's part for training masks; its text is its body */
      GENAI_TRY(capture(machine, node, scope, &value, flow));
      return *flow == JINJA_FLOW_ON ? jinja_put_str(out, value) : NULL;
    case JINJA_NODE_MACRO:
      GENAI_TRY(new_macro(machine, node, scope, &value));
      return jinja_bind(machine, scope, node->name, value);
    case JINJA_NODE_CALL_BLOCK:
      return execute_call_block(machine, node, scope, out);
    case JINJA_NODE_WITH:
      return execute_with(machine, node, scope, out, flow);
    case JINJA_NODE_BREAK:
      *flow = JINJA_FLOW_BREAK;
      return NULL;
    case JINJA_NODE_CONTINUE:
      *flow = JINJA_FLOW_CONTINUE;
      return NULL;
    default:
      return jinja_fail(machine, GENAI_ERROR_INTERNAL, "node %d is no statement", (int)node->kind);
  }
}

genai_status* jinja_execute(jinja_machine* machine, const jinja_node_list* body, jinja_scope* scope, jinja_builder* out, jinja_flow* flow) {
  GENAI_TRY(jinja_deeper(machine));
  for (const jinja_node* node = body->first; node && *flow == JINJA_FLOW_ON; node = node->next) {
    GENAI_TRY(execute_one(machine, node, scope, out, flow));
  }
  machine->depth--;
  return NULL;
}

genai_status* jinja_render(jinja_machine* machine, const jinja_tree* tree, jinja_value* out) {
  jinja_scope* scope;
  jinja_builder builder = {.machine = machine};
  jinja_flow flow = JINJA_FLOW_ON;
  GENAI_TRY(jinja_new_scope(machine, NULL, &tree->scope, &scope));
  GENAI_TRY(jinja_execute(machine, &tree->body, scope, &builder, &flow));
  return jinja_take(&builder, out);
}
