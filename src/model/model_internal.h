/* What the files of this room share: the family row, the hyper-parameters of an opened model, and the tensors they lead to. */
#ifndef GENAI_MODEL_MODEL_INTERNAL_H
#define GENAI_MODEL_MODEL_INTERNAL_H

#include "model/model.h"

/* The tensors a decoder may have. Names are templates without the format's prefix and without ".weight"; %u is the layer. */
typedef enum model_slot {
  SLOT_EMBEDDING,
  SLOT_FINAL_NORM,
  SLOT_HEAD,
  SLOT_ATTENTION_NORM,
  SLOT_QUERY,
  SLOT_KEY,
  SLOT_VALUE,
  SLOT_QKV, /* the three fused */
  SLOT_OUTPUT,
  SLOT_QUERY_NORM,
  SLOT_KEY_NORM,
  SLOT_ATTENTION_POST_NORM,
  SLOT_FEED_FORWARD_NORM,
  SLOT_GATE,
  SLOT_UP,
  SLOT_GATE_UP, /* the two fused: gate rows, then up rows */
  SLOT_DOWN,
  SLOT_FEED_FORWARD_POST_NORM,
  SLOT_COUNT
} model_slot;

typedef struct slot_name {
  model_slot slot;
  const char* name;
} slot_name;

typedef enum norm_kind { NORM_RMS, NORM_LAYER } norm_kind;
typedef enum qk_norm_kind { QK_NORM_NONE, QK_NORM_HEAD, QK_NORM_WHOLE /* over the whole projection */ } qk_norm_kind;
typedef enum activation_kind { ACTIVATION_SILU, ACTIVATION_GELU_TANH, ACTIVATION_GELU_ERF } activation_kind;
typedef enum qkv_layout {
  QKV_CONSECUTIVE, /* all query rows, all key rows, all value rows */
  QKV_FOUR_GROUPS  /* CodeGen: four groups, each with its query, value and key rows */
} qkv_layout;
typedef enum window_pattern {
  WINDOW_NONE,
  WINDOW_EVERY_LAYER,      /* when the checkpoint names a window */
  WINDOW_EXCEPT_EVERY_NTH, /* layer_types, or full attention in layers n-1, 2n-1, ... */
  WINDOW_FROM_LAYER,       /* use_sliding_window, and then from layer max_window_layers on */
  WINDOW_WITHOUT_ROTARY    /* layer_types, or with use_sliding_window the layers without rotary embedding */
} window_pattern;
typedef enum nope_pattern {
  NOPE_NEVER,
  NOPE_EVERY_NTH,     /* no_rope_layers, or layers n-1, 2n-1, ... without rotary embedding */
  NOPE_FULL_ATTENTION /* layers of full attention, in models that have windows */
} nope_pattern;

/* Which optional hyper-parameters a family reads; a key of the same name in another family's files is not looked at. */
enum {
  READS_MULTIPLIERS = 1u << 0, /* embedding, residual, attention and logit multipliers */
  READS_SOFT_CAPS = 1u << 1,
  READS_QUERY_SCALAR = 1u << 2, /* query_pre_attn_scalar */
  READS_WINDOW = 1u << 3,
  READS_PARALLEL = 1u << 4,   /* use_parallel_residual */
  LOCAL_ROPE = 1u << 5,       /* layers with a window have a rotary base of their own */
  SCALES_EMBEDDING = 1u << 6, /* by the root of the hidden size */
  PRE_NORM = 1u << 7,
  POST_NORM = 1u << 8,
  PARALLEL = 1u << 9,            /* attention and feed-forward read the same norm */
  PLAIN_FEED_FORWARD = 1u << 10, /* no gate */
  QKV_BIAS = 1u << 11,           /* always; elsewhere a bias is used where the checkpoint has one */
  FEED_FORWARD_BIAS = 1u << 12,
  HEAD_BIAS = 1u << 13,
  TIED_BY_DEFAULT = 1u << 14,         /* when config.json does not say */
  ROTARY_INTERLEAVED_HF = 1u << 15,   /* stored with pairs side by side, in Hugging Face files */
  ROTARY_INTERLEAVED_GGUF = 1u << 16, /* and in GGUF files */
  GELU_MEANS_TANH = 1u << 17          /* "gelu" in config.json is the tanh form */
};

/* A decoder family as data. Zero and NULL are the common case. */
typedef struct family {
  const char* name;
  const char* note;
  const char* types[4]; /* model_type in config.json, general.architecture in GGUF */
  uint32_t features;
  norm_kind norm;
  float norm_add; /* gamma = stored + this, in Hugging Face files (GGUF converters add it already) */
  float epsilon;  /* when the checkpoint does not say */
  qk_norm_kind qk_norm;
  activation_kind activation; /* where the checkpoint does not say */
  qkv_layout qkv;
  window_pattern window;
  uint32_t window_nth;  /* default of WINDOW_EXCEPT_EVERY_NTH */
  uint32_t window_size; /* default where the checkpoint does not say; 0: none */
  nope_pattern nope;
  uint32_t nope_nth;
  uint32_t head_dim;                            /* default; 0: hidden / heads */
  uint32_t heads, kv_heads;                     /* defaults; 0: the checkpoint must say */
  double theta, local_theta;                    /* defaults; 0: 10000 */
  double rotary_fraction;                       /* default of partial_rotary_factor; 0: 1, and the key is not read */
  float query_scalar, attention_cap, logit_cap; /* defaults */
  float attention_multiplier;                   /* default in Hugging Face files; 0: by head_dim */
  const slot_name* hf_names;                    /* overrides, ended by a NULL name */
  const slot_name* gguf_names;
  void (*adjust)(model* self); /* what no column above can say; runs after the hyper-parameters are read */
} family;

size_t family_count(void);
const family* family_at(size_t index);
/* GENAI_ERROR_UNSUPPORTED with the nearest known name when no row has this type. `what` names the key it came from. */
genai_status* family_find(const char* type, const char* what, const family** out) GENAI_MUST_USE;

typedef enum rope_kind {
  ROPE_PLAIN,
  ROPE_LINEAR,
  ROPE_LLAMA3,
  ROPE_YARN,
  ROPE_LONG,
  ROPE_DYNAMIC /* NTK: plain up to the trained context, beyond it another base for each length */
} rope_kind;

/* One rotary base and its long-context rule. */
typedef struct rope_rule {
  rope_kind kind;
  uint32_t rotary_dim;
  double theta;
  double factor;
  double low_frequency, high_frequency; /* llama3 */
  double original_context;              /* llama3, yarn, longrope, dynamic */
  double attention_factor;              /* of cos and sin; NaN: by the rule */
  double beta_fast, beta_slow, mscale, mscale_all_dim;
  bool keep_fractions;                       /* yarn with truncate = false */
  const float *long_factors, *short_factors; /* [rotary_dim / 2] */
  const float* divisors;                     /* [rotary_dim / 2] of the frequencies: GGUF rope_freqs; NULL: none */
} rope_rule;

/* Frequencies (radians per position) of each pair, and the factor of cos and sin, for a graph of this context length. */
void rope_frequencies(const rope_rule* rule, uint32_t context_length, double* frequencies, double* attention_factor);
/* cos and sin of positions [0, rows): tables [rows][rotary_dim / 2]. */
genai_status* rope_tables(const rope_rule* rule, uint32_t context_length, uint32_t rows, float* cosines, float* sines) GENAI_MUST_USE;
/* Reads rules[0] and, for families with LOCAL_ROPE, rules[1]. */
genai_status* rope_read_config(model* self, json_value config) GENAI_MUST_USE;
genai_status* rope_read_metadata(model* self) GENAI_MUST_USE;

typedef struct layer_traits {
  bool rotary;
  bool sliding;
  uint8_t rope; /* index into model.ropes */
} layer_traits;

struct model {
  arena memory;
  const checkpoint* file;
  const family* family;
  const char* architecture; /* the type as the file spells it; prefix of GGUF keys */
  const char* name;
  bool gguf;          /* GGUF or llama2.c: GGUF keys and names */
  const char* prefix; /* of Hugging Face tensor names, such as "model." */
  const char* slots[SLOT_COUNT];

  uint32_t layers, hidden, heads, kv_heads, head_dim, feed_forward, vocab, trained_context, sliding_window;
  uint32_t value_dim, experts; /* to refuse what is not handled */
  bool tied, parallel, attention_bias;
  activation_kind activation;
  bool rotary_interleaved;
  float norm_add, epsilon;
  double attention_multiplier, query_scalar;                       /* 0: by head_dim */
  double embedding_multiplier, residual_multiplier, logit_scaling; /* 0: none */
  double attention_cap, logit_cap;                                 /* 0: none */
  rope_rule ropes[2];
  uint32_t n_ropes;
  layer_traits* traits; /* [layers] */
  uint64_t parameters;
};

/* Fills the plain fields from config.json or metadata, whichever the checkpoint has. */
genai_status* hyper_read(model* self, json_value config) GENAI_MUST_USE;
/* config.json's decoder part: the root, or text_config in models with other parts. */
json_value hyper_decoder_config(const checkpoint* file);
genai_status* hyper_read_layers(model* self, json_value config) GENAI_MUST_USE;

/* Chooses names and prefix and checks every tensor the family needs. */
genai_status* tensors_check(model* self) GENAI_MUST_USE;
/* NULL when absent. `suffix` is "weight" or "bias". */
const checkpoint_tensor* tensors_find(const model* self, model_slot slot, uint32_t layer, const char* suffix);
bool tensors_fused_qkv(const model* self, uint32_t layer);
bool tensors_fused_gate_up(const model* self, uint32_t layer);

#endif
