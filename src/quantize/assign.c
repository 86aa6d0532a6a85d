/* Gives every tensor of a graph its encoding. Tensors whose bits pass through unchanged (reshape, transpose, slice, concat, gather, cache
 * in and out) form a class and share one encoding; a class's range is the union of what calibration saw of its members and of the values
 * of its statics. Weights get scales from the weights themselves, biases from their operator's scales. */
#include <math.h>
#include <string.h>

#include "quantize/calibration.h"
#include "quantize/embedding.h"
#include "quantize/neurons.h"
#include "quantize/rewrite.h"
#include "quantize/weights.h"

/* Score of a masked position below the smallest score seen: exp(-14) is under a tenth of a 16-bit softmax step. */
static const float MASK_DISTANCE = 14.0f;

/* A rotated tensor is flat: text that calibration did not see moves its ends further than those of others, and room costs it little. */
static const float ROTATED_MARGIN = 1.5f;

/* Where the stream is rotated between norms, the least margin from the projections of queries and keys to the scores: in texts longer than
 * calibration's documents these grow beyond what was seen, and the room costs little (docs/recipes.md). */
static const float SCORES_MARGIN = 1.5f;

typedef struct classes {
  ir_graph* graph;
  const calibration* ranges;
  const recipe* how;
  thread_pool* pool;
  int32_t* parent;   /* union-find over tensor ids */
  float *low, *high; /* of each class, at its root; valid when seen */
  bool* seen;
  bool* fixed;     /* range given by meaning, not by calibration: no margin */
  bool* symmetric; /* second operand of a matrix product, gamma of a LayerNorm */
  bool* clipped;   /* the range ends where its only readers saturate: no margin */
  bool* scores;    /* queries, keys and scores where the stream is rotated between norms */
  uint32_t* bits;
} classes;

static int32_t find_root(int32_t* parent, int32_t id) {
  while (parent[id] != id) id = parent[id] = parent[parent[id]];
  return id;
}

static void tie(classes* all, int32_t a, int32_t b) {
  a = find_root(all->parent, a);
  b = find_root(all->parent, b);
  if (a != b) all->parent[a > b ? a : b] = a < b ? a : b;
}

static bool is_activation(const ir_tensor* tensor) {
  return !tensor->integers && tensor->dtype != IR_I32;
}

static void tie_pass_through(classes* all) {
  for (uint32_t i = 0; i < all->graph->n_ops; i++) {
    const ir_op* op = all->graph->ops[i];
    switch (op->kind) {
      case IR_RESHAPE:
      case IR_TRANSPOSE:
      case IR_SLICE:
      case IR_GATHER:
        tie(all, op->inputs[0], op->output);
        break;
      case IR_CONCAT:
        for (uint32_t j = 0; j < op->n_inputs; j++) tie(all, op->inputs[j], op->output);
        break;
      default:
        break;
    }
  }
}

static void widen(classes* all, int32_t id, float low, float high) {
  int32_t root = find_root(all->parent, id);
  if (!all->seen[root]) {
    all->low[root] = low;
    all->high[root] = high;
    all->seen[root] = true;
    return;
  }
  if (low < all->low[root]) all->low[root] = low;
  if (high > all->high[root]) all->high[root] = high;
}

static void fix(classes* all, int32_t id, float low, float high) {
  int32_t root = find_root(all->parent, id);
  all->low[root] = low;
  all->high[root] = high;
  all->seen[root] = all->fixed[root] = true;
}

static bool is_mask(const ir_tensor* tensor) {
  return tensor->role == IR_ROLE_MASK || tensor->role == IR_ROLE_MASK_SLIDING;
}

/* The scores that the operator adds a mask to; -1: it does something else. */
static int32_t masked_scores(const ir_graph* graph, const ir_op* op) {
  if (op->kind != IR_ADD) return -1;
  if (is_mask(graph->tensors[op->inputs[0]])) return op->inputs[1];
  return is_mask(graph->tensors[op->inputs[1]]) ? op->inputs[0] : -1;
}

/* Whether the operator multiplies by the static of this name. */
static bool is_product_with(const ir_graph* graph, const ir_op* op, const char* name) {
  return op->kind == IR_CONV2D && !strcmp(graph->tensors[op->inputs[1]]->name, name);
}

/* The mask's encoding is part of the .pte contract: 65535 means 0, 0 means -255. */
static void fix_by_meaning(classes* all) {
  ir_graph* graph = all->graph;
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    if (is_mask(graph->tensors[graph->inputs[i]])) fix(all, graph->inputs[i], -255.0f, 0.0f);
  }
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    if (op->kind == IR_SOFTMAX || op->kind == IR_SIGMOID) fix(all, op->output, 0.0f, 1.0f);
    if (op->kind == IR_TANH) fix(all, op->output, -1.0f, 1.0f);
  }
}

static bool is_weight_operand(const ir_graph* graph, int32_t id) {
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    for (uint32_t j = 1; op->kind == IR_CONV2D && j < op->n_inputs; j++) {
      if (op->inputs[j] == id) return true;
    }
  }
  return false;
}

/* From a factor of the scores back to its projection. */
static void mark_factor(classes* all, int32_t id) {
  const ir_graph* graph = all->graph;
  for (;;) {
    all->scores[find_root(all->parent, id)] = true;
    if (graph->tensors[id]->producer < 0) return;
    const ir_op* op = graph->ops[graph->tensors[id]->producer];
    if (op->kind == IR_CONV2D && !is_product_with(graph, op, MODEL_HADAMARD_WEIGHT)) return;
    for (uint32_t i = 1; i < op->n_inputs && op->kind != IR_CONV2D; i++) mark_factor(all, op->inputs[i]);
    id = op->inputs[0];
  }
}

static void mark_scores(classes* all) {
  const ir_graph* graph = all->graph;
  if (!rotated_between_norms(graph)) return;
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    int32_t scores = masked_scores(graph, graph->ops[i]);
    if (scores >= 0) mark_factor(all, scores);
  }
}

static float margin_of(const classes* all, int32_t root) {
  return all->scores[root] ? fmaxf(all->how->range_margin, SCORES_MARGIN) : all->how->range_margin;
}

static genai_status* collect_ranges(classes* all) {
  ir_graph* graph = all->graph;
  for (uint32_t i = 0; i < graph->n_tensors; i++) {
    const ir_tensor* tensor = graph->tensors[i];
    float low, high;
    if (!is_activation(tensor) || all->fixed[find_root(all->parent, tensor->id)]) continue;
    if (tensor->kind == IR_STATIC) {
      if (is_weight_operand(graph, tensor->id)) continue;
      GENAI_TRY(static_range(tensor->source, all->pool, &low, &high));
      int32_t root = find_root(all->parent, tensor->id);
      all->fixed[root] = true;
      widen(all, tensor->id, low, high);
    } else if (calibration_range(all->ranges, tensor->name, &low, &high)) {
      widen(all, tensor->id, low, high);
    }
  }
  /* Scores after the mask: the scores' own range, and room below for "masked". Calibration saw the float mask there. */
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    int32_t scores = masked_scores(graph, op);
    if (scores >= 0) scores = find_root(all->parent, scores);
    if (scores < 0 || !all->seen[scores]) continue;
    float margin = all->scores[scores] ? margin_of(all, scores) : 1.0f;
    fix(all, op->output, all->low[scores] * margin - MASK_DISTANCE, all->high[scores] * margin);
  }
  return NULL;
}

/* Beyond these inputs a sigmoid or tanh rounds to its end in 16 bits. A tensor that feeds nothing else keeps its resolution for what is
 * between (the argument of a tanh-form GELU grows with the cube of its input). */
static const float SIGMOID_REACH = 12.0f, TANH_REACH = 6.5f;

static void clip_to_reach(classes* all) {
  const ir_graph* graph = all->graph;
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    if (op->kind != IR_SIGMOID && op->kind != IR_TANH) continue;
    int32_t root = find_root(all->parent, op->inputs[0]);
    bool alone = all->seen[root] && !all->fixed[root];
    for (uint32_t j = 0; alone && j < graph->n_ops; j++) {
      const ir_op* other = graph->ops[j];
      for (uint32_t k = 0; k < other->n_inputs; k++) {
        if (other->kind != op->kind && find_root(all->parent, other->inputs[k]) == root) alone = false;
      }
    }
    if (!alone) continue;
    float reach = op->kind == IR_SIGMOID ? SIGMOID_REACH : TANH_REACH;
    if (all->low[root] < -reach) all->low[root] = -reach;
    if (all->high[root] > reach) all->high[root] = reach;
    all->clipped[root] = true;
  }
}

/* real = scale * (q + offset) over the whole unsigned range, zero exact. */
static ir_encoding unsigned_encoding(float low, float high, uint32_t bits) {
  double levels = (double)((1u << bits) - 1), l = low < 0 ? (double)low : 0, h = high > 0 ? (double)high : 0;
  if (h - l < 1e-6) h = l + 1e-6;
  double scale = (h - l) / levels, zero = rint(-l / scale);
  zero = zero < 0 ? 0 : zero > levels ? levels : zero;
  return (ir_encoding){.kind = IR_ENCODING_PER_TENSOR, .bits = (uint8_t)bits, .scale = (float)scale, .offset = -(int32_t)zero};
}

/* The HTP turns the second operand of a matrix product into signed numbers: zero must lie in the middle of its range. With another offset a
 * 16-bit operand is refused and an 8-bit one silently loses its last bit (docs/formats/qnn.md). */
static ir_encoding symmetric_encoding(float low, float high, uint32_t bits) {
  float reach = fmaxf(fmaxf(-low, high), 1e-6f);
  int32_t middle = 1 << (bits - 1);
  return (ir_encoding){.kind = IR_ENCODING_PER_TENSOR, .bits = (uint8_t)bits, .scale = reach / (float)(middle - 1), .offset = -middle};
}

static bool is_rotated(const ir_graph* graph, const ir_tensor* tensor) {
  return tensor->producer >= 0 && is_product_with(graph, graph->ops[tensor->producer], ROTATION_WEIGHT);
}

static genai_status* assign_activations(classes* all) {
  ir_graph* graph = all->graph;
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    if (op->kind == IR_MATMUL || op->kind == IR_LAYER_NORM) all->symmetric[find_root(all->parent, op->inputs[1])] = true;
  }
  for (uint32_t i = 0; i < graph->n_tensors; i++) {
    const ir_tensor* tensor = graph->tensors[i];
    if (tensor->role == IR_ROLE_KEY_OUT || tensor->role == IR_ROLE_VALUE_OUT)
      all->bits[find_root(all->parent, tensor->id)] = all->how->kv_bits;
    if (!strcmp(tensor->name, EMBEDDING_CODES)) all->bits[find_root(all->parent, tensor->id)] = all->how->embedding_bits;
  }
  for (uint32_t i = 0; i < graph->n_tensors; i++) {
    ir_tensor* tensor = graph->tensors[i];
    bool orphan = tensor->kind == IR_INTERMEDIATE && tensor->producer < 0;
    if (!is_activation(tensor) || orphan || (tensor->kind == IR_STATIC && is_weight_operand(graph, tensor->id))) continue;
    int32_t root = find_root(all->parent, tensor->id);
    if (!all->seen[root])
      return genai_status_create(GENAI_ERROR_INTERNAL, "tensor \"%s\": calibration saw nothing of it or of what shares its encoding",
                                 tensor->name);
    uint32_t bits = all->bits[root] ? all->bits[root] : all->how->activation_bits;
    float margin = all->fixed[root] || all->clipped[root] || bits < 16 ? 1.0f : margin_of(all, root);
    if (is_rotated(graph, tensor)) margin = fmaxf(margin, ROTATED_MARGIN);
    float low = all->low[root] * margin, high = all->high[root] * margin;
    tensor->encoding = all->symmetric[root] ? symmetric_encoding(low, high, bits) : unsigned_encoding(low, high, bits);
    tensor->dtype = bits == 8 ? IR_U8 : IR_U16;
  }
  return NULL;
}

static genai_status* assign_bias(ir_graph* graph, const ir_op* op) {
  const ir_tensor *input = graph->tensors[op->inputs[0]], *weight = graph->tensors[op->inputs[1]];
  ir_tensor* bias = graph->tensors[op->inputs[2]];
  uint32_t channels = weight->encoding.channels;
  float* scales = arena_calloc(&graph->memory, channels, sizeof *scales);
  if (!scales) return genai_status_out_of_memory();
  for (uint32_t n = 0; n < channels; n++) scales[n] = input->encoding.scale * weight->encoding.scales[n];
  bias->dtype = IR_S32;
  bias->encoding = (ir_encoding){.kind = IR_ENCODING_PER_CHANNEL, .bits = 32, .axis = 0, .channels = channels, .scales = scales};
  return NULL;
}

/* Layers that read the same tensor share one feedback. */
static genai_status* assign_feedback(classes* all, const ir_op* op, ir_tensor* weight) {
  const ir_graph* graph = all->graph;
  const moments* inputs = all->how->feedback ? calibration_moments(all->ranges, graph->tensors[op->inputs[0]]->name) : NULL;
  if (!inputs || weight->source->constants || inputs->cols != weight->source->cols) return NULL;
  for (int32_t i = op->id; i-- > 0;) {
    const ir_op* other = graph->ops[i];
    if (other->kind != IR_CONV2D || other->inputs[0] != op->inputs[0]) continue;
    weight->feedback = graph->tensors[other->inputs[1]]->feedback;
    if (weight->feedback) return NULL;
  }
  return moments_feedback(inputs, &all->graph->memory, &weight->feedback);
}

static genai_status* assign_weights(classes* all) {
  ir_graph* graph = all->graph;
  const ir_tensor* logits = ir_graph_find_role(graph, IR_ROLE_LOGITS, -1);
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    if (op->kind != IR_CONV2D) continue;
    ir_tensor* weight = graph->tensors[op->inputs[1]];
    if (weight->encoding.kind == IR_ENCODING_NONE) {
      bool head = logits && find_root(all->parent, op->output) == find_root(all->parent, logits->id);
      weight_format format = {.bits = all->how->weight_bits, .block = all->how->weight_block, .search = all->how->weight_search};
      if (weight->source->constants) {
        format = (weight_format){.bits = 8}; /* a rotation: exact in 8 bits */
      } else if (head) {
        format = (weight_format){.bits = all->how->head_bits, .search = all->how->weight_search && all->how->head_bits < 8};
      }
      if (format.block && weight->source->cols % format.block) {
        log_write(LOG_WARNING, "weight \"%s\": %llu inputs are no multiple of the block size %u; quantized per channel", weight->name,
                  (unsigned long long)weight->source->cols, format.block);
        format.block = 0;
      }
      GENAI_TRY(weights_encode(graph, weight, &format, all->pool));
      GENAI_TRY(assign_feedback(all, op, weight));
    }
    if (op->n_inputs > 2) GENAI_TRY(assign_bias(graph, op));
  }
  return NULL;
}

/* With a 16-bit cache the conversion before it has nothing to convert. */
static genai_status* remove_converts(ir_graph* graph, const ir_graph* reference) {
  for (uint32_t i = 0; i < graph->n_ops;) {
    const ir_op* op = graph->ops[i];
    ir_role role = graph->tensors[op->output]->role;
    const ir_tensor* same = reference ? ir_graph_find(reference, graph->tensors[op->output]->name) : NULL;
    bool keep = op->kind != IR_CONVERT || (role != IR_ROLE_KEY_OUT && role != IR_ROLE_VALUE_OUT) || (same && same->producer >= 0);
    if (keep) {
      i++;
    } else {
      GENAI_TRY(ir_graph_remove_op(graph, op->id, op->inputs[0]));
    }
  }
  return NULL;
}

genai_status* recipe_prepare_graph(ir_graph* graph, const recipe* how, const calibration* seen, thread_pool* pool) {
  bool rotated;
  if (how->rotate_residual) GENAI_TRY(rotate_residual(graph, &rotated));
  if (how->split_neurons && seen) GENAI_TRY(neurons_split(graph, seen->neurons, seen->n_neurons, pool));
  return how->embedding_bits == 8 ? split_embedding(graph, pool) : NULL;
}

genai_status* quantize_graph(ir_graph* graph, const calibration* ranges, const recipe* how, thread_pool* pool) {
  GENAI_TRY(recipe_prepare_graph(graph, how, ranges, pool));
  if (how->kv_bits == how->activation_bits) GENAI_TRY(remove_converts(graph, NULL));
  arena scratch = {0};
  size_t n = graph->n_tensors;
  classes all = {.graph = graph, .ranges = ranges, .how = how, .pool = pool};
  all.parent = arena_calloc(&scratch, n, sizeof *all.parent);
  all.low = arena_calloc(&scratch, n, sizeof *all.low);
  all.high = arena_calloc(&scratch, n, sizeof *all.high);
  all.seen = arena_calloc(&scratch, n, sizeof *all.seen);
  all.fixed = arena_calloc(&scratch, n, sizeof *all.fixed);
  all.symmetric = arena_calloc(&scratch, n, sizeof *all.symmetric);
  all.clipped = arena_calloc(&scratch, n, sizeof *all.clipped);
  all.scores = arena_calloc(&scratch, n, sizeof *all.scores);
  all.bits = arena_calloc(&scratch, n, sizeof *all.bits);
  genai_status* status = NULL;
  if (!all.parent || !all.low || !all.high || !all.seen || !all.fixed || !all.symmetric || !all.clipped || !all.scores || !all.bits) {
    status = genai_status_out_of_memory();
    goto done;
  }
  for (size_t i = 0; i < n; i++) all.parent[i] = (int32_t)i;
  tie_pass_through(&all);
  fix_by_meaning(&all);
  mark_scores(&all);
  GENAI_TRY_GOTO(status, collect_ranges(&all), done);
  clip_to_reach(&all);
  GENAI_TRY_GOTO(status, assign_activations(&all), done);
  GENAI_TRY_GOTO(status, assign_weights(&all), done);
  status = ir_graph_verify(graph);
done:
  arena_deinit(&scratch);
  return status;
}

static genai_status* copy_encoding(ir_graph* graph, ir_tensor* to, const ir_tensor* from) {
  to->dtype = from->dtype;
  to->encoding = from->encoding;
  const ir_encoding* source = &from->encoding;
  if (source->scales) {
    to->encoding.scales = arena_dup(&graph->memory, source->scales, source->channels * sizeof *source->scales);
    if (!to->encoding.scales) return genai_status_out_of_memory();
  }
  if (source->block_scales) {
    to->encoding.block_scales = arena_dup(&graph->memory, source->block_scales, (size_t)source->channels * source->blocks);
    if (!to->encoding.block_scales) return genai_status_out_of_memory();
  }
  return from->feedback ? ir_feedback_copy(&graph->memory, from->feedback, (size_t)from->source->cols, &to->feedback) : NULL;
}

genai_status* quantize_graph_like(ir_graph* graph, const ir_graph* reference) {
  bool rotated;
  if (reference->residual_rotation) GENAI_TRY(rotate_residual(graph, &rotated));
  GENAI_TRY(neurons_split_like(graph, reference));
  if (ir_graph_find(reference, EMBEDDING_CODES)) GENAI_TRY(split_embedding_like(graph, reference));
  GENAI_TRY(remove_converts(graph, reference));
  for (uint32_t i = 0; i < graph->n_tensors; i++) {
    ir_tensor* tensor = graph->tensors[i];
    if (!is_activation(tensor) || (tensor->kind == IR_INTERMEDIATE && tensor->producer < 0)) continue;
    const ir_tensor* same = ir_graph_find(reference, tensor->name);
    if (!same)
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "tensor \"%s\" of graph \"%s\" is not in the quantized graph \"%s\"",
                                 tensor->name, graph->name, reference->name);
    GENAI_TRY(copy_encoding(graph, tensor, same));
  }
  return ir_graph_verify(graph);
}
