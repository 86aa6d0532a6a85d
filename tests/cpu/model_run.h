/* Driving a model's graphs by hand in tests: open a checkpoint, build graphs, run a sequence through one of them with or without a KV
 * cache. Independent of src/runtime, so that both can be compared with the same references. */
#ifndef GENAI_TESTS_CPU_MODEL_RUN_H
#define GENAI_TESTS_CPU_MODEL_RUN_H

#include "base/memory.h"
#include "base/pool.h"
#include "cpu/cpu.h"
#include "model/model.h"
#include "support.h"

typedef struct run_graph {
  ir_graph* graph;
  executor* exec;
  void** inputs;
  void** outputs;
} run_graph;

typedef struct run_cache { /* [layer][kv_heads][positions][head_dim], keys and values */
  uint32_t length;
  float *keys, *values;
} run_cache;

static inline void run_open(const model* m, const model_graph_options* options, thread_pool* pool, run_graph* out) {
  assert_ok(model_build_graph(m, options, &out->graph));
  cpu_options how = {.mode = CPU_FLOAT, .pool = pool, .weight_cache_bytes = (uint64_t)1 << 30};
  assert_ok(cpu_executor_create(out->graph, &how, &out->exec));
  executor* e = out->exec;
  out->inputs = calloc(e->n_inputs, sizeof *out->inputs);
  out->outputs = calloc(e->n_outputs, sizeof *out->outputs);
  for (uint32_t i = 0; i < e->n_inputs; ++i) out->inputs[i] = calloc(1, executor_port_bytes(&e->inputs[i]));
  for (uint32_t i = 0; i < e->n_outputs; ++i) out->outputs[i] = calloc(1, executor_port_bytes(&e->outputs[i]));
}

static inline void run_close(run_graph* g) {
  for (uint32_t i = 0; i < g->exec->n_inputs; ++i) free(g->inputs[i]);
  for (uint32_t i = 0; i < g->exec->n_outputs; ++i) free(g->outputs[i]);
  free(g->inputs);
  free(g->outputs);
  executor_destroy(g->exec);
  ir_graph_destroy(g->graph);
}

/* Rows see themselves and earlier tokens of this call, and the cached ones, which sit at columns [0, past); new ones at C - AR onwards.
 * `window` 0: all of them. */
static inline void run_fill_mask(float* mask, uint32_t ar, uint32_t context, uint32_t past, uint32_t window) {
  for (uint32_t row = 0; row < ar; ++row) {
    for (uint32_t column = 0; column < context; ++column) {
      bool fresh = column >= context - ar;
      uint32_t own = past + row, other = fresh ? past + column - (context - ar) : column;
      bool seen = (fresh || column < past) && other <= own && (!window || own - other < window);
      mask[(size_t)row * context + column] = seen ? 0.0f : -1e9f;
    }
  }
}

/* Copies one layer's cache into a port: keys [kv, D, columns], values [kv, columns, D]. */
static inline void run_load_cache(const run_cache* cache, uint32_t capacity, const executor_port* port, float* to) {
  bool key = port->role == IR_ROLE_KEY_IN;
  uint32_t heads = port->dims[1], columns = port->dims[key ? 3 : 2], size = port->dims[key ? 2 : 3];
  const float* from = (key ? cache->keys : cache->values) + (size_t)port->layer * heads * capacity * size;
  for (uint32_t h = 0; h < heads; ++h) {
    for (uint32_t c = 0; c < columns && c < cache->length; ++c) {
      for (uint32_t d = 0; d < size; ++d) {
        size_t at = key ? ((size_t)h * size + d) * columns + c : ((size_t)h * columns + c) * size + d;
        to[at] = from[((size_t)h * capacity + c) * size + d];
      }
    }
  }
}

static inline void run_store_cache(run_cache* cache, uint32_t capacity, const executor_port* port, const float* from, uint32_t count) {
  bool key = port->role == IR_ROLE_KEY_OUT;
  uint32_t heads = port->dims[1], columns = port->dims[key ? 3 : 2], size = port->dims[key ? 2 : 3];
  float* to = (key ? cache->keys : cache->values) + (size_t)port->layer * heads * capacity * size;
  for (uint32_t h = 0; h < heads; ++h) {
    for (uint32_t c = 0; c < count; ++c) {
      for (uint32_t d = 0; d < size; ++d) {
        size_t at = key ? ((size_t)h * size + d) * columns + c : ((size_t)h * columns + c) * size + d;
        to[((size_t)h * capacity + cache->length + c) * size + d] = from[at];
      }
    }
  }
}

/* Runs ids[count] in calls of the graph's AR length and appends their logits to out[count][vocab]. `cache` may be NULL when one call
 * takes all. */
static inline void run_ids(run_graph* g, const model_info* info, run_cache* cache, const int32_t* ids, uint32_t count, float* out) {
  executor* e = g->exec;
  uint32_t ar = g->graph->ar_length, context = g->graph->context_length, vocab = info->vocab;
  for (uint32_t done = 0; done < count; done += ar) {
    uint32_t take = count - done < ar ? count - done : ar, past = cache ? cache->length : 0;
    for (uint32_t i = 0; i < e->n_inputs; ++i) {
      const executor_port* port = &e->inputs[i];
      if (port->role == IR_ROLE_TOKENS) {
        for (uint32_t j = 0; j < ar; ++j) ((int32_t*)g->inputs[i])[j] = j < take ? ids[done + j] : 0;
      } else if (port->role == IR_ROLE_POSITIONS) {
        for (uint32_t j = 0; j < ar; ++j) ((int32_t*)g->inputs[i])[j] = j < take ? (int32_t)(past + j) : 0;
      } else if (port->role == IR_ROLE_MASK || port->role == IR_ROLE_MASK_SLIDING) {
        run_fill_mask(g->inputs[i], ar, context, past, port->role == IR_ROLE_MASK ? 0 : info->sliding_window);
      } else {
        run_load_cache(cache, context, port, g->inputs[i]);
      }
    }
    assert_ok(executor_run(e, (const void* const*)g->inputs, g->outputs));
    for (uint32_t i = 0; i < e->n_outputs; ++i) {
      const executor_port* port = &e->outputs[i];
      if (port->role == IR_ROLE_LOGITS) {
        memcpy(out + (size_t)done * vocab, g->outputs[i], (size_t)take * vocab * sizeof *out);
      } else if (cache) {
        run_store_cache(cache, context, port, g->outputs[i], take);
      }
    }
    if (cache) cache->length += take;
  }
}

static inline run_cache run_cache_create(const model_info* info, uint32_t context) {
  size_t count = (size_t)info->layers * info->kv_heads * context * info->head_dim;
  return (run_cache){.keys = calloc(count, sizeof(float)), .values = calloc(count, sizeof(float))};
}
static inline void run_cache_free(run_cache* cache) {
  free(cache->keys);
  free(cache->values);
}

static inline int32_t run_argmax(const float* row, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; ++i) {
    if (row[i] > row[best]) best = i;
  }
  return (int32_t)best;
}

/* Largest |a - b| over the row's largest |b|. */
static inline double run_row_error(const float* a, const float* b, uint32_t count) {
  double worst = 0, largest = 0;
  for (uint32_t i = 0; i < count; ++i) {
    double difference = (double)a[i] - (double)b[i], size = (double)b[i];
    if (!(difference == difference)) return 1e30;
    if (difference < 0) difference = -difference;
    if (size < 0) size = -size;
    if (difference > worst) worst = difference;
    if (size > largest) largest = size;
  }
  return worst / largest;
}

#endif
