/* What the program writes: human lines and progress to stderr, text and facts to stdout. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "cli/cli.h"

/* Functions that end in _locked are called with the lock held. */

/* Leaves the line that a bar or streamed text stands on. */
static void clear_line_locked(cli* app) {
  if (app->progress.open) fputs("\r\033[K", stderr);
  app->progress.open = false;
  if (app->text_open) {
    fflush(stdout);
    fputc('\n', stderr);
  }
  app->text_open = false;
}

static void line_locked(cli* app, const char* string) {
  clear_line_locked(app);
  fprintf(stderr, "%s\n", string);
}

void cli_line(cli* app, const char* format, ...) {
  pthread_mutex_lock(&app->lock);
  clear_line_locked(app);
  va_list values;
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
  pthread_mutex_unlock(&app->lock);
}

void cli_print(const text* out) {
  fwrite(out->data, 1, out->length, stdout);
}

genai_status* cli_print_json(json_writer* writer, text* out) {
  GENAI_TRY(json_writer_finish(writer));
  GENAI_TRY(text_append_char(out, '\n'));
  cli_print(out);
  fflush(stdout);
  return NULL;
}

void cli_log(void* user, genai_log_level level, const char* message) {
  cli* app = user;
  const char* label = level == GENAI_LOG_WARNING ? "warning: " : "";
  if (level == GENAI_LOG_ERROR) { /* the step that was under way is over */
    pthread_mutex_lock(&app->lock);
    app->progress.active = false;
    pthread_mutex_unlock(&app->lock);
  }
  cli_line(app, "%s%s", label, message);
}

/* ---- Progress ---- */
static void describe_locked(const cli* app, double seconds, char* buffer, size_t capacity) {
  if (app->progress.total) {
    snprintf(buffer, capacity, "%s: %llu of %llu %s, %.1f s", app->progress.step, (unsigned long long)app->progress.done,
             (unsigned long long)app->progress.total, app->progress.unit, seconds);
  } else {
    snprintf(buffer, capacity, "%s: %.1f s", app->progress.step, seconds);
  }
}

static void draw_bar_locked(cli* app, double seconds) {
  enum { WIDTH = 30 };
  char bar[WIDTH + 1] = "";
  char line[200];
  uint64_t total = app->progress.total, done = app->progress.done < total ? app->progress.done : total;
  size_t filled = total ? (size_t)((double)done / (double)total * WIDTH) : 0;
  for (size_t i = 0; total && i < WIDTH; i++) bar[i] = i < filled ? '#' : '.';
  describe_locked(app, seconds, line, sizeof line);
  fprintf(stderr, "\r\033[K  %s%s%s", bar, total ? "  " : "", line);
  fflush(stderr);
  app->progress.open = true;
}

static void progress_line_locked(cli* app, double seconds) {
  char described[200], line[204];
  describe_locked(app, seconds, described, sizeof described);
  snprintf(line, sizeof line, "  %s", described);
  line_locked(app, line);
  app->progress.last_line = seconds;
}

void cli_progress(void* user, const genai_progress* event) {
  cli* app = user;
  pthread_mutex_lock(&app->lock);
  bool fresh = !app->progress.active || strncmp(app->progress.step, event->step, sizeof app->progress.step - 1) != 0;
  if (fresh) {
    snprintf(app->progress.step, sizeof app->progress.step, "%s", event->step);
    snprintf(app->progress.unit, sizeof app->progress.unit, "%s", event->unit);
    app->progress.last_line = 0;
  }
  app->progress.active = !event->finished;
  app->progress.done = event->done;
  app->progress.total = event->total;
  app->progress.started = clock_seconds() - event->seconds;
  if (app->text_open) { /* text is streaming: nothing may tear it */
    pthread_mutex_unlock(&app->lock);
    return;
  }
  if (event->finished) {
    if (event->seconds >= 0.1) progress_line_locked(app, event->seconds);
    clear_line_locked(app);
  } else if (app->terminal) {
    draw_bar_locked(app, event->seconds);
  } else if (fresh || event->seconds - app->progress.last_line >= 10) {
    progress_line_locked(app, event->seconds);
  }
  pthread_mutex_unlock(&app->lock);
}

/* A vendor call may take a minute and reports nothing meanwhile: this thread keeps the step's time going. */
static void* tick(void* user) {
  cli* app = user;
  pthread_mutex_lock(&app->lock);
  while (app->ticking) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_cond_timedwait(&app->wake, &app->lock, &until);
    if (!app->ticking || !app->progress.active || app->text_open) continue;
    double seconds = clock_seconds() - app->progress.started;
    if (app->terminal) {
      draw_bar_locked(app, seconds);
    } else if (seconds - app->progress.last_line >= 10) {
      progress_line_locked(app, seconds);
    }
  }
  pthread_mutex_unlock(&app->lock);
  return NULL;
}

/* The number of a closed descriptor goes to the next file that is opened: lines would end up in an artifact. What takes its place is open the
 * wrong way around, so that reading and writing fail as they should. */
static void occupy_standard_descriptors(void) {
  for (int descriptor = 0; descriptor <= STDERR_FILENO; descriptor++) {
    if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    if (open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

genai_status* cli_output_begin(cli* app) {
  occupy_standard_descriptors();
  pthread_mutex_init(&app->lock, NULL);
  pthread_cond_init(&app->wake, NULL);
  app->ticking = true;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the main thread's */
  int code = pthread_create(&app->ticker, NULL, tick, app);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  app->ticking = !code;
  return code ? genai_status_create(GENAI_ERROR_IO, "cannot start the thread that shows progress: %s", strerror(code)) : NULL;
}

void cli_output_end(cli* app) {
  pthread_mutex_lock(&app->lock);
  bool joined = app->ticking;
  app->ticking = false;
  pthread_cond_signal(&app->wake);
  pthread_mutex_unlock(&app->lock);
  if (joined) pthread_join(app->ticker, NULL);
  pthread_cond_destroy(&app->wake);
  pthread_mutex_destroy(&app->lock);
}

void cli_text(void* user, size_t prompt, const char* string, size_t length, bool finished) {
  cli* app = user;
  (void)prompt;
  if (app->json) return;
  pthread_mutex_lock(&app->lock);
  if (app->progress.open) clear_line_locked(app);
  fwrite(string, 1, length, stdout);
  app->text_open = !finished;
  if (finished) fputc('\n', stdout);
  if (cli_output_failed()) { /* nobody reads on: the rest of the text need not be computed */
    app->output_lost = true;
    genai_cancel_request(app->cancel);
  }
  pthread_mutex_unlock(&app->lock);
}

bool cli_output_failed(void) {
  bool failed = fflush(stdout) != 0;
  return failed || ferror(stdout);
}

void cli_report_output(cli* app) {
  struct pollfd out = {STDOUT_FILENO, POLLOUT, 0};
  bool reader_left = poll(&out, 1, 0) == 1 && out.revents & POLLERR; /* such as head, which has what it wanted */
  if (!reader_left) cli_line(app, "genai: error: cannot write to standard output");
}

static void write_error(json_writer* writer, const genai_status* status) {
  json_begin_object(writer);
  json_key(writer, "kind");
  json_write_string(writer, genai_error_kind_name(genai_status_kind(status)));
  if (genai_status_stage(status)) {
    json_key(writer, "stage");
    json_write_string(writer, genai_status_stage(status));
  }
  json_key(writer, "message");
  json_write_string(writer, genai_status_message(status));
  if (genai_status_cause(status)) {
    json_key(writer, "cause");
    write_error(writer, genai_status_cause(status));
  }
  json_end_object(writer);
}

void cli_report_error(cli* app, const genai_status* status) {
  size_t length = genai_status_format(status, NULL, 0);
  char* message = mem_alloc(length + 1);
  if (message) genai_status_format(status, message, length + 1);
  cli_line(app, "genai: error: %s", message ? message : genai_status_message(status));
  mem_free(message);
  if (!app->json) return;
  text out = {0};
  json_writer writer;
  json_writer_init(&writer, &out, false);
  json_begin_object(&writer);
  json_key(&writer, "error");
  write_error(&writer, status);
  json_end_object(&writer);
  genai_status_free(cli_print_json(&writer, &out));
  text_deinit(&out);
}

int cli_exit_code(const genai_status* status) {
  if (!status) return EXIT_OK;
  for (const genai_status* s = status; s; s = genai_status_cause(s)) {
    if (genai_status_kind(s) == GENAI_ERROR_CANCELLED) return EXIT_CANCELLED;
  }
  return genai_status_kind(status) == GENAI_ERROR_CONFIG_VALIDATION ? EXIT_USAGE : EXIT_FAILED;
}

void format_bytes(uint64_t bytes, char buffer[32]) {
  if (bytes >= 1000000000) {
    snprintf(buffer, 32, "%.2f GB", (double)bytes / 1e9);
  } else if (bytes >= 1000000) {
    snprintf(buffer, 32, "%.1f MB", (double)bytes / 1e6);
  } else {
    snprintf(buffer, 32, "%.1f kB", (double)bytes / 1e3);
  }
}
