/* The Viterbi search over pieces, forward with the best way to each position, then back. */
#include "tokenizer/unigram.h"

#include "base/memory.h"
#include "tokenizer/tokenizer_internal.h"
#include "tokenizer/unicode_class.h"

static const double UNKNOWN_PENALTY = 10.0; /* kUnkPenalty in both SentencePiece and the reference */

typedef struct unigram_node {
  double score;  /* of the best way to here */
  uint32_t from; /* where its last piece starts; UINT32_MAX: not reached */
  int32_t id;
} unigram_node;

void unigram_scratch_deinit(unigram_scratch* scratch) {
  mem_free(scratch->nodes);
  *scratch = (unigram_scratch){0};
}

void unigram_deinit(unigram_model* self) {
  prefix_set_deinit(&self->pieces);
  mem_free(self->scores);
  *self = (unigram_model){0};
}

static void offer(const unigram_model* self, unigram_node* node, double score, size_t from, int32_t id) {
  if (self->single_precision) score = (float)score; /* decides ties */
  if (node->from != UINT32_MAX && !(score > node->score)) return;
  *node = (unigram_node){score, (uint32_t)from, id};
}

static genai_status* append_unknown(const unigram_model* self, text_view part, token_list* out) {
  if (self->byte_fallback) {
    bool all = true;
    for (size_t i = 0; i < part.length; i++) all = all && self->byte_ids[(uint8_t)part.data[i]] >= 0;
    for (size_t i = 0; all && i < part.length; i++) GENAI_TRY(token_list_append(out, self->byte_ids[(uint8_t)part.data[i]]));
    if (all) return NULL;
  }
  return token_list_append(out, self->unknown_id);
}

genai_status* unigram_encode(const unigram_model* self, const vocabulary* tokens, unigram_scratch* scratch, text_view word,
                             token_list* out) {
  size_t size = word.length;
  if (!size) return NULL;
  if (size >= UINT32_MAX) return genai_status_create(GENAI_ERROR_LIMIT, "a text of %zu bytes is too long to tokenize", size);
  if (scratch->capacity < size + 1) {
    unigram_node* nodes = mem_realloc_array(scratch->nodes, size + 1, sizeof *nodes);
    if (!nodes) return genai_status_out_of_memory();
    scratch->nodes = nodes;
    scratch->capacity = size + 1;
  }
  unigram_node* nodes = scratch->nodes;
  for (size_t i = 0; i <= size; i++) nodes[i] = (unigram_node){0, UINT32_MAX, -1};
  double unknown_score = self->lowest - UNKNOWN_PENALTY;
  if (self->single_precision) unknown_score = (float)unknown_score;
  for (size_t begin = 0, length; begin < size; begin += length) {
    double here = nodes[begin].score;
    length = utf8_length((const uint8_t*)word.data + begin);
    bool single = false;
    prefix_walk walk;
    const prefix_entry* entry;
    prefix_walk_begin(&walk, &self->pieces, word.data + begin, size - begin);
    while ((entry = prefix_walk_next(&walk))) {
      double score = self->scores[entry->value];
      /* User-defined pieces get a bonus that grows with their bytes (measured with sentencepiece 0.2.3). */
      if (self->single_precision && tokens->flags[entry->value] & TOKEN_ADDED) {
        score = (float)(0.1 * (double)(entry->key.length - 1));
      }
      offer(self, &nodes[begin + entry->key.length], score + here, begin, entry->value);
      single = single || entry->key.length == length;
    }
    if (!single) {
      if (self->unknown_id < 0) {
        return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT,
                                   "\"%.*s\" is not in the vocabulary, which has no unknown token to stand for it", (int)length,
                                   word.data + begin);
      }
      offer(self, &nodes[begin + length], unknown_score + here, begin, self->unknown_id);
    }
  }
  /* Back: turn the links around, so that each node on the way knows the piece that starts there (`id`) and its end (`from`). */
  uint32_t at = (uint32_t)size;
  unigram_node node = nodes[size];
  while (at > 0) {
    unigram_node before = nodes[node.from];
    nodes[node.from].id = node.id;
    uint32_t begin = node.from;
    nodes[begin].from = at;
    at = begin;
    node = before;
  }
  while (at < size) {
    if (nodes[at].id != self->unknown_id) {
      GENAI_TRY(token_list_append(out, nodes[at].id));
      at = nodes[at].from;
      continue;
    }
    uint32_t begin = at; /* a run of unknown characters is one unknown piece */
    while (at < size && nodes[at].id == self->unknown_id) at = nodes[at].from;
    GENAI_TRY(append_unknown(self, (text_view){word.data + begin, at - begin}, out));
  }
  return NULL;
}
