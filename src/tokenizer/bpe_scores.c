/* SentencePiece's BPE, whose pieces carry scores instead of merges: two neighbours join when their concatenation is a piece, the best score
 * first (sentencepiece, src/bpe_model.cc). The same merges, ranked, make a BPE model. */
#include <stdlib.h>

#include "base/memory.h"
#include "tokenizer/tokenizer_internal.h"

typedef struct scored {
  float score;
  int32_t id;
} scored;

static int compare(const void* a, const void* b) {
  const scored *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score ? -1 : 1;
  return x->id < y->id ? -1 : x->id > y->id;
}

/* Characters inside pieces that are no pieces themselves become symbols, so that they can take part in merges. */
static genai_status* add_extra_symbols(tokenizer* self, const scored* pieces, size_t count) {
  vocabulary* extra = &self->bpe.extra_symbols;
  self->bpe.extra_base = self->tokens.count;
  for (size_t i = 0; i < count; i++) {
    text_view piece = vocabulary_text(&self->tokens, pieces[i].id);
    for (size_t at = 0, length; at < piece.length; at += length) {
      length = utf8_length((const uint8_t*)piece.data + at);
      int32_t id = vocabulary_find(&self->tokens, piece.data + at, length);
      if (id >= 0 && !(self->tokens.flags[id] & (TOKEN_OUTSIDE | TOKEN_UNUSED))) continue;
      GENAI_TRY(vocabulary_intern(extra, piece.data + at, length, &id));
    }
  }
  return NULL;
}

genai_status* bpe_build_from_scores(tokenizer* self, const float* scores) {
  scored* pieces = mem_realloc_array(NULL, (size_t)self->tokens.count + 1, sizeof *pieces);
  if (!pieces) return genai_status_out_of_memory();
  size_t count = 0;
  for (int32_t id = 0; id < self->tokens.count; id++) {
    text_view token = vocabulary_text(&self->tokens, id);
    if (!token.data || self->tokens.flags[id] & (TOKEN_OUTSIDE | TOKEN_UNUSED | TOKEN_BYTE)) continue;
    if (!utf8_is_valid(token.data, token.length)) continue;
    float score = scores[id];
    pieces[count++] = (scored){score == score ? score : -3.4e38f, id};
  }
  qsort(pieces, count, sizeof *pieces, compare);
  genai_status* status = add_extra_symbols(self, pieces, count);
  if (!status) status = bpe_reserve_merges(&self->bpe, count * 2);
  uint32_t rank = 0;
  for (size_t i = 0; i < count && !status; i++) {
    if (i && pieces[i].score != pieces[i - 1].score) rank++;
    text_view piece = vocabulary_text(&self->tokens, pieces[i].id);
    status = bpe_add_splits(&self->bpe, &self->tokens, piece, rank, (uint32_t)pieces[i].id);
    /* Unknown characters fuse across any cut, so where they do, words are not cut. */
    if (!status && !self->bpe.fuse_unknown) status = bpe_note_adjacent(&self->bpe, piece);
  }
  mem_free(pieces);
  return status;
}
