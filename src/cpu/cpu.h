/* The host executor: defines what every operator means. In float, or simulating the encodings on the graph's tensors the way the HTP
 * computes them. */
#ifndef GENAI_CPU_CPU_H
#define GENAI_CPU_CPU_H

#include "base/log.h"
#include "base/pool.h"
#include "ir/executor.h"

typedef enum cpu_mode {
  CPU_FLOAT,    /* encodings are ignored; every port is F32 (tokens and positions I32) */
  CPU_SIMULATED /* every tensor with an encoding is rounded to it; ports have the storage types of the graph */
} cpu_mode;

/* Called after each operator with its output, in float (`values[count]`, as rounded in simulated mode); also once per input, before the
 * first operator that reads it. Integer tensors are not shown. A status it returns ends the call. */
typedef genai_status* (*cpu_observer)(void* user, const ir_tensor* tensor, const float* values, size_t count);

typedef struct cpu_options {
  cpu_mode mode;
  thread_pool* pool;           /* NULL: the calling thread alone */
  uint64_t weight_cache_bytes; /* linear weights kept ready between calls, at most this much; the others are widened anew in each call.
                                  Ready takes 4 to 6 bytes a weight; when simulating 8 bits or less 2, or 1 for decoding */
  bool fast_products;          /* float products may carry 17 bits instead of 24, where that is faster: for calibration, whose ranges do not
                                  tell the difference */
  cpu_observer observer;       /* NULL: none */
  void* observer_user;
  const cancel_token* cancel; /* NULL: never */
} cpu_options;

/* Lowest and highest of `values[count]`, count >= 1, on the pool (may be NULL): for observers, which are called while it is idle.
 * False when a value is not finite; the bounds then tell nothing. */
bool cpu_value_range(thread_pool* pool, const float* values, size_t count, float* low, float* high);

/* `graph` must outlive the executor, unchanged. One call at a time. */
genai_status* cpu_executor_create(const ir_graph* graph, const cpu_options* options, executor** out) GENAI_MUST_USE;

#endif
