/* A readable listing of a graph: its boundary, then one operator a line. */
#include "ir/ir.h"

static genai_status* print_tensor(const ir_tensor* tensor, text* out) {
  GENAI_TRY(text_printf(out, "%s %s[", tensor->name, ir_dtype_name(tensor->dtype)));
  for (uint32_t i = 0; i < tensor->rank; ++i) GENAI_TRY(text_printf(out, "%s%u", i ? "," : "", tensor->dims[i]));
  GENAI_TRY(text_append_char(out, ']'));
  const ir_encoding* encoding = &tensor->encoding;
  switch (encoding->kind) {
    case IR_ENCODING_NONE:
      break;
    case IR_ENCODING_PER_TENSOR:
      return text_printf(out, "{%g*(q%+d)}", (double)encoding->scale, encoding->offset);
    case IR_ENCODING_PER_CHANNEL:
      return text_printf(out, "{%u bits per channel, axis %d}", encoding->bits, encoding->axis);
    case IR_ENCODING_BLOCK_EXPANSION:
      return text_printf(out, "{%u bits, %u blocks per channel, axis %d}", encoding->bits, encoding->blocks, encoding->axis);
  }
  return NULL;
}

static genai_status* print_boundary(const ir_graph* graph, const char* label, const int32_t* ids, uint32_t count, text* out) {
  for (uint32_t i = 0; i < count; ++i) {
    const ir_tensor* tensor = graph->tensors[ids[i]];
    GENAI_TRY(text_printf(out, "  %s %u: ", label, i));
    GENAI_TRY(print_tensor(tensor, out));
    GENAI_TRY(text_printf(out, " %s", ir_role_name(tensor->role)));
    if (tensor->layer >= 0) GENAI_TRY(text_printf(out, " layer %d", tensor->layer));
    GENAI_TRY(text_append_char(out, '\n'));
  }
  return NULL;
}

static genai_status* print_attributes(const ir_graph* graph, const ir_op* op, text* out) {
  uint32_t rank = graph->tensors[op->inputs[0]]->rank;
  switch (op->kind) {
    case IR_RMS_NORM:
    case IR_LAYER_NORM:
      return text_printf(out, " epsilon=%g", (double)op->attr.epsilon);
    case IR_CONCAT:
    case IR_GATHER:
      return text_printf(out, " axis=%d", op->attr.axis);
    case IR_MATMUL:
      if (op->attr.matmul.transpose_a) GENAI_TRY(text_append_cstr(out, " transpose_a"));
      return op->attr.matmul.transpose_b ? text_append_cstr(out, " transpose_b") : NULL;
    case IR_SLICE:
      for (uint32_t i = 0; i < rank; ++i) {
        GENAI_TRY(text_printf(out, "%s%u:%u", i ? "," : " ranges=", op->attr.slice.begin[i], op->attr.slice.end[i]));
      }
      return NULL;
    case IR_TRANSPOSE:
      for (uint32_t i = 0; i < rank; ++i) GENAI_TRY(text_printf(out, "%s%u", i ? "," : " perm=", op->attr.perm[i]));
      return NULL;
    default:
      return NULL;
  }
}

genai_status* ir_graph_print(const ir_graph* graph, text* out) {
  GENAI_TRY(text_printf(out, "graph %s: AR %u, context %u, %u operators, %u tensors\n", graph->name, graph->ar_length,
                        graph->context_length, graph->n_ops, graph->n_tensors));
  GENAI_TRY(print_boundary(graph, "input", graph->inputs, graph->n_inputs, out));
  GENAI_TRY(print_boundary(graph, "output", graph->outputs, graph->n_outputs, out));
  for (uint32_t i = 0; i < graph->n_ops; ++i) {
    const ir_op* op = graph->ops[i];
    GENAI_TRY(text_printf(out, "  %4u ", i));
    GENAI_TRY(print_tensor(graph->tensors[op->output], out));
    GENAI_TRY(text_printf(out, " = %s(", ir_op_kind_name(op->kind)));
    for (uint32_t j = 0; j < op->n_inputs; ++j) GENAI_TRY(text_printf(out, "%s%s", j ? ", " : "", graph->tensors[op->inputs[j]]->name));
    GENAI_TRY(text_append_char(out, ')'));
    GENAI_TRY(print_attributes(graph, op, out));
    GENAI_TRY(text_append_char(out, '\n'));
  }
  return NULL;
}
