/* RmsNorm and LayerNorm over the last axis. */
#include <math.h>

#include "cpu/internal.h"
#include "cpu/kernels.h"

typedef struct norm_job {
  const float* x;
  const float* gamma;
  const float* beta;
  float* y;
  size_t width;
  float epsilon;
} norm_job;

/* Sum of (x - center)^2. */
CPU_INLINE float sum_of_squares(const float* x, size_t width, float center) {
  cpu_lanes sums = {0}, part;
  float tail = 0;
  size_t i = 0;
  for (; i + CPU_LANES <= width; i += CPU_LANES) {
    CPU_LOAD(part, x + i);
    part -= center;
    sums += part * part;
  }
  for (; i < width; i++) tail += (x[i] - center) * (x[i] - center);
  return cpu_lane_sum(&sums) + tail;
}

CPU_INLINE void scale_row(const norm_job* job, const float* x, float* y, float center, float scale) {
  const float *gamma = job->gamma, *beta = job->beta;
  size_t width = job->width;
  CPU_INDEPENDENT
  for (size_t i = 0; i < width; i++) y[i] = (x[i] - center) * scale * gamma[i] + beta[i];
}

/* y = x / sqrt(mean(x^2) + epsilon) * gamma + beta */
CPU_INLINE void rms_rows_plain(const norm_job* job, size_t begin, size_t end) {
  for (size_t row = begin; row < end; row++) {
    const float* x = job->x + row * job->width;
    float mean = sum_of_squares(x, job->width, 0.0f) / (float)job->width;
    scale_row(job, x, job->y + row * job->width, 0.0f, 1.0f / sqrtf(mean + job->epsilon));
  }
}
CPU_HOT(rms_rows, (const norm_job* job, size_t begin, size_t end), (job, begin, end))

/* y = (x - mean(x)) / sqrt(variance(x) + epsilon) * gamma + beta, with the biased variance */
CPU_INLINE void layer_rows_plain(const norm_job* job, size_t begin, size_t end) {
  for (size_t row = begin; row < end; row++) {
    const float* x = job->x + row * job->width;
    float mean = cpu_row_sum(x, job->width) / (float)job->width;
    float variance = sum_of_squares(x, job->width, mean) / (float)job->width;
    scale_row(job, x, job->y + row * job->width, mean, 1.0f / sqrtf(variance + job->epsilon));
  }
}
CPU_HOT(layer_rows, (const norm_job* job, size_t begin, size_t end), (job, begin, end))

static void rms_body(void* user, size_t begin, size_t end) {
  rms_rows(user, begin, end);
}

static void layer_body(void* user, size_t begin, size_t end) {
  layer_rows(user, begin, end);
}

static genai_status* run_norm(const cpu_call* call, pool_body body) {
  uint32_t rank = call->out->rank;
  norm_job job = {.x = call->x[0],
                  .gamma = call->x[1],
                  .beta = call->x[2],
                  .y = call->y,
                  .width = call->out->dims[rank - 1],
                  .epsilon = call->op->attr.epsilon};
  thread_pool_for(call->pool, cpu_span(call->out, 0, rank - 1), cpu_grain(job.width), body, &job);
  return NULL;
}

genai_status* cpu_run_rms_norm(const cpu_call* call) {
  return run_norm(call, rms_body);
}

genai_status* cpu_run_layer_norm(const cpu_call* call) {
  return run_norm(call, layer_body);
}
