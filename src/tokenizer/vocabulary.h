/* The token table: id to content, content to id, and what kind each token is. */
#ifndef GENAI_TOKENIZER_VOCABULARY_H
#define GENAI_TOKENIZER_VOCABULARY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "genai/status.h"

enum {
  TOKEN_PRESENT = 1,      /* the id has a token; ids without one are holes */
  TOKEN_SPECIAL = 2,      /* control token: plain text unless the caller parses special tokens, left out by decode */
  TOKEN_ADDED = 4,        /* matched in the text before the model runs */
  TOKEN_BYTE = 8,         /* <0xHH>: one byte of text */
  TOKEN_UNUSED = 16,      /* never produced by the model */
  TOKEN_OUTSIDE = 32,     /* not part of the model: only matched as an added token */
  TOKEN_RENORMALIZED = 64 /* an added token that decodes to its normalized form */
};

/* The most tokens a vocabulary may have: real ones stay below 300,000. */
enum { VOCABULARY_LIMIT = 1 << 24 };

typedef struct vocabulary {
  char* pool;
  size_t pool_length, pool_capacity;
  uint64_t* spans; /* [count]: where in the pool (upper 40 bits) and how many bytes (lower 24) */
  uint8_t* flags;
  int32_t count, capacity;
  uint64_t* slots; /* upper half of the content's hash, id + 1; 0 = free; open addressing */
  size_t slot_mask;
} vocabulary;

/* Room for `tokens` tokens and `bytes` bytes of content in all; a hint that saves growing. */
genai_status* vocabulary_reserve(vocabulary* self, int32_t tokens, size_t bytes) GENAI_MUST_USE;
/* Gives `id` this content. The table grows to id + 1; an id that has a token gets the new content. */
genai_status* vocabulary_set(vocabulary* self, int32_t id, const char* data, size_t length, uint8_t flags) GENAI_MUST_USE;
/* Builds the content lookup; call after the last vocabulary_set. Where two ids have the same content, the lower one is found. */
genai_status* vocabulary_index(vocabulary* self) GENAI_MUST_USE;
/* The id of this content, which is added as the next id when it is new. For tables filled by nothing else. */
genai_status* vocabulary_intern(vocabulary* self, const char* data, size_t length, int32_t* id) GENAI_MUST_USE;
void vocabulary_deinit(vocabulary* self);

int32_t vocabulary_find(const vocabulary* self, const char* data, size_t length); /* -1 when absent */
/* The same with the content's hash_bytes at hand; many lookups in a row are faster when their slots are fetched beforehand. */
int32_t vocabulary_find_hashed(const vocabulary* self, text_view content, uint64_t hash);
static inline void vocabulary_prefetch(const vocabulary* self, uint64_t hash) {
  if (self->slots) __builtin_prefetch(&self->slots[hash & self->slot_mask]);
}

static inline text_view vocabulary_content(const vocabulary* self, int32_t id) {
  return (text_view){self->pool + (self->spans[id] >> 24), self->spans[id] & 0xffffff};
}
/* {NULL, 0} for an id without a token. */
static inline text_view vocabulary_text(const vocabulary* self, int32_t id) {
  if (id < 0 || id >= self->count || !(self->flags[id] & TOKEN_PRESENT)) return (text_view){NULL, 0};
  return vocabulary_content(self, id);
}
static inline unsigned vocabulary_flags(const vocabulary* self, int32_t id) {
  return id >= 0 && id < self->count ? self->flags[id] : 0;
}

/* The value of a byte token's content `<0xHH>`, or -1. */
int byte_token_value(const char* data, size_t length);

static inline uint64_t hash_mix(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 wide;
  wide product = (wide)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Hash of a short byte string (multiply-and-fold over 8-byte words, as wyhash does). Not for hostile keys across trust borders: tables
 * here are bounded by the file that fills them. */
static inline uint64_t hash_bytes(const char* data, size_t length) {
  uint64_t hash = 0x9e3779b97f4a7c15u ^ length, word = 0;
  while (length >= 8) {
    memcpy(&word, data, 8);
    hash = hash_mix(hash ^ word, 0xa0761d6478bd642fu);
    data += 8;
    length -= 8;
  }
  if (length) {
    word = 0;
    memcpy(&word, data, length);
    hash = hash_mix(hash ^ word, 0xe7037ed1a0b428dbu);
  }
  return hash ^ hash >> 29;
}

#endif
