/* Gather: rows of a table picked by integer indices, straight from where the table is stored when it is a static. */
#include <string.h>

#include "cpu/internal.h"

typedef struct gather_job {
  const cpu_call* call;
  const int32_t* indices;
  size_t count;      /* indices */
  size_t inner;      /* elements that one index moves at once */
  size_t table_rows; /* extent of the axis */
  cpu_failure failure;
} gather_job;

static void gather_body(void* user, size_t begin, size_t end) {
  gather_job* job = user;
  const cpu_call* call = job->call;
  for (size_t i = begin; i < end && !cpu_failed(&job->failure); i++) {
    size_t outer = i / job->count;
    int32_t index = job->indices[i % job->count];
    float* to = call->y + i * job->inner;
    if (index < 0 || (size_t)index >= job->table_rows) {
      cpu_failure_set(&job->failure,
                      genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "index %d at %zu of %s is outside %s, which has %zu rows", index,
                                          i % job->count, call->in[1]->name, call->in[0]->name, job->table_rows));
    } else if (call->x[0]) {
      memcpy(to, call->x[0] + (outer * job->table_rows + (size_t)index) * job->inner, job->inner * sizeof(float));
    } else {
      cpu_failure_set(&job->failure, cpu_static_rows(call->self, call->in[0], (uint64_t)index, 1, to));
    }
  }
}

genai_status* cpu_run_gather(const cpu_call* call) {
  const ir_tensor* table = call->in[0];
  uint32_t axis = (uint32_t)call->op->attr.axis;
  gather_job job = {.call = call,
                    .indices = (const int32_t*)(const void*)call->x[1],
                    .count = (size_t)ir_tensor_elements(call->in[1]),
                    .inner = cpu_span(table, axis + 1, table->rank),
                    .table_rows = table->dims[axis]};
  thread_pool_for(call->pool, cpu_span(table, 0, axis) * job.count, cpu_grain(job.inner), gather_body, &job);
  return atomic_load(&job.failure.first);
}
