/* MatMul of two activations, batched over the leading dims; blocks of rows run side by side. */
#include "cpu/gemm.h"
#include "cpu/internal.h"

typedef struct matmul_job {
  const cpu_call* call;
  size_t m, n, k, block, blocks;
  cpu_failure failure;
} matmul_job;

static void matmul_body(void* user, size_t begin, size_t end) {
  matmul_job* job = user;
  const cpu_call* call = job->call;
  bool ta = call->op->attr.matmul.transpose_a, tb = call->op->attr.matmul.transpose_b;
  for (size_t i = begin; i < end && !cpu_failed(&job->failure); i++) {
    size_t batch = i / job->blocks, first = i % job->blocks * job->block;
    size_t rows = job->m - first < job->block ? job->m - first : job->block;
    const float* a = call->x[0] + batch * job->m * job->k + (ta ? first : first * job->k);
    const float* b = call->x[1] + batch * job->n * job->k;
    float* y = call->y + (batch * job->m + first) * job->n;
    cpu_failure_set(&job->failure,
                    gemm_multiply(ta, tb, rows, job->n, job->k, a, ta ? job->m : job->k, b, tb ? job->k : job->n, y, job->n));
  }
}

genai_status* cpu_run_matmul(const cpu_call* call) {
  const ir_tensor *a = call->in[0], *out = call->out;
  uint32_t rank = out->rank;
  matmul_job job = {.call = call,
                    .m = out->dims[rank - 2],
                    .n = out->dims[rank - 1],
                    .k = a->dims[call->op->attr.matmul.transpose_a ? rank - 2 : rank - 1],
                    .block = 256};
  job.blocks = (job.m + job.block - 1) / job.block;
  size_t work = (job.m < job.block ? job.m : job.block) * job.n * job.k;
  thread_pool_for(call->pool, cpu_span(out, 0, rank - 2) * job.blocks, cpu_grain(work / 8), matmul_body, &job);
  return atomic_load(&job.failure.first);
}
