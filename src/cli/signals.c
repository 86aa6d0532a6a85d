/* Signals of the program. The handler only writes to a pipe and sets the token; a thread of its own watches the time, because the main thread
 * may sit in a vendor call for ten seconds. This is the one place with state of the process besides the log sink: signal handlers are global. */
#include "cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/temporary_folder.h"

enum { GRACE_MILLISECONDS = 2000 };

static genai_cancel* token;
static int ends[2] = {-1, -1};
static pthread_t watcher;
static bool watching;

static void handle(int number) {
  (void)number;
  int saved = errno;
  genai_cancel_request(token);
  ssize_t ignored = write(ends[1], "s", 1);
  (void)ignored;
  errno = saved;
}

static void say(const char* message) {
  ssize_t ignored = write(STDERR_FILENO, message, strlen(message));
  (void)ignored;
}

static void leave_at_once(void) {
  atomic_file_remove_all();
  temporary_folder_remove_current();
  say("genai: error: cancelled; nothing was left half-written\n");
  _exit(130);
}

/* One byte of the pipe: 's' a signal, 'd' the run is over; 0 when `milliseconds` went by. */
static char next_event(int milliseconds) {
  for (;;) {
    struct pollfd ready = {ends[0], POLLIN, 0};
    int n = poll(&ready, 1, milliseconds);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) return 0;
    char byte;
    if (n > 0 && read(ends[0], &byte, 1) == 1) return byte;
    if (errno != EINTR) return 'd';
  }
}

static void* watch(void* user) {
  (void)user;
  if (next_event(-1) != 's') return NULL;
  say("\ncancelling ...\n");
  if (next_event(GRACE_MILLISECONDS) != 'd') leave_at_once();
  return NULL;
}

static void set_handlers(void (*handler)(int)) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

genai_status* signals_begin(genai_cancel* cancel) {
  token = cancel;
  if (pipe2(ends, O_CLOEXEC)) return genai_status_create(GENAI_ERROR_IO, "cannot open a pipe for signals: %s", strerror(errno));
  sigset_t blocked, old;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &old); /* the watcher inherits it: handlers run in the main thread */
  int code = pthread_create(&watcher, NULL, watch, NULL);
  if (!code) {
    set_handlers(handle);
    signal(SIGPIPE, SIG_IGN); /* a reader that left, or a file size limit, is an error of the write: it is cleaned up after */
    signal(SIGXFSZ, SIG_IGN);
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (code) return genai_status_create(GENAI_ERROR_IO, "cannot start the thread that watches signals: %s", strerror(code));
  watching = true;
  return NULL;
}

void signals_end(void) {
  if (!watching) return;
  ssize_t ignored = write(ends[1], "d", 1);
  (void)ignored;
  pthread_join(watcher, NULL);
  set_handlers(SIG_DFL);
  watching = false;
}
