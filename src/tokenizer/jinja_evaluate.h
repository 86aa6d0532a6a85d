/* Running a tree: scopes, statements, expressions, calls. */
#ifndef GENAI_TOKENIZER_JINJA_EVALUATE_H
#define GENAI_TOKENIZER_JINJA_EVALUATE_H

#include "tokenizer/jinja_ast.h"
#include "tokenizer/jinja_builtins.h"
#include "tokenizer/jinja_iterate.h"

/* The names one block binds. Loops, macros, set blocks, with, filter blocks and generation blocks have their own; if has none. */
typedef struct jinja_scope jinja_scope;
struct jinja_scope {
  jinja_scope* parent;
  jinja_dict names; /* JINJA_MISSING: bound later, undefined until then */
};

struct jinja_macro {
  const jinja_node* node;   /* MACRO or CALL_BLOCK */
  const jinja_string* name; /* NULL for a call block */
  jinja_scope* scope;       /* where it was defined */
};

/* The variable `loop` (jinja2.runtime.LoopContext). */
struct jinja_loop {
  jinja_value iterable; /* JINJA_MISSING when it has no length of its own */
  jinja_iterator iterator;
  int64_t index0;
  unsigned depth0;
  bool has_length, has_after, ended;
  size_t length;
  jinja_value before, current, after; /* `after` is what loop.last and loop.nextitem looked ahead at */
  jinja_value changed;                /* the last arguments of loop.changed */
};

/* What a statement did to the loop around it. */
typedef enum jinja_flow { JINJA_FLOW_ON, JINJA_FLOW_BREAK, JINJA_FLOW_CONTINUE } jinja_flow;

genai_status* jinja_evaluate(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) GENAI_MUST_USE;
genai_status* jinja_execute(jinja_machine* machine, const jinja_node_list* body, jinja_scope* scope, jinja_builder* out,
                            jinja_flow* flow) GENAI_MUST_USE;
/* Renders the whole tree with machine->variables. */
genai_status* jinja_render(jinja_machine* machine, const jinja_tree* tree, jinja_value* out) GENAI_MUST_USE;

genai_status* jinja_enter_scope(jinja_machine* machine, jinja_scope* scope, const jinja_scope_names* names) GENAI_MUST_USE;
/* A scope on the heap, because macros may outlive the block that made it. */
genai_status* jinja_new_scope(jinja_machine* machine, jinja_scope* parent, const jinja_scope_names* names,
                              jinja_scope** out) GENAI_MUST_USE;
genai_status* jinja_bind(jinja_machine* machine, jinja_scope* scope, const jinja_string* name, jinja_value value) GENAI_MUST_USE;
genai_status* jinja_lookup(jinja_machine* machine, const jinja_scope* scope, const jinja_string* name, jinja_value* out) GENAI_MUST_USE;

/* One level of evaluation: every function that recurses enters and leaves. */
genai_status* jinja_deeper(jinja_machine* machine) GENAI_MUST_USE;

genai_status* jinja_evaluate_arguments(jinja_machine* machine, const jinja_node_list* nodes, jinja_scope* scope,
                                       jinja_arguments* out) GENAI_MUST_USE;
genai_status* jinja_call_value(jinja_machine* machine, jinja_value callee, const jinja_arguments* arguments,
                               jinja_value* out) GENAI_MUST_USE;
/* Runs the filter that `node` names, or says that there is none. */
genai_status* jinja_run_filter(jinja_machine* machine, const jinja_node* node, jinja_value input, const jinja_arguments* arguments,
                               jinja_value* out) GENAI_MUST_USE;
genai_status* jinja_binary(jinja_machine* machine, jinja_operator op, jinja_value a, jinja_value b, jinja_value* out) GENAI_MUST_USE;
/* object.name and object[key], with jinja2's detours from one to the other; an undefined value when there is nothing. */
genai_status* jinja_attribute(jinja_machine* machine, jinja_value object, const jinja_string* name, jinja_value* out) GENAI_MUST_USE;
genai_status* jinja_item(jinja_machine* machine, jinja_value object, jinja_value key, jinja_value* out) GENAI_MUST_USE;
genai_status* jinja_slice(jinja_machine* machine, jinja_value object, const jinja_value bounds[3], jinja_value* out) GENAI_MUST_USE;

genai_status* jinja_loop_next(jinja_machine* machine, jinja_loop* loop, jinja_value* out, bool* done) GENAI_MUST_USE;
genai_status* jinja_loop_length(jinja_machine* machine, jinja_loop* loop, size_t* out) GENAI_MUST_USE;
genai_status* jinja_loop_attribute(jinja_machine* machine, jinja_loop* loop, const jinja_string* name, jinja_value* out) GENAI_MUST_USE;

#endif
