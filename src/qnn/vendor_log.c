/* The vendor's log and error codes, turned into log lines and statuses. The log callback of the API carries no user pointer, so the
 * latest error lines are kept here, once for the process, until a failing call takes them into its status. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "qnn/qnn_internal.h"

enum { KEPT_LINES = 6, LINE_LENGTH = 320 };

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static char kept_lines[KEPT_LINES][LINE_LENGTH];
static size_t kept_count; /* since the last clear; the first ones are kept, as they name the cause */

void qnn_vendor_log(const char* format, uint32_t level, uint64_t timestamp, va_list arguments) {
  (void)timestamp;
  if (level > QNN_API_LOG_ERROR && !log_enabled(LOG_DEBUG)) return;
  char buffer[LINE_LENGTH];
  vsnprintf(buffer, sizeof buffer, format, arguments);
  char* line = buffer;
  while (*line == ' ') ++line;
  if (line[0] == '<' && line[1] && line[2] == '>') line += 3; /* a letter for the level */
  while (*line == ' ') ++line;
  size_t length = 0;
  for (const char* from = line; *from; ++from) { /* one line, one space between words */
    char c = *from == '\n' || *from == '\t' ? ' ' : *from;
    if (c != ' ' || (length && line[length - 1] != ' ')) line[length++] = c;
  }
  if (length && line[length - 1] == ' ') --length;
  line[length] = 0;
  if (!length) return;
  log_write(LOG_DEBUG, "QNN %s: %s", level == QNN_API_LOG_ERROR ? "error" : level == QNN_API_LOG_WARNING ? "warning" : "info", line);
  if (level != QNN_API_LOG_ERROR) return;
  pthread_mutex_lock(&kept_lock);
  bool repeated = kept_count && kept_count <= KEPT_LINES && strcmp(kept_lines[kept_count - 1], line) == 0;
  if (!repeated) {
    if (kept_count < KEPT_LINES) memcpy(kept_lines[kept_count], line, length + 1);
    ++kept_count;
  }
  pthread_mutex_unlock(&kept_lock);
}

void qnn_vendor_log_clear(void) {
  pthread_mutex_lock(&kept_lock);
  kept_count = 0;
  pthread_mutex_unlock(&kept_lock);
}

genai_status* qnn_vendor_log_append(text* out) {
  genai_status* status = NULL;
  pthread_mutex_lock(&kept_lock);
  for (size_t i = 0; !status && i < kept_count && i < KEPT_LINES; ++i) {
    status = text_printf(out, "%s%s", i ? "; " : "", kept_lines[i]);
  }
  if (!status && kept_count > KEPT_LINES) status = text_printf(out, "; and %zu more", kept_count - KEPT_LINES);
  pthread_mutex_unlock(&kept_lock);
  return status;
}

genai_status* qnn_vendor_error(const qnn_library* library, uint64_t code, const char* format, ...) {
  char what[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  const char* meaning = NULL;
  if (library->api->error_get_message(code, &meaning) != 0) meaning = NULL;
  text lines = {0};
  genai_status* status = qnn_vendor_log_append(&lines);
  if (!status) {
    status = genai_status_create(GENAI_ERROR_VENDOR, "%s: QNN error %u%s%s%s%s%s (library %s, %s)", what, (unsigned)(code & 0xffff),
                                 meaning ? " (" : "", meaning ? meaning : "", meaning ? ")" : "", lines.length ? ", its log says: " : "",
                                 lines.length ? lines.data : "", library->build_id ? library->build_id : "of unknown version",
                                 library->directory);
  }
  text_deinit(&lines);
  qnn_vendor_log_clear();
  return status;
}
