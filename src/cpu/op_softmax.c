/* Softmax over the last axis. */
#include "cpu/internal.h"
#include "cpu/kernels.h"
#include "cpu/vector_math.h"

typedef struct softmax_job {
  const float* x;
  float* y;
  size_t width;
} softmax_job;

CPU_INLINE float row_maximum(const float* x, size_t width) {
  cpu_lanes highs = {0}, part;
  highs += x[0];
  float highest = x[0];
  size_t i = 0;
  for (; i + CPU_LANES <= width; i += CPU_LANES) {
    CPU_LOAD(part, x + i);
    highs = CPU_MAX(part, highs);
  }
  for (; i < width; i++) highest = x[i] > highest ? x[i] : highest;
  for (int j = 0; j < CPU_LANES; j++) highest = highs[j] > highest ? highs[j] : highest;
  return highest;
}

CPU_INLINE void softmax_rows_plain(const softmax_job* job, size_t begin, size_t end) {
  size_t width = job->width;
  for (size_t row = begin; row < end; row++) {
    const float* x = job->x + row * width;
    float* y = job->y + row * width;
    float highest = row_maximum(x, width);
    CPU_INDEPENDENT
    for (size_t i = 0; i < width; i++) y[i] = vm_exp(x[i] - highest);
    float scale = 1.0f / cpu_row_sum(y, width);
    for (size_t i = 0; i < width; i++) y[i] *= scale;
  }
}

CPU_HOT(softmax_rows, (const softmax_job* job, size_t begin, size_t end), (job, begin, end))

static void softmax_body(void* user, size_t begin, size_t end) {
  softmax_rows(user, begin, end);
}

genai_status* cpu_run_softmax(const cpu_call* call) {
  uint32_t rank = call->out->rank;
  softmax_job job = {.x = call->x[0], .y = call->y, .width = call->out->dims[rank - 1]};
  thread_pool_for(call->pool, cpu_span(call->out, 0, rank - 1), cpu_grain(job.width * 4), softmax_body, &job);
  return NULL;
}
