/* ElementWiseAdd, Subtract and Multiply with broadcasting; Sigmoid, Tanh and Gelu. */
#include "cpu/internal.h"
#include "cpu/kernels.h"
#include "cpu/vector_math.h"

/* A run of outputs whose operands advance by one element or stand still. */
typedef void (*binary_run)(const float* a, const float* b, float* y, size_t count);

#define DEFINE_RUN(name, left, right, operator)                                          \
  CPU_INLINE void name##_plain(const float* a, const float* b, float* y, size_t count) { \
    float a0 = a[0], b0 = b[0];                                                          \
    (void)a0, (void)b0;                                                                  \
    CPU_INDEPENDENT                                                                      \
    for (size_t i = 0; i < count; i++) y[i] = left operator right;                       \
  }                                                                                      \
  CPU_HOT(name, (const float* a, const float* b, float* y, size_t count), (a, b, y, count))
#define DEFINE_BINARY(name, operator)           \
  DEFINE_RUN(name##_both, a[i], b[i], operator) \
  DEFINE_RUN(name##_left, a[i], b0, operator)   \
  DEFINE_RUN(name##_right, a0, b[i], operator)
DEFINE_BINARY(add, +)
DEFINE_BINARY(subtract, -)
DEFINE_BINARY(multiply, *)

enum { RUN_BOTH, RUN_LEFT, RUN_RIGHT };
static const binary_run binary_runs[3][3] = {
    {add_both, add_left, add_right}, {subtract_both, subtract_left, subtract_right}, {multiply_both, multiply_left, multiply_right}};

/* Output dims with the strides of both operands (0 where one is repeated); adjacent dims that step alike are joined. */
typedef struct binary_job {
  const float* a;
  const float* b;
  float* y;
  binary_run run;
  uint32_t rank; /* at least 1; the last dim is one run */
  size_t dims[IR_MAX_RANK];
  size_t a_strides[IR_MAX_RANK];
  size_t b_strides[IR_MAX_RANK];
} binary_job;

/* Stride of `tensor` along dim `i` of an output of `rank` dims; shapes are aligned at their last dims. */
static size_t broadcast_stride(const ir_tensor* tensor, uint32_t rank, uint32_t i) {
  uint32_t missing = rank - tensor->rank;
  if (i < missing || tensor->dims[i - missing] == 1) return 0;
  return cpu_span(tensor, i - missing + 1, tensor->rank);
}

static void binary_rows(void* user, size_t begin, size_t end) {
  const binary_job* job = user;
  size_t width = job->dims[job->rank - 1];
  for (size_t row = begin; row < end; row++) {
    size_t rest = row, a = 0, b = 0;
    for (uint32_t i = job->rank - 1; i-- > 0;) {
      a += rest % job->dims[i] * job->a_strides[i];
      b += rest % job->dims[i] * job->b_strides[i];
      rest /= job->dims[i];
    }
    job->run(job->a + a, job->b + b, job->y + row * width, width);
  }
}

static void binary_part(void* user, size_t begin, size_t end) { /* of the only row */
  const binary_job* job = user;
  job->run(job->a + begin * job->a_strides[0], job->b + begin * job->b_strides[0], job->y + begin, end - begin);
}

genai_status* cpu_run_binary(const cpu_call* call) {
  const ir_tensor* out = call->out;
  binary_job job = {.a = call->x[0], .b = call->x[1], .y = call->y};
  for (uint32_t i = 0; i < out->rank; i++) {
    if (out->dims[i] == 1) continue;
    size_t a = broadcast_stride(call->in[0], out->rank, i), b = broadcast_stride(call->in[1], out->rank, i);
    uint32_t last = job.rank - 1;
    if (job.rank && job.a_strides[last] == a * out->dims[i] && job.b_strides[last] == b * out->dims[i]) {
      job.dims[last] *= out->dims[i];
    } else {
      last = job.rank++;
      job.dims[last] = out->dims[i];
    }
    job.a_strides[last] = a;
    job.b_strides[last] = b;
  }
  if (!job.rank) job.dims[job.rank++] = 1;
  uint32_t last = job.rank - 1;
  int step = job.a_strides[last] == job.b_strides[last] ? RUN_BOTH : job.a_strides[last] ? RUN_LEFT : RUN_RIGHT;
  job.run = binary_runs[call->op->kind == IR_ADD ? 0 : call->op->kind == IR_SUBTRACT ? 1 : 2][step];
  if (job.rank == 1) {
    thread_pool_for(call->pool, job.dims[0], cpu_grain(1), binary_part, &job);
  } else {
    size_t rows = 1;
    for (uint32_t i = 0; i < last; i++) rows *= job.dims[i];
    thread_pool_for(call->pool, rows, cpu_grain(job.dims[last]), binary_rows, &job);
  }
  return NULL;
}

/* ---- activations ---- */

#define DEFINE_ACTIVATION(name, function)                                      \
  CPU_INLINE void name##_run_plain(const float* x, float* y, size_t count) {   \
    CPU_INDEPENDENT                                                            \
    for (size_t i = 0; i < count; i++) y[i] = function(x[i]);                  \
  }                                                                            \
  CPU_HOT(name##_run, (const float* x, float* y, size_t count), (x, y, count)) \
  static void name##_body(void* user, size_t begin, size_t end) {              \
    const activation_job* job = user;                                          \
    name##_run(job->x + begin, job->y + begin, end - begin);                   \
  }

typedef struct activation_job {
  const float* x;
  float* y;
} activation_job;

DEFINE_ACTIVATION(sigmoid, vm_sigmoid)
DEFINE_ACTIVATION(tanh, vm_tanh)
DEFINE_ACTIVATION(gelu, vm_gelu)

genai_status* cpu_run_activation(const cpu_call* call) {
  activation_job job = {call->x[0], call->y};
  pool_body body = call->op->kind == IR_SIGMOID ? sigmoid_body : call->op->kind == IR_TANH ? tanh_body : gelu_body;
  thread_pool_for(call->pool, (size_t)ir_tensor_elements(call->out), cpu_grain(8), body, &job);
  return NULL;
}
