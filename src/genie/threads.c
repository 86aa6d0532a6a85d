/* Which threads this process has and whether they sleep, as /proc says it. */
#include "genie/threads.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"

void threads_list(thread_list* out) {
  out->count = 0;
  DIR* tasks = opendir("/proc/self/task");
  if (!tasks) return;
  for (const struct dirent* entry; out->count < THREADS_MAX && (entry = readdir(tasks));) {
    if (isdigit((unsigned char)entry->d_name[0])) out->ids[out->count++] = (pid_t)strtol(entry->d_name, NULL, 10);
  }
  closedir(tasks);
}

void threads_subtract(thread_list* after, const thread_list* before) {
  size_t kept = 0;
  for (size_t i = 0; i < after->count; i++) {
    bool known = false;
    for (size_t j = 0; j < before->count; j++) known |= before->ids[j] == after->ids[i];
    if (!known) after->ids[kept++] = after->ids[i];
  }
  after->count = kept;
}

/* The state letter behind the name in parentheses, which may hold anything (proc(5)). */
static bool is_busy(pid_t id) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)id);
  FILE* file = fopen(path, "re");
  if (!file) return false;
  size_t length = fread(line, 1, sizeof line - 1, file);
  fclose(file);
  line[length] = 0;
  const char* name_end = strrchr(line, ')');
  char state = name_end && name_end[1] == ' ' ? name_end[2] : 'S';
  return state == 'R' || state == 'D';
}

void threads_settle(const thread_list* threads, double seconds) {
  enum { LOOKS = 5 };
  double deadline = clock_seconds() + seconds;
  for (int quiet = 0; quiet < LOOKS && clock_seconds() < deadline;) {
    bool busy = false;
    for (size_t i = 0; i < threads->count && !busy; i++) busy = is_busy(threads->ids[i]);
    quiet = busy ? 0 : quiet + 1;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
}
