/* Lowest and highest value of a tensor: what calibration asks of every activation, so it runs on the pool like an operator. */
#include <math.h>
#include <string.h>

#include "cpu/internal.h"
#include "cpu/kernels.h"

enum { RANGE_BLOCK = 16384 };

CPU_INLINE void block_range_plain(const float* values, size_t count, float* low, float* high, bool* finite) {
  cpu_lanes lows = {0}, highs, zeros = {0};
  lows = highs = lows + values[0];
  size_t i = 0;
  for (; i + CPU_LANES <= count; i += CPU_LANES) {
    cpu_lanes x;
    CPU_LOAD(x, values + i);
    lows = CPU_MIN(x, lows);
    highs = CPU_MAX(x, highs);
    zeros += x - x; /* NaN from here on when x is not finite */
  }
  *low = *high = values[0];
  float zero = cpu_lane_sum(&zeros);
  for (int j = 0; j < CPU_LANES; j++) {
    *low = lows[j] < *low ? lows[j] : *low;
    *high = highs[j] > *high ? highs[j] : *high;
  }
  for (; i < count; i++) {
    *low = values[i] < *low ? values[i] : *low;
    *high = values[i] > *high ? values[i] : *high;
    zero += values[i] - values[i];
  }
  *finite = zero == 0.0f;
}

CPU_HOT(block_range, (const float* values, size_t count, float* low, float* high, bool* finite), (values, count, low, high, finite))

/* Bounds as ordered integers, so that threads can merge them with atomic operations. */
typedef struct range_job {
  const float* values;
  _Atomic int64_t low, high;
  atomic_bool broken;
} range_job;

/* Order-preserving: floats compare as these integers do. */
static int64_t order_of(float value) {
  int32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits < 0 ? -(int64_t)(bits & 0x7fffffff) : bits;
}

static float value_of(int64_t order) {
  uint32_t bits = order < 0 ? (uint32_t)-order | 0x80000000u : (uint32_t)order;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void range_body(void* user, size_t begin, size_t end) {
  range_job* job = user;
  for (size_t at = begin; at < end; at += RANGE_BLOCK) {
    float low, high;
    bool finite;
    block_range(job->values + at, end - at < RANGE_BLOCK ? end - at : RANGE_BLOCK, &low, &high, &finite);
    if (!finite) atomic_store(&job->broken, true);
    int64_t seen = atomic_load(&job->low), ours = order_of(low);
    while (ours < seen && !atomic_compare_exchange_weak(&job->low, &seen, ours)) {
    }
    seen = atomic_load(&job->high), ours = order_of(high);
    while (ours > seen && !atomic_compare_exchange_weak(&job->high, &seen, ours)) {
    }
  }
}

bool cpu_value_range(thread_pool* pool, const float* values, size_t count, float* low, float* high) {
  range_job job = {.values = values, .low = order_of(INFINITY), .high = order_of(-INFINITY)};
  thread_pool_for(pool, count, RANGE_BLOCK, range_body, &job);
  *low = value_of(job.low);
  *high = value_of(job.high);
  return !job.broken;
}
