/* The tree of a parsed template. It lives in the template's heap and never changes after jinja_resolve, so threads share it. */
#ifndef GENAI_TOKENIZER_JINJA_AST_H
#define GENAI_TOKENIZER_JINJA_AST_H

#include "tokenizer/jinja_value.h"

typedef enum jinja_node_kind {
  /* Expressions */
  JINJA_NODE_CONSTANT,        /* value */
  JINJA_NODE_NAME,            /* name */
  JINJA_NODE_MEMBER,          /* name . value: a namespace's attribute, as a target of set only */
  JINJA_NODE_TUPLE,           /* list */
  JINJA_NODE_LIST,            /* list */
  JINJA_NODE_DICT,            /* list of PAIR */
  JINJA_NODE_PAIR,            /* a: b */
  JINJA_NODE_UNARY,           /* op a */
  JINJA_NODE_BINARY,          /* a op b */
  JINJA_NODE_CONCAT,          /* list, joined by ~ */
  JINJA_NODE_COMPARE,         /* a, then a list of OPERAND: a < b < c */
  JINJA_NODE_OPERAND,         /* op a */
  JINJA_NODE_CONDITION,       /* b if a else c; c may be absent */
  JINJA_NODE_ATTRIBUTE,       /* a.name */
  JINJA_NODE_ITEM,            /* a[b] */
  JINJA_NODE_SLICE,           /* a[b:c:d], each but a may be absent */
  JINJA_NODE_CALL,            /* a(list) */
  JINJA_NODE_FILTER,          /* a | name(list); a is absent at the start of a filter block */
  JINJA_NODE_TEST,            /* a is name(list) */
  JINJA_NODE_KEYWORD,         /* name=a, among arguments */
  JINJA_NODE_SPREAD,          /* *a, among arguments */
  JINJA_NODE_SPREAD_KEYWORDS, /* **a, among arguments */
  /* Statements */
  JINJA_NODE_DATA,         /* value: template text */
  JINJA_NODE_OUTPUT,       /* {{ a }} */
  JINJA_NODE_IF,           /* a; list; list2 is the else branch (an elif is an IF there) */
  JINJA_NODE_FOR,          /* for a in b if c: list; list2 is the else branch */
  JINJA_NODE_SET,          /* a = b */
  JINJA_NODE_SET_BLOCK,    /* a = list, through the filters b if present */
  JINJA_NODE_MACRO,        /* name(list2 of PARAMETER): list */
  JINJA_NODE_PARAMETER,    /* name, default a if present */
  JINJA_NODE_CALL_BLOCK,   /* call(list2 of PARAMETER) a: list */
  JINJA_NODE_FILTER_BLOCK, /* list, through the filters b */
  JINJA_NODE_WITH,         /* list2 of PAIR target = value; list */
  JINJA_NODE_GENERATION,   /* list */
  JINJA_NODE_BREAK,
  JINJA_NODE_CONTINUE,
} jinja_node_kind;

typedef enum jinja_operator {
  JINJA_OP_NEGATE,
  JINJA_OP_PLUS,
  JINJA_OP_NOT,
  JINJA_OP_ADD,
  JINJA_OP_SUBTRACT,
  JINJA_OP_MULTIPLY,
  JINJA_OP_DIVIDE,
  JINJA_OP_FLOOR_DIVIDE,
  JINJA_OP_MODULO,
  JINJA_OP_POWER,
  JINJA_OP_AND,
  JINJA_OP_OR,
  JINJA_OP_EQUAL,
  JINJA_OP_NOT_EQUAL,
  JINJA_OP_LESS,
  JINJA_OP_LESS_EQUAL,
  JINJA_OP_GREATER,
  JINJA_OP_GREATER_EQUAL,
  JINJA_OP_IN,
  JINJA_OP_NOT_IN,
} jinja_operator;

typedef struct jinja_node jinja_node;

typedef struct jinja_node_list {
  jinja_node* first;
  jinja_node* last;
  size_t count;
} jinja_node_list;

/* Names that a scope binds before it reads them and no enclosing scope mentions: they start unbound there, even when the caller passed a
 * variable of that name (jinja2.idtracking's VAR_LOAD_UNDEFINED). */
typedef struct jinja_scope_names {
  const jinja_string** names;
  size_t count;
  size_t capacity;
} jinja_scope_names;

struct jinja_node {
  jinja_node_kind kind;
  jinja_operator op;
  uint32_t at;    /* byte offset in the source */
  uint32_t depth; /* 1 + that of the deepest child */
  jinja_node* next;
  const jinja_string* name;
  jinja_value value;
  jinja_node *a, *b, *c, *d;
  jinja_node_list list, list2;
  const jinja_definition* definition; /* of a FILTER or TEST; NULL when there is none of this name */
  jinja_scope_names scope;            /* of the scope that `list` runs in */
  jinja_scope_names scope2;           /* of the one that list2 of a FOR runs in */
  /* MACRO, CALL_BLOCK: which special names the body reads */
  bool uses_caller, uses_kwargs, uses_varargs;
};

enum {
  JINJA_MAX_NESTING = 200,    /* of the parser's recursion */
  JINJA_MAX_TREE_DEPTH = 800, /* long chains of operators deepen the tree without recursion */
  JINJA_MAX_SOURCE = 4 << 20,
};

typedef struct jinja_tree {
  jinja_heap heap;
  text_view source; /* line ends normalised */
  jinja_node_list body;
  jinja_scope_names scope;
} jinja_tree;

/* Parses `source` (any bytes). On failure the caller still owns tree->heap. Syntax errors are GENAI_ERROR_BAD_FILE; what jinja2 knows and
 * genai does not (template inheritance, recursive loops) is GENAI_ERROR_UNSUPPORTED. */
genai_status* jinja_parse(const char* source, size_t length, jinja_tree* tree) GENAI_MUST_USE;
void jinja_tree_deinit(jinja_tree* tree);

/* Second half of jinja_parse: which names each scope starts with, which macros read caller, kwargs and varargs, and the checks that jinja2
 * makes when it compiles. */
genai_status* jinja_resolve(jinja_tree* tree) GENAI_MUST_USE;

#endif
