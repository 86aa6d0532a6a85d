/* What a graph is made of, counted. */
#include <string.h>

#include "report/report.h"

static void storage_of(const ir_tensor* tensor, report_storage* out) {
  bool encoded = tensor->encoding.kind != IR_ENCODING_NONE;
  *out = (report_storage){.encoding = tensor->encoding.kind, .is_float = !encoded};
  out->bits = encoded ? tensor->encoding.bits : (uint32_t)ir_dtype_size(tensor->dtype) * 8;
}

static void add_weight(report_graph* graph, const ir_tensor* tensor) {
  report_storage storage;
  storage_of(tensor, &storage);
  uint64_t elements = ir_tensor_elements(tensor);
  uint64_t bytes = (elements * storage.bits + 7) / 8;
  graph->weight_elements += elements;
  graph->weight_bytes += bytes;
  uint32_t i = 0;
  while (i < graph->n_weights && (graph->weights[i].encoding != storage.encoding || graph->weights[i].bits != storage.bits)) i++;
  if (i == REPORT_MAX_STORAGE) return; /* four kinds of encodings with four widths are not more than that */
  if (i == graph->n_weights) graph->weights[graph->n_weights++] = storage;
  graph->weights[i].tensors++;
  graph->weights[i].elements += elements;
  graph->weights[i].bytes += bytes;
}

static void sort_weights(report_graph* graph) {
  for (uint32_t i = 1; i < graph->n_weights; i++) {
    report_storage moved = graph->weights[i];
    uint32_t place = i;
    for (; place && graph->weights[place - 1].elements < moved.elements; place--) graph->weights[place] = graph->weights[place - 1];
    graph->weights[place] = moved;
  }
}

void report_graph_statistics(const ir_graph* graph, report_graph* out) {
  *out = (report_graph){
      .name = graph->name, .ar_length = graph->ar_length, .context_length = graph->context_length, .operators = graph->n_ops};
  for (uint32_t i = 0; i < graph->n_ops; i++) out->by_kind[graph->ops[i]->kind]++;
  for (uint32_t i = 0; i < graph->n_tensors; i++) {
    const ir_tensor* tensor = graph->tensors[i];
    out->tensors[tensor->kind]++;
    if (tensor->kind == IR_STATIC && tensor->source) add_weight(out, tensor);
  }
  sort_weights(out);
}
