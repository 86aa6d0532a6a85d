/* Allocation. All of genai allocates through here, so that tests can make every allocation fail once in turn. */
#ifndef GENAI_BASE_MEMORY_H
#define GENAI_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "genai/status.h"

/* Each returns NULL when memory is out, when the product overflows, or when the fault hook says so. Size 0 gives a valid unique pointer. */
void* mem_alloc(size_t size);
void* mem_calloc(size_t count, size_t size);
void* mem_realloc_array(void* pointer, size_t count, size_t size); /* the old block stays valid on failure */
void* mem_alloc_aligned(size_t alignment, size_t size);            /* alignment: power of two; freed by mem_free */
void mem_free(void* pointer);
char* mem_strdup(const char* text);
char* mem_strndup(const char* text, size_t length); /* adds the NUL */
void* mem_dup(const void* data, size_t size);

/* The n-th allocation from now (1 = next) fails, once; 0 turns injection off. For tests only; not thread safe. */
void mem_inject_failure(uint64_t nth);
uint64_t mem_allocation_count(void); /* allocations since the program started */

/* Checked size arithmetic: false on overflow, `*out` then untouched. */
bool size_mul(size_t a, size_t b, size_t* out);
bool size_add(size_t a, size_t b, size_t* out);
bool u64_mul(uint64_t a, uint64_t b, uint64_t* out);
bool u64_add(uint64_t a, uint64_t b, uint64_t* out);

/* A growing region whose blocks all die together. Zero-initialise to start; allocations are 16-byte aligned and zeroed. */
typedef struct arena_block arena_block;
typedef struct arena {
  arena_block* blocks;
  size_t used;     /* bytes used in the newest block */
  size_t capacity; /* bytes the newest block holds */
} arena;

void* arena_alloc(arena* region, size_t size); /* NULL when memory is out */
void* arena_calloc(arena* region, size_t count, size_t size);
void* arena_dup(arena* region, const void* data, size_t size);
char* arena_strdup(arena* region, const char* text);
char* arena_printf(arena* region, const char* format, ...) GENAI_PRINTF(2, 3);
void arena_deinit(arena* region);

#endif
