/* The page's sections about the model: what its graphs are made of, and how far simulated is from float. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/page_internal.h"

static const char* storage_name(const report_storage* storage, char buffer[64]) {
  static const char* const kinds[] = {"", "one scale", "a scale per channel", "scales per block"};
  if (storage->is_float) {
    snprintf(buffer, 64, "%u-bit float", storage->bits);
  } else {
    snprintf(buffer, 64, "%u bits, %s", storage->bits, kinds[storage->encoding]);
  }
  return buffer;
}

static void not_measured(html* page, const report_input* input) {
  html_raw(page, "<p class=\"note\">");
  html_text(page, input->not_measured ? input->not_measured : "Not measured.");
  html_raw(page, "</p>\n");
}

static void operators(html* page, const report_input* input) {
  const char* heads[1 + 8] = {"operator"};
  char names[8][80];
  size_t count = input->n_graphs < 8 ? input->n_graphs : 8;
  for (size_t g = 0; g < count; g++) {
    snprintf(names[g], sizeof names[g], ">%s", input->graphs[g].name);
    heads[1 + g] = names[g];
  }
  html_table_begin(page, "Operators by kind", heads, 1 + count);
  for (unsigned kind = 0; kind < IR_OP_KIND_COUNT; kind++) {
    bool used = false;
    for (size_t g = 0; g < count; g++) used = used || input->graphs[g].by_kind[kind];
    if (!used) continue;
    html_row_begin(page);
    html_head_cell(page, "%s", ir_op_kind_name((ir_op_kind)kind));
    for (size_t g = 0; g < count; g++) html_number(page, "%u", input->graphs[g].by_kind[kind]);
    html_row_end(page);
  }
  html_row_begin(page);
  html_head_cell(page, "all");
  for (size_t g = 0; g < count; g++) html_number(page, "%u", input->graphs[g].operators);
  html_row_end(page);
  html_table_end(page);
}

static void sizes(html* page, const report_input* input) {
  static const char* const heads[] = {"graph", ">tokens a call", ">context", ">inputs", ">outputs", ">static tensors", ">other tensors"};
  html_table_begin(page, "Graphs", heads, 7);
  for (size_t g = 0; g < input->n_graphs; g++) {
    const report_graph* graph = &input->graphs[g];
    html_row_begin(page);
    html_head_cell(page, "%s", graph->name);
    html_number(page, "%u", graph->ar_length);
    html_number(page, "%u", graph->context_length);
    html_number(page, "%u", graph->tensors[IR_INPUT]);
    html_number(page, "%u", graph->tensors[IR_OUTPUT]);
    html_number(page, "%u", graph->tensors[IR_STATIC]);
    html_number(page, "%u", graph->tensors[IR_INTERMEDIATE]);
    html_row_end(page);
  }
  html_table_end(page);
}

static void weight_row(html* page, const char* name, uint32_t tensors, uint64_t elements, uint64_t bytes) {
  char count[32], size[32];
  html_count(elements, count);
  html_size(bytes, size);
  html_row_begin(page);
  html_head_cell(page, "%s", name);
  html_number(page, "%u", tensors);
  html_number(page, "%s", count);
  html_number(page, "%s", size);
  html_number(page, "%.2f", elements ? 8 * (double)bytes / (double)elements : 0);
  html_row_end(page);
}

/* The graphs of a run share their weights. */
static void weights(html* page, const report_graph* graph) {
  static const char* const heads[] = {"stored as", ">tensors", ">numbers", ">size", ">bits each"};
  uint32_t tensors = 0;
  char name[64];
  html_table_begin(page, "Weights and tables of one graph (scales not counted)", heads, 5);
  for (uint32_t i = 0; i < graph->n_weights; i++) {
    const report_storage* storage = &graph->weights[i];
    weight_row(page, storage_name(storage, name), storage->tensors, storage->elements, storage->bytes);
    tensors += storage->tensors;
  }
  weight_row(page, "all", tensors, graph->weight_elements, graph->weight_bytes);
  html_table_end(page);
}

void page_graphs(html* page, const report_input* input) {
  html_raw(page, "<section id=\"graphs\" aria-labelledby=\"h-graphs\">\n<h2 id=\"h-graphs\">Graphs</h2>\n");
  if (input->n_graphs) {
    sizes(page, input);
    operators(page, input);
    weights(page, &input->graphs[0]);
  } else {
    not_measured(page, input);
  }
  html_raw(page, "</section>\n");
}

/* ---- Quality ---- */
static void decibels(html* page, double value) {
  if (isnan(value)) {
    html_number(page, "-");
  } else if (isinf(value)) {
    html_number(page, "equal");
  } else {
    html_number(page, "%.2f", value);
  }
}

static double highest(const report_quality* quality) {
  double best = 1;
  for (uint32_t i = 0; i < quality->n_layers; i++) {
    if (isfinite(quality->layers[i].output) && quality->layers[i].output > best) best = quality->layers[i].output;
  }
  return isfinite(quality->logits) && quality->logits > best ? quality->logits : best;
}

static void layers(html* page, const report_quality* quality) {
  static const char* const heads[] = {"layer", ">attention, dB", ">feed-forward, dB", ">layer's output, dB", "layer's output"};
  double scale = highest(quality);
  html_table_begin(page, "Signal to quantization noise, by layer", heads, 5);
  for (uint32_t i = 0; i < quality->n_layers; i++) {
    const report_layer* layer = &quality->layers[i];
    html_row_begin(page);
    html_head_cell(page, "%u", i);
    decibels(page, layer->attention);
    decibels(page, layer->feed_forward);
    decibels(page, layer->output);
    html_bar(page, isinf(layer->output) ? scale : layer->output, scale);
    html_row_end(page);
  }
  html_row_begin(page);
  html_head_cell(page, "logits");
  html_number(page, "-");
  html_number(page, "-");
  decibels(page, quality->logits);
  html_bar(page, isinf(quality->logits) ? scale : quality->logits, scale);
  html_row_end(page);
  html_table_end(page);
}

void page_quality(html* page, const report_input* input) {
  const report_quality* quality = input->quality;
  html_raw(page, "<section id=\"quality\" aria-labelledby=\"h-quality\">\n<h2 id=\"h-quality\">Quality</h2>\n");
  if (!quality) {
    not_measured(page, input);
    html_raw(page, "</section>\n");
    return;
  }
  html_raw(
      page,
      "<p>The host executor ran the text below twice: in float, and simulating the encodings as the HTP computes them. Each number "
      "compares "
      "the two, over all tokens: 10 log10 of signal power over noise power. More is better; errors of earlier layers are in it.</p>\n<p>");
  html_printf(page, "Of %u tokens, both put the same next token first after %u (%.1f %%).", quality->tokens, quality->same_choice,
              quality->tokens ? 100.0 * quality->same_choice / quality->tokens : 0);
  html_raw(page, "</p>\n");
  layers(page, quality);
  html_raw(page, "<details><summary>The text</summary><pre>");
  html_text(page, input->text);
  html_raw(page, "</pre></details>\n</section>\n");
}

/* ---- As JSON ---- */
static void write_counts(json_writer* writer, const report_graph* graph) {
  static const char* const kinds[REPORT_TENSOR_KINDS] = {"inputs", "outputs", "static", "intermediate"};
  json_key(writer, "operators");
  json_begin_object(writer);
  for (unsigned kind = 0; kind < IR_OP_KIND_COUNT; kind++) {
    if (!graph->by_kind[kind]) continue;
    json_key(writer, ir_op_kind_name((ir_op_kind)kind));
    json_write_unsigned(writer, graph->by_kind[kind]);
  }
  json_end_object(writer);
  json_key(writer, "tensors");
  json_begin_object(writer);
  for (unsigned kind = 0; kind < REPORT_TENSOR_KINDS; kind++) {
    json_key(writer, kinds[kind]);
    json_write_unsigned(writer, graph->tensors[kind]);
  }
  json_end_object(writer);
}

static void write_graph(json_writer* writer, const report_graph* graph) {
  char name[64];
  json_begin_object(writer);
  json_key(writer, "name");
  json_write_string(writer, graph->name);
  json_key(writer, "ar_length");
  json_write_unsigned(writer, graph->ar_length);
  json_key(writer, "context_length");
  json_write_unsigned(writer, graph->context_length);
  write_counts(writer, graph);
  json_key(writer, "weights");
  json_begin_array(writer);
  for (uint32_t i = 0; i < graph->n_weights; i++) {
    json_begin_object(writer);
    json_key(writer, "stored_as");
    json_write_string(writer, storage_name(&graph->weights[i], name));
    json_key(writer, "tensors");
    json_write_unsigned(writer, graph->weights[i].tensors);
    json_key(writer, "elements");
    json_write_unsigned(writer, graph->weights[i].elements);
    json_key(writer, "bytes");
    json_write_unsigned(writer, graph->weights[i].bytes);
    json_end_object(writer);
  }
  json_end_array(writer);
  json_end_object(writer);
}

static void write_quality(json_writer* writer, const report_quality* quality) {
  json_begin_object(writer);
  json_key(writer, "tokens");
  json_write_unsigned(writer, quality->tokens);
  json_key(writer, "same_choice");
  json_write_unsigned(writer, quality->same_choice);
  json_key(writer, "logits_db");
  json_write_number(writer, quality->logits);
  json_key(writer, "layers");
  json_begin_array(writer);
  for (uint32_t i = 0; i < quality->n_layers; i++) {
    json_begin_object(writer);
    json_key(writer, "attention_db");
    json_write_number(writer, quality->layers[i].attention);
    json_key(writer, "feed_forward_db");
    json_write_number(writer, quality->layers[i].feed_forward);
    json_key(writer, "output_db");
    json_write_number(writer, quality->layers[i].output);
    json_end_object(writer);
  }
  json_end_array(writer);
  json_end_object(writer);
}

void report_write_json(const report_input* input, json_writer* writer) {
  json_begin_object(writer);
  json_key(writer, "graphs");
  json_begin_array(writer);
  for (size_t g = 0; g < input->n_graphs; g++) write_graph(writer, &input->graphs[g]);
  json_end_array(writer);
  if (input->quality) {
    json_key(writer, "quality");
    write_quality(writer, input->quality);
  }
  if (input->not_measured) {
    json_key(writer, "not_measured");
    json_write_string(writer, input->not_measured);
  }
  json_end_object(writer);
}
