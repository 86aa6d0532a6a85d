/* Status values: a heap object with kind, message, optional stage and cause. When memory is out, one static object stands in. */
#include "genai/status.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

struct genai_status {
  genai_error_kind kind;
  char* message;
  char* stage;
  genai_status* cause;
};

static char out_of_memory_text[] = "out of memory: an allocation failed; free memory, or use a smaller model or context";
static genai_status out_of_memory = {GENAI_ERROR_OUT_OF_MEMORY, out_of_memory_text, NULL, NULL};

genai_status* genai_status_out_of_memory(void) {
  return &out_of_memory;
}

static char* format_message(const char* format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (length < 0) return NULL;
  char* message = mem_alloc((size_t)length + 1);
  if (message) vsnprintf(message, (size_t)length + 1, format, arguments);
  return message;
}

static genai_status* create(genai_status* cause, genai_error_kind kind, const char* stage, const char* format, va_list arguments) {
  genai_status* status = mem_calloc(1, sizeof *status);
  char* message = format_message(format, arguments);
  char* stage_copy = stage ? mem_strdup(stage) : NULL;
  if (!status || !message || (stage && !stage_copy)) {
    mem_free(status);
    mem_free(message);
    mem_free(stage_copy);
    genai_status_free(cause);
    return &out_of_memory;
  }
  status->kind = kind;
  status->message = message;
  status->stage = stage_copy;
  status->cause = cause;
  return status;
}

genai_status* genai_status_create(genai_error_kind kind, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  genai_status* status = create(NULL, kind, NULL, format, arguments);
  va_end(arguments);
  return status;
}

genai_status* genai_status_wrap(genai_status* cause, genai_error_kind kind, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  genai_status* status = create(cause, kind, NULL, format, arguments);
  va_end(arguments);
  return status;
}

genai_status* genai_status_wrap_stage(genai_status* cause, const char* stage, const char* format, ...) {
  if (cause && cause->kind == GENAI_ERROR_STAGE) return cause;
  va_list arguments;
  va_start(arguments, format);
  genai_status* status = create(cause, GENAI_ERROR_STAGE, stage, format, arguments);
  va_end(arguments);
  return status;
}

genai_error_kind genai_status_kind(const genai_status* status) {
  return status ? status->kind : GENAI_ERROR_NONE;
}

const char* genai_status_message(const genai_status* status) {
  return status ? status->message : "";
}

const char* genai_status_stage(const genai_status* status) {
  return status ? status->stage : NULL;
}

const genai_status* genai_status_cause(const genai_status* status) {
  return status ? status->cause : NULL;
}

const char* genai_error_kind_name(genai_error_kind kind) {
  static const char* const names[] = {"None",
                                      "InvalidArgument",
                                      "ConfigValidationError",
                                      "EngineNotAvailableError",
                                      "StageError",
                                      "PipelineError",
                                      "NotFound",
                                      "BadFile",
                                      "Unsupported",
                                      "IoError",
                                      "OutOfMemory",
                                      "VendorError",
                                      "LimitExceeded",
                                      "TemplateError",
                                      "Cancelled",
                                      "InternalError"};
  return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "Unknown";
}

static void append(char* buffer, size_t capacity, size_t* length, const char* piece) {
  size_t n = strlen(piece);
  if (*length < capacity) {
    size_t room = capacity - *length - 1;
    size_t take = n < room ? n : room;
    memcpy(buffer + *length, piece, take);
    buffer[*length + take] = 0;
  }
  *length += n;
}

size_t genai_status_format(const genai_status* status, char* buffer, size_t capacity) {
  size_t length = 0;
  if (capacity) buffer[0] = 0;
  if (!status) return 0;
  if (status->stage) {
    append(buffer, capacity, &length, "[");
    append(buffer, capacity, &length, status->stage);
    append(buffer, capacity, &length, "] ");
  }
  append(buffer, capacity, &length, status->message);
  size_t open = 0;
  for (const genai_status* cause = status->cause; cause; cause = cause->cause, open++) {
    append(buffer, capacity, &length, " (caused by ");
    append(buffer, capacity, &length, genai_error_kind_name(cause->kind));
    append(buffer, capacity, &length, ": ");
    append(buffer, capacity, &length, cause->message);
  }
  while (open--) append(buffer, capacity, &length, ")");
  return length;
}

void genai_status_free(genai_status* status) {
  while (status && status != &out_of_memory) {
    genai_status* cause = status->cause;
    mem_free(status->message);
    mem_free(status->stage);
    mem_free(status);
    status = cause;
  }
}
