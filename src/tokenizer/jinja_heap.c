/* The bounded arena of Jinja code, and errors that name a place in the template. No values and no syntax here. */
#include "tokenizer/jinja_heap.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void* jinja_alloc(jinja_heap* heap, size_t count, size_t size) {
  size_t bytes, used;
  heap->exhausted = false;
  if (!size_mul(count, size, &bytes) || !size_add(bytes, 15, &bytes)) return NULL;
  bytes &= ~(size_t)15; /* as the arena does */
  if (!size_add(heap->used, bytes, &used) || used > heap->limit) {
    heap->exhausted = true;
    return NULL;
  }
  void* result = arena_alloc(&heap->region, bytes);
  if (result) heap->used = used;
  return result;
}

char* jinja_printf(jinja_heap* heap, const char* format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  size_t length = strlen(buffer);
  char* copy = jinja_alloc(heap, length + 1, 1);
  if (copy) memcpy(copy, buffer, length);
  return copy;
}

genai_status* jinja_heap_status(const jinja_heap* heap) {
  if (!heap->exhausted) return genai_status_out_of_memory();
  return genai_status_create(
      GENAI_ERROR_LIMIT,
      "the chat template needs more than %zu MiB of memory, the limit for one template; shorten the messages, or check the "
      "template for a loop that keeps growing a value",
      heap->limit >> 20);
}

genai_status* jinja_grow(jinja_heap* heap, void* items_pointer, size_t count, size_t* capacity, size_t item_size) {
  if (count < *capacity) return NULL;
  size_t wanted = *capacity ? *capacity * 2 : 8;
  void* grown = jinja_alloc(heap, wanted, item_size);
  if (!grown) return jinja_heap_status(heap);
  void* old;
  memcpy(&old, items_pointer, sizeof old);
  if (count) memcpy(grown, old, count * item_size);
  memcpy(items_pointer, &grown, sizeof grown);
  *capacity = wanted;
  return NULL;
}

void jinja_position(text_view source, size_t at, unsigned* line, unsigned* column) {
  *line = 1;
  *column = 1;
  if (at > source.length) at = source.length;
  for (size_t i = 0; i < at; i++) {
    if (source.data[i] == '\n') {
      ++*line;
      *column = 1;
    } else if (((unsigned char)source.data[i] & 0xc0) != 0x80) {
      ++*column;
    }
  }
}

genai_status* jinja_error_at(text_view source, size_t at, genai_error_kind kind, const char* format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  unsigned line, column;
  jinja_position(source, at, &line, &column);
  return genai_status_create(kind, "chat template: %s (line %u, column %u)", message, line, column);
}
