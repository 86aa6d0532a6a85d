/* How a run talks to its caller: cancellation, log, progress, streamed text; and memory that crosses the interface. */
#include <stdio.h>
#include <string.h>

#include "pipeline/internal.h"

const char* genai_version(void) {
  return GENAI_VERSION;
}

void* genai_alloc(size_t count, size_t size) {
  return mem_calloc(count, size);
}

char* genai_strdup(const char* string) {
  return mem_strdup(string);
}

void genai_free(void* pointer) {
  mem_free(pointer);
}

genai_status* genai_string_list_add(genai_string_list* list, const char* string) {
  char* copy = mem_strdup(string);
  if (!copy) return genai_status_out_of_memory();
  char** grown = mem_realloc_array(list->items, list->count + 1, sizeof *grown);
  if (!grown) {
    mem_free(copy);
    return genai_status_out_of_memory();
  }
  list->items = grown;
  list->items[list->count++] = copy;
  return NULL;
}

void genai_string_list_deinit(genai_string_list* list) {
  for (size_t i = 0; i < list->count; i++) mem_free(list->items[i]);
  mem_free(list->items);
  *list = (genai_string_list){0};
}

genai_status* genai_cancel_create(genai_cancel** out) {
  genai_cancel* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  atomic_init(&self->token.requested, false);
  *out = self;
  return NULL;
}

void genai_cancel_destroy(genai_cancel* self) {
  mem_free(self);
}

void genai_cancel_request(genai_cancel* self) {
  atomic_store_explicit(&self->token.requested, true, memory_order_relaxed);
}

bool genai_cancel_requested(const genai_cancel* self) {
  return self && atomic_load_explicit(&self->token.requested, memory_order_relaxed);
}

/* The public sink's type differs from base's only in the name of its level, whose values are the same. */
static genai_log_sink public_sink;
static void forward_log(void* user, log_level level, const char* message) {
  public_sink(user, (genai_log_level)level, message);
}

void genai_log_set_sink(genai_log_sink sink, void* user, genai_log_level most_verbose) {
  public_sink = sink;
  log_set_sink(sink ? forward_log : NULL, user, (log_level)most_verbose);
}

static void forward_progress(void* user, const progress_event* event) {
  genai_progress copy = {event->step, event->unit, event->done, event->total, event->seconds, event->finished};
  genai_context_report_progress(user, &copy);
}

progress_sink context_progress_sink(const genai_context* context) {
  return (progress_sink){forward_progress, (void*)(uintptr_t)context};
}

bool text_is_blank(const char* string) {
  return !string || !string[strspn(string, " \t\r\n\v\f")];
}

void format_seconds(double seconds, char buffer[32]) {
  const char* format = seconds >= 1 ? "%.1fs" : seconds >= 0.001 ? "%.3fs" : "%.6fs";
  snprintf(buffer, 32, format, seconds);
}
