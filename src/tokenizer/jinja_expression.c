/* Evaluating expressions. What the operators mean is in jinja_operator.c, attributes and items in jinja_access.c, calls in jinja_call.c. */
#include "tokenizer/jinja_evaluate.h"

genai_status* jinja_run_filter(jinja_machine* machine, const jinja_node* node, jinja_value input, const jinja_arguments* arguments,
                               jinja_value* out) {
  if (!node->definition) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "no filter named '%.*s'", node->name->length > 100 ? 100 : (int)node->name->length,
                      node->name->data);
  }
  return jinja_run(machine, node->definition, input, arguments, out);
}

static genai_status* evaluate_sequence(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  GENAI_TRY(jinja_new_list(&machine->heap, node->kind == JINJA_NODE_TUPLE ? JINJA_TUPLE : JINJA_LIST, node->list.count, out));
  for (const jinja_node* item = node->list.first; item; item = item->next) {
    jinja_value value;
    GENAI_TRY(jinja_evaluate(machine, item, scope, &value));
    GENAI_TRY(jinja_append(&machine->heap, out->as.list, value));
  }
  return NULL;
}

static genai_status* evaluate_dict(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  GENAI_TRY(jinja_new_dict(&machine->heap, JINJA_DICT, out));
  for (const jinja_node* pair = node->list.first; pair; pair = pair->next) {
    jinja_value key, value;
    GENAI_TRY(jinja_evaluate(machine, pair->a, scope, &key));
    GENAI_TRY(jinja_evaluate(machine, pair->b, scope, &value));
    machine->at = pair->at;
    GENAI_TRY(jinja_dict_set(machine, out->as.dict, key, value));
  }
  return NULL;
}

static genai_status* evaluate_unary(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  jinja_value operand;
  int64_t integer;
  GENAI_TRY(jinja_evaluate(machine, node->a, scope, &operand));
  machine->at = node->at;
  if (node->op == JINJA_OP_NOT) {
    *out = jinja_bool(!jinja_truth(operand));
    return NULL;
  }
  if (operand.kind == JINJA_UNDEFINED) return jinja_fail_undefined(machine, operand);
  if (operand.kind == JINJA_FLOAT) {
    *out = jinja_real(node->op == JINJA_OP_NEGATE ? -operand.as.real : operand.as.real);
    return NULL;
  }
  if (!jinja_as_integer(operand, &integer)) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "a value of type '%s' has no sign; expected a number", jinja_type_name(operand));
  }
  if (node->op == JINJA_OP_NEGATE) {
    *out = jinja_integer(0);
    return jinja_binary(machine, JINJA_OP_SUBTRACT, *out, jinja_integer(integer), out);
  }
  *out = jinja_integer(integer);
  return NULL;
}

static genai_status* evaluate_binary(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  jinja_value right;
  GENAI_TRY(jinja_evaluate(machine, node->a, scope, out));
  if (node->op == JINJA_OP_AND || node->op == JINJA_OP_OR) {
    return jinja_truth(*out) == (node->op == JINJA_OP_OR) ? NULL : jinja_evaluate(machine, node->b, scope, out);
  }
  GENAI_TRY(jinja_evaluate(machine, node->b, scope, &right));
  machine->at = node->at;
  return jinja_binary(machine, node->op, *out, right, out);
}

static genai_status* evaluate_concat(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  jinja_builder builder = {.machine = machine};
  jinja_value parts;
  size_t length = 0;
  GENAI_TRY(evaluate_sequence(machine, node, scope, &parts));
  machine->at = node->at;
  for (size_t i = 0; i < parts.as.list->count; i++) {
    if (jinja_is_string(parts.as.list->items[i])) length += parts.as.list->items[i].as.string->length;
  }
  GENAI_TRY(jinja_reserve(&builder, length));
  for (size_t i = 0; i < parts.as.list->count; i++) GENAI_TRY(jinja_put_str(&builder, parts.as.list->items[i]));
  return jinja_take(&builder, out);
}

static genai_status* evaluate_comparison(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  jinja_value left;
  GENAI_TRY(jinja_evaluate(machine, node->a, scope, &left));
  for (const jinja_node* operand = node->list.first; operand; operand = operand->next) {
    jinja_value right;
    GENAI_TRY(jinja_evaluate(machine, operand->a, scope, &right));
    machine->at = operand->at;
    GENAI_TRY(jinja_binary(machine, operand->op, left, right, out));
    if (!jinja_truth(*out)) return NULL;
    left = right;
  }
  return NULL;
}

static genai_status* evaluate_condition(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  jinja_value test;
  GENAI_TRY(jinja_evaluate(machine, node->a, scope, &test));
  if (jinja_truth(test)) return jinja_evaluate(machine, node->b, scope, out);
  if (node->c) return jinja_evaluate(machine, node->c, scope, out);
  return jinja_undefined_hint(&machine->heap, "the inline if was false and has no else", out);
}

static genai_status* evaluate_slice(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  jinja_value object, bounds[3];
  const jinja_node* nodes[3] = {node->b, node->c, node->d};
  GENAI_TRY(jinja_evaluate(machine, node->a, scope, &object));
  for (int i = 0; i < 3; i++) {
    bounds[i] = JINJA_VALUE_NONE;
    if (nodes[i]) GENAI_TRY(jinja_evaluate(machine, nodes[i], scope, &bounds[i]));
  }
  machine->at = node->at;
  return jinja_slice(machine, object, bounds, out);
}

static genai_status* evaluate_call(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  jinja_value callee;
  jinja_arguments arguments;
  GENAI_TRY(jinja_evaluate(machine, node->a, scope, &callee));
  GENAI_TRY(jinja_evaluate_arguments(machine, &node->list, scope, &arguments));
  machine->at = node->at;
  return jinja_call_value(machine, callee, &arguments, out);
}

static genai_status* evaluate_filter(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  jinja_value input;
  jinja_arguments arguments;
  GENAI_TRY(jinja_evaluate(machine, node->a, scope, &input));
  GENAI_TRY(jinja_evaluate_arguments(machine, &node->list, scope, &arguments));
  machine->at = node->at;
  return jinja_run_filter(machine, node, input, &arguments, out);
}

static genai_status* evaluate_test(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  jinja_value input;
  jinja_arguments arguments;
  GENAI_TRY(jinja_evaluate(machine, node->a, scope, &input));
  GENAI_TRY(jinja_evaluate_arguments(machine, &node->list, scope, &arguments));
  machine->at = node->at;
  if (!node->definition) {
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "no test named '%.*s'", node->name->length > 100 ? 100 : (int)node->name->length,
                      node->name->data);
  }
  return jinja_run(machine, node->definition, input, &arguments, out);
}

static genai_status* evaluate_one(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  jinja_value object, key;
  switch (node->kind) {
    case JINJA_NODE_CONSTANT:
      *out = node->value;
      return NULL;
    case JINJA_NODE_NAME:
      return jinja_lookup(machine, scope, node->name, out);
    case JINJA_NODE_TUPLE:
    case JINJA_NODE_LIST:
      return evaluate_sequence(machine, node, scope, out);
    case JINJA_NODE_DICT:
      return evaluate_dict(machine, node, scope, out);
    case JINJA_NODE_UNARY:
      return evaluate_unary(machine, node, scope, out);
    case JINJA_NODE_BINARY:
      return evaluate_binary(machine, node, scope, out);
    case JINJA_NODE_CONCAT:
      return evaluate_concat(machine, node, scope, out);
    case JINJA_NODE_COMPARE:
      return evaluate_comparison(machine, node, scope, out);
    case JINJA_NODE_CONDITION:
      return evaluate_condition(machine, node, scope, out);
    case JINJA_NODE_ATTRIBUTE:
      GENAI_TRY(jinja_evaluate(machine, node->a, scope, &object));
      machine->at = node->at;
      return jinja_attribute(machine, object, node->name, out);
    case JINJA_NODE_ITEM:
      GENAI_TRY(jinja_evaluate(machine, node->a, scope, &object));
      GENAI_TRY(jinja_evaluate(machine, node->b, scope, &key));
      machine->at = node->at;
      return jinja_item(machine, object, key, out);
    case JINJA_NODE_SLICE:
      return evaluate_slice(machine, node, scope, out);
    case JINJA_NODE_CALL:
      return evaluate_call(machine, node, scope, out);
    case JINJA_NODE_FILTER:
      return evaluate_filter(machine, node, scope, out);
    case JINJA_NODE_TEST:
      return evaluate_test(machine, node, scope, out);
    default:
      return jinja_fail(machine, GENAI_ERROR_INTERNAL, "node %d is no expression", (int)node->kind);
  }
}

genai_status* jinja_evaluate(jinja_machine* machine, const jinja_node* node, jinja_scope* scope, jinja_value* out) {
  GENAI_TRY(jinja_step(machine, 1));
  GENAI_TRY(jinja_deeper(machine));
  GENAI_TRY(evaluate_one(machine, node, scope, out));
  machine->depth--;
  return NULL;
}
