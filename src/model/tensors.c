/* Names of a decoder's tensors in both formats, and the check that each one is there with the shape the hyper-parameters imply. */
#include <stdio.h>
#include <string.h>

#include "model_internal.h"

static const char* const hf_names[SLOT_COUNT] = {
    [SLOT_EMBEDDING] = "embed_tokens",
    [SLOT_FINAL_NORM] = "norm",
    [SLOT_HEAD] = "lm_head", /* beside the prefix, not behind it */
    [SLOT_ATTENTION_NORM] = "layers.%u.input_layernorm",
    [SLOT_QUERY] = "layers.%u.self_attn.q_proj",
    [SLOT_KEY] = "layers.%u.self_attn.k_proj",
    [SLOT_VALUE] = "layers.%u.self_attn.v_proj",
    [SLOT_QKV] = "layers.%u.self_attn.qkv_proj",
    [SLOT_OUTPUT] = "layers.%u.self_attn.o_proj",
    [SLOT_QUERY_NORM] = "layers.%u.self_attn.q_norm",
    [SLOT_KEY_NORM] = "layers.%u.self_attn.k_norm",
    [SLOT_FEED_FORWARD_NORM] = "layers.%u.post_attention_layernorm",
    [SLOT_GATE] = "layers.%u.mlp.gate_proj",
    [SLOT_UP] = "layers.%u.mlp.up_proj",
    [SLOT_GATE_UP] = "layers.%u.mlp.gate_up_proj",
    [SLOT_DOWN] = "layers.%u.mlp.down_proj",
};

static const char* const gguf_names[SLOT_COUNT] = {
    [SLOT_EMBEDDING] = "token_embd",
    [SLOT_FINAL_NORM] = "output_norm",
    [SLOT_HEAD] = "output",
    [SLOT_ATTENTION_NORM] = "blk.%u.attn_norm",
    [SLOT_QUERY] = "blk.%u.attn_q",
    [SLOT_KEY] = "blk.%u.attn_k",
    [SLOT_VALUE] = "blk.%u.attn_v",
    [SLOT_QKV] = "blk.%u.attn_qkv",
    [SLOT_OUTPUT] = "blk.%u.attn_output",
    [SLOT_QUERY_NORM] = "blk.%u.attn_q_norm",
    [SLOT_KEY_NORM] = "blk.%u.attn_k_norm",
    [SLOT_ATTENTION_POST_NORM] = "blk.%u.post_attention_norm",
    [SLOT_FEED_FORWARD_NORM] = "blk.%u.ffn_norm",
    [SLOT_GATE] = "blk.%u.ffn_gate",
    [SLOT_UP] = "blk.%u.ffn_up",
    [SLOT_DOWN] = "blk.%u.ffn_down",
    [SLOT_FEED_FORWARD_POST_NORM] = "blk.%u.post_ffw_norm",
};

/* Where Hugging Face files keep the decoder: alone, inside a model with other parts, or without any prefix. */
static const char* const hf_prefixes[] = {"model.", "language_model.model.", "model.language_model.", "model.text_model.", "transformer.",
                                          ""};

typedef struct tensor_name {
  char text[192];
} tensor_name;

static tensor_name name_of(const model* self, model_slot slot, uint32_t layer, const char* suffix) {
  char stem[96];
  tensor_name name;
  const char* template = self->slots[slot] ? self->slots[slot] : "";
  const char* number = strstr(template, "%u");
  if (number) {
    snprintf(stem, sizeof stem, "%.*s%u%s", (int)(number - template), template, layer, number + 2);
  } else {
    snprintf(stem, sizeof stem, "%s", template);
  }
  const char* prefix = self->prefix;
  if (slot == SLOT_HEAD) prefix = !strncmp(prefix, "language_model.", 15) ? "language_model." : "";
  snprintf(name.text, sizeof name.text, "%s%s.%s", prefix, stem, suffix);
  return name;
}

const checkpoint_tensor* tensors_find(const model* self, model_slot slot, uint32_t layer, const char* suffix) {
  if (!self->slots[slot]) return NULL;
  return checkpoint_find(self->file, name_of(self, slot, layer, suffix).text);
}

bool tensors_fused_qkv(const model* self, uint32_t layer) {
  return tensors_find(self, SLOT_QKV, layer, "weight") != NULL;
}
bool tensors_fused_gate_up(const model* self, uint32_t layer) {
  return tensors_find(self, SLOT_GATE_UP, layer, "weight") != NULL;
}

static void choose_names(model* self) {
  memcpy(self->slots, self->gguf ? gguf_names : hf_names, sizeof self->slots);
  const slot_name* overrides = self->gguf ? self->family->gguf_names : self->family->hf_names;
  for (; overrides && overrides->name; ++overrides) self->slots[overrides->slot] = overrides->name;
  self->prefix = "";
  if (self->gguf) return;
  for (size_t i = 0; i < sizeof hf_prefixes / sizeof *hf_prefixes; ++i) {
    self->prefix = hf_prefixes[i];
    if (tensors_find(self, SLOT_EMBEDDING, 0, "weight")) return;
  }
  self->prefix = hf_prefixes[0];
}

/* Expects a matrix [rows, cols], or a vector [rows] when cols is 0. */
static genai_status* expect(model* self, model_slot slot, uint32_t layer, const char* suffix, uint64_t rows, uint64_t cols) {
  tensor_name name = name_of(self, slot, layer, suffix);
  const checkpoint_tensor* tensor = checkpoint_find(self->file, name.text);
  char wanted[64];
  snprintf(wanted, sizeof wanted, cols ? "[%llu, %llu]" : "[%llu]", (unsigned long long)rows, (unsigned long long)cols);
  if (!tensor) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: tensor %s is missing; expected one of shape %s for a %s model of %u layers",
                               checkpoint_path(self->file), name.text, wanted, self->family->name, self->layers);
  }
  if (tensor->rank == (cols ? 2u : 1u) && tensor->dims[0] == rows && (!cols || tensor->dims[1] == cols)) {
    self->parameters += rows * (cols ? cols : 1);
    return NULL;
  }
  char found[128];
  int length = snprintf(found, sizeof found, "[");
  for (uint32_t i = 0; i < tensor->rank && i < 4; ++i) {
    length += snprintf(found + length, sizeof found - (size_t)length, "%s%llu", i ? ", " : "", (unsigned long long)tensor->dims[i]);
  }
  return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: tensor %s has shape %s], expected %s", checkpoint_path(self->file), name.text,
                             found, wanted);
}

/* A linear layer [rows, cols]; its bias when required or there. */
static genai_status* expect_linear(model* self, model_slot slot, uint32_t layer, uint64_t rows, uint64_t cols, bool bias) {
  GENAI_TRY(expect(self, slot, layer, "weight", rows, cols));
  if (!bias && !tensors_find(self, slot, layer, "bias")) return NULL;
  return expect(self, slot, layer, "bias", rows, 0);
}

static genai_status* expect_norm(model* self, model_slot slot, uint32_t layer, uint64_t length) {
  GENAI_TRY(expect(self, slot, layer, "weight", length, 0));
  if (!tensors_find(self, slot, layer, "bias")) return NULL;
  return expect(self, slot, layer, "bias", length, 0);
}

static genai_status* check_attention(model* self, uint32_t layer) {
  uint64_t queries = (uint64_t)self->heads * self->head_dim, keys = (uint64_t)self->kv_heads * self->head_dim;
  bool bias = self->family->features & QKV_BIAS || self->attention_bias;
  if (self->family->qk_norm == QK_NORM_NONE && tensors_find(self, SLOT_QUERY_NORM, layer, "weight")) {
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s: tensor %s is there, but the %s family is known without query and key norms",
                               checkpoint_path(self->file), name_of(self, SLOT_QUERY_NORM, layer, "weight").text, self->family->name);
  }
  if (tensors_fused_qkv(self, layer)) {
    if (self->family->qkv == QKV_FOUR_GROUPS && (self->heads % 4 || self->kv_heads != self->heads)) {
      return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %u heads and %u key-value heads cannot be stored in four groups",
                                 checkpoint_path(self->file), self->heads, self->kv_heads);
    }
    GENAI_TRY(expect_linear(self, SLOT_QKV, layer, queries + 2 * keys, self->hidden, bias));
  } else if (!self->slots[SLOT_QUERY]) {
    return expect(self, SLOT_QKV, layer, "weight", queries + 2 * keys, self->hidden);
  } else {
    GENAI_TRY(expect_linear(self, SLOT_QUERY, layer, queries, self->hidden, bias));
    GENAI_TRY(expect_linear(self, SLOT_KEY, layer, keys, self->hidden, bias));
    GENAI_TRY(expect_linear(self, SLOT_VALUE, layer, keys, self->hidden, bias));
  }
  GENAI_TRY(expect_linear(self, SLOT_OUTPUT, layer, self->hidden, queries, false));
  if (self->family->qk_norm == QK_NORM_NONE) return NULL;
  bool whole = self->family->qk_norm == QK_NORM_WHOLE;
  GENAI_TRY(expect_norm(self, SLOT_QUERY_NORM, layer, whole ? queries : self->head_dim));
  return expect_norm(self, SLOT_KEY_NORM, layer, whole ? keys : self->head_dim);
}

static genai_status* check_feed_forward(model* self, uint32_t layer) {
  uint32_t features = self->family->features;
  bool bias = features & FEED_FORWARD_BIAS;
  if (features & PLAIN_FEED_FORWARD) {
    GENAI_TRY(expect_linear(self, SLOT_UP, layer, self->feed_forward, self->hidden, bias));
  } else if (tensors_fused_gate_up(self, layer)) {
    GENAI_TRY(expect_linear(self, SLOT_GATE_UP, layer, 2 * (uint64_t)self->feed_forward, self->hidden, bias));
  } else {
    GENAI_TRY(expect_linear(self, SLOT_GATE, layer, self->feed_forward, self->hidden, bias));
    GENAI_TRY(expect_linear(self, SLOT_UP, layer, self->feed_forward, self->hidden, bias));
  }
  return expect_linear(self, SLOT_DOWN, layer, self->hidden, self->feed_forward, bias);
}

static genai_status* check_layer(model* self, uint32_t layer) {
  uint32_t features = self->family->features;
  if (features & PRE_NORM) {
    GENAI_TRY(expect_norm(self, SLOT_ATTENTION_NORM, layer, self->hidden));
    if (!self->parallel) GENAI_TRY(expect_norm(self, SLOT_FEED_FORWARD_NORM, layer, self->hidden));
  }
  if (features & POST_NORM) {
    GENAI_TRY(expect_norm(self, SLOT_ATTENTION_POST_NORM, layer, self->hidden));
    GENAI_TRY(expect_norm(self, SLOT_FEED_FORWARD_POST_NORM, layer, self->hidden));
  }
  GENAI_TRY(check_attention(self, layer));
  return check_feed_forward(self, layer);
}

genai_status* tensors_check(model* self) {
  choose_names(self);
  const checkpoint_tensor* embedding = tensors_find(self, SLOT_EMBEDDING, 0, "weight");
  if (self->vocab == 0 && embedding && embedding->rank == 2 && embedding->dims[0] <= INT32_MAX) self->vocab = (uint32_t)embedding->dims[0];
  if (self->feed_forward == 0) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: the feed-forward size is missing", checkpoint_path(self->file));
  }
  GENAI_TRY(expect(self, SLOT_EMBEDDING, 0, "weight", self->vocab, self->hidden));
  if (self->vocab == 0)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: tensor \"%s\" has no rows; expected one for each token of the vocabulary",
                               checkpoint_path(self->file), embedding->name);
  GENAI_TRY(expect_norm(self, SLOT_FINAL_NORM, 0, self->hidden));
  /* GGUF has no key for it: a file without an output matrix shares the embedding. In Hugging Face files one that is there counts even where
   * config.json says that the two are tied, as in transformers 5: some fine-tuned models keep the key of the model they began with. */
  const checkpoint_tensor* matrix = tensors_find(self, SLOT_HEAD, 0, "weight");
  bool head = matrix && matrix->rank == 2;
  if (self->gguf || head) self->tied = !head;
  if (!self->tied) GENAI_TRY(expect_linear(self, SLOT_HEAD, 0, self->vocab, self->hidden, self->family->features & HEAD_BIAS));
  for (uint32_t i = 0; i < self->layers; ++i) GENAI_TRY(check_layer(self, i));
  return NULL;
}
