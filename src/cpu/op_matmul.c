/* MatMul of two activations, batched over the leading dims; blocks of rows run side by side. On the tile unit where there is one and the
 * rows fill its tiles, else by oneDNN; few rows (decoding) by a loop that reads the keys or values in place. */
#include "cpu/amx.h"
#include "cpu/gemm.h"
#include "cpu/internal.h"

enum { BLOCK_ROWS = 256, PACKED_BYTES = 1024 * 1024, PAIR = 2 * AMX_SIDE };

typedef struct matmul_job {
  const cpu_call* call;
  size_t batches, m, n, k;
  size_t block, blocks; /* rows of a block; blocks of a batch */
  bool tiles;
  size_t a_pieces, b_pieces;
  size_t b_bytes;             /* of one packed right operand */
  float a_inverse, b_inverse; /* of the integers' scales; 0: reals */
  float scale;
  size_t order;
  pool_failure failure;
} matmul_job;

static matmul_job make_job(const cpu_executor* self, const ir_op* op) {
  const ir_tensor *a = self->graph->tensors[op->inputs[0]], *b = self->graph->tensors[op->inputs[1]];
  const ir_tensor* out = self->graph->tensors[op->output];
  uint32_t rank = out->rank;
  matmul_job job = {.batches = cpu_span(out, 0, rank - 2),
                    .m = out->dims[rank - 2],
                    .n = out->dims[rank - 1],
                    .k = a->dims[op->attr.matmul.transpose_a ? rank - 2 : rank - 1],
                    .block = BLOCK_ROWS,
                    .scale = 1.0f};
  job.tiles = self->has_amx && !op->attr.matmul.transpose_a && job.m >= AMX_SIDE;
  bool a_integers = cpu_has_integers(self, a) && a->encoding.kind == IR_ENCODING_PER_TENSOR;
  bool b_integers = cpu_has_integers(self, b) && b->encoding.kind == IR_ENCODING_PER_TENSOR;
  job.order = cpu_order(self, a_integers && b_integers);
  job.a_pieces = a_integers ? cpu_pieces(self, a) : cpu_real_pieces(self);
  job.b_pieces = b_integers ? cpu_pieces(self, b) : cpu_real_pieces(self);
  if (job.tiles) {
    while (job.block > PAIR && amx_packed_bytes(job.block, job.k, job.a_pieces) > PACKED_BYTES) job.block /= 2;
    job.b_bytes = amx_packed_bytes(job.n, job.k, job.b_pieces);
    if (a_integers) job.a_inverse = 1.0f / a->encoding.scale, job.scale *= a->encoding.scale;
    if (b_integers) job.b_inverse = 1.0f / b->encoding.scale, job.scale *= b->encoding.scale;
  }
  job.blocks = amx_tiles(job.m, job.block);
  return job;
}

cpu_need cpu_matmul_need(const cpu_executor* self, const ir_op* op) {
  matmul_job job = make_job(self, op);
  if (!job.tiles) return (cpu_need){0};
  return (cpu_need){.slot_bytes = amx_packed_bytes(job.block, job.k, job.a_pieces), .shared_bytes = job.batches * job.b_bytes};
}

/* Packs pairs of column tiles of every batch's right operand. */
static void pack_right(void* user, size_t begin, size_t end) {
  matmul_job* job = user;
  const cpu_call* call = job->call;
  size_t pairs = amx_tiles(job->n, PAIR);
  for (size_t i = begin; i < end; i++) {
    size_t batch = i / pairs, first = i % pairs * PAIR;
    size_t columns = job->n - first < PAIR ? job->n - first : PAIR;
    const float* b = call->x[1] + batch * job->n * job->k;
    uint8_t* packed = call->self->scratch.shared + batch * job->b_bytes + amx_packed_bytes(first, job->k, job->b_pieces);
    amx_source source = {.inverse = job->b_inverse != 0 ? &job->b_inverse : NULL, .one_inverse = true};
    if (call->op->attr.matmul.transpose_b) {
      source.values = b + first * job->k;
      source.stride = job->k;
      amx_pack_right_transposed(&source, columns, job->k, job->b_pieces, packed);
    } else {
      source.values = b + first;
      source.stride = job->n;
      amx_pack_right(&source, columns, job->k, job->b_pieces, packed);
    }
  }
}

static void tiles_body(void* user, size_t begin, size_t end) {
  matmul_job* job = user;
  const cpu_call* call = job->call;
  uint8_t* packed = cpu_scratch_take(&call->self->scratch);
  for (size_t i = begin; i < end; i++) {
    size_t batch = i / job->blocks, first = i % job->blocks * job->block;
    size_t rows = job->m - first < job->block ? job->m - first : job->block;
    amx_source source = {.values = call->x[0] + (batch * job->m + first) * job->k,
                         .stride = job->k,
                         .inverse = job->a_inverse != 0 ? &job->a_inverse : NULL,
                         .one_inverse = true};
    amx_target target = {.y = call->y + (batch * job->m + first) * job->n, .stride = job->n, .scale = job->scale};
    amx_pack_left(&source, rows, job->k, job->a_pieces, packed);
    amx_multiply(packed, job->a_pieces, rows, call->self->scratch.shared + batch * job->b_bytes, job->b_pieces, job->n, job->k, job->order,
                 &target);
  }
  cpu_scratch_give(&call->self->scratch, packed);
}

static void sgemm_body(void* user, size_t begin, size_t end) {
  matmul_job* job = user;
  const cpu_call* call = job->call;
  bool ta = call->op->attr.matmul.transpose_a, tb = call->op->attr.matmul.transpose_b;
  for (size_t i = begin; i < end && !pool_failed(&job->failure); i++) {
    size_t batch = i / job->blocks, first = i % job->blocks * job->block;
    size_t rows = job->m - first < job->block ? job->m - first : job->block;
    const float* a = call->x[0] + batch * job->m * job->k + (ta ? first : first * job->k);
    const float* b = call->x[1] + batch * job->n * job->k;
    float* y = call->y + (batch * job->m + first) * job->n;
    if (rows < AMX_SIDE && !ta && !tb) {
      gemm_few_rows(rows, job->n, job->k, a, b, y);
      continue;
    }
    pool_failure_set(&job->failure,
                     gemm_multiply(ta, tb, rows, job->n, job->k, a, ta ? job->m : job->k, b, tb ? job->k : job->n, y, job->n));
  }
}

genai_status* cpu_run_matmul(const cpu_call* call) {
  matmul_job job = make_job(call->self, call->op);
  job.call = call;
  size_t rows = job.m < job.block ? job.m : job.block;
  size_t grain = cpu_grain(rows * job.n * job.k / 8);
  if (job.tiles) {
    thread_pool_for(call->pool, job.batches * amx_tiles(job.n, PAIR), cpu_grain(PAIR * job.k), pack_right, &job);
    thread_pool_for(call->pool, job.batches * job.blocks, grain, tiles_body, &job);
  } else {
    thread_pool_for(call->pool, job.batches * job.blocks, grain, sgemm_body, &job);
  }
  return pool_failure_take(&job.failure);
}
