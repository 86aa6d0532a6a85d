/* What jinja2 works out when it compiles a template (jinja2.idtracking and parts of jinja2.compiler): which names a scope starts without a
 * value, which special names a macro reads, and the errors found before anything runs. */
#include <string.h>

#include "tokenizer/jinja_ast.h"
#include "tokenizer/jinja_builtins.h"

typedef struct scope {
  const struct scope* parent;
  jinja_dict mentioned; /* names read or bound here */
  jinja_scope_names* unbound;
  bool in_loop; /* somewhere inside a for */
} scope;

typedef struct resolver {
  jinja_heap* heap;
  text_view source;
} resolver;

/* Where an expression or a statement stands. */
typedef struct place {
  scope* scope;
  bool conditional; /* in a branch of an if: what it binds may not be bound */
  bool soft;        /* in an if of the same scope: unknown filters and tests fail only when reached */
} place;

static bool is_mentioned(const scope* in, const jinja_string* name) {
  for (; in; in = in->parent) {
    if (jinja_dict_find(&in->mentioned, name)) return true;
  }
  return false;
}

static genai_status* mention(resolver* self, scope* in, const jinja_string* name) {
  return jinja_dict_set_string(self->heap, &in->mentioned, name, JINJA_VALUE_NONE);
}

static genai_status* load(resolver* self, place where, const jinja_string* name) {
  return is_mentioned(where.scope, name) ? NULL : mention(self, where.scope, name);
}

static genai_status* store(resolver* self, place where, const jinja_string* name, size_t at) {
  if (where.scope->in_loop && jinja_string_is(name, "loop")) {
    return jinja_error_at(self->source, at, GENAI_ERROR_BAD_FILE, "cannot assign to 'loop' inside a for loop; choose another name");
  }
  if (jinja_dict_find(&where.scope->mentioned, name)) return NULL;
  if (!where.conditional && !is_mentioned(where.scope->parent, name)) {
    jinja_scope_names* unbound = where.scope->unbound;
    GENAI_TRY(jinja_grow(self->heap, &unbound->names, unbound->count, &unbound->capacity, sizeof *unbound->names));
    unbound->names[unbound->count++] = name;
  }
  return mention(self, where.scope, name);
}

static genai_status* visit(resolver* self, place where, jinja_node* node);

static genai_status* visit_list(resolver* self, place where, const jinja_node_list* list) {
  for (jinja_node* node = list->first; node; node = node->next) GENAI_TRY(visit(self, where, node));
  return NULL;
}

static genai_status* visit(resolver* self, place where, jinja_node* node) {
  if (!node) return NULL;
  if (node->kind == JINJA_NODE_NAME) return load(self, where, node->name);
  if (node->kind == JINJA_NODE_CONDITION) where.soft = true;
  if (node->kind == JINJA_NODE_FILTER || node->kind == JINJA_NODE_TEST) {
    bool is_filter = node->kind == JINJA_NODE_FILTER;
    node->definition = is_filter ? jinja_find_filter(node->name) : jinja_find_test(node->name);
    if (!node->definition && !where.soft) {
      return jinja_error_at(self->source, node->at, GENAI_ERROR_BAD_FILE, "there is no %s named '%.*s'", is_filter ? "filter" : "test",
                            node->name->length > 100 ? 100 : (int)node->name->length, node->name->data);
    }
  }
  GENAI_TRY(visit(self, where, node->a));
  GENAI_TRY(visit(self, where, node->b));
  GENAI_TRY(visit(self, where, node->c));
  GENAI_TRY(visit(self, where, node->d));
  return visit_list(self, where, &node->list);
}

/* `as_parameter`: the scope always binds it, as a for loop its target. */
static genai_status* visit_target(resolver* self, place where, const jinja_node* target, bool as_parameter) {
  if (target->kind == JINJA_NODE_MEMBER) return load(self, where, target->name);
  if (target->kind == JINJA_NODE_NAME) {
    if (as_parameter && !(where.scope->in_loop && jinja_string_is(target->name, "loop"))) return mention(self, where.scope, target->name);
    return store(self, where, target->name, target->at);
  }
  for (const jinja_node* part = target->list.first; part; part = part->next) GENAI_TRY(visit_target(self, where, part, as_parameter));
  return NULL;
}

typedef enum search { SEARCH_ON, SEARCH_READ, SEARCH_BOUND } search;

static search search_list(const jinja_node_list* list, const char* name);

/* Is `name` read in here before it is bound? In the order of jinja2's fields. */
static search search_node(const jinja_node* node, const char* name) {
  if (!node) return SEARCH_ON;
  search found;
  if (node->kind == JINJA_NODE_NAME) return jinja_string_is(node->name, name) ? SEARCH_READ : SEARCH_ON;
  if (node->kind == JINJA_NODE_PARAMETER && jinja_string_is(node->name, name)) return SEARCH_BOUND;
  bool binds = node->kind == JINJA_NODE_SET || node->kind == JINJA_NODE_SET_BLOCK || node->kind == JINJA_NODE_FOR;
  if (binds && search_node(node->a, name) != SEARCH_ON) return SEARCH_BOUND;
  if (node->kind == JINJA_NODE_WITH) {
    for (const jinja_node* pair = node->list2.first; pair; pair = pair->next) {
      if (search_node(pair->a, name) != SEARCH_ON) return SEARCH_BOUND;
    }
    for (const jinja_node* pair = node->list2.first; pair; pair = pair->next) {
      if ((found = search_node(pair->b, name)) != SEARCH_ON) return found;
    }
    return search_list(&node->list, name);
  }
  bool has_parameters = node->kind == JINJA_NODE_MACRO || node->kind == JINJA_NODE_CALL_BLOCK;
  if (!binds && (found = search_node(node->a, name)) != SEARCH_ON) return found;
  if ((found = search_node(node->b, name)) != SEARCH_ON) return found;
  if (has_parameters && (found = search_list(&node->list2, name)) != SEARCH_ON) return found;
  if (node->kind != JINJA_NODE_FOR && (found = search_node(node->c, name)) != SEARCH_ON) return found;
  if ((found = search_node(node->d, name)) != SEARCH_ON) return found;
  if ((found = search_list(&node->list, name)) != SEARCH_ON) return found;
  if (!has_parameters && (found = search_list(&node->list2, name)) != SEARCH_ON) return found;
  return node->kind == JINJA_NODE_FOR ? search_node(node->c, name) : SEARCH_ON;
}

static search search_list(const jinja_node_list* list, const char* name) {
  for (const jinja_node* node = list->first; node; node = node->next) {
    search found = search_node(node, name);
    if (found != SEARCH_ON) return found;
  }
  return SEARCH_ON;
}

static genai_status* find_specials(resolver* self, jinja_node* node) {
  node->uses_caller = search_list(&node->list, "caller") == SEARCH_READ;
  node->uses_kwargs = search_list(&node->list, "kwargs") == SEARCH_READ;
  node->uses_varargs = search_list(&node->list, "varargs") == SEARCH_READ;
  for (const jinja_node* parameter = node->list2.first; parameter; parameter = parameter->next) {
    if (jinja_string_is(parameter->name, "kwargs")) node->uses_kwargs = false;
    if (jinja_string_is(parameter->name, "varargs")) node->uses_varargs = false;
    if (node->uses_caller && jinja_string_is(parameter->name, "caller") && !parameter->a) {
      return jinja_error_at(self->source, parameter->at, GENAI_ERROR_BAD_FILE,
                            "the parameter 'caller' is special; leave it out or give it a default");
    }
  }
  return NULL;
}

/* What a statement does to its own scope. The blocks in it that are scopes of their own come later, in descend. */
static genai_status* visit_statement(resolver* self, place where, jinja_node* node) {
  switch (node->kind) {
    case JINJA_NODE_OUTPUT:
      return visit(self, where, node->a);
    case JINJA_NODE_IF: {
      place branch = {.scope = where.scope, .conditional = true, .soft = true};
      where.soft = true;
      GENAI_TRY(visit(self, where, node->a));
      for (jinja_node* child = node->list.first; child; child = child->next) GENAI_TRY(visit_statement(self, branch, child));
      for (jinja_node* child = node->list2.first; child; child = child->next) GENAI_TRY(visit_statement(self, branch, child));
      return NULL;
    }
    case JINJA_NODE_FOR:
      return visit(self, where, node->b);
    case JINJA_NODE_SET:
      GENAI_TRY(visit(self, where, node->b));
      return visit_target(self, where, node->a, false);
    case JINJA_NODE_SET_BLOCK:
      return visit_target(self, where, node->a, false);
    case JINJA_NODE_MACRO:
      return store(self, (place){.scope = where.scope, .conditional = where.conditional}, node->name, node->at);
    case JINJA_NODE_CALL_BLOCK:
      return visit(self, where, node->a);
    case JINJA_NODE_FILTER_BLOCK:
      return visit(self, where, node->b);
    case JINJA_NODE_WITH:
      for (const jinja_node* pair = node->list2.first; pair; pair = pair->next) GENAI_TRY(visit(self, where, pair->b));
      return NULL;
    default:
      return NULL;
  }
}

static genai_status* descend(resolver* self, const jinja_node_list* body, scope* in);

static genai_status* visit_body(resolver* self, const jinja_node_list* body, scope* in) {
  for (jinja_node* node = body->first; node; node = node->next) GENAI_TRY(visit_statement(self, (place){.scope = in}, node));
  return descend(self, body, in);
}

static genai_status* enter(resolver* self, jinja_node* node, scope* parent) {
  scope inner = {.parent = parent, .unbound = &node->scope, .in_loop = parent->in_loop};
  place where = {.scope = &inner};
  static const jinja_string LOOP = {.data = "loop", .length = 4, .count = 4};
  switch (node->kind) {
    case JINJA_NODE_FOR: {
      inner.in_loop = true;
      GENAI_TRY(visit_target(self, where, node->a, true));
      scope test = inner; /* the filter runs in a scope of its own, without `loop` */
      test.mentioned = (jinja_dict){0};
      test.unbound = &node->scope2;
      GENAI_TRY(visit_target(self, (place){.scope = &test}, node->a, true));
      GENAI_TRY(visit(self, (place){.scope = &test}, node->c));
      GENAI_TRY(mention(self, &inner, &LOOP));
      GENAI_TRY(visit_body(self, &node->list, &inner));
      scope otherwise = {.parent = parent, .unbound = &node->scope2, .in_loop = true};
      return visit_body(self, &node->list2, &otherwise);
    }
    case JINJA_NODE_MACRO:
    case JINJA_NODE_CALL_BLOCK:
      for (const jinja_node* parameter = node->list2.first; parameter; parameter = parameter->next) {
        GENAI_TRY(mention(self, &inner, parameter->name));
      }
      for (const jinja_node* parameter = node->list2.first; parameter; parameter = parameter->next)
        GENAI_TRY(visit(self, where, parameter->a));
      GENAI_TRY(find_specials(self, node));
      break;
    case JINJA_NODE_SET_BLOCK:
      GENAI_TRY(visit(self, where, node->b));
      break;
    case JINJA_NODE_WITH:
      for (const jinja_node* pair = node->list2.first; pair; pair = pair->next) GENAI_TRY(visit_target(self, where, pair->a, true));
      break;
    case JINJA_NODE_FILTER_BLOCK:
    case JINJA_NODE_GENERATION:
      break;
    default:
      return NULL;
  }
  return visit_body(self, &node->list, &inner);
}

static genai_status* descend(resolver* self, const jinja_node_list* body, scope* in) {
  for (jinja_node* node = body->first; node; node = node->next) {
    if (node->kind == JINJA_NODE_IF) {
      GENAI_TRY(descend(self, &node->list, in));
      GENAI_TRY(descend(self, &node->list2, in));
    } else {
      GENAI_TRY(enter(self, node, in));
    }
  }
  return NULL;
}

genai_status* jinja_resolve(jinja_tree* tree) {
  resolver self = {.heap = &tree->heap, .source = tree->source};
  scope root = {.unbound = &tree->scope};
  return visit_body(&self, &tree->body, &root);
}
