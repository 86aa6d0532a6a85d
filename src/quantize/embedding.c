/* The embedding in 8 bits. One scale for a whole table of tens of thousands of rows would waste most of the 8 bits on the largest row, so each
 * row gets its own: x = codes[token] * scales[token]. Halves the table against 16 bits. */
#include "quantize/embedding.h"

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

/* Adds an operator and puts it at *position, which then stands behind it. */
static genai_status* insert(ir_graph* graph, ir_op_kind kind, const char* name, const int32_t* inputs, uint32_t n_inputs, int32_t output,
                            int32_t* position) {
  ir_op* op;
  GENAI_TRY(ir_graph_add_op(graph, kind, name, inputs, n_inputs, output, &op));
  ir_graph_move_op(graph, op->id, *position);
  *position += 1;
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
  uint32_t tokens = rows->dims[1], vocab = (uint32_t)table->source->rows;
  ir_static scale_source = {.constants = magnitudes, .rows = vocab, .cols = 1, .scale = 1.0f};
  ir_tensor *codes = NULL, *wide = NULL, *scales = NULL, *scale_table = NULL;
  GENAI_TRY(ir_graph_add_static(graph, EMBEDDING_SCALES ".weight", 2, (uint32_t[]){vocab, 1}, &scale_source, &scale_table));
  GENAI_TRY(ir_graph_add_tensor(graph, EMBEDDING_CODES, IR_INTERMEDIATE, IR_F32, rows->rank, rows->dims, &codes));
  GENAI_TRY(ir_graph_add_tensor(graph, EMBEDDING_CODES "_wide", IR_INTERMEDIATE, IR_F32, rows->rank, rows->dims, &wide));
  GENAI_TRY(ir_graph_add_tensor(graph, EMBEDDING_SCALES, IR_INTERMEDIATE, IR_F32, 3, (uint32_t[]){1, tokens, 1}, &scales));
  table->source->row_scale = magnitudes + vocab;
  lookup->output = codes->id;
  rows->producer = -1;
  int32_t position = lookup->id + 1;
  GENAI_TRY(insert(graph, IR_CONVERT, EMBEDDING_CODES "_wide", &codes->id, 1, wide->id, &position));
  GENAI_TRY(insert(graph, IR_GATHER, EMBEDDING_SCALES, (int32_t[]){scale_table->id, lookup->inputs[1]}, 2, scales->id, &position));
  return insert(graph, IR_MULTIPLY, "embedding.product", (int32_t[]){wide->id, scales->id}, 2, rows->id, &position);
}

genai_status* split_embedding(ir_graph* graph, thread_pool* pool) {
  return split(graph, NULL, pool);
}

genai_status* split_embedding_like(ir_graph* graph, const ir_graph* reference) {
  return split(graph, reference, NULL);
}

genai_status* recipe_prepare_graph(ir_graph* graph, const recipe* how, thread_pool* pool) {
  bool rotated;
  if (how->rotate_residual) GENAI_TRY(rotate_residual(graph, &rotated));
  return how->embedding_bits == 8 ? split_embedding(graph, pool) : NULL;
}
