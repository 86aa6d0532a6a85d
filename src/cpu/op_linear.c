/* Linear layers (Conv2d 1x1): panels of output channels, each widened from where the weight is stored into scratch that stays in the
 * second-level cache, multiplied, and dropped. A weight that is held as float is multiplied where it lies. */
#include "cpu/gemm.h"
#include "cpu/internal.h"

enum { PANEL_BYTES = 768 * 1024, PANEL_STEP = 16, PANEL_MOST = 256 };

/* Output channels per panel. Depends on the weight alone, so that results do not depend on the pool's size. */
static size_t panel_rows(const ir_tensor* weight) {
  size_t n = weight->dims[3], k = weight->dims[2];
  size_t rows = PANEL_BYTES / (k * sizeof(float));
  if (rows > PANEL_MOST) rows = PANEL_MOST;
  if (rows > n / 4) rows = n / 4;
  rows = rows / PANEL_STEP * PANEL_STEP;
  if (rows < PANEL_STEP) rows = PANEL_STEP;
  return rows < n ? rows : n;
}

size_t cpu_linear_scratch(const ir_tensor* weight) {
  return panel_rows(weight) * weight->dims[2];
}

typedef struct linear_job {
  const cpu_call* call;
  size_t m, n, k;
  size_t panel;
  cpu_failure failure;
} linear_job;

static genai_status* run_panel(const linear_job* job, size_t first, size_t rows, const float* weight) {
  const cpu_call* call = job->call;
  float* y = call->y + first;
  if (job->m == 1) {
    gemm_vector(weight, rows, job->k, call->x[0], y);
  } else {
    GENAI_TRY(gemm_multiply(false, true, job->m, rows, job->k, call->x[0], job->k, weight, job->k, y, job->n));
  }
  if (call->op->n_inputs == 3) {
    const float* bias = call->x[2] + first;
    for (size_t i = 0; i < job->m; i++) {
      for (size_t j = 0; j < rows; j++) y[i * job->n + j] += bias[j];
    }
  }
  return NULL;
}

static void linear_body(void* user, size_t begin, size_t end) {
  linear_job* job = user;
  const cpu_call* call = job->call;
  float* scratch = call->x[1] ? NULL : cpu_scratch_take(&call->self->scratch);
  for (size_t i = begin; i < end && !cpu_failed(&job->failure); i++) {
    size_t first = i * job->panel, rows = job->n - first < job->panel ? job->n - first : job->panel;
    const float* weight = scratch ? scratch : call->x[1] + first * job->k;
    genai_status* status = scratch ? cpu_static_rows(call->self, call->in[1], first, rows, scratch) : NULL;
    if (!status) status = run_panel(job, first, rows, weight);
    cpu_failure_set(&job->failure, status);
  }
  if (scratch) cpu_scratch_give(&call->self->scratch, scratch);
}

genai_status* cpu_run_linear(const cpu_call* call) {
  const ir_tensor* weight = call->in[1];
  linear_job job = {.call = call,
                    .m = (size_t)call->in[0]->dims[1] * call->in[0]->dims[2],
                    .n = weight->dims[3],
                    .k = weight->dims[2],
                    .panel = panel_rows(weight)};
  size_t panels = (job.n + job.panel - 1) / job.panel;
  thread_pool_for(call->pool, panels, cpu_grain(job.panel * job.k), linear_body, &job);
  return atomic_load(&job.failure.first);
}
