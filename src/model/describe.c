/* Families and opened models in words, for `genai models` and `genai inspect`. What the words stand for is in model_internal.h. */
#include <math.h>

#include "model_internal.h"

/* Appends "; " between facts. */
static genai_status* fact(text* out, const char* words) {
  if (out->length) GENAI_TRY(text_append_cstr(out, "; "));
  return text_append_cstr(out, words);
}

static const char* norm_places(uint32_t features) {
  if (features & PARALLEL) return "before attention and feed-forward, which run side by side";
  if ((features & (PRE_NORM | POST_NORM)) == (PRE_NORM | POST_NORM)) return "before and after each block";
  return features & POST_NORM ? "after each block" : "before each block";
}

static genai_status* describe_attention(const family* row, text* out) {
  static const char* const windows[] = {[WINDOW_NONE] = NULL,
                                        [WINDOW_EVERY_LAYER] = "sliding window in every layer",
                                        [WINDOW_EXCEPT_EVERY_NTH] = "sliding windows, full attention in every Nth layer",
                                        [WINDOW_FROM_LAYER] = "sliding window from a layer on",
                                        [WINDOW_WITHOUT_ROTARY] = "sliding window in layers without rotary embedding, where asked for"};
  if (row->features & QKV_BIAS) GENAI_TRY(fact(out, "biases on queries, keys and values"));
  if (row->qk_norm == QK_NORM_HEAD) GENAI_TRY(fact(out, "queries and keys normed by head"));
  if (row->qk_norm == QK_NORM_WHOLE) GENAI_TRY(fact(out, "queries and keys normed whole"));
  if (windows[row->window]) GENAI_TRY(fact(out, windows[row->window]));
  if (row->features & LOCAL_ROPE) GENAI_TRY(fact(out, "a rotary base of their own in layers with a window"));
  if (row->nope == NOPE_EVERY_NTH) GENAI_TRY(fact(out, "every Nth layer without rotary embedding"));
  if (row->nope == NOPE_FULL_ATTENTION) GENAI_TRY(fact(out, "no rotary embedding in layers of full attention"));
  if (row->rotary_fraction > 0) GENAI_TRY(fact(out, "partial rotary embedding"));
  return row->features & READS_SOFT_CAPS ? fact(out, "soft caps") : NULL;
}

genai_status* model_family_describe(size_t index, text* out) {
  const family* row = family_at(index);
  if (!row) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "no family %zu, there are %zu", index, family_count());
  text facts = {0};
  genai_status* status = text_printf(&facts, "%s norm %s%s", row->norm == NORM_LAYER ? "layer" : "RMS", norm_places(row->features),
                                     row->norm_add != 0 ? ", as 1 + weight" : "");
  if (!status) status = describe_attention(row, &facts);
  if (!status && row->features & PLAIN_FEED_FORWARD) status = fact(&facts, "feed-forward without gate");
  if (!status && row->features & READS_PARALLEL) status = fact(&facts, "parallel blocks where the checkpoint says so");
  if (!status && row->features & SCALES_EMBEDDING) status = fact(&facts, "scaled embeddings");
  if (!status && row->features & READS_MULTIPLIERS) status = fact(&facts, "embedding, residual, attention and logit multipliers");
  if (!status) status = text_append(out, facts.data, facts.length);
  text_deinit(&facts);
  return status;
}

const char* model_family_type(size_t index, size_t nth) {
  const family* row = family_at(index);
  return row && nth < sizeof row->types / sizeof *row->types ? row->types[nth] : NULL;
}

static genai_status* describe_rope(const rope_rule* rule, uint32_t head_dim, text* out) {
  static const char* const kinds[] = {[ROPE_PLAIN] = "",      [ROPE_LINEAR] = ", linear scaling", [ROPE_LLAMA3] = ", llama3 scaling",
                                      [ROPE_YARN] = ", YaRN", [ROPE_LONG] = ", LongRoPE",         [ROPE_DYNAMIC] = ", dynamic scaling"};
  GENAI_TRY(text_printf(out, "rotary base %.15g%s", rule->theta, kinds[rule->kind]));
  if (rule->kind != ROPE_PLAIN) GENAI_TRY(text_printf(out, " by %g", rule->factor));
  if (rule->kind > ROPE_LINEAR) GENAI_TRY(text_printf(out, " of %g positions", rule->original_context));
  if (rule->divisors) GENAI_TRY(text_append_cstr(out, ", frequencies divided as the file says"));
  return rule->rotary_dim < head_dim ? text_printf(out, ", on %u of %u dimensions", rule->rotary_dim, head_dim) : NULL;
}

genai_status* model_describe(const model* self, text* out) {
  uint32_t sliding = 0, rotary = 0;
  for (uint32_t i = 0; i < self->layers; ++i) {
    sliding += self->traits[i].sliding;
    rotary += self->traits[i].rotary;
  }
  GENAI_TRY(describe_rope(&self->ropes[0], self->head_dim, out));
  if (self->n_ropes > 1 && sliding) {
    GENAI_TRY(text_append_cstr(out, "\nin layers with a window: "));
    GENAI_TRY(describe_rope(&self->ropes[1], self->head_dim, out));
  }
  if (rotary < self->layers) GENAI_TRY(text_printf(out, "\nno rotary embedding in %u of %u layers", self->layers - rotary, self->layers));
  if (sliding) GENAI_TRY(text_printf(out, "\nsliding window %u in %u of %u layers", self->sliding_window, sliding, self->layers));
  if (self->attention_cap > 0) GENAI_TRY(text_printf(out, "\nscores capped at %g", self->attention_cap));
  if (self->logit_cap > 0) GENAI_TRY(text_printf(out, "\nlogits capped at %g", self->logit_cap));
  return self->tied ? text_append_cstr(out, "\nlogits use the embedding's weights") : NULL;
}
