/* What bpe.c and bpe_table.c share: the hash of a pair of symbols and the set of adjacent characters. */
#ifndef GENAI_TOKENIZER_BPE_INTERNAL_H
#define GENAI_TOKENIZER_BPE_INTERNAL_H

#include "tokenizer/bpe.h"

static inline size_t bpe_pair_hash(uint32_t left, uint32_t right) {
  return (size_t)hash_mix((uint64_t)left << 32 | right, 0x9e3779b97f4a7c15u);
}

enum { BPE_ADJACENT_BITS = 22 };

static inline uint32_t bpe_adjacent_bit(uint32_t left, uint32_t right) {
  return (uint32_t)(hash_mix((uint64_t)left << 32 | right, 0xa0761d6478bd642fu) >> (64 - BPE_ADJACENT_BITS));
}

static inline bool bpe_may_be_adjacent(const bpe_model* self, uint32_t left, uint32_t right) {
  uint32_t bit = bpe_adjacent_bit(left, right);
  return self->adjacent[bit >> 6] >> (bit & 63) & 1;
}

#endif
