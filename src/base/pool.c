/* The thread pool: workers sleep on a condition variable and take ranges of the running loop by an atomic counter. */
#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/memory.h"

struct thread_pool {
  size_t size; /* with the calling thread */
  pthread_t* workers;
  size_t n_workers;
  pthread_mutex_t lock;
  pthread_cond_t work_ready;
  pthread_cond_t work_done;
  unsigned long generation; /* counts loops; a worker joins each once */
  size_t busy;              /* workers still inside the running loop */
  bool stopping;
  pool_body body;
  void* user;
  size_t count;
  size_t chunk;
  atomic_size_t next;
};

static void run_ranges(thread_pool* pool) {
  for (;;) {
    size_t begin = atomic_fetch_add_explicit(&pool->next, pool->chunk, memory_order_relaxed);
    if (begin >= pool->count) return;
    size_t end = pool->count - begin < pool->chunk ? pool->count : begin + pool->chunk;
    pool->body(pool->user, begin, end);
  }
}

static void* worker_main(void* argument) {
  thread_pool* pool = argument;
  unsigned long seen = 0;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->stopping && pool->generation == seen) pthread_cond_wait(&pool->work_ready, &pool->lock);
    if (pool->stopping) break;
    seen = pool->generation;
    pthread_mutex_unlock(&pool->lock);
    run_ranges(pool);
    pthread_mutex_lock(&pool->lock);
    if (--pool->busy == 0) pthread_cond_signal(&pool->work_done);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

genai_status* thread_pool_create(size_t threads, thread_pool** out) {
  if (!threads) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    threads = online > 0 ? (size_t)online : 1;
  }
  if (threads > 1024)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT,
                               "%zu threads asked for, at most 1024 are allowed; use the number of processors", threads);
  thread_pool* pool = mem_calloc(1, sizeof *pool);
  pthread_t* workers = mem_calloc(threads, sizeof *workers);
  if (!pool || !workers) {
    mem_free(pool);
    mem_free(workers);
    return genai_status_out_of_memory();
  }
  pool->size = threads;
  pool->workers = workers;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->work_ready, NULL);
  pthread_cond_init(&pool->work_done, NULL);
  while (pool->n_workers + 1 < threads) {
    if (pthread_create(&workers[pool->n_workers], NULL, worker_main, pool)) {
      size_t started = pool->n_workers;
      thread_pool_destroy(pool);
      return genai_status_create(GENAI_ERROR_IO, "cannot start worker thread %zu of %zu; lower the number of threads", started + 1,
                                 threads - 1);
    }
    pool->n_workers++;
  }
  *out = pool;
  return NULL;
}

void thread_pool_destroy(thread_pool* pool) {
  if (!pool) return;
  pthread_mutex_lock(&pool->lock);
  pool->stopping = true;
  pthread_cond_broadcast(&pool->work_ready);
  pthread_mutex_unlock(&pool->lock);
  for (size_t i = 0; i < pool->n_workers; i++) pthread_join(pool->workers[i], NULL);
  pthread_cond_destroy(&pool->work_done);
  pthread_cond_destroy(&pool->work_ready);
  pthread_mutex_destroy(&pool->lock);
  mem_free(pool->workers);
  mem_free(pool);
}

size_t thread_pool_size(const thread_pool* pool) {
  return pool ? pool->size : 1;
}

void thread_pool_for(thread_pool* pool, size_t count, size_t grain, pool_body body, void* user) {
  if (!count) return;
  if (!grain) grain = 1;
  if (!pool || pool->n_workers == 0 || count <= grain) {
    body(user, 0, count);
    return;
  }
  /* Four ranges a thread: enough for balance, few enough for cheap hand-out. */
  size_t chunk = (count + pool->size * 4 - 1) / (pool->size * 4);
  if (chunk < grain) chunk = grain;
  pthread_mutex_lock(&pool->lock);
  pool->body = body;
  pool->user = user;
  pool->count = count;
  pool->chunk = chunk;
  atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
  pool->busy = pool->n_workers;
  pool->generation++;
  pthread_cond_broadcast(&pool->work_ready);
  pthread_mutex_unlock(&pool->lock);
  run_ranges(pool);
  pthread_mutex_lock(&pool->lock);
  while (pool->busy) pthread_cond_wait(&pool->work_done, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

void pool_failure_set(pool_failure* failure, genai_status* status) {
  genai_status* none = NULL;
  if (status && !atomic_compare_exchange_strong(&failure->first, &none, status)) genai_status_free(status);
}
