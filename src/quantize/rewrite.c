/* Steps that passes over a float graph share. */
#include "quantize/rewrite.h"

genai_status* rewrite_insert(ir_graph* graph, ir_op_kind kind, const char* name, const int32_t* inputs, uint32_t n_inputs, int32_t output,
                             int32_t* position, ir_op** out) {
  ir_op* op;
  GENAI_TRY(ir_graph_add_op(graph, kind, name, inputs, n_inputs, output, &op));
  ir_graph_move_op(graph, op->id, *position);
  *position += 1;
  if (out) *out = op;
  return NULL;
}

genai_status* rewrite_read(ir_graph* graph, const ir_tensor* tensor, float** out) {
  const ir_static* source = tensor->source;
  float* values = arena_calloc(&graph->memory, (size_t)(source->rows * source->cols), sizeof *values);
  if (!values) return genai_status_out_of_memory();
  *out = values;
  return ir_static_read(source, 0, source->rows, values);
}

void rewrite_constants(ir_tensor* tensor, const float* values) {
  ir_static* source = tensor->source;
  *source = (ir_static){.constants = values, .rows = source->rows, .cols = source->cols, .scale = 1.0f};
}

bool rotated_between_norms(const ir_graph* graph) {
  return ir_graph_find(graph, ROTATION_WEIGHT) != NULL;
}
