/* Keeps the vendor's prints off the caller's standard output. QAIRT 2.47 to 2.49 print progress and a bandwidth summary through stdio
 * while a graph is finalized; there is no switch for it, so descriptor 1 points elsewhere meanwhile. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qnn/qnn_internal.h"

static pthread_mutex_t quiet_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned quiet_depth;
static int saved_stdout = -1;
static int captured = -1; /* a memory file when the debug log wants the text */

void qnn_quiet_begin(void) {
  pthread_mutex_lock(&quiet_lock);
  if (quiet_depth++ == 0) {
    fflush(stdout); /* what the caller has buffered belongs to the caller's stream */
    saved_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    captured = log_enabled(LOG_DEBUG) ? memfd_create("qnn-stdout", MFD_CLOEXEC) : -1;
    int target = captured >= 0 ? captured : open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (target >= 0) {
      if (saved_stdout >= 0) dup2(target, STDOUT_FILENO); /* descriptor 1 was closed: leave it so */
      if (target != captured) close(target);
    }
  }
  pthread_mutex_unlock(&quiet_lock);
}

static void log_captured(void) {
  char line[256];
  size_t length = 0;
  char chunk[1024];
  off_t position = 0;
  for (ssize_t got; (got = pread(captured, chunk, sizeof chunk, position)) > 0; position += got) {
    for (ssize_t i = 0; i < got; ++i) {
      bool ends = chunk[i] == '\n' || chunk[i] == '\r';
      if (!ends) line[length++] = chunk[i];
      if ((ends && length) || length == sizeof line - 1) {
        log_write(LOG_DEBUG, "QNN prints: %.*s", (int)length, line);
        length = 0;
      }
    }
  }
  if (length) log_write(LOG_DEBUG, "QNN prints: %.*s", (int)length, line);
}

void qnn_quiet_end(void) {
  pthread_mutex_lock(&quiet_lock);
  if (--quiet_depth == 0) {
    fflush(stdout); /* the vendor's prints share this buffer */
    if (saved_stdout >= 0) {
      dup2(saved_stdout, STDOUT_FILENO);
      close(saved_stdout);
      saved_stdout = -1;
    }
    if (captured >= 0) {
      log_captured();
      close(captured);
      captured = -1;
    }
  }
  pthread_mutex_unlock(&quiet_lock);
}
