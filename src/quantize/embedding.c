/* The embedding in 8 bits. One scale for a whole table of tens of thousands of rows would waste most of the 8 bits on the largest row, so each
 * row gets its own: x = codes[token] * scales[token]. Halves the table against 16 bits. */
#include "quantize/embedding.h"

#include "quantize/rewrite.h"
#include "quantize/weights.h"

typedef struct magnitude_job {
  size_t cols;
  float* magnitudes; /* [rows] */
} magnitude_job;

static void measure_rows(void* user, uint64_t first, uint64_t count, const float* rows) {
  const magnitude_job* job = user;
  for (uint64_t r = 0; r < count; r++) {
    float largest = largest_magnitude(rows + r * job->cols, job->cols);
    job->magnitudes[first + r] = largest > 1e-10f ? largest : 1e-10f; /* a row of zeros stays zero under any scale */
  }
}

ir_op* embedding_lookup(const ir_graph* graph) {
  const ir_tensor* tokens = ir_graph_find_role(graph, IR_ROLE_TOKENS, -1);
  for (uint32_t i = 0; tokens && i < graph->n_ops; i++) {
    if (graph->ops[i]->kind == IR_GATHER && graph->ops[i]->inputs[1] == tokens->id) return graph->ops[i];
  }
  return NULL;
}

/* The rows' scales and their inverses, [rows] each, one behind the other. */
static genai_status* measure(ir_graph* graph, const ir_static* source, thread_pool* pool, float** out) {
  size_t rows = (size_t)source->rows;
  float* values = arena_calloc(&graph->memory, rows, 2 * sizeof *values);
  if (!values) return genai_status_out_of_memory();
  magnitude_job job = {.cols = (size_t)source->cols, .magnitudes = values};
  GENAI_TRY(static_rows_for(source, pool, measure_rows, &job));
  for (size_t i = 0; i < rows; i++) values[rows + i] = 1.0f / values[i];
  *out = values;
  return NULL;
}

/* What `measure` found for a graph that is split already. */
static genai_status* copy_measured(ir_graph* graph, const ir_graph* reference, float** out) {
  const ir_static* scales = ir_graph_find(reference, EMBEDDING_SCALES ".weight")->source;
  *out = arena_dup(&graph->memory, scales->constants, 2 * (size_t)scales->rows * sizeof **out);
  return *out ? NULL : genai_status_out_of_memory();
}

static genai_status* split(ir_graph* graph, const ir_graph* reference, thread_pool* pool) {
  if (ir_graph_find(graph, EMBEDDING_CODES)) return NULL;
  ir_op* lookup = embedding_lookup(graph);
  if (!lookup) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph \"%s\" has no embedding that tokens index", graph->name);
  ir_tensor *table = graph->tensors[lookup->inputs[0]], *rows = graph->tensors[lookup->output];
  float* magnitudes = NULL;
  GENAI_TRY(reference ? copy_measured(graph, reference, &magnitudes) : measure(graph, table->source, pool, &magnitudes));
  uint32_t tokens = rows->dims[1], hidden = rows->dims[2], vocab = (uint32_t)table->source->rows;
  ir_static scale_source = {.constants = magnitudes, .rows = vocab, .cols = 1, .scale = 1.0f};
  ir_tensor* scale_table;
  GENAI_TRY(ir_graph_add_static(graph, EMBEDDING_SCALES ".weight", 2, (uint32_t[]){vocab, 1}, &scale_source, &scale_table));
  table->source->row_scale = magnitudes + vocab;
  /* The product has a token a "row" of the image, [1, tokens, 1, hidden]: with the tokens side by side, [1, tokens, hidden], the HTP scales
   * all from the 33rd on with wrong factors when the tables are large (docs/formats/qnn.md). */
  const uint32_t codes_dims[4] = {1, tokens, 1, hidden}, scales_dims[4] = {1, tokens, 1, 1};
  ir_tensor *codes, *codes_apart, *wide, *scales, *scales_apart, *product;
  GENAI_TRY(ir_graph_add_tensor(graph, EMBEDDING_CODES, IR_INTERMEDIATE, IR_F32, rows->rank, rows->dims, &codes));
  GENAI_TRY(ir_graph_add_tensor(graph, EMBEDDING_CODES "_apart", IR_INTERMEDIATE, IR_F32, 4, codes_dims, &codes_apart));
  GENAI_TRY(ir_graph_add_tensor(graph, EMBEDDING_CODES "_wide", IR_INTERMEDIATE, IR_F32, 4, codes_dims, &wide));
  GENAI_TRY(ir_graph_add_tensor(graph, EMBEDDING_SCALES, IR_INTERMEDIATE, IR_F32, 3, (uint32_t[]){1, tokens, 1}, &scales));
  GENAI_TRY(ir_graph_add_tensor(graph, EMBEDDING_SCALES "_apart", IR_INTERMEDIATE, IR_F32, 4, scales_dims, &scales_apart));
  GENAI_TRY(ir_graph_add_tensor(graph, "embedding.product", IR_INTERMEDIATE, IR_F32, 4, codes_dims, &product));
  lookup->output = codes->id;
  codes->producer = lookup->id;
  rows->producer = -1;
  int32_t at = lookup->id + 1, tokens_id = lookup->inputs[1];
  GENAI_TRY(rewrite_insert(graph, IR_RESHAPE, codes_apart->name, &codes->id, 1, codes_apart->id, &at, NULL));
  GENAI_TRY(rewrite_insert(graph, IR_CONVERT, wide->name, &codes_apart->id, 1, wide->id, &at, NULL));
  GENAI_TRY(rewrite_insert(graph, IR_GATHER, scales->name, (int32_t[]){scale_table->id, tokens_id}, 2, scales->id, &at, NULL));
  GENAI_TRY(rewrite_insert(graph, IR_RESHAPE, scales_apart->name, &scales->id, 1, scales_apart->id, &at, NULL));
  GENAI_TRY(rewrite_insert(graph, IR_MULTIPLY, product->name, (int32_t[]){wide->id, scales_apart->id}, 2, product->id, &at, NULL));
  return rewrite_insert(graph, IR_RESHAPE, "embedding.rows", &product->id, 1, rows->id, &at, NULL);
}

genai_status* split_embedding(ir_graph* graph, thread_pool* pool) {
  return split(graph, NULL, pool);
}

genai_status* split_embedding_like(ir_graph* graph, const ir_graph* reference) {
  return split(graph, reference, NULL);
}
