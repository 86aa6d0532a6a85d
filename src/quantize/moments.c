/* The sketch of second moments: subspace iteration over the rows of a pass stacked on the directions found before. */
#include "quantize/moments.h"

#include <math.h>
#include <string.h>

#include "base/hot.h"

enum { MAX_ROWS = 96, MAX_FIRST = 16, STEPS = 4 };
static const float FIRST_SHARE = 1.0f / 3.0f; /* weight of first tokens against all others: a quarter of the whole */

genai_status* moments_create(uint32_t cols, uint32_t directions, moments** out) {
  moments* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->cols = cols;
  self->directions = directions;
  self->strong = mem_calloc(cols, directions * sizeof *self->strong);
  self->diagonal = mem_calloc(cols, sizeof *self->diagonal);
  if (!self->strong || !self->diagonal) {
    moments_destroy(self);
    return genai_status_out_of_memory();
  }
  *out = self;
  return NULL;
}

void moments_destroy(moments* self) {
  if (!self) return;
  mem_free(self->strong);
  mem_free(self->diagonal);
  mem_free(self);
}

BASE_HOT static float dot(const float* a, const float* b, size_t n) {
  enum { LANES = 16 };
  float sums[LANES] = {0}, sum = 0;
  size_t i = 0;
  for (; i + LANES <= n; i += LANES) {
    for (size_t j = 0; j < LANES; j++) sums[j] += a[i + j] * b[i + j];
  }
  for (; i < n; i++) sum += a[i] * b[i];
  for (size_t j = 0; j < LANES; j++) sum += sums[j];
  return sum;
}

BASE_HOT static void add_scaled(float* to, const float* from, float factor, size_t n) {
  for (size_t i = 0; i < n; i++) to[i] += from[i] * factor;
}

/* Gram and Schmidt; a direction that the earlier ones span becomes zero. */
static void orthonormalize(float* vectors, uint32_t count, size_t n) {
  for (uint32_t i = 0; i < count; i++) {
    float *v = vectors + i * n, before = sqrtf(dot(v, v, n));
    for (int twice = 0; twice < 2; twice++) {
      for (uint32_t j = 0; j < i; j++) add_scaled(v, vectors + j * n, -dot(v, vectors + j * n, n), n);
    }
    float length = sqrtf(dot(v, v, n));
    float factor = length > 1e-4f * before && length > 1e-30f ? 1.0f / length : 0.0f;
    for (size_t c = 0; c < n; c++) v[c] *= factor;
  }
}

/* The rows that stand for a pass, scaled by the roots of their weights: some first tokens and others evenly spread. */
typedef struct chosen_rows {
  const float* row[MAX_ROWS + MAX_FIRST];
  float weight[MAX_ROWS + MAX_FIRST];
  size_t count;
} chosen_rows;

static void choose_rows(const float* rows, size_t cols, const int32_t* places, size_t count, chosen_rows* out) {
  size_t first = 0;
  for (size_t i = 0; i < count; i++) first += places[i] == 0;
  size_t others = count - first, kept_first = first < MAX_FIRST ? first : MAX_FIRST, kept = others < MAX_ROWS ? others : MAX_ROWS;
  float weight = kept ? (float)others / (float)kept : 0;
  float first_weight = kept_first ? (others ? (float)others * FIRST_SHARE : (float)first) / (float)kept_first : 0;
  size_t seen_first = 0, seen = 0;
  out->count = 0;
  for (size_t i = 0; i < count; i++) {
    bool is_first = places[i] == 0;
    size_t index = is_first ? seen_first++ : seen++, of = is_first ? first : others, wanted = is_first ? kept_first : kept;
    if (index * wanted / of == (index + 1) * wanted / of) continue;
    out->row[out->count] = rows + i * cols;
    out->weight[out->count++] = is_first ? first_weight : weight;
  }
}

/* One step: to <- H from, H the moment of the chosen rows and of the directions so far. */
static void apply(const moments* self, const chosen_rows* chosen, const float* from, float* to) {
  size_t n = self->cols;
  memset(to, 0, n * sizeof *to);
  for (size_t i = 0; i < chosen->count; i++) add_scaled(to, chosen->row[i], chosen->weight[i] * dot(chosen->row[i], from, n), n);
  for (uint32_t i = 0; i < self->directions; i++) {
    const float* old = self->strong + i * n;
    add_scaled(to, old, dot(old, from, n), n);
  }
}

genai_status* moments_add(moments* self, const float* rows, const int32_t* places, size_t count) {
  size_t n = self->cols, k = self->directions;
  chosen_rows chosen;
  choose_rows(rows, n, places, count, &chosen);
  if (!chosen.count) return NULL;
  float* vectors = mem_realloc_array(NULL, n, 2 * k * sizeof *vectors);
  if (!vectors) return genai_status_out_of_memory();
  float* images = vectors + k * n;
  bool fresh = dot(self->strong, self->strong, n) == 0;
  if (fresh) {
    for (size_t i = 0; i < k; i++) memcpy(vectors + i * n, chosen.row[i * chosen.count / k], n * sizeof *vectors);
  } else {
    memcpy(vectors, self->strong, k * n * sizeof *vectors);
  }
  for (int step = 0; step < STEPS; step++) {
    orthonormalize(vectors, (uint32_t)k, n);
    for (size_t i = 0; i < k; i++) apply(self, &chosen, vectors + i * n, images + i * n);
    if (step + 1 < STEPS) memcpy(vectors, images, k * n * sizeof *vectors);
  }
  for (size_t i = 0; i < k; i++) {
    float moment = dot(vectors + i * n, images + i * n, n), root = moment > 0 ? sqrtf(moment) : 0;
    for (size_t c = 0; c < n; c++) self->strong[i * n + c] = vectors[i * n + c] * root;
  }
  for (size_t i = 0; i < chosen.count; i++) {
    for (size_t c = 0; c < n; c++) self->diagonal[c] += chosen.weight[i] * chosen.row[i][c] * chosen.row[i][c];
  }
  mem_free(vectors);
  return NULL;
}

genai_status* moments_feedback(const moments* self, arena* memory, const ir_feedback** out) {
  size_t n = self->cols;
  double total = 0;
  for (size_t c = 0; c < n; c++) total += (double)self->diagonal[c];
  *out = NULL;
  if (!(total > 0) || !isfinite(total)) return NULL;
  float floor = (float)(total / (double)n) * 1e-3f;
  float* rest = arena_dup(memory, self->diagonal, n * sizeof *rest);
  if (!rest) return genai_status_out_of_memory();
  for (size_t c = 0; c < n; c++) {
    for (uint32_t i = 0; i < self->directions; i++) rest[c] -= self->strong[i * n + c] * self->strong[i * n + c];
    rest[c] = rest[c] > floor ? rest[c] : floor;
  }
  return ir_feedback_create(memory, self->directions, self->strong, rest, n, out);
}
