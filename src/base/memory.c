/* Allocation with fault injection, checked sizes, and arenas. */
#include "base/memory.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint_fast64_t allocations;
static atomic_uint_fast64_t failing_allocation; /* 0: none */

static bool injected_failure(void) {
  uint64_t number = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
  uint64_t failing = atomic_load_explicit(&failing_allocation, memory_order_relaxed);
  if (!failing || number != failing) return false;
  atomic_store_explicit(&failing_allocation, 0, memory_order_relaxed);
  return true;
}

void mem_inject_failure(uint64_t nth) {
  atomic_store(&failing_allocation, nth ? atomic_load(&allocations) + nth : 0);
}

uint64_t mem_allocation_count(void) {
  return atomic_load(&allocations);
}

void* mem_alloc(size_t size) {
  return injected_failure() ? NULL : malloc(size ? size : 1);
}

void* mem_calloc(size_t count, size_t size) {
  if (injected_failure()) return NULL;
  return count && size ? calloc(count, size) : calloc(1, 1);
}

void* mem_realloc_array(void* pointer, size_t count, size_t size) {
  size_t bytes;
  if (injected_failure() || !size_mul(count, size, &bytes)) return NULL;
  return realloc(pointer, bytes ? bytes : 1);
}

void* mem_alloc_aligned(size_t alignment, size_t size) {
  void* pointer = NULL;
  if (injected_failure() || posix_memalign(&pointer, alignment < sizeof(void*) ? sizeof(void*) : alignment, size ? size : 1)) return NULL;
  return pointer;
}

void mem_free(void* pointer) {
  free(pointer);
}

void* mem_dup(const void* data, size_t size) {
  void* copy = mem_alloc(size);
  if (copy && size) memcpy(copy, data, size);
  return copy;
}

char* mem_strndup(const char* text, size_t length) {
  char* copy = mem_alloc(length + 1);
  if (!copy) return NULL;
  if (length) memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

char* mem_strdup(const char* text) {
  return mem_strndup(text, strlen(text));
}

bool size_mul(size_t a, size_t b, size_t* out) {
  size_t product;
  if (__builtin_mul_overflow(a, b, &product)) return false;
  *out = product;
  return true;
}

bool size_add(size_t a, size_t b, size_t* out) {
  size_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return false;
  *out = sum;
  return true;
}

bool u64_mul(uint64_t a, uint64_t b, uint64_t* out) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return false;
  *out = product;
  return true;
}

bool u64_add(uint64_t a, uint64_t b, uint64_t* out) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return false;
  *out = sum;
  return true;
}

struct arena_block {
  arena_block* next;
  _Alignas(16) uint8_t data[];
};

enum { ARENA_BLOCK_SIZE = 64 * 1024 };

void* arena_alloc(arena* region, size_t size) {
  size_t rounded;
  if (!size_add(size, 15, &rounded)) return NULL;
  rounded &= ~(size_t)15;
  if (!rounded) rounded = 16;
  if (!region->blocks || region->capacity - region->used < rounded) {
    size_t capacity = rounded > ARENA_BLOCK_SIZE ? rounded : ARENA_BLOCK_SIZE, bytes;
    if (!size_add(capacity, sizeof(arena_block), &bytes)) return NULL;
    arena_block* block = mem_calloc(1, bytes);
    if (!block) return NULL;
    block->next = region->blocks;
    region->blocks = block;
    region->used = 0;
    region->capacity = capacity;
  }
  void* result = region->blocks->data + region->used;
  region->used += rounded;
  return result;
}

void* arena_calloc(arena* region, size_t count, size_t size) {
  size_t bytes;
  return size_mul(count, size, &bytes) ? arena_alloc(region, bytes) : NULL;
}

void* arena_dup(arena* region, const void* data, size_t size) {
  void* copy = arena_alloc(region, size);
  if (copy && size) memcpy(copy, data, size);
  return copy;
}

char* arena_strdup(arena* region, const char* text) {
  return arena_dup(region, text, strlen(text) + 1);
}

char* arena_printf(arena* region, const char* format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char* result = length < 0 ? NULL : arena_alloc(region, (size_t)length + 1);
  if (result) vsnprintf(result, (size_t)length + 1, format, arguments);
  va_end(arguments);
  return result;
}

void arena_deinit(arena* region) {
  for (arena_block* block = region->blocks; block;) {
    arena_block* next = block->next;
    mem_free(block);
    block = next;
  }
  *region = (arena){0};
}
