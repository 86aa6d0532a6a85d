/* What Genie calls the inputs and outputs of a decoder graph, and which graphs it can drive. Its cache convention is that of ir.h: keys
 * [1, KV, D, slots], past tokens from slot 0 on, new ones at the window's end. Positions come in as ids ("positional-encoding": "absolute"),
 * so that the graph keeps its own tables and every rotary variant works. */
#include <stdio.h>

#include "genie/genie.h"

void genie_boundary_name(const ir_tensor* tensor, char name[QNN_NAME_SIZE]) {
  const char* format = NULL;
  switch (tensor->role) {
    case IR_ROLE_TOKENS:
      format = "input_ids";
      break;
    case IR_ROLE_POSITIONS:
      format = "position_ids";
      break;
    case IR_ROLE_MASK:
      format = "attention_mask";
      break;
    case IR_ROLE_LOGITS:
      format = "logits";
      break;
    case IR_ROLE_KEY_IN:
      snprintf(name, QNN_NAME_SIZE, "past_key_%d_in", tensor->layer);
      return;
    case IR_ROLE_VALUE_IN:
      snprintf(name, QNN_NAME_SIZE, "past_value_%d_in", tensor->layer);
      return;
    case IR_ROLE_KEY_OUT:
      snprintf(name, QNN_NAME_SIZE, "past_key_%d_out", tensor->layer);
      return;
    case IR_ROLE_VALUE_OUT:
      snprintf(name, QNN_NAME_SIZE, "past_value_%d_out", tensor->layer);
      return;
    default:
      break;
  }
  snprintf(name, QNN_NAME_SIZE, "%s", format ? format : tensor->name);
}

genai_status* genie_check_graph(const ir_graph* graph) {
  const ir_tensor* sliding = ir_graph_find_role(graph, IR_ROLE_MASK_SLIDING, -1);
  const ir_tensor* key = ir_graph_find_role(graph, IR_ROLE_KEY_IN, 0);
  if (sliding)
    return genai_status_create(
        GENAI_ERROR_UNSUPPORTED,
        "graph \"%s\" has layers with a sliding window shorter than the context of %u, for which Genie has no input; "
        "choose a context no longer than the window, or engine executorch",
        graph->name, graph->context_length);
  if (!key) return genai_status_create(GENAI_ERROR_UNSUPPORTED, "graph \"%s\" has no cache inputs, which Genie needs", graph->name);
  if (key->encoding.kind != IR_ENCODING_PER_TENSOR || (key->dtype != IR_U8 && key->dtype != IR_U16))
    return genai_status_create(
        GENAI_ERROR_UNSUPPORTED,
        "graph \"%s\" keeps its cache as %s; Genie on the HTP needs fixed point: quantize the model, or choose engine "
        "executorch",
        graph->name, ir_dtype_name(key->dtype));
  return NULL;
}
