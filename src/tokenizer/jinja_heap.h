/* The one place that Jinja code takes memory from: an arena with a ceiling, so that a hostile template cannot exhaust the machine.
 * Nothing taken from it is freed on its own; everything dies with the heap, which is why no function here has a cleanup ladder. */
#ifndef GENAI_TOKENIZER_JINJA_HEAP_H
#define GENAI_TOKENIZER_JINJA_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/text.h"
#include "genai/status.h"

#if defined(__GNUC__)
#define JINJA_NEVER_NULL __attribute__((returns_nonnull)) /* an error for certain: lets the compiler see which paths go on */
#else
#define JINJA_NEVER_NULL
#endif

typedef struct jinja_heap {
  arena region;
  size_t used;
  size_t limit;   /* bytes; more than that is refused */
  bool exhausted; /* the last refusal was the limit's, not the system's */
} jinja_heap;

/* Zeroed, 16-byte aligned; NULL when the system or the limit refuses. Return jinja_heap_status then. */
void* jinja_alloc(jinja_heap* heap, size_t count, size_t size);
/* Up to 511 bytes of formatted text; NULL as jinja_alloc. */
char* jinja_printf(jinja_heap* heap, const char* format, ...) GENAI_PRINTF(2, 3);
/* Why the last jinja_alloc gave NULL: GENAI_ERROR_LIMIT or out of memory. */
genai_status* jinja_heap_status(const jinja_heap* heap) GENAI_MUST_USE JINJA_NEVER_NULL;

/* Makes room for one more item in a growing array of `count` items: doubles, and copies into fresh memory. */
genai_status* jinja_grow(jinja_heap* heap, void* items_pointer, size_t count, size_t* capacity, size_t item_size) GENAI_MUST_USE;

/* An error of `kind` whose text ends with the line and column of byte `at` in `source`. Columns count code points from 1. */
genai_status* jinja_error_at(text_view source, size_t at, genai_error_kind kind, const char* format, ...) GENAI_PRINTF(4, 5) GENAI_MUST_USE;
void jinja_position(text_view source, size_t at, unsigned* line, unsigned* column);

#endif
