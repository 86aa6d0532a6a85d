/* Gather: rows of a table picked by integer indices, straight from where the table is stored when it is a static. */
#include <string.h>

#include "cpu/internal.h"

typedef struct gather_job {
  const cpu_call* call;
  const int32_t* indices;
  size_t inner; /* elements of a row: what one index moves */
  pool_failure failure;
} gather_job;

static void gather_body(void* user, size_t begin, size_t end) {
  gather_job* job = user;
  const cpu_call* call = job->call;
  const ir_tensor* table = call->in[0];
  for (size_t i = begin; i < end && !pool_failed(&job->failure); i++) {
    int32_t index = job->indices[i];
    float* to = call->y + i * job->inner;
    if (index < 0 || (uint32_t)index >= table->dims[0]) {
      pool_failure_set(&job->failure,
                       genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "%s[%zu] is %d, but %s has rows 0 to %u; check the ids",
                                           call->in[1]->name, i, index, table->name, table->dims[0] - 1));
    } else if (call->x[0]) {
      memcpy(to, call->x[0] + (size_t)index * job->inner, job->inner * sizeof(float));
    } else {
      pool_failure_set(&job->failure, cpu_static_rows(call->self, table, (uint64_t)index, 1, to));
    }
  }
}

genai_status* cpu_run_gather(const cpu_call* call) {
  gather_job job = {.call = call, .indices = (const int32_t*)(const void*)call->x[1], .inner = cpu_span(call->in[0], 1, call->in[0]->rank)};
  thread_pool_for(call->pool, (size_t)ir_tensor_elements(call->in[1]), cpu_grain(job.inner), gather_body, &job);
  return pool_failure_take(&job.failure);
}
