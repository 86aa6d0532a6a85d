/* Building a BPE model: the merge table, the merges that pieces with scores or ranks imply, and the set of adjacent characters. */
#include "base/memory.h"
#include "tokenizer/bpe.h"
#include "tokenizer/bpe_internal.h"
#include "tokenizer/unicode_class.h"

enum { MAX_SPLIT_BYTES = 2048, SPLIT_BATCH = 16 };

static bpe_merge* new_table(size_t capacity) {
  bpe_merge* table = mem_alloc_aligned(64, capacity * sizeof *table);
  if (table) memset(table, 0xff, capacity * sizeof *table);
  return table;
}

static genai_status* rehash(bpe_model* self, size_t capacity) {
  size_t bytes;
  if (!size_mul(capacity, sizeof(bpe_merge), &bytes)) return genai_status_out_of_memory();
  bpe_merge* table = new_table(capacity);
  if (!table) return genai_status_out_of_memory();
  if (self->merges) {
    for (size_t i = 0; i <= self->merge_mask; i++) {
      const bpe_merge* merge = &self->merges[i];
      if (merge->left == UINT32_MAX) continue;
      size_t slot = bpe_pair_hash(merge->left, merge->right) & (capacity - 1);
      while (table[slot].left != UINT32_MAX) slot = (slot + 1) & (capacity - 1);
      table[slot] = *merge;
    }
  }
  mem_free(self->merges);
  self->merges = table;
  self->merge_mask = capacity - 1;
  return NULL;
}

genai_status* bpe_reserve_merges(bpe_model* self, size_t count) {
  size_t capacity = 16;
  while (capacity / 2 < count) {
    if (!size_mul(capacity, 2, &capacity)) return genai_status_out_of_memory();
  }
  if (self->merges && capacity <= self->merge_mask + 1) return NULL;
  return rehash(self, capacity);
}

genai_status* bpe_add_merge(bpe_model* self, uint32_t left, uint32_t right, uint32_t rank, uint32_t result) {
  if (!self->merges || (self->merge_count + 1) * 2 > self->merge_mask + 1) {
    GENAI_TRY(rehash(self, self->merges ? (self->merge_mask + 1) * 2 : 1024));
  }
  size_t slot = bpe_pair_hash(left, right) & self->merge_mask;
  while (self->merges[slot].left != UINT32_MAX) {
    if (self->merges[slot].left == left && self->merges[slot].right == right) break;
    slot = (slot + 1) & self->merge_mask;
  }
  if (self->merges[slot].left == UINT32_MAX) self->merge_count++;
  self->merges[slot] = (bpe_merge){left, right, rank, result};
  return NULL;
}

/* The symbol of part of a token, or -1. Tokens outside the model and byte tokens are not built by merging. */
static int32_t find_symbol(const bpe_model* self, const vocabulary* tokens, text_view part, uint64_t hash) {
  int32_t id = vocabulary_find_hashed(tokens, part, hash);
  if (id >= 0 && !(tokens->flags[id] & (TOKEN_OUTSIDE | TOKEN_BYTE | TOKEN_UNUSED))) return id;
  if (!self->extra_symbols.count) return -1;
  id = vocabulary_find_hashed(&self->extra_symbols, part, hash);
  return id < 0 ? -1 : self->extra_base + id;
}

genai_status* bpe_add_splits(bpe_model* self, const vocabulary* tokens, text_view content, uint32_t rank, uint32_t result) {
  /* The work grows with the square of the length; real pieces stay below 200 bytes. */
  if (content.length > MAX_SPLIT_BYTES) {
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "token %u has %zu bytes; tokens that arise by merging may have %d",
                               (unsigned)result, content.length, MAX_SPLIT_BYTES);
  }
  for (size_t cut = 1; cut < content.length;) {
    /* Some splits at a time, so that the memory accesses of their lookups overlap. */
    struct {
      text_view left, right;
      uint64_t left_hash, right_hash;
    } splits[SPLIT_BATCH];
    size_t count = 0;
    for (; cut < content.length && count < SPLIT_BATCH; cut++) {
      if (!self->byte_symbols && ((uint8_t)content.data[cut] & 0xc0) == 0x80) continue;
      splits[count].left = (text_view){content.data, cut};
      splits[count].right = (text_view){content.data + cut, content.length - cut};
      splits[count].left_hash = hash_bytes(content.data, cut);
      splits[count].right_hash = hash_bytes(content.data + cut, content.length - cut);
      vocabulary_prefetch(tokens, splits[count].left_hash);
      vocabulary_prefetch(tokens, splits[count].right_hash);
      count++;
    }
    for (size_t i = 0; i < count; i++) {
      int32_t left = find_symbol(self, tokens, splits[i].left, splits[i].left_hash);
      if (left < 0) continue;
      int32_t right = find_symbol(self, tokens, splits[i].right, splits[i].right_hash);
      if (right < 0) continue;
      GENAI_TRY(bpe_add_merge(self, (uint32_t)left, (uint32_t)right, rank, result));
    }
  }
  return NULL;
}

genai_status* bpe_note_adjacent(bpe_model* self, text_view content) {
  if (!self->adjacent) {
    self->adjacent = mem_calloc((size_t)1 << (BPE_ADJACENT_BITS - 6), sizeof *self->adjacent);
    if (!self->adjacent) return genai_status_out_of_memory();
  }
  uint32_t left = 0;
  for (size_t i = 0; i < content.length;) {
    uint32_t right = (uint8_t)content.data[i];
    size_t length = right < 0x80 ? 1 : utf8_decode(content.data + i, content.length - i, &right);
    if (!length) return NULL; /* not text: such a token never arises from text */
    if (i) {
      uint32_t bit = bpe_adjacent_bit(left, right);
      self->adjacent[bit >> 6] |= (uint64_t)1 << (bit & 63);
    }
    left = right;
    i += length;
  }
  return NULL;
}

genai_status* bpe_note_all_adjacent(bpe_model* self, const vocabulary* tokens) {
  for (int32_t id = 0; id < tokens->count; id++) {
    if (!(tokens->flags[id] & (TOKEN_OUTSIDE | TOKEN_BYTE))) GENAI_TRY(bpe_note_adjacent(self, vocabulary_text(tokens, id)));
  }
  return NULL;
}

void bpe_deinit(bpe_model* self) {
  mem_free(self->merges);
  mem_free(self->word_prefix);
  mem_free(self->word_suffix);
  mem_free(self->adjacent);
  vocabulary_deinit(&self->extra_symbols);
  *self = (bpe_model){0};
}
