/* The sorted array of byte strings and its narrowing search. */
#include "tokenizer/prefix_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

genai_status* prefix_set_add(prefix_set* self, text_view key, int32_t value) {
  if (key.length == 0) return NULL;
  if (self->count == self->capacity) {
    uint32_t capacity = self->capacity ? self->capacity * 2 : 64;
    prefix_entry* entries = mem_realloc_array(self->entries, capacity, sizeof *entries);
    if (!entries) return genai_status_out_of_memory();
    self->entries = entries;
    self->capacity = capacity;
  }
  self->entries[self->count++] = (prefix_entry){key, value};
  return NULL;
}

static int compare(const void* a, const void* b) {
  const prefix_entry *x = a, *y = b;
  size_t shorter = x->key.length < y->key.length ? x->key.length : y->key.length;
  int order = memcmp(x->key.data, y->key.data, shorter);
  if (order) return order;
  if (x->key.length != y->key.length) return x->key.length < y->key.length ? -1 : 1;
  return x->value < y->value ? -1 : x->value > y->value;
}

genai_status* prefix_set_build(prefix_set* self) {
  uint32_t* starts = mem_calloc(65537, sizeof *starts);
  if (!starts) return genai_status_out_of_memory();
  if (self->count) qsort(self->entries, self->count, sizeof *self->entries, compare);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < self->count; i++) {
    if (kept && text_view_equal(self->entries[kept - 1].key, self->entries[i].key)) continue;
    self->entries[kept++] = self->entries[i];
  }
  self->count = kept;
  for (uint32_t i = 0; i < kept; i++) {
    const uint8_t* key = (const uint8_t*)self->entries[i].key.data;
    unsigned bucket = (unsigned)key[0] << 8 | (self->entries[i].key.length > 1 ? key[1] : 0);
    starts[bucket + 1]++;
    self->first[key[0]] = 1;
  }
  for (unsigned i = 0; i < 65536; i++) starts[i + 1] += starts[i];
  mem_free(self->starts);
  self->starts = starts;
  return NULL;
}

void prefix_set_deinit(prefix_set* self) {
  mem_free(self->entries);
  mem_free(self->starts);
  *self = (prefix_set){0};
}

void prefix_walk_begin(prefix_walk* walk, const prefix_set* set, const char* data, size_t length) {
  *walk = (prefix_walk){set, (const uint8_t*)data, length, 0, 0, 0};
  if (!set->count || !length || !set->first[walk->data[0]]) return;
  unsigned bucket = (unsigned)walk->data[0] << 8;
  walk->low = set->starts[bucket];
  walk->high = set->starts[bucket + 256];
  walk->depth = 1;
}

const prefix_entry* prefix_walk_next(prefix_walk* walk) {
  const prefix_entry* entries = walk->set->entries;
  uint32_t low = walk->low, high = walk->high;
  size_t depth = walk->depth;
  while (low < high) {
    /* All entries in [low, high) start with the text's first `depth` bytes; the shortest comes first. */
    if (entries[low].key.length == depth) {
      walk->low = low + 1;
      walk->high = high;
      walk->depth = depth;
      return &entries[low];
    }
    if (depth == walk->length) break;
    uint8_t byte = walk->data[depth];
    if (depth == 1) {
      unsigned bucket = (unsigned)walk->data[0] << 8 | byte;
      uint32_t start = walk->set->starts[bucket], end = walk->set->starts[bucket + 1];
      if (start > low) low = start; /* not below low: a one-byte key in bucket (byte, 0) is behind us */
      high = end;
    } else {
      uint32_t from = low, to = high;
      while (from < to) { /* the first entry whose byte at `depth` is not below */
        uint32_t middle = from + (to - from) / 2;
        if ((uint8_t)entries[middle].key.data[depth] < byte)
          from = middle + 1;
        else
          to = middle;
      }
      low = from;
      to = high;
      while (from < to) { /* the first entry whose byte is above */
        uint32_t middle = from + (to - from) / 2;
        if ((uint8_t)entries[middle].key.data[depth] <= byte)
          from = middle + 1;
        else
          to = middle;
      }
      high = from;
    }
    depth++;
  }
  walk->low = walk->high = 0;
  return NULL;
}

const prefix_entry* prefix_set_longest(const prefix_set* self, const char* data, size_t length) {
  if (!self->count || !length || !self->first[(uint8_t)data[0]]) return NULL;
  prefix_walk walk;
  const prefix_entry *entry, *longest = NULL;
  prefix_walk_begin(&walk, self, data, length);
  while ((entry = prefix_walk_next(&walk))) longest = entry;
  return longest;
}
