/* Weight scales from the weights alone. Rows (output channels) are read in tiles and worked on in parallel; no matrix is ever whole in
 * memory here. */
#include "quantize/weights.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { ROWS_PER_TILE = 64 };

typedef struct row_job row_job;
struct row_job {
  const ir_static* source;
  ir_static_view view;
  void (*body)(row_job* job, uint64_t first, uint64_t count, const float* rows);
  _Atomic(genai_status*) failure;
  /* weights_encode */
  const weight_format* format;
  uint32_t blocks;
  float* scales;
  uint8_t* block_scales;
  /* static_range */
  float *lows, *highs; /* one a tile */
};

static void run_tiles(void* user, size_t begin, size_t end) {
  row_job* job = user;
  const ir_static* source = job->source;
  float* rows = mem_realloc_array(NULL, (size_t)source->cols * ROWS_PER_TILE, sizeof *rows);
  genai_status* status = rows ? NULL : genai_status_out_of_memory();
  for (size_t tile = begin; tile < end && !status; tile++) {
    uint64_t first = (uint64_t)tile * ROWS_PER_TILE;
    uint64_t count = source->rows - first < ROWS_PER_TILE ? source->rows - first : ROWS_PER_TILE;
    status = ir_static_view_read(&job->view, first, count, rows);
    if (!status) job->body(job, first, count, rows);
  }
  mem_free(rows);
  if (status) {
    genai_status* expected = NULL;
    if (!atomic_compare_exchange_strong(&job->failure, &expected, status)) genai_status_free(status);
  }
}

static genai_status* run_job(row_job* job, thread_pool* pool) {
  GENAI_TRY(ir_static_view_open(job->source, pool, &job->view));
  thread_pool_for(pool, (size_t)((job->source->rows + ROWS_PER_TILE - 1) / ROWS_PER_TILE), 1, run_tiles, job);
  ir_static_view_close(&job->view);
  return atomic_load(&job->failure);
}

static float largest_magnitude(const float* values, size_t count) {
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

static void encode_channels(row_job* job, uint64_t first, uint64_t count, const float* rows) {
  float limit = (float)((1 << (job->format->bits - 1)) - 1);
  size_t cols = (size_t)job->source->cols;
  for (uint64_t r = 0; r < count; r++) job->scales[first + r] = best_scale(rows + r * cols, cols, limit, job->format->search);
}

static void encode_blocks(row_job* job, uint64_t first, uint64_t count, const float* rows) {
  float limit = (float)((1 << (job->format->bits - 1)) - 1);
  size_t cols = (size_t)job->source->cols, block = job->format->block;
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
  row_job job = {.source = source, .format = format, .body = format->block ? encode_blocks : encode_channels};
  job.blocks = format->block ? (uint32_t)(source->cols / format->block) : 0;
  job.scales = arena_calloc(&graph->memory, (size_t)source->rows, sizeof *job.scales);
  job.block_scales = format->block ? arena_calloc(&graph->memory, (size_t)source->rows, job.blocks) : NULL;
  if (!job.scales || (format->block && !job.block_scales)) return genai_status_out_of_memory();
  GENAI_TRY(run_job(&job, pool));
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

static void range_of_tile(row_job* job, uint64_t first, uint64_t count, const float* rows) {
  float low = 0, high = 0;
  size_t n = (size_t)count * (size_t)job->source->cols;
  for (size_t i = 0; i < n; i++) {
    low = rows[i] < low ? rows[i] : low;
    high = rows[i] > high ? rows[i] : high;
  }
  job->lows[first / ROWS_PER_TILE] = low;
  job->highs[first / ROWS_PER_TILE] = high;
}

genai_status* static_range(const ir_static* source, thread_pool* pool, float* low, float* high) {
  size_t tiles = (size_t)((source->rows + ROWS_PER_TILE - 1) / ROWS_PER_TILE);
  float* ends = mem_calloc(tiles, 2 * sizeof *ends);
  if (!ends) return genai_status_out_of_memory();
  row_job job = {.source = source, .body = range_of_tile, .lows = ends, .highs = ends + tiles};
  genai_status* status = run_job(&job, pool);
  *low = *high = 0;
  for (size_t i = 0; i < tiles && !status; i++) {
    *low = job.lows[i] < *low ? job.lows[i] : *low;
    *high = job.highs[i] > *high ? job.highs[i] : *high;
  }
  mem_free(ends);
  return status;
}
