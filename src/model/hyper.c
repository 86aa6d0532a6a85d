/* Hyper-parameters: one table of fields, each with its keys in config.json and in GGUF metadata, read into a model; then what varies by
 * layer (windows, rotary embedding). Rotary rules themselves are in rope.c, tensors in tensors.c. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model_internal.h"

typedef enum field_kind { FIELD_COUNT_OF, FIELD_NUMBER, FIELD_BOOL } field_kind;

typedef struct field {
  field_kind kind;
  size_t offset;
  uint32_t feature; /* 0: every family reads it */
  bool required;    /* a count that must be there and positive */
  const char* hf[5];
  const char* gguf[3]; /* behind "ARCHITECTURE." */
} field;

#define AT(member) offsetof(model, member)
static const field fields[] = {
    {FIELD_COUNT_OF, AT(layers), 0, true, {"num_hidden_layers", "n_layer", "num_layers"}, {"block_count"}},
    {FIELD_COUNT_OF, AT(hidden), 0, true, {"hidden_size", "n_embd", "d_model"}, {"embedding_length"}},
    {FIELD_COUNT_OF, AT(heads), 0, true, {"num_attention_heads", "n_head"}, {"attention.head_count"}},
    {FIELD_COUNT_OF, AT(kv_heads), 0, false, {"num_key_value_heads"}, {"attention.head_count_kv"}},
    {FIELD_COUNT_OF, AT(head_dim), 0, false, {"head_dim"}, {"attention.key_length"}},
    {FIELD_COUNT_OF, AT(value_dim), 0, false, {"v_head_dim"}, {"attention.value_length"}},
    {FIELD_COUNT_OF, AT(feed_forward), 0, false, {"intermediate_size", "n_inner", "ffn_dim"}, {"feed_forward_length"}},
    {FIELD_COUNT_OF, AT(vocab), 0, false, {"vocab_size"}, {"vocab_size"}},
    {FIELD_COUNT_OF, AT(trained_context), 0, false, {"max_position_embeddings", "n_positions", "n_ctx"}, {"context_length"}},
    {FIELD_COUNT_OF, AT(experts), 0, false, {"num_local_experts", "num_experts", "n_routed_experts"}, {"expert_count"}},
    {FIELD_COUNT_OF, AT(sliding_window), READS_WINDOW, false, {"sliding_window"}, {"attention.sliding_window"}},
    {FIELD_NUMBER,
     AT(epsilon),
     0,
     false,
     {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"},
     {"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon"}},
    {FIELD_NUMBER, AT(attention_multiplier), READS_MULTIPLIERS, false, {"attention_multiplier"}, {"attention.scale"}},
    {FIELD_NUMBER, AT(embedding_multiplier), READS_MULTIPLIERS, false, {"embedding_multiplier"}, {"embedding_scale"}},
    {FIELD_NUMBER, AT(residual_multiplier), READS_MULTIPLIERS, false, {"residual_multiplier"}, {"residual_scale"}},
    {FIELD_NUMBER, AT(logit_scaling), READS_MULTIPLIERS, false, {"logits_scaling"}, {"logit_scale"}},
    {FIELD_NUMBER, AT(query_scalar), READS_QUERY_SCALAR, false, {"query_pre_attn_scalar"}, {NULL}},
    {FIELD_NUMBER, AT(attention_cap), READS_SOFT_CAPS, false, {"attn_logit_softcapping"}, {"attn_logit_softcapping"}},
    {FIELD_NUMBER, AT(logit_cap), READS_SOFT_CAPS, false, {"final_logit_softcapping"}, {"final_logit_softcapping"}},
    {FIELD_BOOL, AT(parallel), READS_PARALLEL, false, {"use_parallel_residual"}, {"use_parallel_residual"}},
    {FIELD_BOOL, AT(attention_bias), 0, false, {"attention_bias", "use_qkv_bias"}, {NULL}},
    {FIELD_BOOL, AT(tied), 0, false, {"tie_word_embeddings"}, {NULL}},
};

static genai_status* bad_value(const model* self, const char* key, const char* value, const char* expected) {
  return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %s is %s, expected %s", checkpoint_path(self->file), key, value, expected);
}

/* Stores a number read from `key` into the field. */
static genai_status* store(model* self, const field* into, const char* key, double value) {
  void* place = (char*)self + into->offset;
  char shown[40];
  snprintf(shown, sizeof shown, "%.10g", value);
  switch (into->kind) {
    case FIELD_COUNT_OF:
      if (!(value >= 0 && value <= INT32_MAX && value == floor(value)) || (into->required && value == 0)) {
        return bad_value(self, key, shown, into->required ? "a positive whole number" : "a whole number");
      }
      *(uint32_t*)place = (uint32_t)value;
      return NULL;
    case FIELD_NUMBER:
      if (!isfinite(value) || value < 0) return bad_value(self, key, shown, "a finite number that is not negative");
      if (into->offset == offsetof(model, epsilon)) {
        self->epsilon = (float)value;
      } else {
        *(double*)place = value;
      }
      return NULL;
    case FIELD_BOOL:
      *(bool*)place = value != 0;
      return NULL;
  }
  return NULL;
}

static genai_status* read_config_field(model* self, json_value config, const field* into, bool* found) {
  for (size_t i = 0; i < 5 && into->hf[i]; ++i) {
    json_value value = json_get(config, into->hf[i]);
    json_type type = json_type_of(value);
    if (type == JSON_ABSENT || (type == JSON_NULL && into->required)) continue;
    *found = true;
    if (type == JSON_NULL) {                                     /* an explicit "none", which beats the family's default */
      bool none = into->feature || into->offset == AT(kv_heads); /* null heads for keys: as many as for queries */
      if (into->kind == FIELD_COUNT_OF && !into->required && none) *(uint32_t*)((char*)self + into->offset) = 0;
      if (into->kind == FIELD_NUMBER && into->feature) *(double*)((char*)self + into->offset) = 0;
      return NULL;
    }
    if (type == JSON_BOOL && into->kind == FIELD_BOOL) return store(self, into, into->hf[i], json_bool(value, false));
    if (type != JSON_INTEGER && type != JSON_NUMBER) {
      return bad_value(self, into->hf[i], "of another type", into->kind == FIELD_BOOL ? "true or false" : "a number");
    }
    return store(self, into, into->hf[i], json_number(value, 0));
  }
  return NULL;
}

/* Some architectures store one value per layer; models whose layers differ in these are not handled. */
static genai_status* read_metadata_field(model* self, const field* into, bool* found) {
  for (size_t i = 0; i < 3 && into->gguf[i]; ++i) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", self->architecture, into->gguf[i]);
    const gguf_value* value = checkpoint_metadata(self->file, key);
    if (!value) continue;
    *found = true;
    if (value->type == GGUF_ARRAY) {
      if (value->element == GGUF_STRING || value->element == GGUF_ARRAY || value->count == 0) {
        return bad_value(self, key, "an array of another type", "a number");
      }
      double first = gguf_array_number(value, 0);
      for (uint64_t j = 1; j < value->count; ++j) {
        if (gguf_array_number(value, j) != first) {
          return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s: %s differs between layers, which genai does not handle",
                                     checkpoint_path(self->file), key);
        }
      }
      return store(self, into, key, first);
    }
    if (value->type == GGUF_STRING) return bad_value(self, key, "a string", "a number");
    return store(self, into, key, checkpoint_metadata_number(self->file, key, (double)checkpoint_metadata_integer(self->file, key, 0)));
  }
  return NULL;
}

json_value hyper_decoder_config(const checkpoint* file) {
  json_value config = checkpoint_config(file), inner = json_get(config, "text_config");
  return json_type_of(inner) == JSON_OBJECT ? inner : config;
}

static genai_status* read_activation(model* self, json_value config) {
  static const char* const keys[] = {"hidden_act", "hidden_activation", "activation_function"};
  static const struct {
    const char* name;
    activation_kind kind;
  } known[] = {{"silu", ACTIVATION_SILU},          {"swish", ACTIVATION_SILU},          {"gelu_pytorch_tanh", ACTIVATION_GELU_TANH},
               {"gelu_new", ACTIVATION_GELU_TANH}, {"gelu_tanh", ACTIVATION_GELU_TANH}, {"gelu_fast", ACTIVATION_GELU_TANH},
               {"gelu", ACTIVATION_GELU_ERF}};
  for (size_t i = 0; i < 3; ++i) {
    text_view name = json_string(json_get(config, keys[i]));
    if (!name.data) continue;
    for (size_t j = 0; j < sizeof known / sizeof *known; ++j) {
      if (!text_view_equal_cstr(name, known[j].name)) continue;
      self->activation = known[j].kind;
      if (known[j].kind == ACTIVATION_GELU_ERF && self->family->features & GELU_MEANS_TANH) self->activation = ACTIVATION_GELU_TANH;
      return NULL;
    }
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s: %s is \"%.*s\"; genai knows silu, gelu and gelu_pytorch_tanh",
                               checkpoint_path(self->file), keys[i], (int)(name.length < 60 ? name.length : 60), name.data);
  }
  return NULL;
}

/* What the family's row says before the file is asked. */
static void set_defaults(model* self) {
  const family* row = self->family;
  self->epsilon = row->epsilon;
  self->head_dim = self->gguf ? 0 : row->head_dim;
  self->heads = self->gguf ? 0 : row->heads;
  self->kv_heads = self->gguf ? 0 : row->kv_heads;
  self->sliding_window = self->gguf ? 0 : row->window_size;
  self->attention_multiplier = self->gguf ? 0.0 : (double)row->attention_multiplier;
  self->query_scalar = (double)row->query_scalar;
  self->attention_cap = (double)row->attention_cap;
  self->logit_cap = (double)row->logit_cap;
  self->activation = row->activation;
  self->tied = !self->gguf && (row->features & TIED_BY_DEFAULT);
  self->parallel = row->features & PARALLEL;
  self->norm_add = self->gguf ? 0.0f : row->norm_add;
  self->rotary_interleaved = row->features & (self->gguf ? ROTARY_INTERLEAVED_GGUF : ROTARY_INTERLEAVED_HF);
}

static genai_status* check(const model* self) {
  const char* path = checkpoint_path(self->file);
  if (self->experts > 1) {
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s: a mixture of %u experts; genai handles dense models only", path,
                               self->experts);
  }
  if (self->kv_heads == 0 || self->heads % self->kv_heads) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %u attention heads cannot share %u key-value heads evenly", path, self->heads,
                               self->kv_heads);
  }
  if (self->head_dim == 0 || self->head_dim > 4096 || self->heads > 65536 || self->hidden > 1u << 20 || self->feed_forward > 1u << 24) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: hidden size %u, %u heads of %u and feed-forward size %u are no plausible decoder",
                               path, self->hidden, self->heads, self->head_dim, self->feed_forward);
  }
  if (self->value_dim && self->value_dim != self->head_dim) {
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s: value heads of %u and key heads of %u; genai needs them equal", path,
                               self->value_dim, self->head_dim);
  }
  if (self->layers > 4096) return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %u layers", path, self->layers);
  return NULL;
}

/* Encoders that are made from decoders share their names, shapes and tensors, and differ in the mask alone. */
static genai_status* refuse_encoders(const model* self, json_value config) {
  json_value both = json_get(config, "use_bidirectional_attention");
  json_type type = json_type_of(both);
  bool asked = type != JSON_ABSENT && type != JSON_NULL && (type != JSON_BOOL || json_bool(both, false));
  if (!asked && json_bool(json_get(config, "is_causal"), true)) return NULL;
  return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                             "%s: %s: every token sees the ones behind it, as in models that make embeddings; genai builds decoders, which "
                             "do not",
                             checkpoint_path(self->file), asked ? "use_bidirectional_attention is set" : "is_causal is false");
}

genai_status* hyper_read(model* self, json_value config) {
  const family* row = self->family;
  set_defaults(self);
  GENAI_TRY(refuse_encoders(self, config));
  if (!self->gguf && row->qk_norm == QK_NORM_NONE && json_bool(json_get(config, "qk_layernorm"), false)) {
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s: qk_layernorm is true; genai knows the %s family without it",
                               checkpoint_path(self->file), row->name);
  }
  for (size_t i = 0; i < sizeof fields / sizeof *fields; ++i) {
    if (fields[i].feature && !(row->features & fields[i].feature)) continue;
    bool found = false;
    GENAI_TRY(self->gguf ? read_metadata_field(self, &fields[i], &found) : read_config_field(self, config, &fields[i], &found));
    if (!found && fields[i].required && *(const uint32_t*)((const char*)self + fields[i].offset) == 0) {
      return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %s%s%s is missing", checkpoint_path(self->file),
                                 self->gguf ? self->architecture : "config.json: ", self->gguf ? "." : "",
                                 self->gguf ? fields[i].gguf[0] : fields[i].hf[0]);
    }
  }
  if (!self->gguf) {
    GENAI_TRY(read_activation(self, config));
    /* Of a model with other parts, the whole may say so (transformers 5) or the decoder (before); false may be a default that nobody meant. */
    self->tied = self->tied || json_bool(json_get(checkpoint_config(self->file), "tie_word_embeddings"), false);
  }
  if (self->kv_heads == 0) self->kv_heads = self->heads;
  if (self->head_dim == 0) {
    if (self->hidden % self->heads) {
      return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: hidden size %u is no multiple of %u heads, and no head size is given",
                                 checkpoint_path(self->file), self->hidden, self->heads);
    }
    self->head_dim = self->hidden / self->heads;
  }
  if (self->feed_forward == 0 && row->features & PLAIN_FEED_FORWARD) self->feed_forward = 4 * self->hidden;
  if (row->adjust) row->adjust(self);
  return check(self);
}

static genai_status* check_layer_types(const model* self, json_value config) {
  json_value types = json_get(config, "layer_types"), value;
  json_iterator iterator = json_iterate(types);
  while (json_type_of(types) == JSON_ARRAY && json_next(&iterator, NULL, &value)) {
    text_view name = json_string(value);
    if (text_view_equal_cstr(name, "full_attention") || text_view_equal_cstr(name, "sliding_attention")) continue;
    return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                               "%s: layer_types has \"%.*s\"; genai builds layers of full_attention and sliding_attention",
                               checkpoint_path(self->file), (int)(name.length < 60 ? name.length : 60), name.data ? name.data : "");
  }
  return NULL;
}

/* Whether layer_types calls the layer a sliding one; -1 when it says nothing. */
static int layer_type(json_value config, uint32_t layer) {
  json_value types = json_get(config, "layer_types"), value;
  json_iterator iterator = json_iterate(types);
  for (uint32_t i = 0; json_type_of(types) == JSON_ARRAY && json_next(&iterator, NULL, &value); ++i) {
    if (i == layer) return text_view_equal_cstr(json_string(value), "sliding_attention");
  }
  return -1;
}

/* The same from a GGUF file's pattern: one flag per layer, or every how many layers attention is full; -1 when it says nothing. */
static int stored_pattern(const model* self, uint32_t layer) {
  char key[128];
  snprintf(key, sizeof key, "%s.attention.sliding_window_pattern", self->architecture);
  const gguf_value* value = checkpoint_metadata(self->file, key);
  if (!value) return -1;
  if (value->type == GGUF_ARRAY) {
    bool flags = value->element != GGUF_STRING && value->element != GGUF_ARRAY;
    return flags && layer < value->count ? gguf_array_number(value, layer) != 0 : -1;
  }
  int64_t nth = checkpoint_metadata_integer(self->file, key, 0);
  return nth < 1 ? -1 : (layer + 1) % (uint64_t)nth != 0;
}

/* Whether no_rope_layers, or the family's rhythm, leaves the layer its rotary embedding. */
static bool named_rotary(const model* self, json_value config, uint32_t layer) {
  const family* row = self->family;
  if (row->nope != NOPE_EVERY_NTH) return true;
  json_value list = self->gguf ? (json_value){0} : json_get(config, "no_rope_layers"), value;
  if (!self->gguf && json_type_of(list) == JSON_ARRAY) { /* 1: the layer has rotary embedding */
    json_iterator iterator = json_iterate(list);
    for (uint32_t i = 0; json_next(&iterator, NULL, &value); ++i) {
      if (i == layer) return json_integer(value, 1) != 0;
    }
  }
  int64_t nth = self->gguf ? row->nope_nth : json_integer(json_get(config, "no_rope_layer_interval"), row->nope_nth);
  return nth < 1 || (layer + 1) % (uint64_t)nth != 0;
}

static bool is_sliding(const model* self, json_value config, uint32_t layer) {
  const family* row = self->family;
  if (!self->sliding_window) return false;
  int named = self->gguf ? stored_pattern(self, layer) : layer_type(config, layer);
  switch (row->window) {
    case WINDOW_NONE:
      return false;
    case WINDOW_EVERY_LAYER:
      return true;
    case WINDOW_EXCEPT_EVERY_NTH: {
      if (named >= 0) return named;
      int64_t nth = row->window_nth;
      if (!self->gguf) {
        nth = json_integer(json_get(config, "_sliding_window_pattern"), json_integer(json_get(config, "sliding_window_pattern"), nth));
      }
      return nth < 1 || (layer + 1) % (uint64_t)nth != 0;
    }
    case WINDOW_FROM_LAYER:
      if (self->gguf || !json_bool(json_get(config, "use_sliding_window"), false)) return false;
      return named >= 0 ? named : (int64_t)layer >= json_integer(json_get(config, "max_window_layers"), 28);
    case WINDOW_WITHOUT_ROTARY:
      if (named >= 0) return named;
      return !self->gguf && json_bool(json_get(config, "use_sliding_window"), false) && !named_rotary(self, config, layer);
  }
  return false;
}

genai_status* hyper_read_layers(model* self, json_value config) {
  self->traits = arena_calloc(&self->memory, self->layers, sizeof *self->traits);
  if (!self->traits) return genai_status_out_of_memory();
  if (!self->gguf) GENAI_TRY(check_layer_types(self, config));
  bool any_sliding = false;
  for (uint32_t i = 0; i < self->layers; ++i) {
    layer_traits* traits = &self->traits[i];
    traits->sliding = is_sliding(self, config, i);
    traits->rotary = self->family->nope == NOPE_FULL_ATTENTION ? !self->sliding_window || traits->sliding : named_rotary(self, config, i);
    traits->rope = traits->sliding && self->n_ropes > 1;
    any_sliding = any_sliding || traits->sliding;
  }
  if (!any_sliding) self->sliding_window = 0;
  return NULL;
}
