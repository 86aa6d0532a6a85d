/* Tokens of a template (jinja2.lexer with trim_blocks and lstrip_blocks). */
#ifndef GENAI_TOKENIZER_JINJA_LEXER_H
#define GENAI_TOKENIZER_JINJA_LEXER_H

#include "tokenizer/jinja_value.h"

typedef enum jinja_token_kind {
  JINJA_TOKEN_END,
  JINJA_TOKEN_DATA,
  JINJA_TOKEN_BLOCK_BEGIN,
  JINJA_TOKEN_BLOCK_END,
  JINJA_TOKEN_VARIABLE_BEGIN,
  JINJA_TOKEN_VARIABLE_END,
  JINJA_TOKEN_NAME,
  JINJA_TOKEN_STRING,
  JINJA_TOKEN_INTEGER,
  JINJA_TOKEN_FLOAT,
  JINJA_TOKEN_OPERATOR, /* told apart by their text */
} jinja_token_kind;

typedef struct jinja_token {
  jinja_token_kind kind;
  uint32_t at;
  char op[3];        /* of an OPERATOR */
  jinja_value value; /* of DATA, NAME, STRING, INTEGER, FLOAT */
} jinja_token;

typedef struct jinja_tokens {
  jinja_token* items; /* ends with JINJA_TOKEN_END */
  size_t count;
  size_t capacity;
} jinja_tokens;

/* `source` is valid UTF-8 with '\n' line ends. */
genai_status* jinja_lex(jinja_heap* heap, text_view source, jinja_tokens* out) GENAI_MUST_USE;
/* What a token looks like to people: "'%}'", "the end of the template", "'name'" ... */
void jinja_describe_token(const jinja_token* token, char* buffer, size_t capacity);

#endif
