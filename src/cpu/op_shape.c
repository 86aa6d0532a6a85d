/* Operators that move values without changing them: Concat, StridedSlice, Transpose, and copies for Reshape and Convert where the plan
 * could not make them views. */
#include <string.h>

#include "cpu/internal.h"

typedef struct copy_job {
  const float* from;
  float* to;
} copy_job;

static void copy_body(void* user, size_t begin, size_t end) {
  const copy_job* job = user;
  memcpy(job->to + begin, job->from + begin, (end - begin) * sizeof(float));
}

genai_status* cpu_run_copy(const cpu_call* call) {
  copy_job job = {call->x[0], call->y};
  if (job.from != job.to) thread_pool_for(call->pool, (size_t)ir_tensor_elements(call->out), cpu_grain(1), copy_body, &job);
  return NULL;
}

/* ---- concat: for each outer index, one run per input ---- */

typedef struct concat_job {
  const cpu_call* call;
  size_t out_run, inner;
} concat_job;

static void concat_body(void* user, size_t begin, size_t end) {
  const concat_job* job = user;
  const cpu_call* call = job->call;
  for (size_t outer = begin; outer < end; outer++) {
    float* to = call->y + outer * job->out_run;
    for (uint32_t i = 0; i < call->op->n_inputs; i++) {
      size_t run = call->in[i]->dims[call->op->attr.axis] * job->inner;
      memcpy(to, call->x[i] + outer * run, run * sizeof(float));
      to += run;
    }
  }
}

genai_status* cpu_run_concat(const cpu_call* call) {
  uint32_t axis = (uint32_t)call->op->attr.axis;
  concat_job job = {.call = call, .inner = cpu_span(call->out, axis + 1, call->out->rank)};
  job.out_run = call->out->dims[axis] * job.inner;
  thread_pool_for(call->pool, cpu_span(call->out, 0, axis), cpu_grain(job.out_run), concat_body, &job);
  return NULL;
}

/* ---- slice: rows of the last dims that are whole, copied one run at a time ---- */

typedef struct slice_job {
  const cpu_call* call;
  uint32_t axes; /* leading dims that are stepped through */
  size_t run;    /* elements copied at once: dims [axes, rank) of the output */
  size_t strides[IR_MAX_RANK];
} slice_job;

static void slice_body(void* user, size_t begin, size_t end) {
  const slice_job* job = user;
  const cpu_call* call = job->call;
  const uint32_t* first = call->op->attr.slice.begin;
  for (size_t row = begin; row < end; row++) {
    size_t rest = row, at = 0;
    for (uint32_t i = job->axes; i-- > 0;) {
      at += (first[i] + rest % call->out->dims[i]) * job->strides[i];
      rest /= call->out->dims[i];
    }
    for (uint32_t i = job->axes; i < call->out->rank; i++) at += first[i] * job->strides[i];
    memcpy(call->y + row * job->run, call->x[0] + at, job->run * sizeof(float));
  }
}

genai_status* cpu_run_slice(const cpu_call* call) {
  const ir_tensor *in = call->in[0], *out = call->out;
  slice_job job = {.call = call, .axes = out->rank};
  for (uint32_t i = 0; i < in->rank; i++) job.strides[i] = cpu_span(in, i + 1, in->rank);
  while (job.axes > 0) { /* the last partial dim is still contiguous with the whole ones behind it */
    job.axes--;
    if (out->dims[job.axes] != in->dims[job.axes]) break;
  }
  job.run = cpu_span(out, job.axes, out->rank);
  thread_pool_for(call->pool, cpu_span(out, 0, job.axes), cpu_grain(job.run), slice_body, &job);
  return NULL;
}

/* ---- transpose ---- */

/* Dims of the output in order, adjacent ones joined when they are adjacent in the input too; padded with ones in front. */
typedef struct transpose_job {
  const float* from;
  float* to;
  uint32_t rank;
  size_t dims[IR_MAX_RANK];
  size_t in_strides[IR_MAX_RANK];
  size_t out_strides[IR_MAX_RANK];
  uint32_t fast; /* the output dim along which the input is contiguous */
} transpose_job;

static size_t min_size(size_t a, size_t b) {
  return a < b ? a : b;
}

/* Offsets of the `row`-th combination of all dims but `fast` and the last. */
static void transpose_offsets(const transpose_job* job, size_t row, size_t* from, size_t* to) {
  *from = *to = 0;
  for (uint32_t i = job->rank - 1; i-- > 0;) {
    if (i == job->fast) continue;
    *from += row % job->dims[i] * job->in_strides[i];
    *to += row % job->dims[i] * job->out_strides[i];
    row /= job->dims[i];
  }
}

static void transpose_rows(void* user, size_t begin, size_t end) { /* the last dim stays the last */
  const transpose_job* job = user;
  size_t run = job->dims[job->rank - 1], from, to;
  for (size_t row = begin; row < end; row++) {
    transpose_offsets(job, row, &from, &to);
    memcpy(job->to + to, job->from + from, run * sizeof(float));
  }
}

enum { TRANSPOSE_TILE = 16 /* a cache line on both sides */ };

static void transpose_planes(void* user, size_t begin, size_t end) {
  const transpose_job* job = user;
  size_t columns = job->dims[job->rank - 1], column_stride = job->in_strides[job->rank - 1];
  size_t lines = job->dims[job->fast], line_stride = job->out_strides[job->fast];
  size_t line_tiles = (lines + TRANSPOSE_TILE - 1) / TRANSPOSE_TILE;
  for (size_t unit = begin; unit < end; unit++) {
    size_t from, to, line_begin = unit % line_tiles * TRANSPOSE_TILE;
    size_t line_end = min_size(line_begin + TRANSPOSE_TILE, lines);
    transpose_offsets(job, unit / line_tiles, &from, &to);
    for (size_t tile = 0; tile < columns; tile += TRANSPOSE_TILE) {
      size_t column_end = min_size(tile + TRANSPOSE_TILE, columns);
      for (size_t line = line_begin; line < line_end; line++) {
        const float* source = job->from + from + line;
        float* target = job->to + to + line * line_stride;
        for (size_t column = tile; column < column_end; column++) target[column] = source[column * column_stride];
      }
    }
  }
}

genai_status* cpu_run_transpose(const cpu_call* call) {
  const ir_tensor *in = call->in[0], *out = call->out;
  transpose_job job = {.from = call->x[0], .to = call->y};
  for (uint32_t i = 0; i < out->rank; i++) {
    uint32_t axis = call->op->attr.perm[i];
    if (out->dims[i] == 1) continue;
    size_t stride = cpu_span(in, axis + 1, in->rank);
    if (job.rank && job.in_strides[job.rank - 1] == stride * out->dims[i]) {
      job.dims[job.rank - 1] *= out->dims[i];
      job.in_strides[job.rank - 1] = stride;
    } else {
      job.dims[job.rank] = out->dims[i];
      job.in_strides[job.rank++] = stride;
    }
  }
  if (job.rank <= 1) return cpu_run_copy(call);
  size_t stride = 1;
  for (uint32_t i = job.rank; i-- > 0;) {
    job.out_strides[i] = stride;
    stride *= job.dims[i];
    if (job.in_strides[i] == 1) job.fast = i;
  }
  size_t rows = 1;
  for (uint32_t i = 0; i + 1 < job.rank; i++) rows *= i == job.fast ? 1 : job.dims[i];
  if (job.fast == job.rank - 1) {
    thread_pool_for(call->pool, rows, cpu_grain(job.dims[job.rank - 1]), transpose_rows, &job);
  } else {
    size_t tiles = (job.dims[job.fast] + TRANSPOSE_TILE - 1) / TRANSPOSE_TILE;
    thread_pool_for(call->pool, rows * tiles, cpu_grain(TRANSPOSE_TILE * job.dims[job.rank - 1]), transpose_planes, &job);
  }
  return NULL;
}
