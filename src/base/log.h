/* Log, progress and cancellation: how the library tells its caller what goes on. Nothing here writes to a stream unless the caller
 * installed a sink that does. */
#ifndef GENAI_BASE_LOG_H
#define GENAI_BASE_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "genai/status.h"

typedef enum log_level { LOG_ERROR = 1, LOG_WARNING = 2, LOG_INFO = 3, LOG_DEBUG = 4 } log_level;

typedef void (*log_sink)(void* user, log_level level, const char* message);

/* The one global: where log lines go. NULL (the default) drops them. Call before threads start. */
void log_set_sink(log_sink sink, void* user, log_level most_verbose);
bool log_enabled(log_level level);
void log_write(log_level level, const char* format, ...) GENAI_PRINTF(2, 3);

/* Progress of one long step. `done` and `total` are in `unit`; total 0 means unknown. */
typedef struct progress_event {
  const char* step; /* such as "calibrating" */
  const char* unit; /* such as "tokens" */
  uint64_t done;
  uint64_t total;
  double seconds; /* since the step began */
  bool finished;  /* the last event of the step */
} progress_event;

typedef struct progress_sink {
  void (*report)(void* user, const progress_event* event); /* NULL: no one listens */
  void* user;
} progress_sink;

/* A step in progress. progress_begin may be called with a NULL sink. Not thread safe: one thread reports. */
typedef struct progress {
  const progress_sink* sink;
  const char* step;
  const char* unit;
  uint64_t total;
  double started;
  double last_report;
} progress;

void progress_begin(progress* step, const progress_sink* sink, const char* name, const char* unit, uint64_t total);
void progress_update(progress* step, uint64_t done); /* rate limited to ten a second */
void progress_end(progress* step, uint64_t done);

/* Set from another thread or a signal handler; long work polls it. */
typedef struct cancel_token {
  atomic_bool requested;
} cancel_token;

/* GENAI_ERROR_CANCELLED when `token` (may be NULL) was set. */
genai_status* cancel_check(const cancel_token* token) GENAI_MUST_USE;

double clock_seconds(void);           /* monotonic */
uint64_t memory_peak_bytes(void);     /* peak resident set of this process; 0 if unknown */
uint64_t memory_resident_bytes(void); /* resident set now; 0 if unknown */

#endif
