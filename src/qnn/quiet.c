/* Keeps the vendor's prints off the caller's streams. QAIRT 2.47 to 2.49 print progress and a bandwidth summary on standard output while
 * a graph is finalized, and all print a notice while they load, 2.47 on standard error; there is no switch for it, so the descriptor
 * points elsewhere meanwhile. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qnn/qnn_internal.h"

typedef struct silenced {
  unsigned depth;
  int saved;    /* a copy of the caller's descriptor, or -1 when it was closed */
  int captured; /* a memory file when the debug log wants the text, or -1 */
} silenced;

static pthread_mutex_t quiet_lock = PTHREAD_MUTEX_INITIALIZER;
static silenced streams[2] = {{.saved = -1, .captured = -1}, {.saved = -1, .captured = -1}}; /* standard output, standard error */

void qnn_quiet_begin(int descriptor) {
  FILE* stream = descriptor == STDOUT_FILENO ? stdout : stderr;
  silenced* self = &streams[descriptor - STDOUT_FILENO];
  pthread_mutex_lock(&quiet_lock);
  if (self->depth++ == 0) {
    fflush(stream); /* what the caller has buffered belongs to the caller's stream */
    self->saved = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (self->saved >= 0) {
      self->captured = log_enabled(LOG_DEBUG) ? memfd_create("qnn-prints", MFD_CLOEXEC) : -1;
      int target = self->captured >= 0 ? self->captured : open("/dev/null", O_WRONLY | O_CLOEXEC);
      if (target >= 0) dup2(target, descriptor);
      if (target >= 0 && target != self->captured) close(target);
    }
  }
  pthread_mutex_unlock(&quiet_lock);
}

static void log_line(const char* line, size_t length) {
  while (length && *line == ' ') ++line, --length;
  if (length && *line != '[') log_write(LOG_DEBUG, "QNN prints: %.*s", (int)length, line); /* not the progress bars */
}

static void log_captured(int file) {
  char line[256];
  size_t length = 0;
  char chunk[1024];
  off_t position = 0;
  for (ssize_t got; (got = pread(file, chunk, sizeof chunk, position)) > 0; position += got) {
    for (ssize_t i = 0; i < got; ++i) {
      bool ends = chunk[i] == '\n' || chunk[i] == '\r';
      if (!ends) line[length++] = chunk[i];
      if (ends || length == sizeof line - 1) {
        log_line(line, length);
        length = 0;
      }
    }
  }
  log_line(line, length);
}

void qnn_quiet_end(int descriptor) {
  FILE* stream = descriptor == STDOUT_FILENO ? stdout : stderr;
  silenced* self = &streams[descriptor - STDOUT_FILENO];
  int captured = -1;
  pthread_mutex_lock(&quiet_lock);
  if (--self->depth == 0) {
    fflush(stream); /* the vendor's prints share this buffer */
    if (self->saved >= 0) {
      dup2(self->saved, descriptor);
      close(self->saved);
    }
    captured = self->captured;
    self->saved = self->captured = -1;
  }
  pthread_mutex_unlock(&quiet_lock);
  if (captured >= 0) {
    log_captured(captured);
    close(captured);
  }
}
