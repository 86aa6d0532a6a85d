/* The token table and its content lookup. What tokens mean to the model or the decoder is decided elsewhere. */
#include "tokenizer/vocabulary.h"

#include "base/memory.h"

static genai_status* grow_tokens(vocabulary* self, int32_t needed) {
  if (needed <= self->capacity) return NULL;
  int32_t capacity = self->capacity < 512 ? 1024 : self->capacity * 2;
  if (capacity < needed) capacity = needed;
  size_t* offsets = mem_realloc_array(self->offsets, (size_t)capacity, sizeof *offsets);
  if (!offsets) return genai_status_out_of_memory();
  self->offsets = offsets;
  uint32_t* lengths = mem_realloc_array(self->lengths, (size_t)capacity, sizeof *lengths);
  if (!lengths) return genai_status_out_of_memory();
  self->lengths = lengths;
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
  if (length > UINT32_MAX / 2) return genai_status_create(GENAI_ERROR_BAD_FILE, "token %d has %zu bytes", (int)id, length);
  GENAI_TRY(grow_tokens(self, id + 1));
  GENAI_TRY(grow_pool(self, self->pool_length + length));
  if (id >= self->count) {
    memset(self->flags + self->count, 0, (size_t)(id + 1 - self->count));
    self->count = id + 1;
  }
  if (length) memcpy(self->pool + self->pool_length, data, length);
  self->offsets[id] = self->pool_length;
  self->lengths[id] = (uint32_t)length;
  self->flags[id] = flags | TOKEN_PRESENT;
  self->pool_length += length;
  return NULL;
}

genai_status* vocabulary_index(vocabulary* self) {
  size_t capacity = 16;
  while (capacity < (size_t)self->count * 2 + 2) capacity *= 2;
  uint32_t* slots = mem_calloc(capacity, sizeof *slots);
  if (!slots) return genai_status_out_of_memory();
  mem_free(self->slots);
  self->slots = slots;
  self->slot_mask = capacity - 1;
  for (int32_t id = 0; id < self->count; id++) {
    text_view token = vocabulary_text(self, id);
    if (!token.data) continue;
    size_t slot = hash_bytes(token.data, token.length) & self->slot_mask;
    while (slots[slot]) {
      if (text_view_equal(vocabulary_text(self, (int32_t)(slots[slot] - 1)), token)) break;
      slot = (slot + 1) & self->slot_mask;
    }
    if (!slots[slot]) slots[slot] = (uint32_t)id + 1;
  }
  return NULL;
}

genai_status* vocabulary_intern(vocabulary* self, const char* data, size_t length, int32_t* id) {
  *id = vocabulary_find(self, data, length);
  if (*id >= 0) return NULL;
  bool full = !self->slots || ((size_t)self->count + 1) * 2 > self->slot_mask + 1;
  GENAI_TRY(vocabulary_set(self, self->count, data, length, 0));
  *id = self->count - 1;
  if (full) return vocabulary_index(self);
  size_t slot = hash_bytes(data, length) & self->slot_mask;
  while (self->slots[slot]) slot = (slot + 1) & self->slot_mask;
  self->slots[slot] = (uint32_t)self->count;
  return NULL;
}

void vocabulary_deinit(vocabulary* self) {
  mem_free(self->pool);
  mem_free(self->offsets);
  mem_free(self->lengths);
  mem_free(self->flags);
  mem_free(self->slots);
  *self = (vocabulary){0};
}

int32_t vocabulary_find(const vocabulary* self, const char* data, size_t length) {
  if (!self->slots) return -1;
  size_t slot = hash_bytes(data, length) & self->slot_mask;
  while (self->slots[slot]) {
    int32_t id = (int32_t)(self->slots[slot] - 1);
    if (self->lengths[id] == length && memcmp(self->pool + self->offsets[id], data, length) == 0) return id;
    slot = (slot + 1) & self->slot_mask;
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
