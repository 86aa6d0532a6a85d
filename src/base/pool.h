/* A pool of worker threads that the caller sizes. All parallel work of genai runs on one. */
#ifndef GENAI_BASE_POOL_H
#define GENAI_BASE_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "genai/status.h"

typedef struct thread_pool thread_pool;

/* `threads` counts the calling thread: 1 makes a pool without workers; 0 means one per online processor. */
genai_status* thread_pool_create(size_t threads, thread_pool** out) GENAI_MUST_USE;
void thread_pool_destroy(thread_pool* pool);      /* accepts NULL; joins the workers */
size_t thread_pool_size(const thread_pool* pool); /* 1 for NULL */

/* Calls `body(user, begin, end)` over disjoint ranges that cover [0, count), on the workers and the calling thread; returns when all are
 * done. `grain` is the smallest range worth handing out (0 = 1). Ranges depend only on count, grain and pool size, so results that depend
 * on them are deterministic. `pool` may be NULL (runs in the caller). Not reentrant from within `body`. */
typedef void (*pool_body)(void* user, size_t begin, size_t end);
void thread_pool_for(thread_pool* pool, size_t count, size_t grain, pool_body body, void* user);

/* The first failure among bodies of one loop. Zero-initialise to start; the caller of the loop takes it with pool_failure_take. */
typedef struct pool_failure {
  _Atomic(genai_status*) first;
} pool_failure;

void pool_failure_set(pool_failure* failure, genai_status* status); /* takes `status`, and drops it behind another; NULL does nothing */
static inline bool pool_failed(pool_failure* failure) {
  return atomic_load_explicit(&failure->first, memory_order_relaxed) != NULL;
}
static inline genai_status* pool_failure_take(pool_failure* failure) {
  return atomic_load(&failure->first);
}

#endif
