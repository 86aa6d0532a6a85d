/* Statics as reals: read row by row from where they are stored, rounded to their encoding when simulating, and kept between calls where
 * an operator needs them whole. The cache of linear weights is op_linear.c's, which knows their form. */
#include <string.h>

#include "cpu/internal.h"
#include "cpu/rounding.h"
#include "ir/feedback.h"

/* A linear layer's weight and a table that tokens index are read by rows, as large as they are; any other use needs all values at hand,
 * and so does a table whose rows are rotated among each other. */
static bool reads_by_rows(const ir_graph* graph, const ir_op* op, uint32_t input) {
  const ir_tensor* tensor = graph->tensors[op->inputs[input]];
  if (!tensor->source) return false;
  if (op->kind == IR_CONV2D) return input == 1;
  return op->kind == IR_GATHER && input == 0 && tensor->source->rows == tensor->dims[0] && !tensor->source->rotate_rows;
}

/* Symmetric, so that a run of `count` values has one scale and no offset; the static's range is the narrow one. */
static void round_run(const ir_tensor* tensor, float scale, float* values, size_t count) {
  rounding_range range = rounding_range_of(tensor->dtype, &tensor->encoding, true);
  if (tensor->encoding.bits > 16) {
    for (size_t i = 0; i < count; i++) values[i] = rounding_apply_wide(values[i], (double)scale, 0, range);
  } else {
    rounding_apply_range(scale, 0, range, values, count);
  }
}

/* Scales of the elements of one row of a linear weight: by output channel, and by block along the inputs. */
static void round_weight_row(const ir_tensor* tensor, uint64_t row, float* values) {
  const ir_encoding* encoding = &tensor->encoding;
  size_t cols = (size_t)tensor->source->cols;
  ir_feedback_apply(tensor, row, values);
  if (encoding->kind == IR_ENCODING_PER_CHANNEL) {
    round_run(tensor, encoding->scales[row], values, cols);
    return;
  }
  size_t block = cols / encoding->blocks;
  for (size_t b = 0; b < encoding->blocks; b++) {
    float scale = encoding->scales[row] * (float)encoding->block_scales[row * encoding->blocks + b];
    round_run(tensor, scale, values + b * block, block);
  }
}

static void round_rows(const ir_tensor* tensor, uint64_t row, uint64_t count, float* values) {
  const ir_encoding* encoding = &tensor->encoding;
  size_t cols = (size_t)tensor->source->cols;
  if (tensor->dtype == IR_F16) {
    rounding_apply_half(values, (size_t)count * cols);
  } else if (encoding->kind == IR_ENCODING_PER_TENSOR) {
    rounding_range range = rounding_range_of(tensor->dtype, encoding, true);
    if (encoding->bits <= 16) {
      rounding_apply_range(encoding->scale, encoding->offset, range, values, (size_t)count * cols);
    } else {
      for (size_t i = 0; i < (size_t)count * cols; i++)
        values[i] = rounding_apply_wide(values[i], (double)encoding->scale, encoding->offset, range);
    }
  } else if (encoding->kind != IR_ENCODING_NONE && ir_static_is_linear(tensor)) {
    for (uint64_t r = 0; r < count; r++) round_weight_row(tensor, row + r, values + r * cols);
  } else if (encoding->kind == IR_ENCODING_PER_CHANNEL) { /* runs of equal channel in the tensor's own order */
    size_t run = cpu_span(tensor, (uint32_t)encoding->axis + 1, tensor->rank), total = (size_t)count * cols;
    uint64_t first = row * cols;
    for (size_t done = 0; done < total;) {
      uint64_t at = first + done;
      size_t left = run - (size_t)(at % run);
      if (left > total - done) left = total - done;
      round_run(tensor, encoding->scales[at / run % encoding->channels], values + done, left);
      done += left;
    }
  }
}

genai_status* cpu_static_rows(const cpu_executor* self, const ir_tensor* tensor, uint64_t row, uint64_t count, float* out) {
  return cpu_static_view_rows(self, tensor, &(ir_static_view){.source = tensor->source}, row, count, out);
}

genai_status* cpu_static_view_rows(const cpu_executor* self, const ir_tensor* tensor, const ir_static_view* view, uint64_t row,
                                   uint64_t count, float* out) {
  GENAI_TRY(ir_static_view_read(view, row, count, out));
  if (self->options.mode == CPU_SIMULATED) round_rows(tensor, row, count, out);
  return NULL;
}

typedef struct load_job {
  const cpu_executor* self;
  const ir_tensor* tensor;
  ir_static_view view;
  float* out;
  pool_failure failure;
} load_job;

enum { LOAD_ROWS = 64 };

static void load_rows(void* user, size_t begin, size_t end) {
  load_job* job = user;
  uint64_t first = (uint64_t)begin * LOAD_ROWS, last = (uint64_t)end * LOAD_ROWS;
  if (last > job->tensor->source->rows) last = job->tensor->source->rows;
  float* out = job->out + first * job->tensor->source->cols;
  pool_failure_set(&job->failure, cpu_static_view_rows(job->self, job->tensor, &job->view, first, last - first, out));
}

static genai_status* load_static(cpu_executor* self, const ir_tensor* tensor) {
  size_t elements, bytes;
  if (!size_mul((size_t)tensor->source->rows, (size_t)tensor->source->cols, &elements) || !size_mul(elements, sizeof(float), &bytes))
    return genai_status_create(GENAI_ERROR_LIMIT, "static %s does not fit the address space", tensor->name);
  float* values = mem_alloc_aligned(64, bytes);
  if (!values) return genai_status_out_of_memory();
  load_job job = {.self = self, .tensor = tensor, .out = values};
  size_t blocks = (size_t)((tensor->source->rows + LOAD_ROWS - 1) / LOAD_ROWS);
  genai_status* status = ir_static_view_open(tensor->source, self->options.pool, &job.view);
  if (!status && tensor->source->cols == 1) { /* one read: rows of one element may each cost a read of the whole vector */
    status = cpu_static_view_rows(self, tensor, &job.view, 0, tensor->source->rows, values);
  } else if (!status) {
    thread_pool_for(self->options.pool, blocks, cpu_grain(LOAD_ROWS * (size_t)tensor->source->cols), load_rows, &job);
    status = pool_failure_take(&job.failure);
  }
  ir_static_view_close(&job.view);
  if (status) {
    mem_free(values);
    return status;
  }
  self->statics[tensor->id] = values;
  self->owns_static[tensor->id] = true;
  return NULL;
}

genai_status* cpu_statics_load(cpu_executor* self) {
  const ir_graph* graph = self->graph;
  for (uint32_t i = 0; i < graph->n_tensors; i++) {
    if (graph->tensors[i]->integers) self->statics[i] = (float*)graph->tensors[i]->integers; /* only ever read, as int32_t */
  }
  uint64_t left = self->options.weight_cache_bytes;
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    if (graph->ops[i]->kind == IR_CONV2D) GENAI_TRY(cpu_linear_keep(self, graph->ops[i], &left));
  }
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    for (uint32_t j = 0; j < op->n_inputs; j++) {
      const ir_tensor* tensor = graph->tensors[op->inputs[j]];
      if (tensor->source && !self->statics[tensor->id] && !reads_by_rows(graph, op, j)) GENAI_TRY(load_static(self, tensor));
    }
  }
  return NULL;
}

void cpu_statics_unload(cpu_executor* self) {
  for (uint32_t i = 0; self->statics && self->owns_static && i < self->graph->n_tensors; i++) {
    if (self->owns_static[i]) mem_free(self->statics[i]);
    if (self->kept) mem_free(self->kept[i].data);
  }
}
