/* The residual rotation as a pass over a float graph. With h' = h R in place of the residual stream h:
 *
 *   embedding table      T' = T R
 *   RMS norm             norm(h R) = norm(h) R, since R keeps the length; its gamma moves into the readers' columns first, so gamma' = 1
 *   a projection that reads   W' = W diag(gamma) R
 *   a projection that writes  W' = R^T W, b' = R^T b
 *
 * Where norms stand on both sides of the stream (Gemma 2 and 3: h + norm(block(norm(h)))), R cannot go into the weights:
 *
 *   a norm that writes   norm'(y) diag(s) R, a projection behind it; norm' has gamma / s
 *   a norm that reads    norm(h R) (R^T diag(gamma)), a projection behind it; gamma' = 1
 *
 * with an R whose entries have one magnitude and with s in eighths, so that 8 bits hold both weights exactly: rounded, they would cost more than
 * the rotation brings. s brings channels with a far larger gamma (the outliers' origin) down to the others before the norm is rounded.
 *
 * The pass walks the stream from the embedding, first only looking, then changing; a stream that it cannot follow is left as it is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ir/rotation.h"
#include "quantize/embedding.h"
#include "quantize/rewrite.h"

typedef enum tensor_state { OTHER = 0, STREAM, NORMED } tensor_state;

typedef struct walk {
  ir_graph* graph;
  uint8_t* state;   /* tensor_state of each tensor */
  int32_t* norm_of; /* for NORMED tensors: the norm's operator; -1: none between (the stream itself) */
  const ir_op* blocker;
  bool between_norms; /* norms write to the stream, and norms alone read it */
} walk;

static bool is_output_of(const ir_graph* graph, int32_t id, ir_op_kind kind, const ir_op** producer) {
  int32_t op = graph->tensors[id]->producer;
  if (op < 0 || graph->ops[op]->kind != kind) return false;
  *producer = graph->ops[op];
  return true;
}

static bool is_projection_output(const ir_graph* graph, int32_t id, const ir_op** producer) {
  return is_output_of(graph, id, IR_CONV2D, producer);
}

static bool is_norm_output(const ir_graph* graph, int32_t id, const ir_op** producer) {
  return is_output_of(graph, id, IR_RMS_NORM, producer);
}

/* Follows one operator. False when the rotation cannot pass it. */
static bool follow(walk* self, const ir_op* op, const ir_tensor* embedding) {
  ir_graph* graph = self->graph;
  uint8_t first = self->state[op->inputs[0]];
  const ir_op* writer;
  if (op->kind == IR_GATHER && op->inputs[0] == embedding->id) {
    self->state[op->output] = STREAM;
    return true;
  }
  bool touches = false;
  for (uint32_t i = 0; i < op->n_inputs; i++) touches = touches || self->state[op->inputs[i]] != OTHER;
  if (!touches) return true;
  switch (op->kind) {
    case IR_RESHAPE:
    case IR_SLICE: /* of tokens: the last axis must stay whole */
      if (graph->tensors[op->output]->dims[graph->tensors[op->output]->rank - 1] !=
          graph->tensors[op->inputs[0]]->dims[graph->tensors[op->inputs[0]]->rank - 1])
        return false;
      self->state[op->output] = first;
      self->norm_of[op->output] = self->norm_of[op->inputs[0]];
      return true;
    case IR_RMS_NORM:
      if (first != STREAM) return false;
      self->state[op->output] = NORMED;
      self->norm_of[op->output] = op->id;
      return true;
    case IR_ADD:
      if (first != STREAM || self->state[op->inputs[1]] != OTHER) return false;
      if (is_norm_output(graph, op->inputs[1], &writer)) {
        self->between_norms = true;
      } else if (!is_projection_output(graph, op->inputs[1], &writer)) {
        return false;
      }
      self->state[op->output] = STREAM;
      return true;
    case IR_CONV2D:
      return first != OTHER; /* reads the stream or a norm of it; its output is free */
    default:
      return false;
  }
}

static bool look(walk* self, const ir_tensor* embedding) {
  for (uint32_t i = 0; i < self->graph->n_ops; i++) {
    if (!follow(self, self->graph->ops[i], embedding)) {
      self->blocker = self->graph->ops[i];
      return false;
    }
  }
  return true;
}

/* Between norms the stream must be read and written by norms alone: a projection that read it would need the rotation in its weight, whose
 * rounding errors then meet the outliers that a norm's gamma keeps away. NULL: none does. */
static const ir_op* projection_on_stream(const walk* self) {
  const ir_graph* graph = self->graph;
  const ir_op* writer;
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    if (op->kind == IR_CONV2D && self->state[op->inputs[0]] == STREAM) return op;
    if (op->kind == IR_ADD && self->state[op->output] == STREAM && is_projection_output(graph, op->inputs[1], &writer)) return writer;
  }
  return NULL;
}

/* A writer's output must feed residual sums only: it lives in rotated space from then on. */
static const ir_op* shared_writer(const walk* self) {
  const ir_graph* graph = self->graph;
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op *sum = graph->ops[i], *writer;
    if (sum->kind != IR_ADD || self->state[sum->output] != STREAM || !is_projection_output(graph, sum->inputs[1], &writer)) continue;
    for (uint32_t j = 0; j < graph->n_ops; j++) {
      const ir_op* other = graph->ops[j];
      for (uint32_t k = 0; k < other->n_inputs; k++) {
        if (other != sum && other->inputs[k] == writer->output) return other;
      }
    }
  }
  return NULL;
}

static genai_status* change_readers(walk* self) {
  ir_graph* graph = self->graph;
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    if (op->kind != IR_CONV2D || self->state[op->inputs[0]] == OTHER) continue;
    ir_static* weight = graph->tensors[op->inputs[1]]->source;
    if (weight->rotate_columns) continue; /* shared by two readers of the same norm */
    if (self->state[op->inputs[0]] == NORMED) {
      const ir_op* norm = graph->ops[self->norm_of[op->inputs[0]]];
      float* gamma = NULL;
      GENAI_TRY(rewrite_read(graph, graph->tensors[norm->inputs[1]], &gamma));
      weight->column_scale = gamma;
    }
    weight->rotate_columns = graph->residual_rotation;
  }
  return NULL;
}

static genai_status* change_writers(walk* self) {
  ir_graph* graph = self->graph;
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op *sum = graph->ops[i], *writer;
    if (sum->kind != IR_ADD || self->state[sum->output] != STREAM || !is_projection_output(graph, sum->inputs[1], &writer)) continue;
    graph->tensors[writer->inputs[1]]->source->rotate_rows = graph->residual_rotation;
    if (writer->n_inputs > 2) {
      ir_tensor* bias = graph->tensors[writer->inputs[2]];
      float* values = NULL;
      GENAI_TRY(rewrite_read(graph, bias, &values));
      rotation_apply_rows(graph->residual_rotation, values, 1);
      rewrite_constants(bias, values);
    }
  }
  return NULL;
}

static genai_status* change_norms(walk* self) {
  ir_graph* graph = self->graph;
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    if (op->kind != IR_RMS_NORM || self->state[op->inputs[0]] != STREAM) continue;
    ir_tensor* gamma = graph->tensors[op->inputs[1]];
    size_t count = (size_t)ir_tensor_elements(gamma);
    float* ones = arena_calloc(&graph->memory, count, sizeof *ones);
    if (!ones) return genai_status_out_of_memory();
    for (size_t j = 0; j < count; j++) ones[j] = 1.0f;
    rewrite_constants(gamma, ones);
  }
  return NULL;
}

static int compare_floats(const void* a, const void* b) {
  float x = *(const float*)a, y = *(const float*)b;
  return (x > y) - (x < y);
}

/* Of a rotation weight's 127 steps an ordinary channel gets 8. One channel in 40 may stand out. */
enum { STEPS = 8, MOST_STEPS = 127, OUTSTANDING = 40 };

/* How many steps each channel that norms write gets: more for those whose gamma is far above the others', which then leave the norm smaller
 * by that factor. Whole steps keep the weight exact. `order` is scratch of `size` floats. */
static genai_status* count_steps(const walk* self, uint32_t size, float* order, uint8_t* steps) {
  ir_graph* graph = self->graph;
  memset(steps, STEPS, size);
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op *sum = graph->ops[i], *writer;
    if (sum->kind != IR_ADD || self->state[sum->output] != STREAM || !is_norm_output(graph, sum->inputs[1], &writer)) continue;
    float* gamma;
    GENAI_TRY(rewrite_read(graph, graph->tensors[writer->inputs[1]], &gamma));
    for (uint32_t c = 0; c < size; c++) order[c] = fabsf(gamma[c]);
    qsort(order, size, sizeof *order, compare_floats);
    float usual = order[size - 1 - size / OUTSTANDING];
    for (uint32_t c = 0; c < size && usual > 0; c++) {
      float wanted = ceilf(STEPS * fabsf(gamma[c]) / usual);
      if (wanted > 2 * STEPS && wanted > (float)steps[c]) steps[c] = wanted < MOST_STEPS ? (uint8_t)wanted : MOST_STEPS;
    }
  }
  uint8_t most = STEPS;
  for (uint32_t c = 0; c < size; c++) most = steps[c] > most ? steps[c] : most;
  for (uint32_t c = 0; c < size && most > STEPS; c++) {
    if (steps[c] == most) steps[c] = MOST_STEPS; /* the largest weight of a row is 127 of its steps */
  }
  return NULL;
}

static genai_status* add_rotated(ir_graph* graph, const ir_tensor* like, ir_tensor** out) {
  const char* name = arena_printf(&graph->memory, "%s.rotated", like->name);
  if (!name) return genai_status_out_of_memory();
  return ir_graph_add_tensor(graph, name, IR_INTERMEDIATE, IR_F32, like->rank, like->dims, out);
}

/* y = norm(x) becomes y = norm(x R) R^T, with gamma in the rows of R^T. */
static genai_status* turn_back_behind(ir_graph* graph, ir_op* norm, const float* matrix) {
  ir_tensor *y = graph->tensors[norm->output], *gamma = graph->tensors[norm->inputs[1]], *rotated, *weight;
  uint32_t size = y->dims[y->rank - 1];
  float* factors;
  GENAI_TRY(rewrite_read(graph, gamma, &factors));
  const char* name = arena_printf(&graph->memory, "%s.turn_back", y->name);
  const char* weight_name = arena_printf(&graph->memory, "%s.turn_back.weight", y->name);
  if (!name || !weight_name) return genai_status_out_of_memory();
  ir_static source = {.constants = matrix, .rows = size, .cols = size, .scale = 1.0f, .row_scale = factors};
  GENAI_TRY(ir_graph_add_static(graph, weight_name, 4, (uint32_t[]){1, 1, size, size}, &source, &weight));
  GENAI_TRY(add_rotated(graph, y, &rotated));
  norm->output = rotated->id;
  rotated->producer = norm->id;
  y->producer = -1;
  int32_t position = norm->id + 1;
  return rewrite_insert(graph, IR_CONV2D, name, (int32_t[]){rotated->id, weight->id}, 2, y->id, &position, NULL);
}

/* x + norm(y) becomes x R + norm'(y) diag(steps / STEPS) R, with the factors taken out of the gamma of norm'. */
static genai_status* turn_before(ir_graph* graph, ir_op* sum, const ir_op* writer, const uint8_t* steps, ir_tensor* matrix) {
  const ir_tensor* plain = graph->tensors[sum->inputs[1]];
  ir_tensor *rotated, *gamma = graph->tensors[writer->inputs[1]];
  float* factors;
  GENAI_TRY(rewrite_read(graph, gamma, &factors));
  for (uint32_t c = 0; c < plain->dims[plain->rank - 1]; c++) factors[c] *= (float)STEPS / (float)steps[c];
  rewrite_constants(gamma, factors);
  GENAI_TRY(add_rotated(graph, plain, &rotated));
  int32_t position = sum->id;
  GENAI_TRY(rewrite_insert(graph, IR_CONV2D, rotated->name, (int32_t[]){plain->id, matrix->id}, 2, rotated->id, &position, NULL));
  sum->inputs[1] = rotated->id;
  return NULL;
}

/* The stream between norms. */
static genai_status* change_between_norms(walk* self, uint32_t size) {
  ir_graph* graph = self->graph;
  float* plain = arena_calloc(&graph->memory, size, (size_t)size * sizeof *plain);
  float* transposed = arena_calloc(&graph->memory, size, (size_t)size * sizeof *transposed);
  float* order = arena_calloc(&graph->memory, size, sizeof *order);
  uint8_t* steps = arena_calloc(&graph->memory, size, sizeof *steps);
  if (!plain || !transposed || !order || !steps) return genai_status_out_of_memory();
  GENAI_TRY(count_steps(self, size, order, steps));
  for (uint32_t i = 0; i < size; i++) plain[(size_t)i * size + i] = 1.0f;
  rotation_apply_rows(graph->residual_rotation, plain, size);
  for (uint32_t i = 0; i < size; i++) {
    for (uint32_t j = 0; j < size; j++) transposed[(size_t)j * size + i] = plain[(size_t)i * size + j] * (float)steps[i] / (float)STEPS;
  }
  ir_tensor* matrix;
  ir_static source = {.constants = transposed, .rows = size, .cols = size, .scale = 1.0f};
  GENAI_TRY(ir_graph_add_static(graph, ROTATION_WEIGHT, 4, (uint32_t[]){1, 1, size, size}, &source, &matrix));
  uint32_t tensors = graph->n_tensors;
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    ir_op* op = graph->ops[i];
    const ir_op* writer;
    bool old = (uint32_t)op->output < tensors;
    if (old && op->kind == IR_RMS_NORM && self->state[op->output] == NORMED) {
      GENAI_TRY(turn_back_behind(graph, op, plain));
      i++;
    } else if (old && op->kind == IR_ADD && self->state[op->output] == STREAM && is_norm_output(graph, op->inputs[1], &writer)) {
      GENAI_TRY(turn_before(graph, op, writer, steps, matrix));
      i++;
    }
  }
  return NULL;
}

static genai_status* change(walk* self, ir_tensor* embedding) {
  embedding->source->rotate_columns = self->graph->residual_rotation;
  if (self->between_norms) {
    GENAI_TRY(change_between_norms(self, embedding->dims[embedding->rank - 1]));
  } else {
    GENAI_TRY(change_readers(self));
    GENAI_TRY(change_writers(self));
  }
  return change_norms(self);
}

genai_status* rotate_residual(ir_graph* graph, bool* done) {
  *done = graph->residual_rotation != NULL;
  if (*done) return NULL;
  const ir_op* gather = embedding_lookup(graph);
  if (!gather) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph \"%s\" has no embedding that tokens index", graph->name);
  ir_tensor* embedding = graph->tensors[gather->inputs[0]];
  uint32_t hidden = embedding->dims[embedding->rank - 1];
  arena scratch = {0};
  walk self = {.graph = graph};
  self.state = arena_calloc(&scratch, graph->n_tensors, sizeof *self.state);
  self.norm_of = arena_calloc(&scratch, graph->n_tensors, sizeof *self.norm_of);
  genai_status* status = self.state && self.norm_of ? NULL : genai_status_out_of_memory();
  if (!status) {
    bool clear = look(&self, embedding);
    if (clear) self.blocker = self.between_norms ? projection_on_stream(&self) : shared_writer(&self);
    if (self.blocker) {
      log_write(LOG_WARNING, "graph \"%s\": the residual stream is not rotated, operator \"%s\" (%s) is in the way", graph->name,
                self.blocker->name, ir_op_kind_name(self.blocker->kind));
    } else {
      status =
          self.between_norms ? rotation_create_flat(hidden, &graph->residual_rotation) : rotation_create(hidden, &graph->residual_rotation);
      if (genai_status_kind(status) == GENAI_ERROR_UNSUPPORTED) {
        log_write(LOG_WARNING, "graph \"%s\": the residual stream is not rotated: %s", graph->name, genai_status_message(status));
        genai_status_free(status);
        status = NULL;
      } else if (!status) {
        status = change(&self, embedding);
        *done = true;
      }
    }
  }
  arena_deinit(&scratch);
  return status;
}
