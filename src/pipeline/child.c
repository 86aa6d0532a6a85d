/* Forked children: start, wait, stop. What they do is given by the caller. */
#include "pipeline/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct child_header {
  uint32_t kind; /* genai_error_kind; 0: success */
  uint32_t message_length;
  uint64_t payload_length;
} child_header;

static bool write_all(int descriptor, const void* data, size_t size) {
  const char* bytes = data;
  while (size) {
    ssize_t written = write(descriptor, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= (size_t)written;
  }
  return true;
}

/* In the child, before any work. Signals come in blocked. */
static void become_quiet(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  signal(SIGINT, SIG_IGN); /* a terminal sends it to the whole group: the parent decides, and kills */
  signal(SIGTERM, SIG_DFL);
  signal(SIGHUP, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  int null = open("/dev/null", O_RDWR);
  if (null >= 0) {
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
  }
  log_set_sink(NULL, NULL, LOG_ERROR);
}

static void run_child(child_work work, void* user, int descriptor) {
  text payload = {0};
  char message[2048] = "";
  genai_status* status = work(user, &payload);
  genai_status_format(status, message, sizeof message);
  child_header header = {(uint32_t)genai_status_kind(status), (uint32_t)strlen(message), status ? 0 : payload.length};
  bool sent = write_all(descriptor, &header, sizeof header) && write_all(descriptor, message, header.message_length) &&
              write_all(descriptor, payload.data, (size_t)header.payload_length);
  _exit(sent ? 0 : 1);
}

genai_status* child_start(child_work work, void* user, child_process* out) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return genai_status_create(GENAI_ERROR_IO, "cannot open a pipe to a child process: %s", strerror(errno));
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old); /* the parent's handlers must not run in the child */
  pid_t parent = getpid();
  pid_t id = fork();
  if (!id) {
    close(ends[0]);
    become_quiet(parent);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    run_child(work, user, ends[1]);
  }
  int code = errno;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  close(ends[1]);
  if (id < 0) {
    close(ends[0]);
    return genai_status_create(GENAI_ERROR_IO, "cannot start a child process: %s", strerror(code));
  }
  *out = (child_process){id, ends[0]};
  return NULL;
}

static int reap(child_process* self) {
  int result = 0;
  while (waitpid(self->id, &result, 0) < 0 && errno == EINTR) continue;
  close(self->pipe);
  *self = (child_process){0, -1};
  return result;
}

void child_stop(child_process* self) {
  if (self->id <= 0) return;
  kill(self->id, SIGKILL);
  reap(self);
}

/* Reads until the child closes its end. */
static genai_status* read_report(const child_process* self, const cancel_token* cancel, progress* step, text* report) {
  double started = clock_seconds();
  for (;;) {
    GENAI_TRY(cancel_check(cancel));
    if (step) progress_update(step, (uint64_t)(clock_seconds() - started));
    struct pollfd ready = {self->pipe, POLLIN, 0};
    int n = poll(&ready, 1, 100);
    if (n < 0 && errno != EINTR) return genai_status_create(GENAI_ERROR_IO, "cannot wait for a child process: %s", strerror(errno));
    if (n <= 0) continue;
    char buffer[4096];
    ssize_t got = read(self->pipe, buffer, sizeof buffer);
    if (got < 0 && errno != EINTR) return genai_status_create(GENAI_ERROR_IO, "cannot read from a child process: %s", strerror(errno));
    if (!got) return NULL;
    if (got > 0) GENAI_TRY(text_append(report, buffer, (size_t)got));
  }
}

static genai_status* judge(const text* report, int result, text* payload) {
  child_header header = {0};
  bool whole = report->length >= sizeof header;
  if (whole) {
    memcpy(&header, report->data, sizeof header);
    whole = report->length - sizeof header == header.message_length + header.payload_length;
  }
  if (!whole) {
    if (WIFSIGNALED(result))
      return genai_status_create(GENAI_ERROR_VENDOR, "a child process was ended by signal %d (%s)%s", WTERMSIG(result),
                                 strsignal(WTERMSIG(result)), WTERMSIG(result) == SIGKILL ? "; was memory short?" : "");
    return genai_status_create(GENAI_ERROR_VENDOR, "a child process ended with code %d and without a report", WEXITSTATUS(result));
  }
  const char* message = report->data + sizeof header;
  if (header.kind) return genai_status_create((genai_error_kind)header.kind, "%.*s", (int)header.message_length, message);
  return text_append(payload, message + header.message_length, (size_t)header.payload_length);
}

genai_status* child_wait(child_process* self, const cancel_token* cancel, progress* step, text* payload) {
  text report = {0};
  genai_status* status = read_report(self, cancel, step, &report);
  if (status) {
    child_stop(self);
  } else {
    int result = reap(self);
    status = judge(&report, result, payload);
  }
  text_deinit(&report);
  return status;
}
