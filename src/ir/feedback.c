/* Error feedback for the rows of linear weights: the factors that depend on the inputs alone, and the pass over one row. */
#include "ir/feedback.h"

#include <math.h>
#include <string.h>

#include "base/hot.h"
#include "ir/round.h"

enum { MAX = IR_FEEDBACK_MAX_DIRECTIONS };

/* Columns of the run that begins when `left` columns are to come: full runs, then halves, so that the last errors are passed on too. */
static size_t run_length(size_t left) {
  return left > IR_FEEDBACK_RUN ? IR_FEEDBACK_RUN : (left + 1) / 2;
}

/* Where the run that ends at `end` begins. */
static size_t run_before(size_t cols, size_t end) {
  size_t begin = (end - 1) / IR_FEEDBACK_RUN * IR_FEEDBACK_RUN;
  while (begin + run_length(cols - begin) < end) begin += run_length(cols - begin);
  return begin;
}

/* M <- M - (M u)(M u)^T / (d + u^T M u), with M = (...)^-1: adds u u^T / d to the inverse's argument (Sherman and Morrison). */
static void extend_inverse(double inverse[MAX][MAX], uint32_t n, const double* u, double d) {
  double product[MAX], denominator = d;
  for (uint32_t i = 0; i < n; i++) {
    product[i] = 0;
    for (uint32_t j = 0; j < n; j++) product[i] += inverse[i][j] * u[j];
    denominator += product[i] * u[i];
  }
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t j = 0; j < n; j++) inverse[i][j] -= product[i] * product[j] / denominator;
  }
}

genai_status* ir_feedback_create(arena* memory, uint32_t directions, const float* inputs, const float* diagonal, size_t cols,
                                 const ir_feedback** out) {
  if (directions < 1 || directions > MAX)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "error feedback along %u directions; expected 1 to %d", directions, MAX);
  ir_feedback* self = arena_calloc(memory, 1, sizeof *self);
  float* moves = arena_calloc(memory, cols, directions * sizeof *moves);
  float* kept = arena_dup(memory, inputs, directions * cols * sizeof *kept);
  if (!self || !moves || !kept) return genai_status_out_of_memory();
  double inverse[MAX][MAX] = {{0}};
  for (uint32_t i = 0; i < directions; i++) inverse[i][i] = 1;
  /* From the last column to the first: a run's columns all count as still to come when it begins. */
  for (size_t end = cols; end > 0;) {
    size_t begin = run_before(cols, end);
    double u[MAX];
    for (size_t j = begin; j < end; j++) {
      for (uint32_t i = 0; i < directions; i++) u[i] = (double)inputs[i * cols + j];
      extend_inverse(inverse, directions, u, (double)diagonal[j]);
    }
    for (size_t j = begin; j < end; j++) {
      for (uint32_t i = 0; i < directions; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < directions; k++) sum += inverse[i][k] * (double)inputs[k * cols + j];
        moves[i * cols + j] = (float)(-sum / (double)diagonal[j]);
      }
    }
    end = begin;
  }
  self->directions = directions;
  self->inputs = kept;
  self->moves = moves;
  *out = self;
  return NULL;
}

genai_status* ir_feedback_copy(arena* memory, const ir_feedback* source, size_t cols, const ir_feedback** out) {
  ir_feedback* self = arena_dup(memory, source, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->inputs = arena_dup(memory, source->inputs, source->directions * cols * sizeof *source->inputs);
  self->moves = arena_dup(memory, source->moves, source->directions * cols * sizeof *source->moves);
  if (!self->inputs || !self->moves) return genai_status_out_of_memory();
  *out = self;
  return NULL;
}

/* One run of columns that share a scale; `stride` floats lie between directions. */
BASE_HOT static void round_run(float* values, size_t count, float scale, float limit, uint32_t directions, const float* inputs,
                               const float* moves, size_t stride, float* r) {
  float wanted[IR_FEEDBACK_RUN], error[IR_FEEDBACK_RUN], inverse = 1.0f / scale;
  memcpy(wanted, values, count * sizeof *wanted);
  for (uint32_t i = 0; i < directions; i++) {
    for (size_t j = 0; j < count; j++) wanted[j] += moves[i * stride + j] * r[i];
  }
  for (size_t j = 0; j < count; j++) {
    float q = round_small(clamp(wanted[j] * inverse, -limit, limit));
    error[j] = q * scale - values[j];
    values[j] = q * scale;
  }
  for (uint32_t i = 0; i < directions; i++) {
    float part[IR_FEEDBACK_RUN] = {0};
    for (size_t j = 0; j < count; j++) part[j] = error[j] * inputs[i * stride + j];
    for (size_t half = IR_FEEDBACK_RUN / 2; half; half /= 2) {
      for (size_t j = 0; j < half; j++) part[j] += part[j + half];
    }
    r[i] += part[0];
  }
}

void ir_feedback_apply(const ir_tensor* weight, uint64_t channel, float* row) {
  const ir_feedback* self = weight->feedback;
  if (!self) return;
  const ir_encoding* encoding = &weight->encoding;
  size_t cols = (size_t)weight->source->cols, block = encoding->kind == IR_ENCODING_BLOCK_EXPANSION ? cols / encoding->blocks : cols;
  float limit = (float)((1u << (encoding->bits - 1)) - 1), r[MAX] = {0};
  for (size_t begin = 0, count; begin < cols; begin += count) {
    count = run_length(cols - begin);
    float scale = encoding->scales[channel];
    if (encoding->kind == IR_ENCODING_BLOCK_EXPANSION) scale *= (float)encoding->block_scales[channel * encoding->blocks + begin / block];
    round_run(row + begin, count, scale, limit, self->directions, self->inputs + begin, self->moves + begin, cols, r);
  }
}
