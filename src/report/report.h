/* One page about one run: measuring what the run did not, and writing it down. */
#ifndef GENAI_REPORT_REPORT_H
#define GENAI_REPORT_REPORT_H

#include "base/json.h"
#include "base/log.h"
#include "base/pool.h"
#include "ir/ir.h"

/* ---- What a graph is made of ---- */
enum { REPORT_MAX_STORAGE = 16, REPORT_TENSOR_KINDS = IR_INTERMEDIATE + 1 };

typedef struct report_storage {
  ir_encoding_kind encoding;
  uint32_t bits; /* of one element as the binary stores it; 32 for floats of a graph that was not quantized */
  bool is_float;
  uint32_t tensors;
  uint64_t elements, bytes; /* bytes of the elements alone, without scales */
} report_storage;

typedef struct report_graph {
  const char* name; /* the graph's */
  uint32_t ar_length, context_length, operators;
  uint32_t by_kind[IR_OP_KIND_COUNT];
  uint32_t tensors[REPORT_TENSOR_KINDS];
  uint32_t n_weights; /* statics of float meaning, by how they are stored; most elements first */
  report_storage weights[REPORT_MAX_STORAGE];
  uint64_t weight_elements, weight_bytes;
} report_graph;
void report_graph_statistics(const ir_graph* graph, report_graph* out);

/* ---- Float against simulated ---- */
/* Signal to noise in dB of three places of a layer; NAN where the family has no such place, INFINITY when equal. */
typedef struct report_layer {
  double attention;    /* the attention's last projection */
  double feed_forward; /* the feed-forward's last projection */
  double output;       /* what the layer gives to the next */
} report_layer;

typedef struct report_quality {
  uint32_t n_layers;
  report_layer* layers;
  double logits;
  uint32_t tokens;
  uint32_t same_choice; /* tokens after which both executors put the same next one first */
} report_quality;

typedef struct report_quality_options {
  thread_pool* pool;
  uint32_t sliding_window;
  const progress_sink* progress;
  const cancel_token* cancel;
} report_quality_options;

/* Runs `ids[count]` through `graph`, a quantized graph with caches, on the float executor, which ignores encodings, and on the simulating one,
 * and compares what both compute. So the reference is float in the quantized graph's own basis: rotations that quantization folded into
 * weights are in both. Needs layers x count x hidden x 12 bytes and the logits. */
genai_status* report_measure_quality(const ir_graph* graph, const int32_t* ids, size_t count, const report_quality_options* options,
                                     report_quality* out) GENAI_MUST_USE;
void report_quality_deinit(report_quality* self);

/* ---- The page ---- */
typedef struct report_input {
  json_value run;          /* the run's record: docs/formats/run.md */
  json_value artifact;     /* what `genai inspect --json` says of the device's artifact; absent type: not there */
  const char* no_artifact; /* why not; NULL when there is one */
  size_t n_graphs;
  const report_graph* graphs;
  const report_quality* quality; /* NULL: not measured */
  const char* text;              /* what it was measured on */
  const char* not_measured;      /* why there are no graphs or no quality; NULL: both are there */
} report_input;

genai_status* report_write_page(const report_input* input, text* out) GENAI_MUST_USE;
/* The numbers that the page adds to the record: {"graphs": [...], "quality": {...}}. */
void report_write_json(const report_input* input, json_writer* writer);

#endif
