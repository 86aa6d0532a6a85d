/* Linear layers (Conv2d 1x1): panels of output channels, each brought from where the weight is stored into scratch that stays in the
 * second-level cache, multiplied, and dropped; or kept between calls in the form that is multiplied.
 * One row of activations is a matrix-vector product; more go to the tile unit where there is one, else to oneDNN. */
#include "cpu/amx.h"
#include "cpu/gemm.h"
#include "cpu/internal.h"
#include "cpu/vector_math.h"

enum { PANEL_BYTES = 1024 * 1024, PAIR = 2 * AMX_SIDE, FLOAT_PANEL = 96 };

/* Output channels per panel. Without tiles it depends on the weight alone, so that results do not depend on the pool's size; on tiles no
 * result depends on it, and the larger it is, the fewer times the activations are read. */
static size_t panel_rows(size_t k, bool tiles, size_t w_pieces) {
  size_t rows = PANEL_BYTES / (k * (tiles ? 2 * w_pieces : sizeof(float))) / PAIR * PAIR;
  if (!tiles && rows > FLOAT_PANEL) rows = FLOAT_PANEL;
  return rows < PAIR ? PAIR : rows;
}

typedef struct linear_job {
  const cpu_call* call;
  const ir_tensor* weight;
  ir_static_view view; /* of the weight, while its rows are read */
  size_t m, n, k, panel;
  bool tiles;
  size_t x_pieces, w_pieces, order; /* on tiles */
  cpu_kept kept;                    /* in a form this layer reads, or none */
  pool_failure failure;
} linear_job;

static linear_job make_job(const cpu_executor* self, const ir_op* op) {
  const ir_tensor *x = self->graph->tensors[op->inputs[0]], *weight = self->graph->tensors[op->inputs[1]];
  linear_job job = {.weight = weight,
                    .m = (size_t)x->dims[1] * x->dims[2],
                    .n = weight->dims[3],
                    .k = weight->dims[2],
                    .x_pieces = cpu_pieces(self, x),
                    .w_pieces = cpu_pieces(self, weight),
                    .order = cpu_order(self, cpu_has_integers(self, x) && cpu_has_integers(self, weight))};
  job.tiles = self->has_amx && job.m > 1;
  job.panel = panel_rows(job.k, job.tiles, job.w_pieces);
  cpu_kept kept = self->kept ? self->kept[weight->id] : (cpu_kept){0};
  bool readable = job.tiles ? kept.form == CPU_FORM_TILES : kept.form == CPU_FORM_FLOATS || (kept.form == CPU_FORM_BYTES && job.m == 1);
  if (readable) job.kept = kept;
  return job;
}

cpu_need cpu_linear_need(const cpu_executor* self, const ir_op* op) {
  linear_job job = make_job(self, op);
  cpu_need need = {0};
  if (job.tiles) { /* the packed panel, the scales' inverses and rows on their way into it; the packed activations */
    need.slot_bytes = amx_packed_bytes(job.panel, job.k, job.w_pieces) + (PAIR * job.k + PAIR) * sizeof(float);
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
  size_t first = begin * PAIR;
  amx_source source = {.values = call->x[0] + first * job->k,
                       .stride = job->k,
                       .inverse = cpu_has_integers(call->self, call->in[0]) ? &inverse : NULL,
                       .one_inverse = true};
  amx_pack_right_transposed(&source, min_size(end * PAIR, job->m) - first, job->k, job->x_pieces,
                            call->self->scratch.shared + amx_packed_bytes(first, job->k, job->x_pieces));
}

/* The scale of an output channel's integers. */
static float channel_scale(const ir_encoding* encoding, size_t row) {
  return encoding->scales ? encoding->scales[row] : encoding->scale;
}

/* Brings `rows` output channels from `first` on into tiles. `room` holds their scales' inverses and then the rows. */
static genai_status* pack_weight(const cpu_executor* self, const linear_job* job, size_t first, size_t rows, float* room, uint8_t* tiles) {
  const ir_tensor* weight = job->weight;
  bool integers = cpu_has_integers(self, weight);
  float *inverse = room, *values = room + PAIR;
  for (size_t done = 0; done < rows; done += PAIR) {
    size_t row = first + done, some = min_size(rows - done, PAIR);
    GENAI_TRY(cpu_static_view_rows(self, weight, &job->view, row, some, values));
    for (size_t i = 0; integers && i < some; i++) inverse[i] = 1.0f / channel_scale(&weight->encoding, row + i);
    amx_source source = {.values = values, .stride = job->k, .inverse = integers ? inverse : NULL};
    amx_pack_left(&source, some, job->k, job->w_pieces, tiles + amx_packed_bytes(done, job->k, job->w_pieces));
  }
  return NULL;
}

static genai_status* run_panel_on_tiles(const linear_job* job, size_t first, size_t rows, uint8_t* scratch) {
  const cpu_call* call = job->call;
  const ir_tensor *x = call->in[0], *weight = call->in[1];
  const uint8_t* tiles = scratch;
  if (job->kept.form == CPU_FORM_TILES) {
    tiles = (const uint8_t*)job->kept.data + amx_packed_bytes(first, job->k, job->w_pieces);
  } else {
    GENAI_TRY(
        pack_weight(call->self, job, first, rows, (float*)(void*)(scratch + amx_packed_bytes(job->panel, job->k, job->w_pieces)), scratch));
  }
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
  amx_multiply(tiles, job->w_pieces, rows, call->self->scratch.shared, job->x_pieces, job->m, job->k, job->order, &target);
  return NULL;
}

/* ---- one row, or no tiles ---- */

/* One row of activations meets a weight of 8 bits or less as integers, whether it is kept or not. */
static bool reads_bytes(const linear_job* job) {
  return job->m == 1 && job->w_pieces == 1 && job->weight->dtype == IR_S8;
}

/* The integers of rows given as reals; `bytes` may be where `values` are. */
static void to_bytes(const linear_job* job, size_t first, size_t rows, const float* values, int8_t* bytes) {
  for (size_t i = 0; i < rows; i++) {
    float inverse = 1.0f / channel_scale(&job->weight->encoding, first + i);
    for (size_t j = i * job->k; j < (i + 1) * job->k; j++) bytes[j] = (int8_t)vm_round(values[j] * inverse);
  }
}

static genai_status* run_panel(const linear_job* job, size_t first, size_t rows, float* scratch) {
  const cpu_call* call = job->call;
  const ir_encoding* encoding = &call->in[1]->encoding;
  const float* weight = scratch;
  float* y = call->y + first;
  if (job->kept.form == CPU_FORM_FLOATS) {
    weight = (const float*)job->kept.data + first * job->k;
  } else if (job->kept.form == CPU_FORM_NONE) {
    GENAI_TRY(cpu_static_view_rows(call->self, call->in[1], &job->view, first, rows, scratch));
  }
  if (reads_bytes(job)) {
    const float* scales = encoding->scales ? encoding->scales + first : &encoding->scale;
    const int8_t* bytes = (const int8_t*)(const void*)scratch;
    if (job->kept.form == CPU_FORM_BYTES) {
      bytes = (const int8_t*)job->kept.data + first * job->k;
    } else {
      to_bytes(job, first, rows, weight, (int8_t*)(void*)scratch);
    }
    gemm_vector_s8(bytes, rows, job->k, call->x[0], scales, !encoding->scales, y);
  } else if (job->m == 1) {
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
  for (size_t i = begin; i < end && !pool_failed(&job->failure); i++) {
    size_t first = i * job->panel, rows = min_size(job->n - first, job->panel);
    pool_failure_set(&job->failure, run_panel(job, first, rows, (float*)(void*)scratch));
  }
  cpu_scratch_give(&self->scratch, scratch);
}

static void tiles_body(void* user, size_t begin, size_t end) { /* in pairs of tiles */
  linear_job* job = user;
  cpu_executor* self = job->call->self;
  uint8_t* scratch = cpu_scratch_take(&self->scratch);
  size_t last = min_size(end * PAIR, job->n);
  for (size_t first = begin * PAIR; first < last && !pool_failed(&job->failure); first += job->panel)
    pool_failure_set(&job->failure, run_panel_on_tiles(job, first, min_size(last - first, job->panel), scratch));
  cpu_scratch_give(&self->scratch, scratch);
}

genai_status* cpu_run_linear(const cpu_call* call) {
  linear_job job = make_job(call->self, call->op);
  job.call = call;
  if (job.kept.form == CPU_FORM_NONE) GENAI_TRY(ir_static_view_open(job.weight->source, call->pool, &job.view));
  if (job.tiles) {
    thread_pool_for(call->pool, amx_tiles(job.m, PAIR), cpu_grain(PAIR * job.k), pack_activations, &job);
    thread_pool_for(call->pool, amx_tiles(job.n, PAIR), cpu_grain(PAIR * job.k), tiles_body, &job);
  } else {
    thread_pool_for(call->pool, amx_tiles(job.n, job.panel), cpu_grain(job.panel * job.k), linear_body, &job);
  }
  ir_static_view_close(&job.view);
  return pool_failure_take(&job.failure);
}

/* ---- weights kept between calls ---- */

typedef struct keep_job {
  cpu_executor* self;
  linear_job layer;
  pool_failure failure;
} keep_job;

static genai_status* keep_panel(keep_job* job, size_t first, size_t rows, uint8_t* scratch) {
  linear_job* layer = &job->layer;
  cpu_kept* kept = &layer->kept;
  size_t k = layer->k;
  if (kept->form == CPU_FORM_FLOATS)
    return cpu_static_view_rows(job->self, layer->weight, &layer->view, first, rows, (float*)kept->data + first * k);
  if (kept->form == CPU_FORM_TILES)
    return pack_weight(job->self, layer, first, rows, (float*)(void*)(scratch + amx_packed_bytes(layer->panel, k, layer->w_pieces)),
                       (uint8_t*)kept->data + amx_packed_bytes(first, k, layer->w_pieces));
  float* values = (float*)(void*)scratch;
  GENAI_TRY(cpu_static_view_rows(job->self, layer->weight, &layer->view, first, rows, values));
  to_bytes(layer, first, rows, values, (int8_t*)kept->data + first * k);
  return NULL;
}

static void keep_body(void* user, size_t begin, size_t end) {
  keep_job* job = user;
  uint8_t* scratch = cpu_scratch_take(&job->self->scratch);
  for (size_t i = begin; i < end && !pool_failed(&job->failure); i++) {
    size_t first = i * job->layer.panel;
    pool_failure_set(&job->failure, keep_panel(job, first, min_size(job->layer.n - first, job->layer.panel), scratch));
  }
  cpu_scratch_give(&job->self->scratch, scratch);
}

genai_status* cpu_linear_keep(cpu_executor* self, const ir_op* op, uint64_t* left) {
  keep_job job = {.self = self, .layer = make_job(self, op)};
  cpu_kept* kept = &job.layer.kept;
  if (kept->form != CPU_FORM_NONE) return NULL; /* kept for a layer before */
  uint64_t bytes = (uint64_t)job.layer.n * job.layer.k;
  if (job.layer.tiles) {
    kept->form = CPU_FORM_TILES;
    bytes = amx_packed_bytes(job.layer.n, job.layer.k, job.layer.w_pieces);
  } else if (reads_bytes(&job.layer)) {
    kept->form = CPU_FORM_BYTES;
  } else {
    kept->form = CPU_FORM_FLOATS;
    bytes *= sizeof(float);
  }
  if (bytes > *left || bytes > SIZE_MAX) return NULL;
  kept->data = mem_alloc_aligned(64, (size_t)bytes);
  if (!kept->data) return genai_status_out_of_memory();
  *left -= bytes;
  self->kept[job.layer.weight->id] = *kept;
  GENAI_TRY(ir_static_view_open(job.layer.weight->source, self->options.pool, &job.layer.view));
  thread_pool_for(self->options.pool, amx_tiles(job.layer.n, job.layer.panel), 1, keep_body, &job);
  ir_static_view_close(&job.layer.view);
  return pool_failure_take(&job.failure);
}
