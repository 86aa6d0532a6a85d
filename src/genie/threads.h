/* Waiting for Genie's own threads before what they use is freed.
 *
 * Genie of QAIRT 2.49 answers a query from a thread of its own, and its dialog's destructor frees the model before it joins that thread: when the
 * thread is still on its way out of the last step, it calls through freed memory. So a dialog remembers the threads that came into being
 * with it, and is only freed once they sleep. */
#ifndef GENAI_GENIE_THREADS_H
#define GENAI_GENIE_THREADS_H

#include <stddef.h>
#include <sys/types.h>

enum { THREADS_MAX = 256 };
typedef struct thread_list {
  size_t count;
  pid_t ids[THREADS_MAX];
} thread_list;

void threads_list(thread_list* out); /* of this process; empty where it cannot be told */
/* Leaves in `after` the ones that `before` lacks. */
void threads_subtract(thread_list* after, const thread_list* before);
/* Returns when every thread sleeps or is gone, in several looks in a row; gives up after `seconds`. */
void threads_settle(const thread_list* threads, double seconds);

#endif
