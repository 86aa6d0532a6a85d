/* Weight scales from the weights alone. Rows (output channels) are read in tiles and worked on in parallel; no matrix is ever whole in
 * memory here. */
#include "quantize/weights.h"

#include <math.h>
#include <string.h>

enum { ROWS_PER_TILE = 64 };

typedef struct row_loop {
  ir_static_view view;
  static_rows_body body;
  void* user;
  pool_failure failure;
} row_loop;

static void run_tiles(void* user, size_t begin, size_t end) {
  row_loop* loop = user;
  const ir_static* source = loop->view.source;
  float* rows = mem_realloc_array(NULL, (size_t)source->cols * ROWS_PER_TILE, sizeof *rows);
  genai_status* status = rows ? NULL : genai_status_out_of_memory();
  for (size_t tile = begin; tile < end && !status; tile++) {
    uint64_t first = (uint64_t)tile * ROWS_PER_TILE;
    uint64_t count = source->rows - first < ROWS_PER_TILE ? source->rows - first : ROWS_PER_TILE;
    status = ir_static_view_read(&loop->view, first, count, rows);
    if (!status) loop->body(loop->user, first, count, rows);
  }
  mem_free(rows);
  pool_failure_set(&loop->failure, status);
}

static size_t tiles_of(const ir_static* source) {
  return (size_t)((source->rows + ROWS_PER_TILE - 1) / ROWS_PER_TILE);
}

genai_status* static_rows_for(const ir_static* source, thread_pool* pool, static_rows_body body, void* user) {
  row_loop loop = {.body = body, .user = user};
  GENAI_TRY(ir_static_view_open(source, pool, &loop.view));
  thread_pool_for(pool, tiles_of(source), 1, run_tiles, &loop);
  ir_static_view_close(&loop.view);
  return pool_failure_take(&loop.failure);
}

float largest_magnitude(const float* values, size_t count) {
  float largest = 0;
  for (size_t i = 0; i < count; i++) {
    float magnitude = fabsf(values[i]);
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

static double squared_error(const float* values, size_t count, float scale, float limit) {
  float inverse = 1.0f / scale, sum = 0;
  for (size_t i = 0; i < count; i++) {
    float q = rintf(values[i] * inverse);
    q = q > limit ? limit : q < -limit ? -limit : q;
    float error = values[i] - q * scale;
    sum += error * error;
  }
  return (double)sum;
}

/* A channel of zeros gets a scale that keeps every product representable; its value does not matter. */
static float usable_scale(float scale) {
  return scale > 1e-10f ? scale : 1e-10f;
}

static float best_scale(const float* values, size_t count, float limit, bool search) {
  float full = usable_scale(largest_magnitude(values, count) / limit);
  if (!search) return full;
  float best = full;
  double least = squared_error(values, count, full, limit);
  for (int step = 1; step <= 10; step++) {
    float scale = usable_scale(full * (1.0f - 0.04f * (float)step));
    double error = squared_error(values, count, scale, limit);
    if (error < least) {
      least = error;
      best = scale;
    }
  }
  return best;
}

typedef struct encode_job {
  const weight_format* format;
  size_t cols;
  uint32_t blocks;
  float* scales;
  uint8_t* block_scales;
} encode_job;

static void encode_channels(void* user, uint64_t first, uint64_t count, const float* rows) {
  const encode_job* job = user;
  float limit = (float)((1 << (job->format->bits - 1)) - 1);
  size_t cols = job->cols;
  for (uint64_t r = 0; r < count; r++) job->scales[first + r] = best_scale(rows + r * cols, cols, limit, job->format->search);
}

static void encode_blocks(void* user, uint64_t first, uint64_t count, const float* rows) {
  const encode_job* job = user;
  float limit = (float)((1 << (job->format->bits - 1)) - 1);
  size_t cols = job->cols, block = job->format->block;
  for (uint64_t r = 0; r < count; r++) {
    const float* row = rows + r * cols;
    float largest = 0;
    for (uint32_t b = 0; b < job->blocks; b++) {
      float scale = best_scale(row + b * block, block, limit, job->format->search);
      largest = scale > largest ? scale : largest;
    }
    float channel = largest / 16.0f;
    job->scales[first + r] = channel;
    for (uint32_t b = 0; b < job->blocks; b++) {
      const float* values = row + b * block;
      float wanted = largest_magnitude(values, block) / limit / channel;
      uint32_t code = wanted >= 16 ? 16 : (uint32_t)ceilf(wanted);
      if (code < 1) code = 1;
      if (job->format->search) {
        double least = squared_error(values, block, channel * (float)code, limit);
        for (uint32_t candidate = code; candidate-- > 1 && candidate + 6 >= code;) {
          double error = squared_error(values, block, channel * (float)candidate, limit);
          if (error < least) {
            least = error;
            code = candidate;
          }
        }
      }
      job->block_scales[(first + r) * job->blocks + b] = (uint8_t)code;
    }
  }
}

genai_status* weights_encode(ir_graph* graph, ir_tensor* weight, const weight_format* format, thread_pool* pool) {
  const ir_static* source = weight->source;
  encode_job job = {.format = format, .cols = (size_t)source->cols};
  job.blocks = format->block ? (uint32_t)(source->cols / format->block) : 0;
  job.scales = arena_calloc(&graph->memory, (size_t)source->rows, sizeof *job.scales);
  job.block_scales = format->block ? arena_calloc(&graph->memory, (size_t)source->rows, job.blocks) : NULL;
  if (!job.scales || (format->block && !job.block_scales)) return genai_status_out_of_memory();
  GENAI_TRY(static_rows_for(source, pool, format->block ? encode_blocks : encode_channels, &job));
  weight->dtype = IR_S8;
  weight->encoding = (ir_encoding){.kind = format->block ? IR_ENCODING_BLOCK_EXPANSION : IR_ENCODING_PER_CHANNEL,
                                   .bits = (uint8_t)format->bits,
                                   .axis = 3,
                                   .channels = (uint32_t)source->rows,
                                   .blocks = job.blocks,
                                   .scales = job.scales,
                                   .block_scales = job.block_scales};
  return NULL;
}

typedef struct range_job {
  size_t cols;
  float *lows, *highs; /* one a tile */
} range_job;

static void range_of_tile(void* user, uint64_t first, uint64_t count, const float* rows) {
  const range_job* job = user;
  float low = 0, high = 0;
  size_t n = (size_t)count * job->cols;
  for (size_t i = 0; i < n; i++) {
    low = rows[i] < low ? rows[i] : low;
    high = rows[i] > high ? rows[i] : high;
  }
  job->lows[first / ROWS_PER_TILE] = low;
  job->highs[first / ROWS_PER_TILE] = high;
}

genai_status* static_range(const ir_static* source, thread_pool* pool, float* low, float* high) {
  size_t tiles = tiles_of(source);
  float* ends = mem_calloc(tiles, 2 * sizeof *ends);
  if (!ends) return genai_status_out_of_memory();
  range_job job = {.cols = (size_t)source->cols, .lows = ends, .highs = ends + tiles};
  genai_status* status = static_rows_for(source, pool, range_of_tile, &job);
  *low = *high = 0;
  for (size_t i = 0; i < tiles && !status; i++) {
    *low = job.lows[i] < *low ? job.lows[i] : *low;
    *high = job.highs[i] > *high ? job.highs[i] : *high;
  }
  mem_free(ends);
  return status;
}
