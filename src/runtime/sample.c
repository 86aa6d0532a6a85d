/* Sampling: greedy, temperature, top-k, top-p (Holtzman et al. 2019, "nucleus") and the repetition penalty (Keskar et al. 2019, CTRL). */
#include <math.h>

#include "runtime/runtime.h"

genai_status* sampling_validate(const sampling_options* options) {
  if (!(options->temperature >= 0.0f) || isinf(options->temperature))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "temperature is %g, expected a finite number from 0 (greedy) up",
                               (double)options->temperature);
  if (!(options->top_p > 0.0f && options->top_p <= 1.0f))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "top_p is %g, expected a number above 0 and at most 1 (1 = off)",
                               (double)options->top_p);
  if (!(options->repetition_penalty > 0.0f) || isinf(options->repetition_penalty))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "repetition_penalty is %g, expected a finite number above 0 (1 = off)",
                               (double)options->repetition_penalty);
  return NULL;
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t* state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

static int32_t arg_max(const float* logits, size_t count) {
  size_t best = 0;
  for (size_t i = 1; i < count; i++) {
    if (logits[i] > logits[best]) best = i;
  }
  return (int32_t)best;
}

/* The k-th largest value, by repeated narrowing of a copy-free threshold: bisection on the floats' order is enough, as ties are kept. */
static float kth_largest(const float* logits, size_t count, size_t k) {
  float low = logits[0], high = logits[0];
  for (size_t i = 1; i < count; i++) {
    if (logits[i] < low) low = logits[i];
    if (logits[i] > high) high = logits[i];
  }
  for (int step = 0; step < 64 && low < high; step++) {
    float middle = low + (high - low) * 0.5f;
    if (middle <= low) middle = nextafterf(low, high);
    size_t above = 0;
    for (size_t i = 0; i < count; i++) above += logits[i] >= middle;
    if (above >= k) {
      low = middle;
    } else {
      high = nextafterf(middle, low);
    }
  }
  return low;
}

static void apply_repetition_penalty(float* logits, size_t count, float penalty, const int32_t* history, size_t n_history) {
  for (size_t i = 0; i < n_history; i++) {
    int32_t id = history[i];
    if (id < 0 || (size_t)id >= count) continue;
    bool seen = false;
    for (size_t j = 0; j < i && !seen; j++) seen = history[j] == id;
    if (!seen) logits[id] = logits[id] < 0 ? logits[id] * penalty : logits[id] / penalty;
  }
}

int32_t sample(float* logits, size_t count, const sampling_options* options, const int32_t* history, size_t n_history,
               uint64_t* rng_state) {
  if (options->repetition_penalty != 1.0f) apply_repetition_penalty(logits, count, options->repetition_penalty, history, n_history);
  if (options->temperature == 0.0f || options->top_k == 1) return arg_max(logits, count);
  float best = logits[arg_max(logits, count)];
  float threshold = options->top_k && options->top_k < count ? kth_largest(logits, count, options->top_k) : -INFINITY;
  /* Probabilities in place: exp((x - best) / T), 0 for those top-k leaves out. */
  double total = 0;
  for (size_t i = 0; i < count; i++) {
    logits[i] = logits[i] >= threshold ? expf((logits[i] - best) / options->temperature) : 0.0f;
    total += (double)logits[i];
  }
  double uniform = (double)(next_random(rng_state) >> 11) * 0x1.0p-53;
  if (options->top_p < 1.0f) {
    /* Only the likeliest tokens whose sum reaches top_p stay. The cut is found by bisection on probability, which needs no sort. */
    double low = 0, high = 1;
    for (int step = 0; step < 48; step++) {
      double middle = (low + high) / 2, kept = 0;
      for (size_t i = 0; i < count; i++) kept += (double)logits[i] >= middle ? (double)logits[i] : 0;
      if (kept >= (double)options->top_p * total) {
        low = middle;
      } else {
        high = middle;
      }
    }
    total = 0;
    for (size_t i = 0; i < count; i++) {
      if ((double)logits[i] < low) logits[i] = 0;
      total += (double)logits[i];
    }
  }
  double target = uniform * total;
  size_t last = 0;
  for (size_t i = 0; i < count; i++) {
    if (logits[i] <= 0) continue;
    last = i;
    target -= (double)logits[i];
    if (target < 0) break;
  }
  return (int32_t)last;
}
