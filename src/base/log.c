/* The log sink, progress events, cancellation, and the two clocks of a run: time and memory. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static struct {
  log_sink sink;
  void* user;
  log_level most_verbose;
} log_target;

void log_set_sink(log_sink sink, void* user, log_level most_verbose) {
  log_target.sink = sink;
  log_target.user = user;
  log_target.most_verbose = most_verbose;
}

bool log_enabled(log_level level) {
  return log_target.sink && level <= log_target.most_verbose;
}

void log_write(log_level level, const char* format, ...) {
  if (!log_enabled(level)) return;
  char message[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  log_target.sink(log_target.user, level, message);
}

static void report(const progress* step, uint64_t done, bool finished) {
  if (!step->sink || !step->sink->report) return;
  progress_event event = {step->step, step->unit, done, step->total, clock_seconds() - step->started, finished};
  step->sink->report(step->sink->user, &event);
}

void progress_begin(progress* step, const progress_sink* sink, const char* name, const char* unit, uint64_t total) {
  double now = clock_seconds();
  *step = (progress){sink, name, unit, total, now, now};
  report(step, 0, false);
}

void progress_update(progress* step, uint64_t done) {
  double now = clock_seconds();
  if (now - step->last_report < 0.1) return;
  step->last_report = now;
  report(step, done, false);
}

void progress_end(progress* step, uint64_t done) {
  report(step, done, true);
}

genai_status* cancel_check(const cancel_token* token) {
  if (token && atomic_load_explicit(&token->requested, memory_order_relaxed))
    return genai_status_create(GENAI_ERROR_CANCELLED, "cancelled");
  return NULL;
}

double clock_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t status_line_bytes(const char* key) {
  FILE* file = fopen("/proc/self/status", "r");
  if (!file) return 0;
  char line[256];
  unsigned long long kilobytes = 0;
  size_t length = strlen(key);
  while (fgets(line, sizeof line, file)) {
    if (!strncmp(line, key, length) && sscanf(line + length, ": %llu", &kilobytes) == 1) break;
  }
  fclose(file);
  return (uint64_t)kilobytes * 1024;
}

uint64_t memory_peak_bytes(void) {
  uint64_t bytes = status_line_bytes("VmHWM");
  if (bytes) return bytes;
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) ? 0 : (uint64_t)usage.ru_maxrss * 1024;
}

uint64_t memory_resident_bytes(void) {
  return status_line_bytes("VmRSS");
}
