/* Expressions: the precedence ladder of jinja2.parser, from `a if b else c` down to literals. */
#include <string.h>

#include "tokenizer/jinja_parser.h"

static bool at_kind(const jinja_parser* parser, jinja_token_kind kind) {
  return jinja_current(parser)->kind == kind;
}

static genai_status* binary(jinja_parser* parser, jinja_operator op, size_t at, jinja_node* left, jinja_node* right, jinja_node** out) {
  jinja_node* node;
  GENAI_TRY(jinja_new_node(parser, JINJA_NODE_BINARY, at, &node));
  node->op = op;
  node->a = left;
  node->b = right;
  *out = node;
  return jinja_finish_node(parser, node);
}

static genai_status* parse_unary(jinja_parser* parser, bool with_filters, jinja_node** out);

typedef struct operator_name {
  const char* text;
  jinja_operator op;
} operator_name;

static bool skip_any(jinja_parser* parser, const operator_name* names, size_t count, jinja_operator* op, size_t* at) {
  for (size_t i = 0; i < count; i++) {
    if (!jinja_at_operator(parser, names[i].text)) continue;
    *at = jinja_current(parser)->at;
    *op = names[i].op;
    jinja_advance(parser);
    return true;
  }
  return false;
}

static genai_status* parse_power(jinja_parser* parser, jinja_node** out) { /* left-associative here, unlike Python */
  GENAI_TRY(parse_unary(parser, true, out));
  while (jinja_at_operator(parser, "**")) {
    size_t at = jinja_current(parser)->at;
    jinja_node* right;
    jinja_advance(parser);
    GENAI_TRY(parse_unary(parser, true, &right));
    GENAI_TRY(binary(parser, JINJA_OP_POWER, at, *out, right, out));
  }
  return NULL;
}

static genai_status* parse_product(jinja_parser* parser, jinja_node** out) {
  static const operator_name NAMES[] = {
      {"*", JINJA_OP_MULTIPLY}, {"/", JINJA_OP_DIVIDE}, {"//", JINJA_OP_FLOOR_DIVIDE}, {"%", JINJA_OP_MODULO}};
  jinja_operator op;
  size_t at;
  GENAI_TRY(parse_power(parser, out));
  while (skip_any(parser, NAMES, 4, &op, &at)) {
    jinja_node* right;
    GENAI_TRY(parse_power(parser, &right));
    GENAI_TRY(binary(parser, op, at, *out, right, out));
  }
  return NULL;
}

static genai_status* parse_concat(jinja_parser* parser, jinja_node** out) {
  GENAI_TRY(parse_product(parser, out));
  if (!jinja_at_operator(parser, "~")) return NULL;
  jinja_node* node;
  GENAI_TRY(jinja_new_node(parser, JINJA_NODE_CONCAT, jinja_current(parser)->at, &node));
  jinja_list_add(&node->list, *out);
  while (jinja_skip_operator(parser, "~")) {
    jinja_node* item;
    GENAI_TRY(parse_product(parser, &item));
    jinja_list_add(&node->list, item);
  }
  *out = node;
  return jinja_finish_node(parser, node);
}

static genai_status* parse_sum(jinja_parser* parser, jinja_node** out) {
  static const operator_name NAMES[] = {{"+", JINJA_OP_ADD}, {"-", JINJA_OP_SUBTRACT}};
  jinja_operator op;
  size_t at;
  GENAI_TRY(parse_concat(parser, out));
  while (skip_any(parser, NAMES, 2, &op, &at)) {
    jinja_node* right;
    GENAI_TRY(parse_concat(parser, &right));
    GENAI_TRY(binary(parser, op, at, *out, right, out));
  }
  return NULL;
}

static bool skip_comparison(jinja_parser* parser, jinja_operator* op, size_t* at) {
  static const operator_name NAMES[] = {{"==", JINJA_OP_EQUAL},      {"!=", JINJA_OP_NOT_EQUAL}, {"<", JINJA_OP_LESS},
                                        {"<=", JINJA_OP_LESS_EQUAL}, {">", JINJA_OP_GREATER},    {">=", JINJA_OP_GREATER_EQUAL}};
  if (skip_any(parser, NAMES, 6, op, at)) return true;
  *at = jinja_current(parser)->at;
  if (jinja_skip_name(parser, "in")) {
    *op = JINJA_OP_IN;
    return true;
  }
  const jinja_token* next = jinja_following(parser);
  if (jinja_at_name(parser, "not") && next->kind == JINJA_TOKEN_NAME && jinja_string_is(next->value.as.string, "in")) {
    jinja_advance(parser);
    jinja_advance(parser);
    *op = JINJA_OP_NOT_IN;
    return true;
  }
  return false;
}

static genai_status* parse_comparison(jinja_parser* parser, jinja_node** out) {
  jinja_operator op;
  size_t at;
  GENAI_TRY(parse_sum(parser, out));
  jinja_node* node = NULL;
  while (skip_comparison(parser, &op, &at)) {
    jinja_node* operand;
    if (!node) {
      GENAI_TRY(jinja_new_node(parser, JINJA_NODE_COMPARE, at, &node));
      node->a = *out;
      *out = node;
    }
    GENAI_TRY(jinja_new_node(parser, JINJA_NODE_OPERAND, at, &operand));
    operand->op = op;
    GENAI_TRY(parse_sum(parser, &operand->a));
    GENAI_TRY(jinja_finish_node(parser, operand));
    jinja_list_add(&node->list, operand);
  }
  return node ? jinja_finish_node(parser, node) : NULL;
}

static genai_status* parse_not(jinja_parser* parser, jinja_node** out) {
  if (!jinja_at_name(parser, "not")) return parse_comparison(parser, out);
  GENAI_TRY(jinja_enter(parser));
  jinja_node* node;
  GENAI_TRY(jinja_new_node(parser, JINJA_NODE_UNARY, jinja_current(parser)->at, &node));
  node->op = JINJA_OP_NOT;
  jinja_advance(parser);
  GENAI_TRY(parse_not(parser, &node->a));
  parser->nesting--;
  *out = node;
  return jinja_finish_node(parser, node);
}

static genai_status* parse_and(jinja_parser* parser, jinja_node** out) {
  GENAI_TRY(parse_not(parser, out));
  while (jinja_at_name(parser, "and")) {
    size_t at = jinja_current(parser)->at;
    jinja_node* right;
    jinja_advance(parser);
    GENAI_TRY(parse_not(parser, &right));
    GENAI_TRY(binary(parser, JINJA_OP_AND, at, *out, right, out));
  }
  return NULL;
}

static genai_status* parse_or(jinja_parser* parser, jinja_node** out) {
  GENAI_TRY(parse_and(parser, out));
  while (jinja_at_name(parser, "or")) {
    size_t at = jinja_current(parser)->at;
    jinja_node* right;
    jinja_advance(parser);
    GENAI_TRY(parse_and(parser, &right));
    GENAI_TRY(binary(parser, JINJA_OP_OR, at, *out, right, out));
  }
  return NULL;
}

static genai_status* parse_condition(jinja_parser* parser, jinja_node** out) {
  GENAI_TRY(jinja_enter(parser));
  GENAI_TRY(parse_or(parser, out));
  while (jinja_at_name(parser, "if")) {
    jinja_node* node;
    GENAI_TRY(jinja_new_node(parser, JINJA_NODE_CONDITION, jinja_current(parser)->at, &node));
    jinja_advance(parser);
    node->b = *out;
    GENAI_TRY(parse_or(parser, &node->a));
    if (jinja_skip_name(parser, "else")) GENAI_TRY(parse_condition(parser, &node->c));
    GENAI_TRY(jinja_finish_node(parser, node));
    *out = node;
  }
  parser->nesting--;
  return NULL;
}

genai_status* jinja_parse_expression(jinja_parser* parser, bool with_condition, jinja_node** out) {
  if (with_condition) return parse_condition(parser, out);
  GENAI_TRY(jinja_enter(parser));
  GENAI_TRY(parse_or(parser, out));
  parser->nesting--;
  return NULL;
}

static genai_status* parse_arguments(jinja_parser* parser, jinja_node_list* out) {
  size_t open = jinja_current(parser)->at;
  bool keywords = false, spread = false, spread_keywords = false;
  GENAI_TRY(jinja_expect_operator(parser, "("));
  while (!jinja_at_operator(parser, ")")) {
    if (out->count) {
      GENAI_TRY(jinja_expect_operator(parser, ","));
      if (jinja_at_operator(parser, ")")) break;
    }
    const jinja_token* next = jinja_following(parser);
    jinja_node* node;
    bool valid;
    size_t at = jinja_current(parser)->at;
    if (jinja_skip_operator(parser, "*")) {
      valid = !spread && !spread_keywords;
      spread = true;
      GENAI_TRY(jinja_new_node(parser, JINJA_NODE_SPREAD, at, &node));
      GENAI_TRY(jinja_parse_expression(parser, true, &node->a));
    } else if (jinja_skip_operator(parser, "**")) {
      valid = !spread_keywords;
      spread_keywords = true;
      GENAI_TRY(jinja_new_node(parser, JINJA_NODE_SPREAD_KEYWORDS, at, &node));
      GENAI_TRY(jinja_parse_expression(parser, true, &node->a));
    } else if (at_kind(parser, JINJA_TOKEN_NAME) && next->kind == JINJA_TOKEN_OPERATOR && !strcmp(next->op, "=")) {
      valid = !spread_keywords;
      keywords = true;
      GENAI_TRY(jinja_new_node(parser, JINJA_NODE_KEYWORD, at, &node));
      node->name = jinja_current(parser)->value.as.string;
      jinja_advance(parser);
      jinja_advance(parser);
      GENAI_TRY(jinja_parse_expression(parser, true, &node->a));
    } else {
      valid = !spread && !spread_keywords && !keywords;
      GENAI_TRY(jinja_parse_expression(parser, true, &node));
    }
    if (!valid) {
      return jinja_error_at(parser->source, open, GENAI_ERROR_BAD_FILE,
                            "this call's arguments are out of order; expected positional ones, then *list, name=value, **dict");
    }
    if (node->kind == JINJA_NODE_SPREAD || node->kind == JINJA_NODE_SPREAD_KEYWORDS || node->kind == JINJA_NODE_KEYWORD) {
      GENAI_TRY(jinja_finish_node(parser, node));
    }
    jinja_list_add(out, node);
  }
  return jinja_expect_operator(parser, ")");
}

static bool at_slice_end(const jinja_parser* parser) {
  return jinja_at_operator(parser, "]") || jinja_at_operator(parser, ":");
}

/* One expression, or none or several as a tuple. */
static genai_status* parse_index(jinja_parser* parser, jinja_node** out) {
  jinja_node* tuple;
  GENAI_TRY(jinja_new_node(parser, JINJA_NODE_TUPLE, jinja_current(parser)->at, &tuple));
  while (!jinja_at_operator(parser, "]")) {
    jinja_node* item;
    if (tuple->list.count) GENAI_TRY(jinja_expect_operator(parser, ","));
    GENAI_TRY(jinja_parse_expression(parser, true, &item));
    jinja_list_add(&tuple->list, item);
    if (tuple->list.count == 1 && !jinja_at_operator(parser, ",")) { /* alone, or the start of a slice */
      *out = item;
      return NULL;
    }
  }
  *out = tuple;
  return jinja_finish_node(parser, tuple);
}

static genai_status* parse_subscript(jinja_parser* parser, jinja_node* object, jinja_node** out) {
  size_t at = jinja_current(parser)->at;
  jinja_node* node;
  GENAI_TRY(jinja_new_node(parser, JINJA_NODE_ITEM, at, &node));
  node->a = object;
  *out = node;
  if (jinja_skip_operator(parser, ".")) {
    const jinja_token* token = jinja_current(parser);
    if (token->kind == JINJA_TOKEN_NAME) {
      node->kind = JINJA_NODE_ATTRIBUTE;
      node->name = token->value.as.string;
      jinja_advance(parser);
      return jinja_finish_node(parser, node);
    }
    if (token->kind != JINJA_TOKEN_INTEGER) return jinja_unexpected(parser, "an attribute's name or a number after '.'");
    jinja_advance(parser);
    GENAI_TRY(jinja_new_node(parser, JINJA_NODE_CONSTANT, token->at, &node->b));
    node->b->value = token->value;
    GENAI_TRY(jinja_finish_node(parser, node->b));
    return jinja_finish_node(parser, node);
  }
  jinja_advance(parser); /* [ */
  if (!jinja_at_operator(parser, ":")) GENAI_TRY(parse_index(parser, &node->b));
  if (jinja_skip_operator(parser, ":")) {
    node->kind = JINJA_NODE_SLICE;
    if (!at_slice_end(parser)) GENAI_TRY(jinja_parse_expression(parser, true, &node->c));
    if (jinja_skip_operator(parser, ":") && !at_slice_end(parser)) GENAI_TRY(jinja_parse_expression(parser, true, &node->d));
  }
  GENAI_TRY(jinja_expect_operator(parser, "]"));
  return jinja_finish_node(parser, node);
}

static genai_status* parse_call(jinja_parser* parser, jinja_node* callee, jinja_node** out) {
  jinja_node* node;
  GENAI_TRY(jinja_new_node(parser, JINJA_NODE_CALL, jinja_current(parser)->at, &node));
  node->a = callee;
  GENAI_TRY(parse_arguments(parser, &node->list));
  *out = node;
  return jinja_finish_node(parser, node);
}

static genai_status* parse_postfix(jinja_parser* parser, jinja_node** node) {
  for (;;) {
    if (jinja_at_operator(parser, ".") || jinja_at_operator(parser, "[")) {
      GENAI_TRY(parse_subscript(parser, *node, node));
    } else if (jinja_at_operator(parser, "(")) {
      GENAI_TRY(parse_call(parser, *node, node));
    } else {
      return NULL;
    }
  }
}

/* A filter's or test's name, which may have dots. */
static genai_status* parse_dotted_name(jinja_parser* parser, const char* what, const jinja_string** out) {
  GENAI_TRY(jinja_expect_name(parser, what, out));
  while (jinja_skip_operator(parser, ".")) {
    const jinja_string* part;
    GENAI_TRY(jinja_expect_name(parser, what, &part));
    size_t length = (*out)->length + 1 + part->length;
    char* joined = jinja_alloc(parser->heap, length, 1);
    if (!joined) return jinja_heap_status(parser->heap);
    memcpy(joined, (*out)->data, (*out)->length);
    joined[(*out)->length] = '.';
    memcpy(joined + (*out)->length + 1, part->data, part->length);
    jinja_value name;
    GENAI_TRY(jinja_borrow_string(parser->heap, joined, length, &name));
    *out = name.as.string;
  }
  return NULL;
}

genai_status* jinja_parse_filters(jinja_parser* parser, jinja_node* input, bool inline_start, jinja_node** out) {
  *out = input;
  while (inline_start || jinja_at_operator(parser, "|")) {
    if (!inline_start) jinja_advance(parser);
    inline_start = false;
    jinja_node* node;
    GENAI_TRY(jinja_new_node(parser, JINJA_NODE_FILTER, jinja_current(parser)->at, &node));
    node->a = *out;
    GENAI_TRY(parse_dotted_name(parser, "a filter's name", &node->name));
    if (jinja_at_operator(parser, "(")) GENAI_TRY(parse_arguments(parser, &node->list));
    GENAI_TRY(jinja_finish_node(parser, node));
    *out = node;
  }
  return NULL;
}

static bool at_test_argument(const jinja_parser* parser) {
  switch (jinja_current(parser)->kind) {
    case JINJA_TOKEN_NAME:
      return !jinja_at_name(parser, "else") && !jinja_at_name(parser, "or") && !jinja_at_name(parser, "and");
    case JINJA_TOKEN_STRING:
    case JINJA_TOKEN_INTEGER:
    case JINJA_TOKEN_FLOAT:
      return true;
    default:
      return jinja_at_operator(parser, "[") || jinja_at_operator(parser, "{");
  }
}

static genai_status* parse_test(jinja_parser* parser, jinja_node** out) {
  size_t at = jinja_current(parser)->at;
  jinja_advance(parser); /* is */
  bool negated = jinja_skip_name(parser, "not");
  jinja_node* node;
  GENAI_TRY(jinja_new_node(parser, JINJA_NODE_TEST, at, &node));
  node->a = *out;
  GENAI_TRY(parse_dotted_name(parser, "a test's name", &node->name));
  if (jinja_at_operator(parser, "(")) {
    GENAI_TRY(parse_arguments(parser, &node->list));
  } else if (at_test_argument(parser)) {
    if (jinja_at_name(parser, "is")) return jinja_unexpected(parser, "one test only ('is' cannot be chained)");
    jinja_node* argument;
    GENAI_TRY(jinja_enter(parser));
    GENAI_TRY(jinja_parse_primary(parser, false, &argument));
    GENAI_TRY(parse_postfix(parser, &argument));
    parser->nesting--;
    jinja_list_add(&node->list, argument);
  }
  GENAI_TRY(jinja_finish_node(parser, node));
  *out = node;
  if (!negated) return NULL;
  jinja_node* outer;
  GENAI_TRY(jinja_new_node(parser, JINJA_NODE_UNARY, at, &outer));
  outer->op = JINJA_OP_NOT;
  outer->a = node;
  *out = outer;
  return jinja_finish_node(parser, outer);
}

static genai_status* parse_unary(jinja_parser* parser, bool with_filters, jinja_node** out) {
  bool negative = jinja_at_operator(parser, "-");
  if (negative || jinja_at_operator(parser, "+")) {
    jinja_node* node;
    GENAI_TRY(jinja_enter(parser));
    GENAI_TRY(jinja_new_node(parser, JINJA_NODE_UNARY, jinja_current(parser)->at, &node));
    node->op = negative ? JINJA_OP_NEGATE : JINJA_OP_PLUS;
    jinja_advance(parser);
    GENAI_TRY(parse_unary(parser, false, &node->a));
    GENAI_TRY(jinja_finish_node(parser, node));
    parser->nesting--;
    *out = node;
  } else {
    GENAI_TRY(jinja_parse_primary(parser, false, out));
  }
  GENAI_TRY(parse_postfix(parser, out));
  while (with_filters) {
    if (jinja_at_operator(parser, "|")) {
      GENAI_TRY(jinja_parse_filters(parser, *out, false, out));
    } else if (jinja_at_name(parser, "is")) {
      GENAI_TRY(parse_test(parser, out));
    } else if (jinja_at_operator(parser, "(")) {
      GENAI_TRY(parse_call(parser, *out, out));
    } else {
      break;
    }
  }
  return NULL;
}

static genai_status* parse_name(jinja_parser* parser, bool with_namespace, jinja_node** out) {
  const jinja_token* token = jinja_current(parser);
  const jinja_string* name = token->value.as.string;
  jinja_node* node;
  GENAI_TRY(jinja_new_node(parser, JINJA_NODE_CONSTANT, token->at, &node));
  *out = node;
  jinja_advance(parser);
  if (jinja_string_is(name, "true") || jinja_string_is(name, "True")) {
    node->value = jinja_bool(true);
  } else if (jinja_string_is(name, "false") || jinja_string_is(name, "False")) {
    node->value = jinja_bool(false);
  } else if (jinja_string_is(name, "none") || jinja_string_is(name, "None")) {
    node->value = JINJA_VALUE_NONE;
  } else {
    node->kind = JINJA_NODE_NAME;
    node->name = name;
    if (with_namespace && jinja_skip_operator(parser, ".")) {
      const jinja_string* attribute;
      GENAI_TRY(jinja_expect_name(parser, "an attribute's name", &attribute));
      node->kind = JINJA_NODE_MEMBER;
      node->value = jinja_of_string(attribute);
    }
  }
  return jinja_finish_node(parser, node);
}

static genai_status* parse_strings(jinja_parser* parser, jinja_node** out) { /* neighbours join, as in Python */
  const jinja_token* token = jinja_current(parser);
  GENAI_TRY(jinja_new_node(parser, JINJA_NODE_CONSTANT, token->at, out));
  jinja_node* node = *out;
  node->value = token->value;
  jinja_advance(parser);
  size_t length = token->value.as.string->length;
  size_t end = parser->next;
  for (; parser->tokens.items[end].kind == JINJA_TOKEN_STRING; end++) length += parser->tokens.items[end].value.as.string->length;
  if (end == parser->next) return jinja_finish_node(parser, node);
  char* joined = jinja_alloc(parser->heap, length + 1, 1);
  if (!joined) return jinja_heap_status(parser->heap);
  size_t used = 0;
  for (size_t i = parser->next - 1; i < end; i++) {
    const jinja_string* part = parser->tokens.items[i].value.as.string;
    memcpy(joined + used, part->data, part->length);
    used += part->length;
  }
  parser->next = end;
  GENAI_TRY(jinja_borrow_string(parser->heap, joined, used, &node->value));
  return jinja_finish_node(parser, node);
}

/* `[...]` or `{...}`: items up to the closing bracket, a comma after the last allowed. */
static genai_status* parse_collection(jinja_parser* parser, bool is_dict, jinja_node** out) {
  const char* close = is_dict ? "}" : "]";
  jinja_node* node;
  GENAI_TRY(jinja_new_node(parser, is_dict ? JINJA_NODE_DICT : JINJA_NODE_LIST, jinja_current(parser)->at, &node));
  *out = node;
  jinja_advance(parser);
  while (!jinja_at_operator(parser, close)) {
    if (node->list.count) {
      GENAI_TRY(jinja_expect_operator(parser, ","));
      if (jinja_at_operator(parser, close)) break;
    }
    jinja_node* item;
    GENAI_TRY(jinja_parse_expression(parser, true, &item));
    if (is_dict) {
      jinja_node* pair;
      GENAI_TRY(jinja_new_node(parser, JINJA_NODE_PAIR, item->at, &pair));
      pair->a = item;
      GENAI_TRY(jinja_expect_operator(parser, ":"));
      GENAI_TRY(jinja_parse_expression(parser, true, &pair->b));
      GENAI_TRY(jinja_finish_node(parser, pair));
      item = pair;
    }
    jinja_list_add(&node->list, item);
  }
  GENAI_TRY(jinja_expect_operator(parser, close));
  return jinja_finish_node(parser, node);
}

genai_status* jinja_parse_primary(jinja_parser* parser, bool with_namespace, jinja_node** out) {
  const jinja_token* token = jinja_current(parser);
  switch (token->kind) {
    case JINJA_TOKEN_NAME:
      return parse_name(parser, with_namespace, out);
    case JINJA_TOKEN_STRING:
      return parse_strings(parser, out);
    case JINJA_TOKEN_INTEGER:
    case JINJA_TOKEN_FLOAT:
      GENAI_TRY(jinja_new_node(parser, JINJA_NODE_CONSTANT, token->at, out));
      (*out)->value = token->value;
      jinja_advance(parser);
      return jinja_finish_node(parser, *out);
    default:
      break;
  }
  if (jinja_skip_operator(parser, "(")) {
    GENAI_TRY(jinja_parse_tuple(parser, (jinja_tuple_options){.with_condition = true, .parenthesized = true}, out));
    return jinja_expect_operator(parser, ")");
  }
  if (jinja_at_operator(parser, "[")) return parse_collection(parser, false, out);
  if (jinja_at_operator(parser, "{")) return parse_collection(parser, true, out);
  return jinja_unexpected(parser, "an expression");
}

static bool at_tuple_end(const jinja_parser* parser, const char* end_name) {
  if (at_kind(parser, JINJA_TOKEN_VARIABLE_END) || at_kind(parser, JINJA_TOKEN_BLOCK_END) || jinja_at_operator(parser, ")")) return true;
  return end_name && jinja_at_name(parser, end_name);
}

genai_status* jinja_parse_tuple(jinja_parser* parser, jinja_tuple_options options, jinja_node** out) {
  jinja_node* tuple;
  bool is_tuple = false;
  GENAI_TRY(jinja_enter(parser));
  GENAI_TRY(jinja_new_node(parser, JINJA_NODE_TUPLE, jinja_current(parser)->at, &tuple));
  for (;;) {
    if (tuple->list.count) GENAI_TRY(jinja_expect_operator(parser, ","));
    if (at_tuple_end(parser, options.end_name)) break;
    jinja_node* item;
    if (options.simplified) {
      GENAI_TRY(jinja_parse_primary(parser, options.with_namespace, &item));
    } else {
      GENAI_TRY(jinja_parse_expression(parser, options.with_condition, &item));
    }
    jinja_list_add(&tuple->list, item);
    if (!jinja_at_operator(parser, ",")) break;
    is_tuple = true;
  }
  parser->nesting--;
  if (!is_tuple && tuple->list.count) {
    *out = tuple->list.first;
    return NULL;
  }
  if (!is_tuple && !options.parenthesized) return jinja_unexpected(parser, "an expression");
  *out = tuple;
  return jinja_finish_node(parser, tuple);
}
