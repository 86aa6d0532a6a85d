/* What the program writes: human lines and progress to stderr, text and facts to stdout. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cli.h"

/* Leaves the line that a bar or streamed text stands on. */
static void clear_line(cli* app) {
  if (app->progress.open) fputs("\r\033[K", stderr);
  app->progress.open = false;
  if (app->text_open) {
    fflush(stdout);
    fputc('\n', stderr);
  }
  app->text_open = false;
}

void cli_line(cli* app, const char* format, ...) {
  clear_line(app);
  va_list values;
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
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
  cli_line(app, "%s%s", label, message);
}

static void describe(const genai_progress* event, char* buffer, size_t capacity) {
  if (event->total) {
    snprintf(buffer, capacity, "%s: %llu of %llu %s, %.1f s", event->step, (unsigned long long)event->done,
             (unsigned long long)event->total, event->unit, event->seconds);
  } else {
    snprintf(buffer, capacity, "%s: %.1f s", event->step, event->seconds);
  }
}

static void draw_bar(cli* app, const genai_progress* event) {
  enum { WIDTH = 30 };
  char bar[WIDTH + 1];
  char line[200];
  uint64_t done = event->total ? (event->done < event->total ? event->done : event->total) : 0;
  size_t filled = event->total ? (size_t)((double)done / (double)event->total * WIDTH) : 0;
  for (size_t i = 0; i < WIDTH; i++) bar[i] = i < filled ? '#' : '.';
  bar[WIDTH] = 0;
  describe(event, line, sizeof line);
  fprintf(stderr, "\r\033[K  %s%s%s", event->total ? bar : "", event->total ? "  " : "", line);
  fflush(stderr);
  app->progress.open = true;
}

void cli_progress(void* user, const genai_progress* event) {
  cli* app = user;
  if (app->text_open) return; /* text is streaming: nothing may tear it */
  bool fresh = strncmp(app->progress.step, event->step, sizeof app->progress.step - 1) != 0;
  if (fresh) {
    strncpy(app->progress.step, event->step, sizeof app->progress.step - 1);
    app->progress.last_line = 0;
  }
  if (app->terminal) {
    draw_bar(app, event);
  } else if (fresh || event->finished || event->seconds - app->progress.last_line >= 10) {
    char line[200];
    describe(event, line, sizeof line);
    if (!event->finished || event->seconds >= 0.1) cli_line(app, "  %s", line);
    app->progress.last_line = event->seconds;
  }
  if (!event->finished) return;
  if (app->terminal && event->seconds >= 0.1) {
    char line[200];
    describe(event, line, sizeof line);
    cli_line(app, "  %s", line);
  }
  if (app->terminal) clear_line(app);
  app->progress.step[0] = 0;
}

void cli_text(void* user, size_t prompt, const char* string, size_t length, bool finished) {
  cli* app = user;
  (void)prompt;
  if (app->json) return;
  if (app->progress.open) clear_line(app);
  fwrite(string, 1, length, stdout);
  app->text_open = true;
  if (finished) {
    fputc('\n', stdout);
    app->text_open = false;
  }
  fflush(stdout);
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
