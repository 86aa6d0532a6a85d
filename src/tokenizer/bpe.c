/* Byte-pair encoding: from a word to symbols, from symbols to tokens. How merges are derived from a file is in bpe_table.c and the loaders;
 * how a text becomes words is in segmenter.c. */
#include "tokenizer/bpe.h"

#include "base/memory.h"
#include "tokenizer/bpe_internal.h"
#include "tokenizer/tokenizer_internal.h"
#include "tokenizer/unicode_class.h"

enum {
  SMALL_WORD = 48,  /* symbols up to which scanning for the lowest rank beats a heap */
  CACHED_WORD = 48, /* bytes of the longest word that is remembered */
  CACHE_PROBES = 4,
};

/* Words already met in this call, with their ids. Fixed size: when it is full, further words are simply not remembered. */
typedef struct cache_entry {
  uint64_t hash;
  uint32_t key; /* into keys */
  uint32_t ids; /* into ids */
  uint16_t key_length, id_count;
} cache_entry;

typedef struct word_cache {
  cache_entry* entries;
  size_t mask;
  char* keys;
  size_t key_length, key_capacity;
  int32_t* ids;
  size_t id_count, id_capacity;
} word_cache;

static void cache_destroy(word_cache* cache) {
  if (!cache) return;
  mem_free(cache->entries);
  mem_free(cache->keys);
  mem_free(cache->ids);
  mem_free(cache);
}

genai_status* bpe_scratch_init(bpe_scratch* scratch, size_t length) {
  if (length < 256) return NULL;
  word_cache* cache = mem_calloc(1, sizeof *cache);
  if (!cache) return genai_status_out_of_memory();
  size_t entries = 128;
  while (entries < length / 16 && entries < 1 << 15) entries *= 2;
  cache->mask = entries - 1;
  cache->key_capacity = entries * 8;
  cache->id_capacity = entries * 3;
  cache->entries = mem_calloc(entries, sizeof *cache->entries);
  cache->keys = mem_alloc(cache->key_capacity);
  cache->ids = mem_alloc(cache->id_capacity * sizeof *cache->ids);
  if (!cache->entries || !cache->keys || !cache->ids) {
    cache_destroy(cache);
    return genai_status_out_of_memory();
  }
  scratch->cache = cache;
  return NULL;
}

void bpe_scratch_deinit(bpe_scratch* scratch) {
  mem_free(scratch->symbols);
  mem_free(scratch->ranks);
  mem_free(scratch->next);
  mem_free(scratch->previous);
  mem_free(scratch->heap);
  cache_destroy(scratch->cache);
  *scratch = (bpe_scratch){0};
}

static const cache_entry* cache_find(const word_cache* cache, uint64_t hash, text_view word) {
  for (size_t i = 0; i < CACHE_PROBES; i++) {
    const cache_entry* entry = &cache->entries[(hash + i) & cache->mask];
    if (!entry->key_length) return NULL;
    if (entry->hash == hash && entry->key_length == word.length && memcmp(cache->keys + entry->key, word.data, word.length) == 0) {
      return entry;
    }
  }
  return NULL;
}

static void cache_add(word_cache* cache, uint64_t hash, text_view word, const int32_t* ids, size_t count) {
  if (cache->key_capacity - cache->key_length < word.length || cache->id_capacity - cache->id_count < count) return;
  for (size_t i = 0; i < CACHE_PROBES; i++) {
    cache_entry* entry = &cache->entries[(hash + i) & cache->mask];
    if (entry->key_length) continue;
    *entry = (cache_entry){hash, (uint32_t)cache->key_length, (uint32_t)cache->id_count, (uint16_t)word.length, (uint16_t)count};
    memcpy(cache->keys + cache->key_length, word.data, word.length);
    memcpy(cache->ids + cache->id_count, ids, count * sizeof *ids);
    cache->key_length += word.length;
    cache->id_count += count;
    return;
  }
}

static genai_status* reserve_symbols(bpe_scratch* scratch, size_t count) {
  if (count <= scratch->capacity) return NULL;
  if (count > UINT32_MAX / 2) return genai_status_create(GENAI_ERROR_LIMIT, "a word of %zu characters is too long to tokenize", count);
  size_t capacity = scratch->capacity * 2 < count ? count + 64 : scratch->capacity * 2;
  uint32_t** arrays[] = {&scratch->symbols, &scratch->ranks, &scratch->next, &scratch->previous};
  for (size_t i = 0; i < 4; i++) {
    uint32_t* grown = mem_realloc_array(*arrays[i], capacity, sizeof *grown);
    if (!grown) return genai_status_out_of_memory();
    *arrays[i] = grown;
  }
  scratch->capacity = capacity;
  return NULL;
}

static const uint32_t NO_RANK = UINT32_MAX;

static inline const bpe_merge* find_merge(const bpe_model* self, uint32_t left, uint32_t right) {
  size_t slot = bpe_pair_hash(left, right) & self->merge_mask;
  for (;;) {
    const bpe_merge* merge = &self->merges[slot];
    if (merge->left == left && merge->right == right) return merge;
    if (merge->left == UINT32_MAX) return NULL;
    slot = (slot + 1) & self->merge_mask;
  }
}

/* Merges few symbols in place: scan for the lowest rank, merge, close the gap. `next` holds the results of the pairs. Returns the number of
 * symbols that remain. */
static size_t merge_small(const bpe_model* self, uint32_t* symbols, uint32_t* ranks, uint32_t* results, size_t count) {
  uint32_t lowest = NO_RANK;
  size_t at = 0;
  for (size_t i = 0; i + 1 < count; i++) {
    const bpe_merge* merge = find_merge(self, symbols[i], symbols[i + 1]);
    ranks[i] = merge ? merge->rank : NO_RANK;
    results[i] = merge ? merge->result : 0;
    if (ranks[i] < lowest) {
      lowest = ranks[i];
      at = i;
    }
  }
  while (lowest != NO_RANK) {
    symbols[at] = results[at];
    count--;
    for (size_t i = at + 1; i < count; i++) {
      symbols[i] = symbols[i + 1];
      ranks[i - 1] = ranks[i];
      results[i - 1] = results[i];
    }
    if (at + 1 < count) {
      const bpe_merge* merge = find_merge(self, symbols[at], symbols[at + 1]);
      ranks[at] = merge ? merge->rank : NO_RANK;
      results[at] = merge ? merge->result : 0;
    }
    if (at > 0) {
      const bpe_merge* merge = find_merge(self, symbols[at - 1], symbols[at]);
      ranks[at - 1] = merge ? merge->rank : NO_RANK;
      results[at - 1] = merge ? merge->result : 0;
    }
    lowest = NO_RANK;
    for (size_t i = 0; i + 1 < count; i++) {
      if (ranks[i] < lowest) {
        lowest = ranks[i];
        at = i;
      }
    }
  }
  return count;
}

static void sift_down(uint64_t* heap, size_t count, size_t at) {
  uint64_t item = heap[at];
  for (;;) {
    size_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && heap[child + 1] < heap[child]) child++;
    if (heap[child] >= item) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = item;
}

static void heap_push(uint64_t* heap, size_t* count, uint64_t item) {
  size_t at = (*count)++;
  while (at > 0 && heap[(at - 1) / 2] > item) {
    heap[at] = heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap[at] = item;
}

/* Merges many symbols with a heap of (rank, position) and a linked list. An entry whose pair has changed since no longer has its rank:
 * the span of a position only grows. Returns the number of symbols that remain, moved to the front. */
static genai_status* merge_large(const bpe_model* self, bpe_scratch* scratch, size_t* symbol_count) {
  size_t count = *symbol_count, entries = 0;
  uint32_t *symbols = scratch->symbols, *ranks = scratch->ranks, *next = scratch->next, *previous = scratch->previous;
  /* Each merge takes one entry out and puts at most two in: never more than 2 * count are needed. */
  if (scratch->heap_capacity < 2 * count) {
    uint64_t* heap = mem_realloc_array(scratch->heap, 2 * count, sizeof *heap);
    if (!heap) return genai_status_out_of_memory();
    scratch->heap = heap;
    scratch->heap_capacity = 2 * count;
  }
  uint64_t* heap = scratch->heap;
  for (size_t i = 0; i < count; i++) {
    next[i] = (uint32_t)i + 1;
    previous[i] = (uint32_t)i - 1;
    const bpe_merge* merge = i + 1 < count ? find_merge(self, symbols[i], symbols[i + 1]) : NULL;
    ranks[i] = merge ? merge->rank : NO_RANK;
    if (merge) heap[entries++] = (uint64_t)merge->rank << 32 | i;
  }
  for (size_t i = entries / 2; i-- > 0;) sift_down(heap, entries, i);
  while (entries) {
    uint64_t top = heap[0];
    heap[0] = heap[--entries];
    if (entries) sift_down(heap, entries, 0);
    uint32_t at = (uint32_t)top;
    if (ranks[at] == NO_RANK || ranks[at] != top >> 32) continue;
    uint32_t right = next[at];
    symbols[at] = find_merge(self, symbols[at], symbols[right])->result;
    ranks[right] = NO_RANK; /* gone */
    next[at] = next[right];
    if (next[at] < count) previous[next[at]] = at;
    const bpe_merge* merge = next[at] < count ? find_merge(self, symbols[at], symbols[next[at]]) : NULL;
    ranks[at] = merge ? merge->rank : NO_RANK;
    if (merge) heap_push(heap, &entries, (uint64_t)merge->rank << 32 | at);
    if (at > 0) {
      uint32_t before = previous[at];
      merge = find_merge(self, symbols[before], symbols[at]);
      ranks[before] = merge ? merge->rank : NO_RANK;
      if (merge) heap_push(heap, &entries, (uint64_t)merge->rank << 32 | before);
    }
  }
  size_t kept = 0;
  for (uint32_t i = 0; i < count; i = next[i]) symbols[kept++] = symbols[i];
  *symbol_count = kept;
  return NULL;
}

/* The symbol of one character (with the word's prefix and suffix where they apply), or -1. */
static int32_t character_symbol(const bpe_model* self, const vocabulary* tokens, text_view character, bool first, bool last) {
  if ((self->word_prefix && !first) || (self->word_suffix && last)) {
    char buffer[256];
    size_t prefix = self->word_prefix && !first ? strlen(self->word_prefix) : 0;
    size_t suffix = self->word_suffix && last ? strlen(self->word_suffix) : 0;
    if (prefix + character.length + suffix > sizeof buffer) return -1;
    if (prefix) memcpy(buffer, self->word_prefix, prefix);
    memcpy(buffer + prefix, character.data, character.length);
    if (suffix) memcpy(buffer + prefix + character.length, self->word_suffix, suffix);
    return vocabulary_find(tokens, buffer, prefix + character.length + suffix);
  }
  int32_t id = vocabulary_find(tokens, character.data, character.length);
  if (id >= 0 && tokens->flags[id] & (TOKEN_OUTSIDE | TOKEN_UNUSED)) id = -1;
  if (id >= 0 || !self->extra_symbols.count) return id;
  id = vocabulary_find(&self->extra_symbols, character.data, character.length);
  return id < 0 ? -1 : self->extra_base + id;
}

/* Splits a word into characters' symbols. Unknown characters are handled as the reference does, including that a pending unknown token is
 * placed only before the next known one. */
static size_t split_characters(const bpe_model* self, const vocabulary* tokens, uint32_t* symbols, text_view word) {
  size_t count = 0;
  bool pending_unknown = false;
  for (size_t i = 0; i < word.length;) {
    size_t length = utf8_length((const uint8_t*)word.data + i);
    text_view character = {word.data + i, length};
    int32_t id = character_symbol(self, tokens, character, i == 0, i + length == word.length);
    i += length;
    if (id >= 0) {
      if (pending_unknown) symbols[count++] = (uint32_t)self->unknown_id;
      pending_unknown = false;
      symbols[count++] = (uint32_t)id;
      continue;
    }
    if (self->byte_fallback) {
      bool all = true;
      for (size_t k = 0; k < length; k++) all = all && self->byte_ids[(uint8_t)character.data[k]] >= 0;
      if (all) {
        for (size_t k = 0; k < length; k++) symbols[count++] = (uint32_t)self->byte_ids[(uint8_t)character.data[k]];
        continue;
      }
    }
    if (self->unknown_id < 0) continue;
    if (pending_unknown && !self->fuse_unknown) symbols[count++] = (uint32_t)self->unknown_id;
    pending_unknown = true;
  }
  if (pending_unknown) symbols[count++] = (uint32_t)self->unknown_id;
  return count;
}

/* A symbol without a token (a character of SentencePiece that only occurs inside tokens) comes out as its bytes, or as unknown. */
static genai_status* append_extra(const bpe_model* self, uint32_t symbol, size_t begin, token_list* out) {
  text_view character = vocabulary_text(&self->extra_symbols, (int32_t)symbol - self->extra_base);
  bool fallback = self->byte_fallback;
  for (size_t i = 0; i < character.length; i++) fallback = fallback && self->byte_ids[(uint8_t)character.data[i]] >= 0;
  if (!fallback) {
    bool fused = self->fuse_unknown && out->count > begin && out->ids[out->count - 1] == self->unknown_id;
    return self->unknown_id >= 0 && !fused ? token_list_append(out, self->unknown_id) : NULL;
  }
  for (size_t i = 0; i < character.length; i++) GENAI_TRY(token_list_append(out, self->byte_ids[(uint8_t)character.data[i]]));
  return NULL;
}

static genai_status* encode_part(const bpe_model* self, const vocabulary* tokens, bpe_scratch* scratch, text_view word, token_list* out) {
  uint64_t hash = 0;
  bool cached = scratch->cache && word.length <= CACHED_WORD;
  if (cached) {
    hash = hash_bytes(word.data, word.length);
    const cache_entry* entry = cache_find(scratch->cache, hash, word);
    if (entry) {
      GENAI_TRY(token_list_reserve(out, entry->id_count));
      memcpy(out->ids + out->count, scratch->cache->ids + entry->ids, entry->id_count * sizeof *out->ids);
      out->count += entry->id_count;
      return NULL;
    }
  }
  size_t begin = out->count;
  int32_t whole = -1;
  if (self->ignore_merges && self->whole_words) {
    whole = vocabulary_find(self->whole_words, word.data, word.length);
    if (whole >= 0 && vocabulary_flags(self->whole_words, whole) & (TOKEN_OUTSIDE | TOKEN_UNUSED)) whole = -1;
  }
  if (whole >= 0) {
    GENAI_TRY(token_list_append(out, whole));
  } else {
    GENAI_TRY(reserve_symbols(scratch, word.length + 1));
    size_t count = 0;
    if (self->byte_symbols) {
      for (size_t i = 0; i < word.length; i++) {
        int32_t id = self->byte_ids[(uint8_t)word.data[i]];
        if (id < 0) id = self->unknown_id;
        if (id >= 0) scratch->symbols[count++] = (uint32_t)id;
      }
    } else {
      count = split_characters(self, tokens, scratch->symbols, word);
    }
    if (self->merge_count && count > 1) {
      if (count <= SMALL_WORD)
        count = merge_small(self, scratch->symbols, scratch->ranks, scratch->next, count);
      else
        GENAI_TRY(merge_large(self, scratch, &count));
    }
    GENAI_TRY(token_list_reserve(out, count));
    for (size_t i = 0; i < count; i++) {
      if (self->extra_symbols.count && scratch->symbols[i] >= (uint32_t)self->extra_base) {
        GENAI_TRY(append_extra(self, scratch->symbols[i], begin, out));
      } else {
        GENAI_TRY(token_list_append(out, (int32_t)scratch->symbols[i]));
      }
    }
  }
  if (cached && out->count - begin <= UINT16_MAX) cache_add(scratch->cache, hash, word, out->ids + begin, out->count - begin);
  return NULL;
}

genai_status* bpe_encode(const bpe_model* self, const vocabulary* tokens, bpe_scratch* scratch, text_view word, token_list* out) {
  if (!word.length) return NULL;
  if (!self->adjacent) return encode_part(self, tokens, scratch, word, out);
  /* Cut where no merge can cross. */
  const uint8_t *p = (const uint8_t*)word.data, *end = p + word.length, *begin = p;
  size_t length;
  uint32_t left = utf8_next(p, &length);
  p += length;
  while (p < end) {
    uint32_t right = utf8_next(p, &length);
    if (!bpe_may_be_adjacent(self, left, right)) {
      GENAI_TRY(encode_part(self, tokens, scratch, (text_view){(const char*)begin, (size_t)(p - begin)}, out));
      begin = p;
    }
    left = right;
    p += length;
  }
  return encode_part(self, tokens, scratch, (text_view){(const char*)begin, (size_t)(end - begin)}, out);
}
