/* Times the float calibration pass: one graph of N tokens with full causal attention, every activation's range observed.
 * Usage: calibration CHECKPOINT TOKENS PASSES THREADS; prints one JSON line. Driven by bench/calibration.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cpu/cpu.h"
#include "fail.h"
#include "model/model.h"

typedef struct ranges {
  thread_pool* pool;
  float* bounds; /* [tensors][2] */
} ranges;

static genai_status* observe(void* user, const ir_tensor* tensor, const float* values, size_t count) {
  ranges* seen = user;
  float* bounds = seen->bounds + 2 * tensor->id;
  if (cpu_value_range(seen->pool, values, count, &bounds[0], &bounds[1])) return NULL;
  return genai_status_create(GENAI_ERROR_BAD_FILE, "tensor %s is not finite", tensor->name);
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  uint32_t tokens = (uint32_t)atoi(argv[2]);
  int passes = atoi(argv[3]);
  checkpoint* file;
  model* source;
  ir_graph* graph;
  thread_pool* pool;
  executor* self;
  fail(checkpoint_open(argv[1], &file));
  fail(model_open(file, &source));
  model_graph_options how = {.name = "calibration", .ar_length = tokens, .context_length = tokens};
  fail(model_build_graph(source, &how, &graph));
  fail(thread_pool_create((size_t)atoi(argv[4]), &pool));
  ranges seen = {pool, calloc(2 * (size_t)graph->n_tensors, sizeof(float))};
  cpu_options options = {.mode = CPU_FLOAT, .pool = pool, .observer = observe, .observer_user = &seen};
  double started = clock_seconds();
  fail(cpu_executor_create(graph, &options, &self));
  double created = clock_seconds() - started;
  const void* inputs[64];
  void* outputs[256] = {NULL};
  for (uint32_t i = 0; i < self->n_inputs; i++) {
    const executor_port* port = &self->inputs[i];
    uint32_t* words = calloc(executor_port_bytes(port), 1);
    if (port->role == IR_ROLE_TOKENS) {
      for (uint32_t t = 0; t < tokens; t++) words[t] = (t * 7919u + 11u) % 40000u;
    } else if (port->role == IR_ROLE_POSITIONS) {
      for (uint32_t t = 0; t < tokens; t++) words[t] = t;
    } else {
      for (uint32_t t = 0; t < tokens; t++)
        for (uint32_t u = t + 1; u < tokens; u++) ((float*)words)[(size_t)t * tokens + u] = -1e4f;
    }
    inputs[i] = words;
  }
  double best = 1e9, total = 0;
  for (int i = 0; i <= passes; i++) { /* the first one warms up */
    double begin = clock_seconds();
    fail(executor_run(self, inputs, outputs));
    double seconds = clock_seconds() - begin;
    if (i == 0) continue;
    total += seconds;
    if (seconds < best) best = seconds;
  }
  printf("{\"create_seconds\":%.3f,\"mean_tokens_per_second\":%.1f,\"best_tokens_per_second\":%.1f,\"peak_bytes\":%llu}\n", created,
         tokens * passes / total, tokens / best, (unsigned long long)memory_peak_bytes());
  executor_destroy(self);
  return 0;
}
