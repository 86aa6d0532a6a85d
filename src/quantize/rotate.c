/* The residual rotation as a pass over a float graph. With h' = h R in place of the residual stream h:
 *
 *   embedding table      T' = T R
 *   RMS norm             norm(h R) = norm(h) R, since R keeps the length; its gamma moves into the readers' columns first, so gamma' = 1
 *   a projection that reads   W' = W diag(gamma) R
 *   a projection that writes  W' = R^T W, b' = R^T b
 *
 * The pass walks the stream from the embedding, first only looking, then changing; a stream that it cannot follow is left as it is. */
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
} walk;

static bool is_projection_output(const ir_graph* graph, int32_t id, const ir_op** producer) {
  int32_t op = graph->tensors[id]->producer;
  if (op < 0 || graph->ops[op]->kind != IR_CONV2D) return false;
  *producer = graph->ops[op];
  return true;
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
      if (first != STREAM || self->state[op->inputs[1]] != OTHER || !is_projection_output(graph, op->inputs[1], &writer)) return false;
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
    if (op->kind != IR_RMS_NORM || self->state[op->output] != NORMED) continue;
    ir_tensor* gamma = graph->tensors[op->inputs[1]];
    size_t count = (size_t)ir_tensor_elements(gamma);
    float* ones = arena_calloc(&graph->memory, count, sizeof *ones);
    if (!ones) return genai_status_out_of_memory();
    for (size_t j = 0; j < count; j++) ones[j] = 1.0f;
    rewrite_constants(gamma, ones);
  }
  return NULL;
}

static genai_status* change(walk* self, ir_tensor* embedding) {
  embedding->source->rotate_columns = self->graph->residual_rotation;
  GENAI_TRY(change_readers(self));
  GENAI_TRY(change_writers(self));
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
    if (clear) self.blocker = shared_writer(&self);
    if (self.blocker) {
      log_write(LOG_WARNING, "graph \"%s\": the residual stream is not rotated, operator \"%s\" (%s) is in the way", graph->name,
                self.blocker->name, ir_op_kind_name(self.blocker->kind));
    } else {
      status = rotation_create(hidden, &graph->residual_rotation);
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
