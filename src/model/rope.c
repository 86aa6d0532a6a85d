/* Rotary embedding rules: reading them from config.json or GGUF metadata, and the frequencies and tables they lead to. Formulas: RoPE
 * (arXiv 2104.09864), linear interpolation (2306.15595), Llama 3.1 (its reference code), YaRN (2309.00071), LongRoPE (2402.13753), with
 * the parameter names and defaults of transformers' modeling_rope_utils. All in double precision, because a position of 100,000 times a
 * frequency in single precision is off by 0.01 radians. */
#include <math.h>
#include <stdio.h>

#include "model_internal.h"

#define PI 3.14159265358979323846

static double yarn_scale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * log(factor) + 1.0;
}

/* The (fractional) pair that turns `rotations` times within the original context. */
static double yarn_pair(const rope_rule* rule, double rotations) {
  return rule->rotary_dim * log(rule->original_context / (rotations * 2 * PI)) / (2 * log(rule->theta));
}

static void yarn_frequencies(const rope_rule* rule, double* frequencies) {
  double low = yarn_pair(rule, rule->beta_fast), high = yarn_pair(rule, rule->beta_slow);
  if (!rule->keep_fractions) {
    low = floor(low);
    high = ceil(high);
  }
  low = fmax(low, 0);
  high = fmin(high, rule->rotary_dim - 1.0);
  if (low == high) high += 0.001;
  for (uint32_t i = 0; i < rule->rotary_dim / 2; ++i) {
    double interpolated = fmin(fmax((i - low) / (high - low), 0), 1);
    frequencies[i] *= interpolated / rule->factor + (1 - interpolated);
  }
}

static void llama3_frequencies(const rope_rule* rule, double* frequencies) {
  for (uint32_t i = 0; i < rule->rotary_dim / 2; ++i) {
    double wavelength = 2 * PI / frequencies[i];
    if (wavelength > rule->original_context / rule->low_frequency) {
      frequencies[i] /= rule->factor;
    } else if (wavelength >= rule->original_context / rule->high_frequency) {
      double smooth = (rule->original_context / wavelength - rule->low_frequency) / (rule->high_frequency - rule->low_frequency);
      frequencies[i] *= (1 - smooth) / rule->factor + smooth;
    }
  }
}

void rope_frequencies(const rope_rule* rule, uint32_t context_length, double* frequencies, double* attention_factor) {
  uint32_t half = rule->rotary_dim / 2;
  *attention_factor = isnan(rule->attention_factor) ? 1.0 : rule->attention_factor;
  for (uint32_t i = 0; i < half; ++i) frequencies[i] = pow(rule->theta, -2.0 * i / rule->rotary_dim);
  switch (rule->kind) {
    case ROPE_PLAIN:
    case ROPE_DYNAMIC: /* graphs end where it would begin */
      break;
    case ROPE_LINEAR:
      for (uint32_t i = 0; i < half; ++i) frequencies[i] /= rule->factor;
      break;
    case ROPE_LLAMA3:
      llama3_frequencies(rule, frequencies);
      break;
    case ROPE_YARN:
      yarn_frequencies(rule, frequencies);
      if (isnan(rule->attention_factor)) {
        *attention_factor = yarn_scale(rule->factor, 1.0);
        if (rule->mscale != 0 && rule->mscale_all_dim != 0) {
          *attention_factor = yarn_scale(rule->factor, rule->mscale) / yarn_scale(rule->factor, rule->mscale_all_dim);
        }
      }
      break;
    case ROPE_LONG: { /* a static graph serves one context length, so the list is chosen once, by that length */
      const float* factors = context_length > rule->original_context ? rule->long_factors : rule->short_factors;
      for (uint32_t i = 0; i < half; ++i) frequencies[i] /= (double)factors[i];
      if (isnan(rule->attention_factor) && rule->factor > 1) {
        *attention_factor = sqrt(1 + log(rule->factor) / log(rule->original_context));
      }
      break;
    }
  }
  for (uint32_t i = 0; rule->divisors && i < half; ++i) frequencies[i] /= (double)rule->divisors[i];
}

genai_status* rope_tables(const rope_rule* rule, uint32_t context_length, uint32_t rows, float* cosines, float* sines) {
  uint32_t half = rule->rotary_dim / 2;
  double* frequencies = mem_realloc_array(NULL, half, sizeof *frequencies);
  if (!frequencies) return genai_status_out_of_memory();
  double scale;
  rope_frequencies(rule, context_length, frequencies, &scale);
  for (uint32_t position = 0; position < rows; ++position) {
    for (uint32_t i = 0; i < half; ++i) {
      double angle = position * frequencies[i];
      cosines[(size_t)position * half + i] = (float)(cos(angle) * scale);
      sines[(size_t)position * half + i] = (float)(sin(angle) * scale);
    }
  }
  mem_free(frequencies);
  return NULL;
}

static genai_status* check(const model* self, const rope_rule* rule) {
  const char* path = checkpoint_path(self->file);
  if (rule->rotary_dim == 0 || rule->rotary_dim % 2 || rule->rotary_dim > self->head_dim) {
    return genai_status_create(GENAI_ERROR_BAD_FILE,
                               "%s: rotary embedding of %u of %u dimensions; expected an even number up to the head "
                               "size",
                               path, rule->rotary_dim, self->head_dim);
  }
  if (!(rule->theta > 0) || !isfinite(rule->theta)) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: rotary base %g, expected a positive number", path, rule->theta);
  }
  if (rule->kind != ROPE_PLAIN && !(rule->factor > 0 && isfinite(rule->factor))) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: rotary scaling factor %g, expected a positive number", path, rule->factor);
  }
  if (rule->kind > ROPE_LINEAR && !(rule->original_context >= 1)) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: rotary scaling needs %smax_position_embeddings", path,
                               rule->kind == ROPE_DYNAMIC ? "" : "original_");
  }
  if (rule->kind == ROPE_LLAMA3 && !(rule->high_frequency > rule->low_frequency && rule->low_frequency > 0)) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: llama3 rotary scaling with low_freq_factor %g and high_freq_factor %g", path,
                               rule->low_frequency, rule->high_frequency);
  }
  return NULL;
}

static genai_status* read_factors(model* self, json_value rule, const char* key, uint32_t rotary_dim, const float** out) {
  json_value list = json_get(rule, key), value;
  size_t count = json_type_of(list) == JSON_ARRAY ? json_count(list) : 0;
  if (count != rotary_dim / 2) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %s has %zu entries, expected one per rotary pair (%u)",
                               checkpoint_path(self->file), key, count, rotary_dim / 2);
  }
  float* factors = arena_calloc(&self->memory, count, sizeof *factors);
  if (!factors) return genai_status_out_of_memory();
  json_iterator iterator = json_iterate(list);
  for (size_t i = 0; json_next(&iterator, NULL, &value); ++i) {
    factors[i] = (float)json_number(value, 0);
    if (!(factors[i] > 0)) {
      return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %s[%zu] is not a positive number", checkpoint_path(self->file), key, i);
    }
  }
  *out = factors;
  return NULL;
}

static genai_status* unknown_kind(const model* self, text_view name) {
  return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                             "%s: rotary scaling \"%.*s\" is unknown; genai knows default, linear, llama3, yarn, longrope and dynamic",
                             checkpoint_path(self->file), (int)(name.length < 60 ? name.length : 60), name.data);
}

/* The name under rope_type or, in older files, type. */
static genai_status* read_kind(const model* self, json_value rule, rope_kind* out) {
  static const struct {
    const char* name;
    rope_kind kind;
  } known[] = {{"default", ROPE_PLAIN}, {"linear", ROPE_LINEAR}, {"llama3", ROPE_LLAMA3}, {"yarn", ROPE_YARN},
               {"longrope", ROPE_LONG}, {"su", ROPE_LONG},       {"mrope", ROPE_PLAIN},   {"dynamic", ROPE_DYNAMIC}};
  text_view name = json_string(json_get(rule, "rope_type"));
  if (!name.data) name = json_string(json_get(rule, "type"));
  *out = ROPE_PLAIN;
  if (!name.data) return NULL;
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (!text_view_equal_cstr(name, known[i].name)) continue;
    *out = known[i].kind;
    if (*out == ROPE_YARN && json_type_of(json_get(rule, "short_factor")) == JSON_ARRAY) *out = ROPE_LONG; /* early Phi-3 files */
    return NULL;
  }
  return unknown_kind(self, name);
}

/* `rule` may be absent (no scaling); `theta` is the base to use when neither it nor its surroundings name one. */
static genai_status* read_rule(model* self, json_value config, json_value rule, double theta, rope_rule* out) {
  bool given = json_type_of(rule) == JSON_OBJECT;
  bool partial = self->family->rotary_fraction > 0;
  double fraction = partial ? self->family->rotary_fraction : 1.0;
  if (partial) fraction = json_number(json_get(config, "rotary_pct"), json_number(json_get(config, "partial_rotary_factor"), fraction));
  *out = (rope_rule){.theta = theta, .factor = 1, .attention_factor = NAN, .beta_fast = 32, .beta_slow = 1};
  if (given) {
    out->theta = json_number(json_get(rule, "rope_theta"), theta);
    if (partial) fraction = json_number(json_get(rule, "partial_rotary_factor"), fraction);
    GENAI_TRY(read_kind(self, rule, &out->kind));
  }
  if (!(fraction > 0 && fraction <= 1)) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: partial_rotary_factor %g, expected a number in (0, 1]",
                               checkpoint_path(self->file), fraction);
  }
  int64_t rotary_dim = json_integer(json_get(config, "rotary_dim"), (int64_t)(self->head_dim * fraction));
  out->rotary_dim = rotary_dim > 0 && rotary_dim <= self->head_dim ? (uint32_t)rotary_dim : UINT32_MAX;
  if (out->kind == ROPE_PLAIN) return check(self, out);

  double original = json_number(json_get(rule, "original_max_position_embeddings"), self->trained_context);
  out->original_context = json_number(json_get(config, "original_max_position_embeddings"), original);
  if (out->kind == ROPE_DYNAMIC) out->original_context = self->trained_context;
  double stretched = out->original_context > 0 ? self->trained_context / out->original_context : 0;
  out->factor = json_number(json_get(rule, "factor"), out->kind == ROPE_LONG || out->kind == ROPE_YARN ? stretched : 0);
  out->low_frequency = json_number(json_get(rule, "low_freq_factor"), 1);
  out->high_frequency = json_number(json_get(rule, "high_freq_factor"), 4);
  if (out->kind == ROPE_YARN || out->kind == ROPE_LONG) out->attention_factor = json_number(json_get(rule, "attention_factor"), NAN);
  double fast = json_number(json_get(rule, "beta_fast"), 0), slow = json_number(json_get(rule, "beta_slow"), 0);
  out->beta_fast = fast > 0 ? fast : 32;
  out->beta_slow = slow > 0 ? slow : 1;
  out->mscale = json_number(json_get(rule, "mscale"), 0);
  out->mscale_all_dim = json_number(json_get(rule, "mscale_all_dim"), 0);
  out->keep_fractions = !json_bool(json_get(rule, "truncate"), true);
  GENAI_TRY(check(self, out));
  if (out->kind == ROPE_LONG) {
    GENAI_TRY(read_factors(self, rule, "long_factor", out->rotary_dim, &out->long_factors));
    GENAI_TRY(read_factors(self, rule, "short_factor", out->rotary_dim, &out->short_factors));
  }
  return NULL;
}

genai_status* rope_read_config(model* self, json_value config) {
  const family* row = self->family;
  json_value rule = json_get(config, "rope_parameters");
  if (json_type_of(rule) != JSON_OBJECT) rule = json_get(config, "rope_scaling");
  json_value full = json_get(rule, "full_attention"), local = json_get(rule, "sliding_attention");
  if (json_type_of(full) == JSON_OBJECT) rule = full;
  double theta = json_number(json_get(config, "rope_theta"), row->theta > 0 ? row->theta : 10000.0);
  self->n_ropes = 1;
  GENAI_TRY(read_rule(self, config, rule, theta, &self->ropes[0]));
  if (!(row->features & LOCAL_ROPE)) return NULL;
  double local_theta = json_number(json_get(config, "rope_local_base_freq"), row->local_theta);
  self->n_ropes = 2;
  return read_rule(self, config, local, local_theta, &self->ropes[1]);
}

static double metadata_number(const model* self, const char* key, double fallback) {
  char whole[128];
  snprintf(whole, sizeof whole, "%s.%s", self->architecture, key);
  return checkpoint_metadata_number(self->file, whole, fallback);
}

/* A GGUF vector of one factor per pair; NULL when absent. Converters write the Llama 3 rule as such a vector (rope_freqs). */
static genai_status* read_vector(model* self, const char* name, uint32_t rotary_dim, const float** out) {
  const checkpoint_tensor* tensor = checkpoint_find(self->file, name);
  *out = NULL;
  if (!tensor) return NULL;
  if (tensor->rank != 1 || tensor->dims[0] != rotary_dim / 2) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: tensor %s has %llu entries, expected one per rotary pair (%u)",
                               checkpoint_path(self->file), name, (unsigned long long)(tensor->rank ? tensor->dims[0] : 0), rotary_dim / 2);
  }
  float* values = arena_calloc(&self->memory, rotary_dim / 2, sizeof *values);
  if (!values) return genai_status_out_of_memory();
  GENAI_TRY(checkpoint_read_rows(tensor, 0, 1, values));
  for (uint32_t i = 0; i < rotary_dim / 2; ++i) {
    if (!(values[i] > 0)) {
      return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: tensor %s, entry %u is not a positive number", checkpoint_path(self->file),
                                 name, i);
    }
  }
  *out = values;
  return NULL;
}

genai_status* rope_read_metadata(model* self) {
  const family* row = self->family;
  rope_rule* rule = &self->ropes[0];
  *rule = (rope_rule){.kind = ROPE_PLAIN, .factor = 1, .attention_factor = NAN, .beta_fast = 32, .beta_slow = 1};
  rule->theta = metadata_number(self, "rope.freq_base", row->theta > 0 ? row->theta : 10000.0);
  double rotary_dim = metadata_number(self, "rope.dimension_count", self->head_dim);
  rule->rotary_dim = rotary_dim > 0 && rotary_dim <= self->head_dim ? (uint32_t)rotary_dim : UINT32_MAX;
  rule->original_context = metadata_number(self, "rope.scaling.original_context_length", self->trained_context);
  rule->factor = metadata_number(self, "rope.scaling.factor", metadata_number(self, "rope.scale_linear", 1));
  double attention_factor = metadata_number(self, "rope.scaling.attn_factor", metadata_number(self, "rope.scaling.yarn_attn_factor", NAN));
  rule->beta_fast = metadata_number(self, "rope.scaling.yarn_beta_fast", 32);
  rule->beta_slow = metadata_number(self, "rope.scaling.yarn_beta_slow", 1);

  char key[128];
  snprintf(key, sizeof key, "%s.rope.scaling.type", self->architecture);
  text_view kind = checkpoint_metadata_string(self->file, key);
  bool linear = kind.data ? text_view_equal_cstr(kind, "linear") : rule->factor != 1;
  if (linear) {
    rule->kind = ROPE_LINEAR;
  } else if (kind.data && text_view_equal_cstr(kind, "yarn")) { /* here the stored factor multiplies what the rule gives */
    rule->kind = ROPE_YARN;
    if (!isnan(attention_factor)) rule->attention_factor = attention_factor * yarn_scale(rule->factor, 1.0);
  } else if (kind.data && !text_view_equal_cstr(kind, "none") && !text_view_equal_cstr(kind, "longrope")) {
    return unknown_kind(self, kind);
  }
  GENAI_TRY(check(self, rule));
  GENAI_TRY(read_vector(self, "rope_factors_long.weight", rule->rotary_dim, &rule->long_factors));
  GENAI_TRY(read_vector(self, "rope_factors_short.weight", rule->rotary_dim, &rule->short_factors));
  GENAI_TRY(read_vector(self, "rope_freqs.weight", rule->rotary_dim, &rule->divisors));
  if (rule->long_factors && rule->short_factors) {
    rule->kind = ROPE_LONG;
    rule->attention_factor = attention_factor;
    if (rule->original_context > 0) rule->factor = self->trained_context / rule->original_context;
    GENAI_TRY(check(self, rule));
  }
  self->n_ropes = 1;
  if (row->features & LOCAL_ROPE) {
    self->ropes[1] = (rope_rule){.kind = ROPE_PLAIN,
                                 .rotary_dim = rule->rotary_dim,
                                 .theta = metadata_number(self, "rope.freq_base_swa", row->local_theta),
                                 .factor = 1,
                                 .attention_factor = NAN};
    self->n_ropes = 2;
  }
  return NULL;
}
