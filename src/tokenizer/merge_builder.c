/* Reading merge lists. A list names tokens by content, so it costs three lookups a merge: half a second for the largest vocabularies if they
 * were made one after the other, each waiting for memory. */
#include "tokenizer/merge_builder.h"

#include "tokenizer/bpe_internal.h"

static int shown(size_t length) {
  return (int)(length > 64 ? 64 : length);
}

static genai_status* unknown_token(const merge_builder* self, const pending_merge* merge, text_view token) {
  return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: merge %u (\"%.*s\" \"%.*s\") needs \"%.*s\", which is not in the vocabulary",
                             self->source, (unsigned)self->rank, shown(merge->left.length), merge->left.data, shown(merge->right.length),
                             merge->right.data, shown(token.length), token.data);
}

/* The token that a merge makes. */
static genai_status* find_result(merge_builder* self, pending_merge* merge) {
  size_t skip = self->model->word_prefix ? strlen(self->model->word_prefix) : 0;
  if (skip > merge->right.length) skip = 0;
  text_clear(&self->joined);
  GENAI_TRY(text_append(&self->joined, merge->left.data, merge->left.length));
  GENAI_TRY(text_append(&self->joined, merge->right.data + skip, merge->right.length - skip));
  text_view joined = {self->joined.data, self->joined.length};
  /* Tokens mostly stand in the order in which merges make them: look at the last one and the next one first. */
  merge->ids[2] = self->last_result;
  if (!text_view_equal(vocabulary_text(self->tokens, merge->ids[2]), joined)) {
    merge->ids[2]++;
    if (!text_view_equal(vocabulary_text(self->tokens, merge->ids[2]), joined)) {
      merge->ids[2] = vocabulary_find(self->tokens, joined.data, joined.length);
      if (merge->ids[2] < 0) return unknown_token(self, merge, joined);
    }
  }
  self->last_result = merge->ids[2];
  return NULL;
}

static genai_status* flush(merge_builder* self) {
  for (size_t i = 0; i < self->pending_count; i++) {
    pending_merge* merge = &self->pending[i];
    merge->ids[0] = vocabulary_find_hashed(self->tokens, merge->left, merge->left_hash);
    merge->ids[1] = vocabulary_find_hashed(self->tokens, merge->right, merge->right_hash);
    if (merge->ids[0] < 0 || merge->ids[1] < 0) {
      return unknown_token(self, merge, merge->ids[0] < 0 ? merge->left : merge->right);
    }
    if (self->model->merges) {
      __builtin_prefetch(&self->model->merges[bpe_pair_hash((uint32_t)merge->ids[0], (uint32_t)merge->ids[1]) & self->model->merge_mask],
                         1);
    }
  }
  for (size_t i = 0; i < self->pending_count; i++) {
    pending_merge* merge = &self->pending[i];
    GENAI_TRY(find_result(self, merge));
    GENAI_TRY(bpe_add_merge(self->model, (uint32_t)merge->ids[0], (uint32_t)merge->ids[1], self->rank, (uint32_t)merge->ids[2]));
    self->rank++;
  }
  self->pending_count = 0;
  return NULL;
}

genai_status* merge_builder_add(merge_builder* self, text_view left, text_view right) {
  pending_merge* merge = &self->pending[self->pending_count++];
  *merge = (pending_merge){.left = left, .right = right};
  merge->left_hash = hash_bytes(left.data, left.length);
  merge->right_hash = hash_bytes(right.data, right.length);
  vocabulary_prefetch(self->tokens, merge->left_hash);
  vocabulary_prefetch(self->tokens, merge->right_hash);
  return self->pending_count == MERGE_BATCH ? flush(self) : NULL;
}

genai_status* merge_builder_add_line(merge_builder* self, text_view line) {
  const char* space = line.length > 1 ? memchr(line.data + 1, ' ', line.length - 1) : NULL;
  if (!space) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: merge %u is \"%.*s\"; two tokens with a space between them were expected",
                               self->source, (unsigned)(self->rank + self->pending_count), shown(line.length), line.data);
  }
  size_t left = (size_t)(space - line.data);
  return merge_builder_add(self, (text_view){line.data, left}, (text_view){space + 1, line.length - left - 1});
}

genai_status* merge_builder_finish(merge_builder* self) {
  return flush(self);
}

void merge_builder_deinit(merge_builder* self) {
  text_deinit(&self->joined);
}
