/* The decoder's graph: boundary, embedding, rotary tables, layers, logits. Blocks are in build_attention.c and build_feed_forward.c.
 *
 * Activations are [1, 1, AR, hidden]; linear layers are 1x1 convolutions, which QNN quantizes by blocks correctly where its FullyConnected
 * does not. Factors that a family applies to embeddings, residuals, scores and logits are folded into statics. */
#include <math.h>
#include <stdio.h>

#include "base/log.h"
#include "builder.h"

static genai_status* check_options(const model* self, const model_graph_options* options) {
  if (!options->name || !*options->name) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "a graph needs a name");
  if (options->ar_length < 1 || options->context_length < options->ar_length || options->context_length > 1u << 24) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s: AR length %u and context length %u; expected 1 <= AR <= context",
                               options->name, options->ar_length, options->context_length);
  }
  if (options->rotate_qk && self->head_dim & (self->head_dim - 1)) {
    return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                               "graph %s: a Hadamard rotation needs a head size that is a power of two, this is %u", options->name,
                               self->head_dim);
  }
  if (self->trained_context && options->context_length > self->trained_context) {
    log_write(LOG_WARNING, "graph %s: context length %u is beyond the %u that %s was trained with", options->name, options->context_length,
              self->trained_context, self->name);
  }
  const rope_rule* rule = &self->ropes[0];
  if (rule->kind == ROPE_DYNAMIC && options->context_length > rule->original_context) {
    return genai_status_create(
        GENAI_ERROR_UNSUPPORTED,
        "graph %s: context length %u is beyond the %g that %s was trained with, where its rotary scaling \"dynamic\" "
        "(NTK) changes the base with the length of the text, which a static graph cannot do; take a context length of "
        "at most %g",
        options->name, options->context_length, rule->original_context, self->name, rule->original_context);
  }
  if (rule->kind == ROPE_LONG && options->context_length > rule->original_context) {
    log_write(
        LOG_WARNING,
        "graph %s: context length %u is beyond LongRoPE's original %g, so the graph has its factors for long texts; short texts are a "
        "little worse than with a context length of at most %g",
        options->name, options->context_length, rule->original_context, rule->original_context);
  }
  return NULL;
}

/* The cache's inputs of every layer: keys first, then values. */
static void add_caches(builder* self, ir_tensor** caches, const char* name, ir_role role, const uint32_t dims[4]) {
  for (uint32_t i = 0; i < self->model->layers; ++i) {
    self->layer = (int32_t)i;
    caches[i] = builder_input(self, builder_name_of(self, name).text, IR_F32, role, (int32_t)i, 4, dims);
  }
  self->layer = -1;
}

static void add_inputs(builder* self, ir_tensor** tokens, ir_tensor** positions) {
  const model* m = self->model;
  bool full = false;
  for (uint32_t i = 0; i < m->layers; ++i) {
    bool sliding = m->traits[i].sliding && m->sliding_window < self->context;
    self->sliding = self->sliding || sliding;
    full = full || !sliding;
  }
  uint32_t row[2] = {1, self->ar}, square[4] = {1, 1, self->ar, self->context};
  *tokens = builder_input(self, "tokens", IR_I32, IR_ROLE_TOKENS, -1, 2, row);
  if (full) self->mask = builder_input(self, "mask", IR_F32, IR_ROLE_MASK, -1, 4, square);
  if (self->sliding) self->mask_sliding = builder_input(self, "mask_sliding", IR_F32, IR_ROLE_MASK_SLIDING, -1, 4, square);
  *positions = builder_input(self, "positions", IR_I32, IR_ROLE_POSITIONS, -1, 2, row);
  uint32_t past = self->context - self->ar;
  if (!past) return;
  add_caches(self, self->keys_in, "key_in", IR_ROLE_KEY_IN, (uint32_t[]){1, m->kv_heads, m->head_dim, past});
  add_caches(self, self->values_in, "value_in", IR_ROLE_VALUE_IN, (uint32_t[]){1, m->kv_heads, past, m->head_dim});
}

static ir_tensor* embed(builder* self, ir_tensor* tokens) {
  const model* m = self->model;
  double scale = m->embedding_multiplier > 0 ? m->embedding_multiplier : 1.0;
  if (m->family->features & SCALES_EMBEDDING) scale *= sqrt(m->hidden);
  if (self->status) return NULL;
  ir_static source = {.tensor = tensors_find(m, SLOT_EMBEDDING, 0, "weight"), .rows = m->vocab, .cols = m->hidden, .scale = (float)scale};
  ir_tensor* table = NULL;
  self->status = ir_graph_add_static(self->graph, "embedding.weight", 2, (uint32_t[]){m->vocab, m->hidden}, &source, &table);
  ir_tensor* rows =
      builder_op(self, IR_GATHER, "embedding", (ir_tensor*[]){table, tokens}, 2, 3, (uint32_t[]){1, self->ar, m->hidden}, NULL);
  return builder_reshape(self, "embedding_rows", rows, 4, (uint32_t[]){1, 1, self->ar, m->hidden});
}

/* One gathered row of a table for each position. */
static ir_tensor* gather_angles(builder* self, const char* name, uint32_t rope, ir_tensor* table, ir_tensor* positions) {
  char full[32], rows[48];
  snprintf(full, sizeof full, rope ? "%s_local" : "%s", name);
  snprintf(rows, sizeof rows, "%s_rows", full);
  if (self->status) return NULL;
  uint32_t half = table->dims[1];
  ir_tensor* gathered = builder_op(self, IR_GATHER, full, (ir_tensor*[]){table, positions}, 2, 3, (uint32_t[]){1, self->ar, half}, NULL);
  return builder_reshape(self, rows, gathered, 4, (uint32_t[]){1, 1, self->ar, half});
}

static void add_angles(builder* self, uint32_t rope, ir_tensor* positions) {
  if (self->status) return;
  const rope_rule* rule = &self->model->ropes[rope];
  uint32_t rows = self->options->positions ? self->options->positions : self->context, half = rule->rotary_dim / 2;
  float* tables = mem_realloc_array(NULL, (size_t)rows * half * 2, sizeof *tables);
  if (!tables) {
    builder_fail(self, genai_status_out_of_memory());
    return;
  }
  float* sines = tables + (size_t)rows * half;
  self->status = rope_tables(rule, self->context, rows, tables, sines);
  uint32_t dims[2] = {rows, half};
  ir_tensor* cos_table = builder_constant(self, rope ? "rope_cos_local.weight" : "rope_cos.weight", 2, dims, rows, half, tables);
  ir_tensor* sin_table = builder_constant(self, rope ? "rope_sin_local.weight" : "rope_sin.weight", 2, dims, rows, half, sines);
  mem_free(tables);
  self->cosines[rope] = gather_angles(self, "rope_cos", rope, cos_table, positions);
  self->sines[rope] = gather_angles(self, "rope_sin", rope, sin_table, positions);
}

static bool uses_rope(const model* self, uint32_t rope) {
  for (uint32_t i = 0; i < self->layers; ++i) {
    if (self->traits[i].rotary && self->traits[i].rope == rope) return true;
  }
  return false;
}

/* A branch's norms and residual sum. The residual multiplier goes into the branch's last projection, or into the norm behind it. */
static ir_tensor* build_layer(builder* self, ir_tensor* x) {
  const model* m = self->model;
  bool pre = m->family->features & PRE_NORM, post = m->family->features & POST_NORM;
  double multiplier = m->residual_multiplier > 0 ? m->residual_multiplier : 1.0, inner = post ? 1.0 : multiplier;
  ir_tensor* normed = pre ? builder_norm(self, "attention_norm", x, SLOT_ATTENTION_NORM, 1.0, false) : x;
  ir_tensor* attended = build_attention(self, normed, inner);
  if (post) attended = builder_norm(self, "attention_post_norm", attended, SLOT_ATTENTION_POST_NORM, multiplier, false);
  x = builder_binary(self, IR_ADD, "attention_residual", x, attended);
  if (!m->parallel) normed = pre ? builder_norm(self, "feed_forward_norm", x, SLOT_FEED_FORWARD_NORM, 1.0, false) : x;
  ir_tensor* fed = build_feed_forward(self, normed, inner);
  if (post) fed = builder_norm(self, "feed_forward_post_norm", fed, SLOT_FEED_FORWARD_POST_NORM, multiplier, false);
  return builder_binary(self, IR_ADD, "feed_forward_residual", x, fed);
}

static ir_tensor* build_logits(builder* self, ir_tensor* x) {
  const model* m = self->model;
  uint32_t rows = self->options->last_logits_only ? 1 : self->ar;
  x = builder_norm(self, "final_norm", x, SLOT_FINAL_NORM, 1.0, false);
  if (rows < self->ar) x = builder_slice(self, "last_row", x, 2, self->ar - 1, self->ar);
  linear_part head = {.slot = m->tied ? SLOT_EMBEDDING : SLOT_HEAD, .rows = m->vocab, .scale = 1.0};
  if (m->logit_scaling > 0) head.scale /= m->logit_scaling;
  if (m->logit_cap > 0) head.scale /= m->logit_cap;
  x = builder_linear(self, "lm_head", x, &head);
  if (m->logit_cap > 0) {
    x = builder_unary(self, IR_TANH, "logits_tanh", x);
    x = builder_binary(self, IR_MULTIPLY, "logits_cap", x, builder_scalar(self, "logit_cap", (float)m->logit_cap));
  }
  return builder_reshape(self, "logits", x, 3, (uint32_t[]){1, rows, m->vocab});
}

static void mark(builder* self, ir_tensor* tensor, ir_role role, int32_t layer) {
  if (!self->status) self->status = ir_graph_mark_output(self->graph, tensor, role, layer);
}

static void build(builder* self) {
  const model* m = self->model;
  ir_tensor*** lists[] = {&self->keys_in, &self->values_in, &self->keys_out, &self->values_out};
  for (size_t i = 0; i < 4; ++i) {
    *lists[i] = arena_calloc(&self->graph->memory, m->layers, sizeof(ir_tensor*));
    if (!*lists[i]) {
      builder_fail(self, genai_status_out_of_memory());
      return;
    }
  }
  ir_tensor *tokens, *positions;
  add_inputs(self, &tokens, &positions);
  ir_tensor* x = embed(self, tokens);
  for (uint32_t i = 0; i < m->n_ropes; ++i) {
    if (uses_rope(m, i)) add_angles(self, i, positions);
  }
  for (uint32_t i = 0; i < m->layers && !self->status; ++i) {
    self->layer = (int32_t)i;
    x = build_layer(self, x);
  }
  self->layer = -1;
  mark(self, build_logits(self, x), IR_ROLE_LOGITS, -1);
  for (uint32_t i = 0; i < m->layers; ++i) mark(self, self->keys_out[i], IR_ROLE_KEY_OUT, (int32_t)i);
  for (uint32_t i = 0; i < m->layers; ++i) mark(self, self->values_out[i], IR_ROLE_VALUE_OUT, (int32_t)i);
}

genai_status* model_build_graph(const model* self, const model_graph_options* options, ir_graph** out) {
  GENAI_TRY(check_options(self, options));
  builder state = {.model = self, .options = options, .ar = options->ar_length, .context = options->context_length, .layer = -1};
  GENAI_TRY(ir_graph_create(options->name, &state.graph));
  state.graph->ar_length = options->ar_length;
  state.graph->context_length = options->context_length;
  build(&state);
  if (!state.status) state.status = ir_graph_verify(state.graph);
  if (state.status) {
    ir_graph_destroy(state.graph);
    return state.status;
  }
  *out = state.graph;
  return NULL;
}
