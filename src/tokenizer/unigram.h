/* The unigram language model: of all ways to cut a text into pieces, the one whose scores add up to the most (Kudo 2018), by Viterbi. */
#ifndef GENAI_TOKENIZER_UNIGRAM_H
#define GENAI_TOKENIZER_UNIGRAM_H

#include "tokenizer/prefix_set.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

typedef struct unigram_model {
  prefix_set pieces;  /* value: id */
  double* scores;     /* [vocabulary size] */
  double lowest;      /* the lowest score of a piece */
  int32_t unknown_id; /* -1: a character without piece is an error */
  int32_t byte_ids[256];
  bool byte_fallback;
  bool single_precision; /* scores add up in float, as in SentencePiece; in double, as in the reference tokenizer library */
} unigram_model;

/* Working memory of one encode call; zero-initialise. */
typedef struct unigram_scratch {
  struct unigram_node* nodes;
  size_t capacity;
} unigram_scratch;
void unigram_scratch_deinit(unigram_scratch* scratch);

void unigram_deinit(unigram_model* self);
genai_status* unigram_encode(const unigram_model* self, const vocabulary* tokens, unigram_scratch* scratch, text_view word,
                             token_list* out) GENAI_MUST_USE;

#endif
