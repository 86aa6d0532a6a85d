/* What the two halves of the parser share: statements (jinja_parser.c) and expressions (jinja_parse_expression.c). */
#ifndef GENAI_TOKENIZER_JINJA_PARSER_H
#define GENAI_TOKENIZER_JINJA_PARSER_H

#include "tokenizer/jinja_ast.h"
#include "tokenizer/jinja_lexer.h"

typedef struct jinja_parser {
  jinja_heap* heap;
  text_view source;
  jinja_tokens tokens;
  size_t next;
  unsigned nesting;    /* of recursion */
  unsigned loops;      /* loops around the current statement, within its macro: break and continue need one */
  const char* closing; /* the tags that would end the innermost open block, for messages */
} jinja_parser;

static inline const jinja_token* jinja_current(const jinja_parser* parser) {
  return &parser->tokens.items[parser->next];
}
static inline const jinja_token* jinja_following(const jinja_parser* parser) { /* END repeats */
  return &parser->tokens.items[parser->next + (jinja_current(parser)->kind != JINJA_TOKEN_END)];
}
static inline void jinja_advance(jinja_parser* parser) {
  if (jinja_current(parser)->kind != JINJA_TOKEN_END) parser->next++;
}
bool jinja_at_name(const jinja_parser* parser, const char* name);
bool jinja_at_operator(const jinja_parser* parser, const char* op);
bool jinja_skip_name(jinja_parser* parser, const char* name);
bool jinja_skip_operator(jinja_parser* parser, const char* op);
genai_status* jinja_expect_operator(jinja_parser* parser, const char* op) GENAI_MUST_USE;
genai_status* jinja_expect_name(jinja_parser* parser, const char* what, const jinja_string** out) GENAI_MUST_USE;
/* "expected WHAT, found TOKEN" at the current token. */
genai_status* jinja_unexpected(const jinja_parser* parser, const char* expected) GENAI_MUST_USE JINJA_NEVER_NULL;

genai_status* jinja_new_node(jinja_parser* parser, jinja_node_kind kind, size_t at, jinja_node** out) GENAI_MUST_USE;
void jinja_list_add(jinja_node_list* list, jinja_node* node);
/* Sets node->depth from its children; an error when the tree grows too deep. Call it when a node is complete. */
genai_status* jinja_finish_node(jinja_parser* parser, jinja_node* node) GENAI_MUST_USE;
genai_status* jinja_enter(jinja_parser* parser) GENAI_MUST_USE; /* one level of recursion; leave with parser->nesting-- */

genai_status* jinja_parse_expression(jinja_parser* parser, bool with_condition, jinja_node** out) GENAI_MUST_USE;
genai_status* jinja_parse_primary(jinja_parser* parser, bool with_namespace, jinja_node** out) GENAI_MUST_USE;
/* Expressions separated by commas: one alone is itself, more are a tuple. `end_name` ends it too (NULL: none). `simplified`: primaries
 * only, as targets are. */
typedef struct jinja_tuple_options {
  bool simplified, with_condition, parenthesized, with_namespace;
  const char* end_name;
} jinja_tuple_options;
genai_status* jinja_parse_tuple(jinja_parser* parser, jinja_tuple_options options, jinja_node** out) GENAI_MUST_USE;
/* `| name(args) | ...` around `node`, which may be NULL. With `inline_start` the first filter has no bar before it. */
genai_status* jinja_parse_filters(jinja_parser* parser, jinja_node* node, bool inline_start, jinja_node** out) GENAI_MUST_USE;

#endif
