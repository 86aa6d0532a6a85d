/* Attention: projections, query and key norms, rotary embedding, the KV cache's slices, scores, mask, softmax, output projection.
 *
 * The scale of the scores (and the reciprocal of their soft cap) is folded into the query projection, or into the query norm's gamma where
 * there is one. Rotary embedding is always in the half-split form: checkpoints that store interleaved pairs have their query and key rows
 * permuted, which changes no score. Grouped queries share a key head by reshaping [1, heads, AR, D] to [1, kv_heads, group * AR, D],
 * because QNN's MatMul does not broadcast batch dimensions. */
#include <math.h>
#include <stdio.h>

#include "builder.h"

static linear_part projection(const builder* self, model_slot slot, double scale) {
  const model* m = self->model;
  uint64_t queries = (uint64_t)m->heads * m->head_dim, keys = (uint64_t)m->kv_heads * m->head_dim;
  linear_part part = {.slot = slot,
                      .rows = slot == SLOT_QUERY ? queries : keys,
                      .interleaved = m->rotary_interleaved && slot != SLOT_VALUE,
                      .scale = scale};
  if (!tensors_fused_qkv(m, (uint32_t)self->layer)) return part;
  part.slot = SLOT_QKV;
  switch (m->family->qkv) {
    case QKV_CONSECUTIVE:
      part.first_row = slot == SLOT_QUERY ? 0 : slot == SLOT_KEY ? queries : queries + keys;
      break;
    case QKV_FOUR_GROUPS: /* within a group: query, value, key */
      part.group_rows = queries / 4;
      part.group_stride = 3 * part.group_rows;
      part.first_row = part.group_rows * (slot == SLOT_QUERY ? 0 : slot == SLOT_VALUE ? 1 : 2);
      break;
  }
  return part;
}

/* x [1, heads, AR, D] with its first rotary_dim dimensions turned by the position's angles. */
static ir_tensor* rotate(builder* self, const char* stem, ir_tensor* x, const layer_traits* traits) {
  if (self->status) return NULL;
  uint32_t half = self->model->ropes[traits->rope].rotary_dim / 2, head_dim = x->dims[3];
  ir_tensor *cosines = self->cosines[traits->rope], *sines = self->sines[traits->rope];
  char name[8][48];
  static const char* const suffixes[8] = {"first", "second", "first_cos", "second_sin", "second_cos", "first_sin", "low", "high"};
  for (int i = 0; i < 8; ++i) snprintf(name[i], sizeof name[i], "%s_rope.%s", stem, suffixes[i]);
  ir_tensor* first = builder_slice(self, name[0], x, 3, 0, half);
  ir_tensor* second = builder_slice(self, name[1], x, 3, half, 2 * half);
  ir_tensor* first_cos = builder_binary(self, IR_MULTIPLY, name[2], first, cosines);
  ir_tensor* second_sin = builder_binary(self, IR_MULTIPLY, name[3], second, sines);
  ir_tensor* second_cos = builder_binary(self, IR_MULTIPLY, name[4], second, cosines);
  ir_tensor* first_sin = builder_binary(self, IR_MULTIPLY, name[5], first, sines);
  ir_tensor* parts[3] = {builder_binary(self, IR_SUBTRACT, name[6], first_cos, second_sin),
                         builder_binary(self, IR_ADD, name[7], second_cos, first_sin), NULL};
  uint32_t n_parts = 2;
  char rest[48], whole[48];
  snprintf(rest, sizeof rest, "%s_rope.rest", stem);
  snprintf(whole, sizeof whole, "%s_rope", stem);
  if (2 * half < head_dim) parts[n_parts++] = builder_slice(self, rest, x, 3, 2 * half, head_dim);
  return builder_concat(self, whole, parts, n_parts, 3);
}

/* The normalised Hadamard matrix (Sylvester's construction), which is its own inverse: scores do not change. */
static ir_tensor* hadamard(builder* self, const char* name, ir_tensor* x) {
  if (self->status) return NULL;
  uint32_t size = x->dims[3];
  ir_tensor* matrix = ir_graph_find(self->graph, MODEL_HADAMARD_WEIGHT);
  if (!matrix) {
    float* values = mem_realloc_array(NULL, (size_t)size * size, sizeof *values);
    if (!values) {
      builder_fail(self, genai_status_out_of_memory());
      return NULL;
    }
    float unit = (float)(1.0 / sqrt(size));
    for (uint32_t i = 0; i < size; ++i) {
      for (uint32_t j = 0; j < size; ++j) values[(size_t)i * size + j] = __builtin_parity(i & j) ? -unit : unit;
    }
    matrix = builder_constant(self, MODEL_HADAMARD_WEIGHT, 4, (uint32_t[]){1, 1, size, size}, size, size, values);
    mem_free(values);
  }
  return builder_op(self, IR_CONV2D, name, (ir_tensor*[]){x, matrix}, 2, 4, x ? x->dims : NULL, NULL);
}

/* [1, 1, AR, heads * D] to [1, heads, AR, D], normed and rotated as the layer wants it. */
static ir_tensor* heads_of(builder* self, const char* stem, ir_tensor* projected, uint32_t heads, model_slot norm, double norm_scale) {
  if (self->status) return NULL;
  const model* m = self->model;
  const layer_traits* traits = &m->traits[self->layer];
  char name[48];
  qk_norm_kind kind = norm == SLOT_COUNT ? QK_NORM_NONE : m->family->qk_norm;
  ir_tensor* x = projected;
  snprintf(name, sizeof name, "%s_norm", stem);
  if (kind == QK_NORM_WHOLE) x = builder_norm(self, name, x, norm, norm_scale, m->rotary_interleaved);
  char heads_name[48];
  snprintf(heads_name, sizeof heads_name, "%s_heads", stem);
  x = builder_reshape(self, heads_name, x, 4, (uint32_t[]){1, self->ar, heads, m->head_dim});
  if (kind == QK_NORM_HEAD) x = builder_norm(self, name, x, norm, norm_scale, m->rotary_interleaved);
  snprintf(name, sizeof name, "%s_transpose", stem);
  x = builder_transpose(self, name, x, (uint32_t[]){0, 2, 1, 3});
  if (norm == SLOT_COUNT) return x;
  if (traits->rotary) x = rotate(self, stem, x, traits);
  if (!self->options->rotate_qk) return x;
  snprintf(name, sizeof name, "%s_rotate", stem);
  return hadamard(self, name, x);
}

/* The new slice in the cache's encoding, and the whole window it completes. */
static ir_tensor* extend_cache(builder* self, const char* out_name, const char* window_name, ir_tensor* fresh, ir_tensor* past,
                               int32_t axis, ir_tensor** out) {
  const char* part = self->part;
  self->part = NULL; /* "layer3.key_out": the boundary's names do not mention the block */
  *out = builder_unary(self, IR_CONVERT, out_name, fresh);
  self->part = part;
  return past ? builder_concat(self, window_name, (ir_tensor*[]){past, *out}, 2, axis) : *out;
}

ir_tensor* build_attention(builder* self, ir_tensor* x, double output_scale) {
  const model* m = self->model;
  uint32_t ar = self->ar, context = self->context, layer = (uint32_t)self->layer, group = m->heads / m->kv_heads;
  self->part = "attention";
  double scale = 1.0 / sqrt(m->query_scalar > 0 ? m->query_scalar : m->head_dim);
  if (m->attention_multiplier > 0) scale = m->attention_multiplier;
  if (m->attention_cap > 0) scale /= m->attention_cap;
  bool normed = m->family->qk_norm != QK_NORM_NONE;

  linear_part query_part = projection(self, SLOT_QUERY, normed ? 1.0 : scale), key_part = projection(self, SLOT_KEY, 1.0),
              value_part = projection(self, SLOT_VALUE, 1.0);
  ir_tensor* query = builder_linear(self, "q_proj", x, &query_part);
  ir_tensor* key = builder_linear(self, "k_proj", x, &key_part);
  ir_tensor* value = builder_linear(self, "v_proj", x, &value_part);
  query = heads_of(self, "q", query, m->heads, SLOT_QUERY_NORM, normed ? scale : 1.0);
  key = heads_of(self, "k", key, m->kv_heads, SLOT_KEY_NORM, 1.0);
  value = heads_of(self, "v", value, m->kv_heads, SLOT_COUNT, 1.0);
  key = builder_transpose(self, "k_columns", key, (uint32_t[]){0, 1, 3, 2});
  key = extend_cache(self, "key_out", "keys", key, self->keys_in[layer], 3, &self->keys_out[layer]);
  value = extend_cache(self, "value_out", "values", value, self->values_in[layer], 2, &self->values_out[layer]);

  uint32_t grouped[4] = {1, m->kv_heads, group * ar, context}, masked[4] = {m->kv_heads, group, ar, context};
  query = builder_reshape(self, "q_groups", query, 4, (uint32_t[]){1, m->kv_heads, group * ar, m->head_dim});
  ir_tensor* scores = builder_op(self, IR_MATMUL, "scores", (ir_tensor*[]){query, key}, 2, 4, grouped, NULL);
  if (m->attention_cap > 0) {
    scores = builder_unary(self, IR_TANH, "scores_tanh", scores);
    scores = builder_binary(self, IR_MULTIPLY, "scores_cap", scores, builder_scalar(self, "attention_cap", (float)m->attention_cap));
  }
  scores = builder_reshape(self, "scores_heads", scores, 4, masked);
  bool sliding = self->sliding && m->traits[layer].sliding;
  scores = builder_binary(self, IR_ADD, "scores_masked", scores, sliding ? self->mask_sliding : self->mask);
  ir_tensor* weights = builder_unary(self, IR_SOFTMAX, "softmax", scores);
  weights = builder_reshape(self, "weights", weights, 4, grouped);
  ir_tensor* mixed =
      builder_op(self, IR_MATMUL, "mix", (ir_tensor*[]){weights, value}, 2, 4, (uint32_t[]){1, m->kv_heads, group * ar, m->head_dim}, NULL);
  mixed = builder_reshape(self, "mix_heads", mixed, 4, (uint32_t[]){1, m->heads, ar, m->head_dim});
  mixed = builder_transpose(self, "mix_transpose", mixed, (uint32_t[]){0, 2, 1, 3});
  mixed = builder_reshape(self, "mix_rows", mixed, 4, (uint32_t[]){1, 1, ar, m->heads * m->head_dim});
  linear_part output = {.slot = SLOT_OUTPUT, .rows = m->hidden, .scale = output_scale};
  ir_tensor* y = builder_linear(self, "o_proj", mixed, &output);
  self->part = NULL;
  return y;
}
