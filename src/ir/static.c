/* Where the values of statics come from: rows of a checkpoint tensor in the order and with the scale their `ir_static` says, read as F32
 * or turned into the bytes of the tensor's storage type and layout. Choosing the encodings is src/quantize's part. */
#include <math.h>
#include <string.h>

#include "base/pool.h"
#include "checkpoint/checkpoint.h"
#include "ir/feedback.h"
#include "ir/half.h"
#include "ir/ir.h"
#include "ir/rotation.h"
#include "ir/round.h"

/* The stored row that logical row `row` comes from. */
static uint64_t stored_row(const ir_static* source, uint64_t row) {
  if (source->row_order == IR_ROWS_ROTARY_INTERLEAVED) {
    uint64_t within = row % source->head_dim, half = source->rotary_dim / 2;
    if (within < half) {
      row = row - within + 2 * within;
    } else if (within < source->rotary_dim) {
      row = row - within + 2 * (within - half) + 1;
    }
  }
  if (source->group_rows) row = row / source->group_rows * source->group_stride + row % source->group_rows;
  return source->first_row + row;
}

bool ir_static_is_linear(const ir_tensor* tensor) {
  return tensor->rank == 4 && tensor->dims[0] == 1 && tensor->dims[1] == 1 && tensor->source->rows == tensor->dims[3] &&
         tensor->source->cols == tensor->dims[2];
}

static uint64_t stored_cols(const checkpoint_tensor* tensor) {
  return tensor->rank ? tensor->dims[tensor->rank - 1] : 1;
}

/* A stored vector of more than one element, read as a column: each logical row is one of its elements. */
static bool is_column(const ir_static* source) {
  return source->cols == 1 && source->tensor && source->tensor->rank == 1 && source->tensor->dims[0] != 1;
}

static genai_status* read_column(const ir_static* source, uint64_t row, uint64_t count, float* out) {
  float* whole = mem_realloc_array(NULL, (size_t)source->tensor->dims[0], sizeof *whole);
  if (!whole) return genai_status_out_of_memory();
  genai_status* status = checkpoint_read_rows(source->tensor, 0, 1, whole);
  for (uint64_t i = 0; !status && i < count; ++i) {
    uint64_t at = stored_row(source, row + i);
    if (at >= source->tensor->dims[0]) {
      status =
          genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "tensor %s has no element %llu", source->tensor->name, (unsigned long long)at);
      break;
    }
    out[i] = whole[at];
  }
  mem_free(whole);
  return status;
}

static genai_status* read_matrix(const ir_static* source, uint64_t row, uint64_t count, float* out) {
  if (stored_cols(source->tensor) != source->cols) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "tensor %s has rows of %llu elements, expected %llu", source->tensor->name,
                               (unsigned long long)stored_cols(source->tensor), (unsigned long long)source->cols);
  }
  for (uint64_t i = 0; i < count;) {
    uint64_t at = stored_row(source, row + i), run = 1;
    while (i + run < count && stored_row(source, row + i + run) == at + run) ++run;
    GENAI_TRY(checkpoint_read_rows(source->tensor, at, run, out + i * source->cols));
    i += run;
  }
  return NULL;
}

static genai_status* check_rows(const ir_static* source, uint64_t row, uint64_t count) {
  if (row <= source->rows && count <= source->rows - row) return NULL;
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "rows %llu to %llu of a static of %llu rows", (unsigned long long)row,
                             (unsigned long long)(row + count), (unsigned long long)source->rows);
}

static void drop(const ir_static* source, uint64_t row, uint64_t count, float* out) {
  size_t cols = (size_t)source->cols;
  for (uint32_t i = 0; i < source->n_dropped_rows; ++i) {
    uint64_t at = source->dropped_rows[i];
    if (at >= row && at - row < count) memset(out + (at - row) * cols, 0, cols * sizeof *out);
  }
  for (uint32_t i = 0; i < source->n_dropped_columns; ++i) {
    for (uint64_t r = 0; r < count; ++r) out[r * cols + source->dropped_columns[i]] = 0;
  }
}

/* As ir_static_read, before the rows are rotated among each other. */
static genai_status* read_unmixed(const ir_static* source, uint64_t row, uint64_t count, float* out) {
  GENAI_TRY(check_rows(source, row, count));
  size_t elements = (size_t)(count * source->cols);
  if (!source->tensor) {
    memcpy(out, source->constants + row * source->cols, elements * sizeof *out);
  } else if (is_column(source)) {
    GENAI_TRY(read_column(source, row, count, out));
  } else {
    GENAI_TRY(read_matrix(source, row, count, out));
  }
  float scale = source->scale, add = source->add;
  if (scale != 1.0f || add != 0.0f) {
    for (size_t i = 0; i < elements; ++i) out[i] = out[i] * scale + add;
  }
  size_t cols = (size_t)source->cols;
  drop(source, row, count, out);
  for (uint64_t r = 0; source->column_scale && r < count; ++r) {
    for (size_t c = 0; c < cols; ++c) out[r * cols + c] *= source->column_scale[c];
  }
  if (source->rotate_columns) rotation_apply_rows(source->rotate_columns, out, (size_t)count);
  for (uint64_t r = 0; source->row_scale && r < count; ++r) {
    for (size_t c = 0; c < cols; ++c) out[r * cols + c] *= source->row_scale[row + r];
  }
  return NULL;
}

genai_status* ir_static_read(const ir_static* source, uint64_t row, uint64_t count, float* out) {
  if (source->rotate_rows) return genai_status_create(GENAI_ERROR_INTERNAL, "a static with rotated rows must be read through a view");
  return read_unmixed(source, row, count, out);
}

typedef struct mixing {
  const ir_static* source;
  float* whole;
  pool_failure failure;
} mixing;

static void read_rows(void* user, size_t begin, size_t end) {
  mixing* job = user;
  pool_failure_set(&job->failure, read_unmixed(job->source, begin, end - begin, job->whole + begin * job->source->cols));
}

enum { MIX_COLUMNS = 64 };

/* Strips of columns are copied out, rotated while they lie in the cache, and copied back. */
static void rotate_strips(void* user, size_t begin, size_t end) {
  mixing* job = user;
  size_t rows = (size_t)job->source->rows, cols = (size_t)job->source->cols;
  float* strip = mem_realloc_array(NULL, rows * MIX_COLUMNS, sizeof *strip);
  float* scratch = mem_realloc_array(NULL, rotation_scratch(job->source->rotate_rows) * MIX_COLUMNS, sizeof *scratch);
  if (!strip || !scratch) pool_failure_set(&job->failure, genai_status_out_of_memory());
  for (size_t s = begin; s < end && strip && scratch; ++s) {
    size_t first = s * MIX_COLUMNS, width = cols - first < MIX_COLUMNS ? cols - first : MIX_COLUMNS;
    for (size_t r = 0; r < rows; ++r) memcpy(strip + r * width, job->whole + r * cols + first, width * sizeof *strip);
    rotation_apply_columns(job->source->rotate_rows, strip, width, scratch);
    for (size_t r = 0; r < rows; ++r) memcpy(job->whole + r * cols + first, strip + r * width, width * sizeof *strip);
  }
  mem_free(strip);
  mem_free(scratch);
}

genai_status* ir_static_view_open(const ir_static* source, struct thread_pool* pool, ir_static_view* out) {
  ir_static_view view = {.source = source};
  if (source->rotate_rows) {
    size_t elements;
    view.whole =
        size_mul((size_t)source->rows, (size_t)source->cols, &elements) ? mem_realloc_array(NULL, elements, sizeof *view.whole) : NULL;
    if (!view.whole) return genai_status_out_of_memory();
    mixing job = {.source = source, .whole = view.whole};
    thread_pool_for(pool, (size_t)source->rows, 16, read_rows, &job);
    if (!pool_failed(&job.failure)) thread_pool_for(pool, (size_t)((source->cols + MIX_COLUMNS - 1) / MIX_COLUMNS), 1, rotate_strips, &job);
    genai_status* status = pool_failure_take(&job.failure);
    if (status) {
      ir_static_view_close(&view);
      return status;
    }
  }
  *out = view;
  return NULL;
}

genai_status* ir_static_view_read(const ir_static_view* view, uint64_t row, uint64_t count, float* out) {
  const ir_static* source = view->source;
  if (!view->whole) return ir_static_read(source, row, count, out);
  GENAI_TRY(check_rows(source, row, count));
  memcpy(out, view->whole + row * source->cols, (size_t)(count * source->cols) * sizeof *out);
  return NULL;
}

void ir_static_view_close(ir_static_view* view) {
  mem_free(view->whole);
  *view = (ir_static_view){0};
}

/* One run of values that share a scale, to integers in [low, high] after `offset` is taken off (q = round(x / scale) - offset). */
static void quantize_run(const float* values, size_t count, float scale, float offset, float low, float high, float* out) {
  float reach = high + offset, depth = low + offset;
  for (size_t i = 0; i < count; ++i) out[i] = round_small(clamp(values[i] / scale, depth, reach)) - offset;
}

typedef struct target {
  const ir_tensor* tensor;
  ir_static_view view;
  ir_dtype dtype;
  float low, high; /* integer range, small types */
  double wide;     /* largest magnitude of S32 */
  uint8_t* out;
  pool_failure failure;
} target;

static genai_status* choose_range(const ir_tensor* tensor, target* to) {
  const ir_encoding* encoding = &tensor->encoding;
  to->dtype = tensor->dtype;
  switch (tensor->dtype) {
    case IR_F32:
    case IR_F16:
      return NULL;
    case IR_U8:
    case IR_U16:
      to->low = 0.0f;
      to->high = (float)((1u << encoding->bits) - 1);
      break;
    case IR_S8:
    case IR_S16: /* symmetric: the most negative value is not used */
      to->high = (float)((1u << (encoding->bits - 1)) - 1);
      to->low = -to->high;
      break;
    case IR_S32:
      to->wide = 2147483647.0;
      break;
    case IR_I32:
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "static %s: reals cannot be stored as i32", tensor->name);
  }
  if (encoding->kind == IR_ENCODING_NONE) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "static %s is stored as %s but has no encoding", tensor->name,
                               ir_dtype_name(tensor->dtype));
  }
  return NULL;
}

/* Scale of the element at flat index `at` of a tensor that is not a linear weight. */
static float scale_at(const ir_tensor* tensor, uint64_t at) {
  const ir_encoding* encoding = &tensor->encoding;
  if (encoding->kind == IR_ENCODING_PER_TENSOR) return encoding->scale;
  uint64_t stride = 1;
  for (uint32_t i = tensor->rank; i-- > (uint32_t)encoding->axis + 1;) stride *= tensor->dims[i];
  return encoding->scales[at / stride % tensor->dims[encoding->axis]];
}

/* Stores `count` elements from flat index `first` on, in the tensor's own order. */
static void store_flat(const target* to, uint64_t first, const float* values, size_t count) {
  const ir_encoding* encoding = &to->tensor->encoding;
  float rounded[256];
  for (size_t done = 0; done < count;) {
    size_t run = count - done < 256 ? count - done : 256;
    const float* from = values + done;
    uint64_t at = first + done;
    if (to->dtype == IR_F32) {
      memcpy((float*)to->out + at, from, run * sizeof *from);
    } else if (to->dtype == IR_F16) {
      for (size_t i = 0; i < run; ++i) ((uint16_t*)to->out)[at + i] = float_to_half(from[i]);
    } else if (to->dtype == IR_S32) {
      for (size_t i = 0; i < run; ++i) {
        double scaled = rint((double)from[i] / (double)scale_at(to->tensor, at + i));
        scaled = scaled > -to->wide ? scaled : -to->wide;
        ((int32_t*)to->out)[at + i] = (int32_t)(scaled < to->wide ? scaled : to->wide);
      }
    } else {
      float offset = encoding->kind == IR_ENCODING_PER_TENSOR ? (float)encoding->offset : 0.0f;
      if (encoding->kind == IR_ENCODING_PER_TENSOR) {
        quantize_run(from, run, encoding->scale, offset, to->low, to->high, rounded);
      } else {
        for (size_t i = 0; i < run; ++i) quantize_run(from + i, 1, scale_at(to->tensor, at + i), 0.0f, to->low, to->high, rounded + i);
      }
      switch (to->dtype) {
        case IR_U8:
          for (size_t i = 0; i < run; ++i) to->out[at + i] = (uint8_t)(int32_t)rounded[i];
          break;
        case IR_S8:
          for (size_t i = 0; i < run; ++i) ((int8_t*)to->out)[at + i] = (int8_t)rounded[i];
          break;
        case IR_U16:
          for (size_t i = 0; i < run; ++i) ((uint16_t*)to->out)[at + i] = (uint16_t)(int32_t)rounded[i];
          break;
        default:
          for (size_t i = 0; i < run; ++i) ((int16_t*)to->out)[at + i] = (int16_t)rounded[i];
          break;
      }
    }
    done += run;
  }
}

/* One output channel of a linear weight, quantized where it stands. */
static void quantize_channel(const target* to, uint64_t channel, float* values) {
  const ir_encoding* encoding = &to->tensor->encoding;
  size_t cols = (size_t)to->tensor->source->cols;
  ir_feedback_apply(to->tensor, channel, values);
  switch (encoding->kind) {
    case IR_ENCODING_NONE:
      break;
    case IR_ENCODING_PER_TENSOR:
      quantize_run(values, cols, encoding->scale, (float)encoding->offset, to->low, to->high, values);
      break;
    case IR_ENCODING_PER_CHANNEL:
      quantize_run(values, cols, encoding->scales[channel], 0.0f, to->low, to->high, values);
      break;
    case IR_ENCODING_BLOCK_EXPANSION: {
      size_t block = cols / encoding->blocks;
      for (size_t b = 0; b < encoding->blocks; ++b) {
        float scale = encoding->scales[channel] * (float)encoding->block_scales[channel * encoding->blocks + b];
        quantize_run(values + b * block, block, scale, 0.0f, to->low, to->high, values + b * block);
      }
      break;
    }
  }
}

/* Channels that one task reads together: their columns fill whole cache lines of the transposed output. */
enum { TILE = 64, PATCH = 16 };

/* Transposes a tile of `rows` <= TILE channels of 8-bit values: tile[rows][cols] to out[cols][stride]. In patches of 16 x 16, so that both
 * sides of the copy stay in the first-level cache. */
static void transpose_bytes(const uint8_t* tile, size_t rows, size_t cols, uint8_t* out, size_t stride) {
  for (size_t k = 0; k < cols; k += PATCH) {
    size_t k_end = k + PATCH < cols ? k + PATCH : cols;
    for (size_t j = k; j < k_end; ++j) {
      for (size_t r = 0; r < rows; ++r) out[j * stride + r] = tile[r * cols + j];
    }
  }
}

static genai_status* store_linear_tile(const target* to, uint64_t first, size_t rows, float* values, uint8_t* bytes) {
  const ir_static* source = to->tensor->source;
  size_t cols = (size_t)source->cols, stride = (size_t)source->rows;
  GENAI_TRY(ir_static_view_read(&to->view, first, rows, values));
  for (size_t r = 0; r < rows; ++r) quantize_channel(to, first + r, values + r * cols);
  switch (to->dtype) {
    case IR_S8:
    case IR_U8:
      for (size_t i = 0; i < rows * cols; ++i) bytes[i] = (uint8_t)(int32_t)values[i];
      transpose_bytes(bytes, rows, cols, to->out + first, stride);
      break;
    case IR_S16:
    case IR_U16:
      for (size_t k = 0; k < cols; ++k) {
        uint16_t* line = (uint16_t*)to->out + k * stride + first;
        for (size_t r = 0; r < rows; ++r) line[r] = (uint16_t)(int32_t)values[r * cols + k];
      }
      break;
    case IR_F16:
      for (size_t k = 0; k < cols; ++k) {
        uint16_t* line = (uint16_t*)to->out + k * stride + first;
        for (size_t r = 0; r < rows; ++r) line[r] = float_to_half(values[r * cols + k]);
      }
      break;
    default:
      for (size_t k = 0; k < cols; ++k) {
        float* line = (float*)to->out + k * stride + first;
        for (size_t r = 0; r < rows; ++r) line[r] = values[r * cols + k];
      }
      break;
  }
  return NULL;
}

static void materialize_tiles(void* user, size_t begin, size_t end) {
  target* to = user;
  const ir_static* source = to->tensor->source;
  bool linear = ir_static_is_linear(to->tensor);
  size_t tile = TILE * (size_t)source->cols;
  float* values = mem_realloc_array(NULL, tile, sizeof *values);
  uint8_t* bytes = values ? mem_alloc(tile) : NULL;
  genai_status* status = bytes ? NULL : genai_status_out_of_memory();
  for (size_t i = begin; i < end && !status && !pool_failed(&to->failure); ++i) {
    uint64_t first = (uint64_t)i * TILE, left = source->rows - first;
    size_t rows = (size_t)(left < TILE ? left : TILE);
    if (linear) {
      status = store_linear_tile(to, first, rows, values, bytes);
    } else {
      status = ir_static_view_read(&to->view, first, rows, values);
      if (!status) store_flat(to, first * source->cols, values, rows * (size_t)source->cols);
    }
  }
  mem_free(bytes);
  mem_free(values);
  pool_failure_set(&to->failure, status);
}

genai_status* ir_static_materialize(const ir_tensor* tensor, struct thread_pool* pool, void* out) {
  if (tensor->kind != IR_STATIC) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "tensor %s is not static", tensor->name);
  }
  if (tensor->integers) {
    memcpy(out, tensor->integers, (size_t)ir_tensor_elements(tensor) * sizeof *tensor->integers);
    return NULL;
  }
  target to = {.tensor = tensor, .out = out};
  GENAI_TRY(choose_range(tensor, &to));
  if (tensor->encoding.kind == IR_ENCODING_BLOCK_EXPANSION && !ir_static_is_linear(tensor)) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "static %s has block scales but is not a linear weight", tensor->name);
  }
  if (tensor->dtype == IR_S32 && ir_static_is_linear(tensor)) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "static %s: a linear weight cannot be stored as s32", tensor->name);
  }
  /* A column of scalars would make tiles of 64 elements that each read the whole vector. */
  const ir_static* source = tensor->source;
  if (source->cols == 1 && !ir_static_is_linear(tensor)) {
    float* values = mem_realloc_array(NULL, (size_t)source->rows, sizeof *values);
    if (!values) return genai_status_out_of_memory();
    genai_status* status = ir_static_read(source, 0, source->rows, values);
    if (!status) store_flat(&to, 0, values, (size_t)source->rows);
    mem_free(values);
    return status;
  }
  GENAI_TRY(ir_static_view_open(source, pool, &to.view));
  thread_pool_for(pool, (size_t)((source->rows + TILE - 1) / TILE), 1, materialize_tiles, &to);
  ir_static_view_close(&to.view);
  return pool_failure_take(&to.failure);
}
