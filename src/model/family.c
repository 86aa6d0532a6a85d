/* The families: one row of data each. What a column means is in model_internal.h; a new family is a new row and, at most, one small
 * `adjust` function. Facts come from the reference implementations in transformers (models/NAME) and, for GGUF names and storage orders,
 * from the gguf package's tables and llama.cpp's converters. */
#include <string.h>

#include "base/text.h"
#include "model_internal.h"

static const slot_name gemma2_hf[] = {{SLOT_ATTENTION_POST_NORM, "layers.%u.post_attention_layernorm"},
                                      {SLOT_FEED_FORWARD_NORM, "layers.%u.pre_feedforward_layernorm"},
                                      {SLOT_FEED_FORWARD_POST_NORM, "layers.%u.post_feedforward_layernorm"},
                                      {SLOT_COUNT, NULL}};
static const slot_name post_norm_hf[] = {{SLOT_ATTENTION_POST_NORM, "layers.%u.post_attention_layernorm"},
                                         {SLOT_FEED_FORWARD_POST_NORM, "layers.%u.post_feedforward_layernorm"},
                                         {SLOT_COUNT, NULL}};
static const slot_name glm4_hf[] = {{SLOT_ATTENTION_POST_NORM, "layers.%u.post_self_attn_layernorm"},
                                    {SLOT_FEED_FORWARD_NORM, "layers.%u.post_attention_layernorm"},
                                    {SLOT_FEED_FORWARD_POST_NORM, "layers.%u.post_mlp_layernorm"},
                                    {SLOT_COUNT, NULL}};
/* Both halves of the gated feed-forward under one name. */
static const slot_name fused_up_gguf[] = {{SLOT_GATE_UP, "blk.%u.ffn_up"}, {SLOT_COUNT, NULL}};
static const slot_name codegen_hf[] = {{SLOT_EMBEDDING, "wte"},
                                       {SLOT_FINAL_NORM, "ln_f"},
                                       {SLOT_ATTENTION_NORM, "h.%u.ln_1"},
                                       {SLOT_QKV, "h.%u.attn.qkv_proj"},
                                       {SLOT_OUTPUT, "h.%u.attn.out_proj"},
                                       {SLOT_UP, "h.%u.mlp.fc_in"},
                                       {SLOT_DOWN, "h.%u.mlp.fc_out"},
                                       {SLOT_COUNT, NULL}};

static const slot_name starcoder2_hf[] = {{SLOT_UP, "layers.%u.mlp.c_fc"}, {SLOT_DOWN, "layers.%u.mlp.c_proj"}, {SLOT_COUNT, NULL}};
static const slot_name phi_hf[] = {{SLOT_FINAL_NORM, "final_layernorm"},
                                   {SLOT_OUTPUT, "layers.%u.self_attn.dense"},
                                   {SLOT_UP, "layers.%u.mlp.fc1"},
                                   {SLOT_DOWN, "layers.%u.mlp.fc2"},
                                   {SLOT_COUNT, NULL}};

/* GGUF does not store query_pre_attn_scalar. The 27B models alone do not use the head size: theirs is hidden / heads (recognised by the
 * layer count, as llama.cpp does). */
static void adjust_gemma2(model* self) {
  if (self->gguf && self->layers == 46) self->query_scalar = (double)self->hidden / self->heads;
  if (self->gguf && self->layers != 46) self->query_scalar = self->head_dim;
}
static void adjust_gemma3(model* self) {
  if (self->gguf && self->layers == 62) self->query_scalar = (double)self->hidden / self->heads;
  if (self->gguf && self->layers != 62) self->query_scalar = self->head_dim;
}

static const family families[] = {
    {.name = "llama",
     .note = "Llama 1 to 3.2, SmolLM 1 and 2, TinyLlama, llama2.c; in GGUF also Mistral",
     .types = {"llama"},
     .features = PRE_NORM | ROTARY_INTERLEAVED_GGUF,
     .epsilon = 1e-6f},
    {.name = "mistral",
     .note = "Mistral 7B and its kin in Hugging Face form",
     .types = {"mistral"},
     .features = PRE_NORM | READS_WINDOW | ROTARY_INTERLEAVED_GGUF,
     .epsilon = 1e-6f,
     .window = WINDOW_EVERY_LAYER,
     .window_size = 4096,
     .kv_heads = 8},
    {.name = "smollm3",
     .note = "SmolLM3",
     .types = {"smollm3"},
     .features = PRE_NORM | TIED_BY_DEFAULT | READS_WINDOW | ROTARY_INTERLEAVED_GGUF,
     .epsilon = 1e-6f,
     .window = WINDOW_WITHOUT_ROTARY,
     .kv_heads = 4,
     .nope = NOPE_EVERY_NTH,
     .nope_nth = 4,
     .theta = 2e6},
    {.name = "qwen2",
     .note = "Qwen 1.5, 2 and 2.5",
     .types = {"qwen2"},
     .features = PRE_NORM | QKV_BIAS | READS_WINDOW,
     .epsilon = 1e-6f,
     .window = WINDOW_FROM_LAYER,
     .window_size = 4096,
     .kv_heads = 32},
    {.name = "qwen3",
     .note = "Qwen3, dense",
     .types = {"qwen3"},
     .features = PRE_NORM | READS_WINDOW,
     .epsilon = 1e-6f,
     .qk_norm = QK_NORM_HEAD,
     .window = WINDOW_FROM_LAYER,
     .window_size = 4096,
     .head_dim = 128,
     .kv_heads = 32},
    {.name = "gemma",
     .note = "Gemma 1, CodeGemma",
     .types = {"gemma"},
     .features = PRE_NORM | SCALES_EMBEDDING | TIED_BY_DEFAULT | GELU_MEANS_TANH,
     .norm_add = 1.0f,
     .epsilon = 1e-6f,
     .activation = ACTIVATION_GELU_TANH,
     .head_dim = 256,
     .kv_heads = 16},
    {.name = "gemma2",
     .note = "Gemma 2",
     .types = {"gemma2"},
     .features =
         PRE_NORM | POST_NORM | SCALES_EMBEDDING | TIED_BY_DEFAULT | GELU_MEANS_TANH | READS_SOFT_CAPS | READS_QUERY_SCALAR | READS_WINDOW,
     .norm_add = 1.0f,
     .epsilon = 1e-6f,
     .activation = ACTIVATION_GELU_TANH,
     .window = WINDOW_EXCEPT_EVERY_NTH,
     .window_nth = 2,
     .window_size = 4096,
     .head_dim = 256,
     .kv_heads = 4,
     .query_scalar = 256.0f,
     .attention_cap = 50.0f,
     .logit_cap = 30.0f,
     .hf_names = gemma2_hf,
     .adjust = adjust_gemma2},
    {.name = "gemma3",
     .note = "Gemma 3, text",
     .types = {"gemma3_text", "gemma3"},
     .features = PRE_NORM | POST_NORM | SCALES_EMBEDDING | TIED_BY_DEFAULT | GELU_MEANS_TANH | READS_SOFT_CAPS | READS_QUERY_SCALAR |
                 READS_WINDOW | LOCAL_ROPE,
     .norm_add = 1.0f,
     .epsilon = 1e-6f,
     .qk_norm = QK_NORM_HEAD,
     .activation = ACTIVATION_GELU_TANH,
     .window = WINDOW_EXCEPT_EVERY_NTH,
     .window_nth = 6,
     .window_size = 4096,
     .head_dim = 256,
     .heads = 8,
     .kv_heads = 4,
     .theta = 1e6,
     .local_theta = 1e4,
     .query_scalar = 256.0f,
     .hf_names = gemma2_hf,
     .adjust = adjust_gemma3},
    {.name = "phi3",
     .note = "Phi-3, Phi-3.5, Phi-4, Phi-4-mini",
     .types = {"phi3"},
     .features = PRE_NORM | READS_WINDOW,
     .epsilon = 1e-5f,
     .window = WINDOW_EVERY_LAYER,
     .rotary_fraction = 1.0,
     .gguf_names = fused_up_gguf},
    {.name = "granite",
     .note = "Granite 3, dense",
     .types = {"granite"},
     .features = PRE_NORM | READS_MULTIPLIERS | ROTARY_INTERLEAVED_GGUF,
     .epsilon = 1e-6f,
     .attention_multiplier = 1.0f},
    {.name = "olmo2",
     .note = "OLMo 2",
     .types = {"olmo2"},
     .features = POST_NORM,
     .epsilon = 1e-5f,
     .qk_norm = QK_NORM_WHOLE,
     .hf_names = post_norm_hf},
    {.name = "glm",
     .note = "GLM-4 9B in its transformers form, GLM-Edge",
     .types = {"glm"},
     .features = PRE_NORM | ROTARY_INTERLEAVED_HF,
     .epsilon = 1.5625e-7f,
     .head_dim = 128,
     .kv_heads = 2,
     .rotary_fraction = 0.5},
    {.name = "glm4",
     .note = "GLM-4-0414, dense",
     .types = {"glm4"},
     .features = PRE_NORM | POST_NORM | ROTARY_INTERLEAVED_HF | ROTARY_INTERLEAVED_GGUF,
     .epsilon = 1.5625e-7f,
     .head_dim = 128,
     .kv_heads = 2,
     .rotary_fraction = 0.5,
     .hf_names = glm4_hf,
     .gguf_names = fused_up_gguf},
    {.name = "exaone4",
     .note = "EXAONE 4",
     .types = {"exaone4"},
     .features = POST_NORM | READS_WINDOW,
     .epsilon = 1e-5f,
     .qk_norm = QK_NORM_HEAD,
     .window = WINDOW_EXCEPT_EVERY_NTH,
     .window_nth = 4,
     .window_size = 4096,
     .kv_heads = 32,
     .nope = NOPE_FULL_ATTENTION,
     .hf_names = post_norm_hf},
    {.name = "stablelm",
     .note = "StableLM 2 1.6B and StableLM 3B",
     .types = {"stablelm"},
     .features = PRE_NORM | READS_PARALLEL,
     .norm = NORM_LAYER,
     .epsilon = 1e-5f,
     .kv_heads = 32,
     .rotary_fraction = 0.25},
    {.name = "starcoder2",
     .note = "StarCoder2",
     .types = {"starcoder2"},
     .features = PRE_NORM | PLAIN_FEED_FORWARD | READS_WINDOW | TIED_BY_DEFAULT,
     .norm = NORM_LAYER,
     .epsilon = 1e-5f,
     .activation = ACTIVATION_GELU_TANH,
     .window = WINDOW_EVERY_LAYER,
     .kv_heads = 2,
     .hf_names = starcoder2_hf},
    {.name = "phi",
     .note = "Phi-1, Phi-1.5, Phi-2",
     .types = {"phi", "phi2"},
     .features = PRE_NORM | PARALLEL | PLAIN_FEED_FORWARD | QKV_BIAS | FEED_FORWARD_BIAS | HEAD_BIAS,
     .norm = NORM_LAYER,
     .epsilon = 1e-5f,
     .activation = ACTIVATION_GELU_TANH,
     .rotary_fraction = 0.5,
     .hf_names = phi_hf},
    {.name = "codegen",
     .note = "CodeGen 1 and 2",
     .types = {"codegen"},
     .features = PRE_NORM | PARALLEL | PLAIN_FEED_FORWARD | FEED_FORWARD_BIAS | HEAD_BIAS | ROTARY_INTERLEAVED_HF,
     .norm = NORM_LAYER,
     .epsilon = 1e-5f,
     .activation = ACTIVATION_GELU_TANH,
     .qkv = QKV_FOUR_GROUPS,
     .hf_names = codegen_hf},
};

enum { FAMILIES = sizeof families / sizeof *families };

size_t family_count(void) {
  return FAMILIES;
}
const family* family_at(size_t index) {
  return index < FAMILIES ? &families[index] : NULL;
}

/* Architectures that are not built, by the beginning of their names, and why. */
static const struct {
  const char *type, *reason;
} refused[] = {
    {"gemma4", "it has an embedding for each layer and layers that share key-value caches"},
    {"gemma3n", "it has an embedding for each layer and layers that share key-value caches"},
    {"mixtral", "it is a mixture of experts"},
    {"qwen2_moe", "it is a mixture of experts"},
    {"qwen2moe", "it is a mixture of experts"},
    {"qwen3_moe", "it is a mixture of experts"},
    {"qwen3moe", "it is a mixture of experts"},
    {"olmoe", "it is a mixture of experts"},
    {"granitemoehybrid", "it may have state-space layers and experts"},
    {"granitehybrid", "it may have state-space layers and experts"},
    {"granitemoe", "it is a mixture of experts"},
    {"llama4", "it is a mixture of experts"},
    {"gpt_oss", "it is a mixture of experts with attention sinks"},
    {"gpt-oss", "it is a mixture of experts with attention sinks"},
    {"deepseek", "it has latent attention or a mixture of experts"},
    {"minicpm3", "it has latent attention"},
    {"mamba", "it is a state-space model"},
    {"falcon_mamba", "it is a state-space model"},
    {"jamba", "it has state-space layers"},
    {"qwen3_next", "it has layers of linear attention"},
    {"qwen3next", "it has layers of linear attention"},
    {"qwen3_5", "it has layers of linear attention"},
    {"lfm2", "it has convolution layers"},
    {"rwkv", "it is a recurrent model"},
    {"bert", "it is an encoder, not a decoder"},
    {"t5", "it is an encoder and decoder"},
};

static const char* reason_to_refuse(const char* type) {
  for (size_t i = 0; i < sizeof refused / sizeof *refused; ++i) {
    if (!strncmp(type, refused[i].type, strlen(refused[i].type))) return refused[i].reason;
  }
  return NULL;
}

genai_status* family_find(const char* type, const char* what, const family** out) {
  const char* names[FAMILIES * 4];
  size_t count = 0;
  for (size_t i = 0; i < FAMILIES; ++i) {
    for (size_t j = 0; j < 4 && families[i].types[j]; ++j) {
      if (!strcmp(families[i].types[j], type)) {
        *out = &families[i];
        return NULL;
      }
      names[count++] = families[i].types[j];
    }
  }
  const char* reason = reason_to_refuse(type);
  if (reason) return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s \"%s\" is not built: %s", what, type, reason);
  const char* near = text_nearest(type, names, count);
  text known = {0};
  genai_status* status = NULL;
  for (size_t i = 0; i < FAMILIES && !status; ++i) status = text_printf(&known, "%s%s", i ? ", " : "", families[i].name);
  if (!status) {
    status = genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s \"%s\" is not a family genai knows%s%s%s; known families: %s", what, type,
                                 near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "", known.data);
  }
  text_deinit(&known);
  return status;
}

size_t model_family_count(void) {
  return FAMILIES;
}
const char* model_family_name(size_t index) {
  return index < FAMILIES ? families[index].name : NULL;
}
const char* model_family_note(size_t index) {
  return index < FAMILIES ? families[index].note : NULL;
}
