/* Statements: from tokens to the tree. Expressions are in jinja_parse_expression.c; what jinja2 checks when it compiles is in
 * jinja_resolve.c. */
#include "tokenizer/jinja_parser.h"

#include <stdio.h>
#include <string.h>

bool jinja_at_name(const jinja_parser* parser, const char* name) {
  const jinja_token* token = jinja_current(parser);
  return token->kind == JINJA_TOKEN_NAME && jinja_string_is(token->value.as.string, name);
}

bool jinja_at_operator(const jinja_parser* parser, const char* op) {
  const jinja_token* token = jinja_current(parser);
  return token->kind == JINJA_TOKEN_OPERATOR && !strcmp(token->op, op);
}

bool jinja_skip_name(jinja_parser* parser, const char* name) {
  bool found = jinja_at_name(parser, name);
  if (found) jinja_advance(parser);
  return found;
}

bool jinja_skip_operator(jinja_parser* parser, const char* op) {
  bool found = jinja_at_operator(parser, op);
  if (found) jinja_advance(parser);
  return found;
}

genai_status* jinja_unexpected(const jinja_parser* parser, const char* expected) {
  char found[128];
  jinja_describe_token(jinja_current(parser), found, sizeof found);
  return jinja_error_at(parser->source, jinja_current(parser)->at, GENAI_ERROR_BAD_FILE, "expected %s, found %s", expected, found);
}

genai_status* jinja_expect_operator(jinja_parser* parser, const char* op) {
  if (jinja_skip_operator(parser, op)) return NULL;
  char expected[8];
  snprintf(expected, sizeof expected, "'%s'", op);
  return jinja_unexpected(parser, expected);
}

genai_status* jinja_expect_name(jinja_parser* parser, const char* what, const jinja_string** out) {
  if (jinja_current(parser)->kind != JINJA_TOKEN_NAME) return jinja_unexpected(parser, what);
  *out = jinja_current(parser)->value.as.string;
  jinja_advance(parser);
  return NULL;
}

static genai_status* expect_kind(jinja_parser* parser, jinja_token_kind kind, const char* what) {
  if (jinja_current(parser)->kind != kind) return jinja_unexpected(parser, what);
  jinja_advance(parser);
  return NULL;
}

static genai_status* expect_word(jinja_parser* parser, const char* word) {
  if (jinja_skip_name(parser, word)) return NULL;
  char expected[32];
  snprintf(expected, sizeof expected, "'%s'", word);
  return jinja_unexpected(parser, expected);
}

genai_status* jinja_new_node(jinja_parser* parser, jinja_node_kind kind, size_t at, jinja_node** out) {
  jinja_node* node = jinja_alloc(parser->heap, 1, sizeof *node);
  if (!node) return jinja_heap_status(parser->heap);
  node->kind = kind;
  node->at = (uint32_t)at;
  *out = node;
  return NULL;
}

void jinja_list_add(jinja_node_list* list, jinja_node* node) {
  if (list->last) {
    list->last->next = node;
  } else {
    list->first = node;
  }
  list->last = node;
  list->count++;
}

static uint32_t deepest(const jinja_node_list* list, uint32_t depth) {
  for (const jinja_node* node = list->first; node; node = node->next) {
    if (node->depth > depth) depth = node->depth;
  }
  return depth;
}

genai_status* jinja_finish_node(jinja_parser* parser, jinja_node* node) {
  const jinja_node* children[] = {node->a, node->b, node->c, node->d};
  uint32_t depth = 0;
  for (int i = 0; i < 4; i++) {
    if (children[i] && children[i]->depth > depth) depth = children[i]->depth;
  }
  node->depth = deepest(&node->list2, deepest(&node->list, depth)) + 1;
  if (node->depth <= JINJA_MAX_TREE_DEPTH) return NULL;
  return jinja_error_at(parser->source, node->at, GENAI_ERROR_LIMIT, "nested more than %d deep, the limit for one template",
                        JINJA_MAX_TREE_DEPTH);
}

genai_status* jinja_enter(jinja_parser* parser) {
  if (++parser->nesting <= JINJA_MAX_NESTING) return NULL;
  return jinja_error_at(parser->source, jinja_current(parser)->at, GENAI_ERROR_LIMIT,
                        "nested more than %d deep, the limit for one template", JINJA_MAX_NESTING);
}

static genai_status* parse_statement(jinja_parser* parser, jinja_node_list* out);

/* Statements up to a block tag that starts with one of `ends` (separated by spaces), or the end of the template where `ends` is NULL. The
 * tag's name is the current token then. */
static genai_status* parse_until(jinja_parser* parser, const char* ends, jinja_node_list* out);

static bool is_among(const jinja_parser* parser, const char* names) {
  while (names && *names) {
    size_t length = strcspn(names, " ");
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)length, names);
    if (jinja_at_name(parser, name)) return true;
    names += length + (names[length] == ' ');
  }
  return false;
}

static genai_status* add_output(jinja_parser* parser, jinja_node* expression, jinja_node_list* out) {
  jinja_node* node;
  GENAI_TRY(jinja_new_node(parser, JINJA_NODE_OUTPUT, expression->at, &node));
  node->a = expression;
  jinja_list_add(out, node);
  return jinja_finish_node(parser, node);
}

static genai_status* parse_until(jinja_parser* parser, const char* ends, jinja_node_list* out) {
  const char* outer = parser->closing;
  parser->closing = ends;
  for (;;) {
    const jinja_token* token = jinja_current(parser);
    jinja_node* node;
    switch (token->kind) {
      case JINJA_TOKEN_END:
        if (ends) return jinja_unexpected(parser, ends);
        parser->closing = outer;
        return NULL;
      case JINJA_TOKEN_DATA:
        GENAI_TRY(jinja_new_node(parser, JINJA_NODE_DATA, token->at, &node));
        node->value = token->value;
        node->depth = 1;
        jinja_list_add(out, node);
        jinja_advance(parser);
        break;
      case JINJA_TOKEN_VARIABLE_BEGIN:
        jinja_advance(parser);
        GENAI_TRY(jinja_parse_tuple(parser, (jinja_tuple_options){.with_condition = true}, &node));
        GENAI_TRY(expect_kind(parser, JINJA_TOKEN_VARIABLE_END, "'}}'"));
        GENAI_TRY(add_output(parser, node, out));
        break;
      case JINJA_TOKEN_BLOCK_BEGIN:
        jinja_advance(parser);
        if (is_among(parser, ends)) {
          parser->closing = outer;
          return NULL;
        }
        GENAI_TRY(parse_statement(parser, out));
        GENAI_TRY(expect_kind(parser, JINJA_TOKEN_BLOCK_END, "'%}'"));
        break;
      default:
        return jinja_unexpected(parser, "a tag or text");
    }
  }
}

/* The rest of the opening tag, then the body. */
static genai_status* parse_body(jinja_parser* parser, const char* ends, jinja_node_list* out) {
  jinja_skip_operator(parser, ":"); /* as the reference, for those who write Python */
  GENAI_TRY(expect_kind(parser, JINJA_TOKEN_BLOCK_END, "'%}'"));
  return parse_until(parser, ends, out);
}

/* A body with one possible end, which is stepped over. */
static genai_status* parse_closed_body(jinja_parser* parser, const char* end, jinja_node_list* out) {
  GENAI_TRY(parse_body(parser, end, out));
  jinja_advance(parser);
  return NULL;
}

static genai_status* check_target(const jinja_parser* parser, const jinja_node* target) {
  if (target->kind == JINJA_NODE_NAME || target->kind == JINJA_NODE_MEMBER) return NULL;
  if (target->kind != JINJA_NODE_TUPLE && target->kind != JINJA_NODE_LIST) {
    return jinja_error_at(parser->source, target->at, GENAI_ERROR_BAD_FILE,
                          "cannot assign to this; expected a name, or names separated by ','");
  }
  for (const jinja_node* item = target->list.first; item; item = item->next) GENAI_TRY(check_target(parser, item));
  return NULL;
}

static genai_status* parse_target(jinja_parser* parser, const char* end_name, bool with_namespace, jinja_node** out) {
  GENAI_TRY(
      jinja_parse_tuple(parser, (jinja_tuple_options){.simplified = true, .with_namespace = with_namespace, .end_name = end_name}, out));
  return check_target(parser, *out);
}

static genai_status* parse_for(jinja_parser* parser, jinja_node* node) {
  GENAI_TRY(parse_target(parser, "in", false, &node->a));
  GENAI_TRY(expect_word(parser, "in"));
  GENAI_TRY(jinja_parse_tuple(parser, (jinja_tuple_options){.end_name = "recursive"}, &node->b));
  if (jinja_skip_name(parser, "if")) GENAI_TRY(jinja_parse_expression(parser, true, &node->c));
  if (jinja_at_name(parser, "recursive")) {
    return jinja_error_at(parser->source, jinja_current(parser)->at, GENAI_ERROR_UNSUPPORTED,
                          "recursive loops are not supported; use a macro that calls itself");
  }
  parser->loops++;
  GENAI_TRY(parse_body(parser, "endfor else", &node->list));
  parser->loops--;
  bool has_else = jinja_at_name(parser, "else");
  jinja_advance(parser);
  return has_else ? parse_closed_body(parser, "endfor", &node->list2) : NULL;
}

static genai_status* parse_if(jinja_parser* parser, jinja_node* node) {
  jinja_node* first = node;
  for (;;) {
    GENAI_TRY(jinja_parse_tuple(parser, (jinja_tuple_options){0}, &node->a));
    GENAI_TRY(parse_body(parser, "elif else endif", &node->list));
    if (!jinja_at_name(parser, "elif")) break;
    jinja_node* next; /* each elif is the only statement of the branch before it; `c` leads back until the depths are known */
    GENAI_TRY(jinja_new_node(parser, JINJA_NODE_IF, jinja_current(parser)->at, &next));
    jinja_list_add(&node->list2, next);
    jinja_advance(parser);
    next->c = node;
    node = next;
  }
  bool has_else = jinja_at_name(parser, "else");
  jinja_advance(parser);
  if (has_else) GENAI_TRY(parse_closed_body(parser, "endif", &node->list2));
  while (node != first) {
    jinja_node* before = node->c;
    node->c = NULL;
    GENAI_TRY(jinja_finish_node(parser, node));
    node = before;
  }
  return NULL;
}

static genai_status* parse_set(jinja_parser* parser, jinja_node* node) {
  GENAI_TRY(parse_target(parser, NULL, true, &node->a));
  if (jinja_skip_operator(parser, "=")) return jinja_parse_tuple(parser, (jinja_tuple_options){.with_condition = true}, &node->b);
  node->kind = JINJA_NODE_SET_BLOCK;
  GENAI_TRY(jinja_parse_filters(parser, NULL, false, &node->b));
  return parse_closed_body(parser, "endset", &node->list);
}

static genai_status* parse_with(jinja_parser* parser, jinja_node* node) {
  while (jinja_current(parser)->kind != JINJA_TOKEN_BLOCK_END) {
    if (node->list2.count) GENAI_TRY(jinja_expect_operator(parser, ","));
    jinja_node* pair;
    GENAI_TRY(jinja_new_node(parser, JINJA_NODE_PAIR, jinja_current(parser)->at, &pair));
    GENAI_TRY(parse_target(parser, NULL, false, &pair->a));
    GENAI_TRY(jinja_expect_operator(parser, "="));
    GENAI_TRY(jinja_parse_expression(parser, true, &pair->b));
    GENAI_TRY(jinja_finish_node(parser, pair));
    jinja_list_add(&node->list2, pair);
  }
  return parse_closed_body(parser, "endwith", &node->list);
}

static bool is_reserved(const jinja_string* name) {
  static const char* const RESERVED[] = {"true", "false", "none", "True", "False", "None"};
  for (size_t i = 0; i < 6; i++) {
    if (jinja_string_is(name, RESERVED[i])) return true;
  }
  return false;
}

static genai_status* parse_assignable_name(jinja_parser* parser, const char* what, const jinja_string** out) {
  if (jinja_current(parser)->kind == JINJA_TOKEN_NAME && is_reserved(jinja_current(parser)->value.as.string)) {
    return jinja_unexpected(parser, what);
  }
  return jinja_expect_name(parser, what, out);
}

static genai_status* parse_parameters(jinja_parser* parser, jinja_node_list* out) {
  bool has_defaults = false;
  GENAI_TRY(jinja_expect_operator(parser, "("));
  while (!jinja_at_operator(parser, ")")) {
    if (out->count) GENAI_TRY(jinja_expect_operator(parser, ","));
    jinja_node* node;
    GENAI_TRY(jinja_new_node(parser, JINJA_NODE_PARAMETER, jinja_current(parser)->at, &node));
    GENAI_TRY(parse_assignable_name(parser, "a parameter's name", &node->name));
    if (jinja_skip_operator(parser, "=")) {
      has_defaults = true;
      GENAI_TRY(jinja_parse_expression(parser, true, &node->a));
    } else if (has_defaults) {
      return jinja_error_at(parser->source, node->at, GENAI_ERROR_BAD_FILE, "a parameter without a default follows one with a default");
    }
    GENAI_TRY(jinja_finish_node(parser, node));
    jinja_list_add(out, node);
  }
  return jinja_expect_operator(parser, ")");
}

/* A body that runs as a function of its own: break and continue do not reach the loops around it. */
static genai_status* parse_function_body(jinja_parser* parser, const char* end, jinja_node_list* out) {
  unsigned loops = parser->loops;
  parser->loops = 0;
  GENAI_TRY(parse_closed_body(parser, end, out));
  parser->loops = loops;
  return NULL;
}

static genai_status* parse_macro(jinja_parser* parser, jinja_node* node) {
  GENAI_TRY(parse_assignable_name(parser, "the macro's name", &node->name));
  GENAI_TRY(parse_parameters(parser, &node->list2));
  return parse_function_body(parser, "endmacro", &node->list);
}

static genai_status* parse_call_block(jinja_parser* parser, jinja_node* node) {
  if (jinja_at_operator(parser, "(")) GENAI_TRY(parse_parameters(parser, &node->list2));
  GENAI_TRY(jinja_parse_expression(parser, true, &node->a));
  if (node->a->kind != JINJA_NODE_CALL) {
    return jinja_error_at(parser->source, node->a->at, GENAI_ERROR_BAD_FILE, "expected a call, such as '{%% call name() %%}'");
  }
  return parse_function_body(parser, "endcall", &node->list);
}

static genai_status* parse_filter_block(jinja_parser* parser, jinja_node* node) {
  GENAI_TRY(jinja_parse_filters(parser, NULL, true, &node->b));
  return parse_closed_body(parser, "endfilter", &node->list);
}

static genai_status* parse_generation(jinja_parser* parser, jinja_node* node) {
  return parse_function_body(parser, "endgeneration", &node->list);
}

static genai_status* parse_jump(jinja_parser* parser, jinja_node* node) {
  if (parser->loops) return NULL;
  return jinja_error_at(parser->source, node->at, GENAI_ERROR_BAD_FILE, "'%s' stands outside of any loop",
                        node->kind == JINJA_NODE_BREAK ? "break" : "continue");
}

static genai_status* parse_print(jinja_parser* parser, jinja_node_list* out) {
  for (bool first = true; jinja_current(parser)->kind != JINJA_TOKEN_BLOCK_END; first = false) {
    jinja_node* expression;
    if (!first) GENAI_TRY(jinja_expect_operator(parser, ","));
    GENAI_TRY(jinja_parse_expression(parser, true, &expression));
    GENAI_TRY(add_output(parser, expression, out));
  }
  return NULL;
}

static const struct {
  const char* name;
  jinja_node_kind kind;
  genai_status* (*parse)(jinja_parser*, jinja_node*);
} STATEMENTS[] = {
    {"if", JINJA_NODE_IF, parse_if},
    {"for", JINJA_NODE_FOR, parse_for},
    {"set", JINJA_NODE_SET, parse_set},
    {"macro", JINJA_NODE_MACRO, parse_macro},
    {"call", JINJA_NODE_CALL_BLOCK, parse_call_block},
    {"filter", JINJA_NODE_FILTER_BLOCK, parse_filter_block},
    {"with", JINJA_NODE_WITH, parse_with},
    {"generation", JINJA_NODE_GENERATION, parse_generation},
    {"break", JINJA_NODE_BREAK, parse_jump},
    {"continue", JINJA_NODE_CONTINUE, parse_jump},
};

static genai_status* unknown_statement(const jinja_parser* parser, const jinja_token* token) {
  const jinja_string* name = token->value.as.string;
  static const char* const KNOWN[] = {"extends", "block", "include", "import", "from", "autoescape"};
  for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
    if (!jinja_string_is(name, KNOWN[i])) continue;
    return jinja_error_at(parser->source, token->at, GENAI_ERROR_UNSUPPORTED,
                          "the tag '%s' is not supported: a chat template is one file without inheritance or escaping", KNOWN[i]);
  }
  return jinja_error_at(
      parser->source, token->at, GENAI_ERROR_BAD_FILE, "unknown tag '%.*s'%s%s%s", name->length > 100 ? 100 : (int)name->length, name->data,
      parser->closing ? "; the innermost open block ends with '" : "", parser->closing ? parser->closing : "", parser->closing ? "'" : "");
}

static genai_status* parse_statement(jinja_parser* parser, jinja_node_list* out) {
  const jinja_token* token = jinja_current(parser);
  if (token->kind != JINJA_TOKEN_NAME) return jinja_unexpected(parser, "a tag's name");
  GENAI_TRY(jinja_enter(parser));
  for (size_t i = 0; i < sizeof STATEMENTS / sizeof *STATEMENTS; i++) {
    if (!jinja_skip_name(parser, STATEMENTS[i].name)) continue;
    jinja_node* node;
    GENAI_TRY(jinja_new_node(parser, STATEMENTS[i].kind, token->at, &node));
    GENAI_TRY(STATEMENTS[i].parse(parser, node));
    GENAI_TRY(jinja_finish_node(parser, node));
    jinja_list_add(out, node);
    parser->nesting--;
    return NULL;
  }
  if (!jinja_skip_name(parser, "print")) return unknown_statement(parser, token);
  parser->nesting--;
  return parse_print(parser, out);
}

/* The source with '\r\n' and '\r' as '\n', and without one line end at its end, as jinja2's lexer takes it. */
static genai_status* normalise(jinja_heap* heap, const char* source, size_t length, text_view* out) {
  char* copy = jinja_alloc(heap, length + 1, 1);
  if (!copy) return jinja_heap_status(heap);
  size_t used = 0;
  for (size_t i = 0; i < length; i++) {
    if (source[i] == '\r' && i + 1 < length && source[i + 1] == '\n') continue;
    copy[used++] = source[i] == '\r' ? '\n' : source[i];
  }
  if (used && copy[used - 1] == '\n') used--;
  *out = (text_view){.data = copy, .length = used};
  return NULL;
}

genai_status* jinja_parse(const char* source, size_t length, jinja_tree* tree) {
  if (length > JINJA_MAX_SOURCE) {
    return genai_status_create(GENAI_ERROR_LIMIT, "chat template: %zu bytes long; expected at most %d", length, JINJA_MAX_SOURCE);
  }
  if (!utf8_is_valid(source, length)) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "chat template: not valid UTF-8; convert the file to UTF-8");
  }
  GENAI_TRY(normalise(&tree->heap, source, length, &tree->source));
  jinja_parser parser = {.heap = &tree->heap, .source = tree->source};
  GENAI_TRY(jinja_lex(&tree->heap, tree->source, &parser.tokens));
  GENAI_TRY(parse_until(&parser, NULL, &tree->body));
  return jinja_resolve(tree);
}

void jinja_tree_deinit(jinja_tree* tree) {
  arena_deinit(&tree->heap.region);
  *tree = (jinja_tree){0};
}
