/* A set of byte strings, each with a value, that is matched against the prefixes of a text: added tokens and unigram pieces. Kept as a
 * sorted array that is narrowed byte by byte, which is a trie without its nodes: thousands of tokens cost nothing to build and never reach a
 * regular expression. */
#ifndef GENAI_TOKENIZER_PREFIX_SET_H
#define GENAI_TOKENIZER_PREFIX_SET_H

#include <stdint.h>

#include "base/text.h"
#include "genai/status.h"

typedef struct prefix_entry {
  text_view key; /* not owned */
  int32_t value;
} prefix_entry;

typedef struct prefix_set {
  prefix_entry* entries; /* sorted by key, no key empty, none twice */
  uint32_t count, capacity;
  uint32_t* starts;   /* [65537]: entries of the 16-bit prefix p are starts[p]..starts[p+1); keys of one byte stand under (byte, 0) */
  uint8_t first[256]; /* 1 when some key starts with this byte */
} prefix_set;

/* Keys are not copied: they must stay where they are. An empty key is ignored. */
genai_status* prefix_set_add(prefix_set* self, text_view key, int32_t value) GENAI_MUST_USE;
/* Sorts; of equal keys the one added first remains. Call once, after the last add. */
genai_status* prefix_set_build(prefix_set* self) GENAI_MUST_USE;
void prefix_set_deinit(prefix_set* self);

/* Walks the entries that are prefixes of a text, shortest first. */
typedef struct prefix_walk {
  const prefix_set* set;
  const uint8_t* data;
  size_t length;
  size_t depth;
  uint32_t low, high;
} prefix_walk;

void prefix_walk_begin(prefix_walk* walk, const prefix_set* set, const char* data, size_t length);
const prefix_entry* prefix_walk_next(prefix_walk* walk); /* NULL at the end */

/* The longest entry that is a prefix of the text, or NULL. */
const prefix_entry* prefix_set_longest(const prefix_set* self, const char* data, size_t length);

#endif
