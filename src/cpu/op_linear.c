/* Linear layers (Conv2d 1x1): panels of output channels, each brought from where the weight is stored into scratch that stays in the
 * second-level cache, multiplied, and dropped. A weight that is held as float is multiplied where it lies.
 * One row of activations is a matrix-vector product; more go to the tile unit where there is one, else to oneDNN. */
#include "cpu/amx.h"
#include "cpu/gemm.h"
#include "cpu/internal.h"

enum { PANEL_BYTES = 1024 * 1024, PANEL_STEP = 2 * AMX_SIDE, PANEL_MOST = 96 };

/* Output channels per panel. Depends on the weight alone, so that results do not depend on the pool's size. */
static size_t panel_rows(size_t k) {
  size_t rows = PANEL_BYTES / (k * AMX_PIECES * 2) / PANEL_STEP * PANEL_STEP;
  if (rows > PANEL_MOST) rows = PANEL_MOST;
  return rows < PANEL_STEP ? PANEL_STEP : rows;
}

typedef struct linear_job {
  const cpu_call* call;
  size_t m, n, k, panel;
  size_t x_pieces, w_pieces; /* on the tile unit */
  cpu_failure failure;
} linear_job;

static linear_job make_job(const cpu_executor* self, const ir_op* op) {
  const ir_tensor *x = self->graph->tensors[op->inputs[0]], *weight = self->graph->tensors[op->inputs[1]];
  return (linear_job){.m = (size_t)x->dims[1] * x->dims[2],
                      .n = weight->dims[3],
                      .k = weight->dims[2],
                      .panel = panel_rows(weight->dims[2]),
                      .x_pieces = cpu_pieces(self, x),
                      .w_pieces = cpu_pieces(self, weight)};
}

static bool on_tiles(const cpu_executor* self, size_t m) {
  return self->has_amx && m > 1;
}

cpu_need cpu_linear_need(const cpu_executor* self, const ir_op* op) {
  linear_job job = make_job(self, op);
  cpu_need need = {0};
  if (on_tiles(self, job.m)) { /* the packed panel, rows on their way into it, and their scales' inverses; the packed activations */
    need.slot_bytes = amx_packed_bytes(job.panel, job.k, job.w_pieces) + (PANEL_STEP * job.k + PANEL_STEP) * sizeof(float);
    need.shared_bytes = amx_packed_bytes(job.m, job.k, job.x_pieces);
  } else {
    need.slot_bytes = job.panel * job.k * sizeof(float);
  }
  return need;
}

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

/* ---- tiles ---- */

static void pack_activations(void* user, size_t begin, size_t end) {
  linear_job* job = user;
  const cpu_call* call = job->call;
  float inverse = cpu_has_integers(call->self, call->in[0]) ? 1.0f / call->in[0]->encoding.scale : 1.0f;
  size_t first = begin * PANEL_STEP;
  amx_source source = {.values = call->x[0] + first * job->k,
                       .stride = job->k,
                       .inverse = cpu_has_integers(call->self, call->in[0]) ? &inverse : NULL,
                       .one_inverse = true};
  amx_pack_right_transposed(&source, min_size(end * PANEL_STEP, job->m) - first, job->k, job->x_pieces,
                            call->self->scratch.shared + amx_packed_bytes(first, job->k, job->x_pieces));
}

/* Brings `rows` output channels from `first` on into `packed`. `room` holds the scale inverses and then, if need be, the rows. */
static genai_status* pack_weight(const linear_job* job, size_t first, size_t rows, float* room, uint8_t* packed) {
  const cpu_call* call = job->call;
  const ir_tensor* weight = call->in[1];
  bool integers = cpu_has_integers(call->self, weight);
  float* inverse = room;
  for (size_t done = 0; done < rows; done += PANEL_STEP) {
    size_t row = first + done, some = min_size(rows - done, PANEL_STEP);
    const float* values = call->x[1] ? call->x[1] + row * job->k : room + PANEL_STEP;
    if (!call->x[1]) GENAI_TRY(cpu_static_rows(call->self, weight, row, some, room + PANEL_STEP));
    for (size_t i = 0; integers && i < some; i++)
      inverse[i] = 1.0f / (weight->encoding.scales ? weight->encoding.scales[row + i] : weight->encoding.scale);
    amx_source source = {.values = values, .stride = job->k, .inverse = integers ? inverse : NULL};
    amx_pack_left(&source, some, job->k, job->w_pieces, packed + amx_packed_bytes(done, job->k, job->w_pieces));
  }
  return NULL;
}

static genai_status* run_panel_on_tiles(const linear_job* job, size_t first, size_t rows, uint8_t* scratch) {
  const cpu_call* call = job->call;
  const ir_tensor *x = call->in[0], *weight = call->in[1];
  uint8_t* packed = scratch;
  GENAI_TRY(pack_weight(job, first, rows, (float*)(void*)(scratch + amx_packed_bytes(job->panel, job->k, job->w_pieces)), packed));
  amx_target target = {.y = call->y + first, .stride = job->n, .transposed = true, .scale = 1.0f};
  if (cpu_has_integers(call->self, x)) target.scale = x->encoding.scale;
  if (cpu_has_integers(call->self, weight)) {
    if (weight->encoding.scales) {
      target.row_scale = weight->encoding.scales + first;
    } else {
      target.scale *= weight->encoding.scale;
    }
  }
  if (call->op->n_inputs == 3) target.row_bias = call->x[2] + first;
  amx_multiply(packed, job->w_pieces, rows, call->self->scratch.shared, job->x_pieces, job->m, job->k, &target);
  return NULL;
}

/* ---- one row, or no tiles ---- */

static genai_status* run_panel(const linear_job* job, size_t first, size_t rows, float* scratch) {
  const cpu_call* call = job->call;
  const float* weight = call->x[1] ? call->x[1] + first * job->k : scratch;
  float* y = call->y + first;
  if (!call->x[1]) GENAI_TRY(cpu_static_rows(call->self, call->in[1], first, rows, scratch));
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
  cpu_executor* self = job->call->self;
  uint8_t* scratch = cpu_scratch_take(&self->scratch);
  for (size_t i = begin; i < end && !cpu_failed(&job->failure); i++) {
    size_t first = i * job->panel, rows = min_size(job->n - first, job->panel);
    cpu_failure_set(&job->failure, on_tiles(self, job->m) ? run_panel_on_tiles(job, first, rows, scratch)
                                                          : run_panel(job, first, rows, (float*)(void*)scratch));
  }
  cpu_scratch_give(&self->scratch, scratch);
}

genai_status* cpu_run_linear(const cpu_call* call) {
  linear_job job = make_job(call->self, call->op);
  job.call = call;
  if (on_tiles(call->self, job.m))
    thread_pool_for(call->pool, amx_tiles(job.m, PANEL_STEP), cpu_grain(PANEL_STEP * job.k), pack_activations, &job);
  thread_pool_for(call->pool, amx_tiles(job.n, job.panel), cpu_grain(job.panel * job.k), linear_body, &job);
  return atomic_load(&job.failure.first);
}
