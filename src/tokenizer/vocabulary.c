/* The token table and its content lookup. What tokens mean to the model or the decoder is decided elsewhere. */
#include "tokenizer/vocabulary.h"

#include "base/memory.h"

static genai_status* grow_tokens(vocabulary* self, int32_t needed) {
  if (needed <= self->capacity) return NULL;
  int32_t capacity = self->capacity < 512 ? 1024 : self->capacity * 2;
  if (capacity < needed) capacity = needed;
  uint64_t* spans = mem_realloc_array(self->spans, (size_t)capacity, sizeof *spans);
  if (!spans) return genai_status_out_of_memory();
  self->spans = spans;
  uint8_t* flags = mem_realloc_array(self->flags, (size_t)capacity, 1);
  if (!flags) return genai_status_out_of_memory();
  self->flags = flags;
  self->capacity = capacity;
  return NULL;
}

static genai_status* grow_pool(vocabulary* self, size_t needed) {
  if (needed <= self->pool_capacity) return NULL;
  size_t capacity = self->pool_capacity < 8192 ? 16384 : self->pool_capacity * 2;
  if (capacity < needed) capacity = needed;
  char* pool = mem_realloc_array(self->pool, capacity, 1);
  if (!pool) return genai_status_out_of_memory();
  self->pool = pool;
  self->pool_capacity = capacity;
  return NULL;
}

genai_status* vocabulary_reserve(vocabulary* self, int32_t tokens, size_t bytes) {
  if (tokens > VOCABULARY_LIMIT) tokens = VOCABULARY_LIMIT;
  GENAI_TRY(grow_tokens(self, tokens));
  return grow_pool(self, bytes);
}

genai_status* vocabulary_set(vocabulary* self, int32_t id, const char* data, size_t length, uint8_t flags) {
  if (id < 0 || id >= VOCABULARY_LIMIT) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "token id %d is outside 0..%d: the vocabulary is damaged", (int)id,
                               VOCABULARY_LIMIT - 1);
  }
  if (length > 0xffffff || self->pool_length >> 40) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "token %d has %zu bytes, more than any vocabulary's", (int)id, length);
  }
  GENAI_TRY(grow_tokens(self, id + 1));
  GENAI_TRY(grow_pool(self, self->pool_length + length));
  if (id >= self->count) {
    memset(self->flags + self->count, 0, (size_t)(id + 1 - self->count));
    self->count = id + 1;
  }
  if (length) memcpy(self->pool + self->pool_length, data, length);
  self->spans[id] = (uint64_t)self->pool_length << 24 | length;
  self->flags[id] = flags | TOKEN_PRESENT;
  self->pool_length += length;
  return NULL;
}

static uint64_t slot_entry(uint64_t hash, int32_t id) {
  return (hash & 0xffffffff00000000u) | ((uint32_t)id + 1);
}
static int32_t slot_id(uint64_t entry) {
  return (int32_t)((uint32_t)entry - 1);
}

/* Whether a slot's token has this content; the hash halves almost always tell without looking at the content. */
static bool is_at(const vocabulary* self, uint64_t entry, uint64_t hash, text_view content) {
  if ((entry ^ hash) >> 32) return false;
  text_view token = vocabulary_content(self, slot_id(entry));
  return token.length == content.length && memcmp(token.data, content.data, content.length) == 0;
}

enum { INDEX_BATCH = 32 };

genai_status* vocabulary_index(vocabulary* self) {
  size_t capacity = 16;
  while (capacity < (size_t)self->count * 2) capacity *= 2;
  uint64_t* slots = mem_calloc(capacity, sizeof *slots);
  if (!slots) return genai_status_out_of_memory();
  mem_free(self->slots);
  self->slots = slots;
  self->slot_mask = capacity - 1;
  for (int32_t begin = 0; begin < self->count; begin += INDEX_BATCH) {
    /* Some at a time, so that the memory accesses overlap. */
    int32_t end = self->count - begin < INDEX_BATCH ? self->count : begin + INDEX_BATCH;
    uint64_t hashes[INDEX_BATCH];
    for (int32_t id = begin; id < end; id++) {
      text_view token = vocabulary_text(self, id);
      hashes[id - begin] = hash_bytes(token.data ? token.data : "", token.length);
      __builtin_prefetch(&slots[hashes[id - begin] & self->slot_mask], 1);
    }
    for (int32_t id = begin; id < end; id++) {
      if (!(self->flags[id] & TOKEN_PRESENT)) continue;
      uint64_t hash = hashes[id - begin];
      size_t slot = hash & self->slot_mask;
      while (slots[slot] && !is_at(self, slots[slot], hash, vocabulary_content(self, id))) slot = (slot + 1) & self->slot_mask;
      if (!slots[slot]) slots[slot] = slot_entry(hash, id);
    }
  }
  return NULL;
}

genai_status* vocabulary_intern(vocabulary* self, const char* data, size_t length, int32_t* id) {
  *id = vocabulary_find(self, data, length);
  if (*id >= 0) return NULL;
  bool full = !self->slots || ((size_t)self->count + 1) * 2 >= self->slot_mask + 1;
  GENAI_TRY(vocabulary_set(self, self->count, data, length, 0));
  *id = self->count - 1;
  if (full) return vocabulary_index(self);
  uint64_t hash = hash_bytes(data, length);
  size_t slot = hash & self->slot_mask;
  while (self->slots[slot]) slot = (slot + 1) & self->slot_mask;
  self->slots[slot] = slot_entry(hash, *id);
  return NULL;
}

void vocabulary_deinit(vocabulary* self) {
  mem_free(self->pool);
  mem_free(self->spans);
  mem_free(self->flags);
  mem_free(self->slots);
  *self = (vocabulary){0};
}

int32_t vocabulary_find(const vocabulary* self, const char* data, size_t length) {
  return vocabulary_find_hashed(self, (text_view){data, length}, hash_bytes(data, length));
}

int32_t vocabulary_find_hashed(const vocabulary* self, text_view content, uint64_t hash) {
  if (!self->slots) return -1;
  for (size_t slot = hash & self->slot_mask; self->slots[slot]; slot = (slot + 1) & self->slot_mask) {
    if (is_at(self, self->slots[slot], hash, content)) return slot_id(self->slots[slot]);
  }
  return -1;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

int byte_token_value(const char* data, size_t length) {
  if (length != 6 || memcmp(data, "<0x", 3) != 0 || data[5] != '>') return -1;
  int high = hex_digit(data[3]), low = hex_digit(data[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}
