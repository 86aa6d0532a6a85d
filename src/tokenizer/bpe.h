/* Byte-pair encoding of one word. The three kinds of vocabulary all become one table of merges "left, right -> result, rank":
 *   - merge lists (tokenizer.json, GGUF "gpt2"): the rank is the place in the list (Sennrich et al. 2016);
 *   - SentencePiece scores: every split of every piece is a merge, ranked by descending score, equal scores leftmost first;
 *   - tiktoken ranks: every split of every token is a merge, ranked by the token's rank.
 * Lower rank first, leftmost first among equals, until no pair has a merge. */
#ifndef GENAI_TOKENIZER_BPE_H
#define GENAI_TOKENIZER_BPE_H

#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

typedef struct bpe_merge {
  uint32_t left, right; /* symbol ids; left UINT32_MAX marks a free slot */
  uint32_t rank, result;
} bpe_merge;

/* A symbol is a token id, or, from the vocabulary's size on, a character that has no token but occurs in one. */
typedef struct bpe_model {
  bpe_merge* merges; /* open addressing */
  size_t merge_mask;
  size_t merge_count;
  bool byte_symbols;     /* words start as bytes (byte-level); otherwise as characters */
  int32_t byte_ids[256]; /* byte_symbols: the symbol of a byte; otherwise the byte fallback; -1 = none */
  bool byte_fallback;    /* a character without token becomes its bytes' tokens, where all of them exist */
  bool fuse_unknown;     /* a run of unknown characters is one unknown token */
  bool ignore_merges;    /* a word that is a token is that token */
  int32_t unknown_id;    /* -1: unknown characters are dropped */
  char* word_prefix;     /* continuing_subword_prefix, NULL when none */
  char* word_suffix;     /* end_of_word_suffix, NULL when none */
  /* ignore_merges with byte_symbols: tokens by the bytes they stand for. Both borrowed from the tokenizer. */
  const vocabulary* whole_words;
  /* Characters without token that occur in tokens (SentencePiece), as symbols vocabulary size + index. */
  vocabulary extra_symbols;
  int32_t extra_base;
  /* Pairs of adjacent characters that some merge result contains, as a hashed bit set; NULL when words must not be cut. No merge can
   * cross a place whose pair is absent, so long texts are cut there, exactly. */
  uint64_t* adjacent;
} bpe_model;

genai_status* bpe_reserve_merges(bpe_model* self, size_t count) GENAI_MUST_USE;
/* A pair that is added again takes the later rank, as in the reference. */
genai_status* bpe_add_merge(bpe_model* self, uint32_t left, uint32_t right, uint32_t rank, uint32_t result) GENAI_MUST_USE;
/* Every split of token `id` (its `content`) whose two sides are symbols becomes a merge of this rank. Sides are looked up in `tokens` (and
 * in the extra symbols unless byte_symbols). */
genai_status* bpe_add_splits(bpe_model* self, const vocabulary* tokens, text_view content, uint32_t rank, uint32_t result) GENAI_MUST_USE;
/* Notes the adjacent characters of a merge result; the first call allocates the set. */
genai_status* bpe_note_adjacent(bpe_model* self, text_view content) GENAI_MUST_USE;
/* Of all tokens of the model, which is more than what merges make, and quicker to find. */
genai_status* bpe_note_all_adjacent(bpe_model* self, const vocabulary* tokens) GENAI_MUST_USE;
void bpe_deinit(bpe_model* self);

/* Working memory of one encode call: symbol arrays and the cache of words already met. Zero-initialise; not shared between threads. */
typedef struct bpe_scratch {
  uint32_t* symbols;
  uint32_t* ranks;
  uint32_t* next;
  uint32_t* previous;
  uint64_t* heap;
  size_t capacity, heap_capacity;
  struct word_cache* cache;
} bpe_scratch;
/* Makes a cache fit for a text of `length` bytes (none for short ones). */
genai_status* bpe_scratch_init(bpe_scratch* scratch, size_t length) GENAI_MUST_USE;
void bpe_scratch_deinit(bpe_scratch* scratch);

/* Appends the ids of a word (valid UTF-8). `tokens` is the vocabulary that the ids belong to. */
genai_status* bpe_encode(const bpe_model* self, const vocabulary* tokens, bpe_scratch* scratch, text_view word,
                         token_list* out) GENAI_MUST_USE;

#endif
