/* Reads a merge list: pairs of token contents in order of rank become merges of a BPE model. */
#ifndef GENAI_TOKENIZER_MERGE_BUILDER_H
#define GENAI_TOKENIZER_MERGE_BUILDER_H

#include "tokenizer/bpe.h"

enum { MERGE_BATCH = 32 };

typedef struct pending_merge {
  text_view left, right;
  uint64_t left_hash, right_hash;
  int32_t ids[3];
} pending_merge;

/* Zero-initialise and set the first three. Merges are worked on in batches, so that their memory accesses overlap; what they view must
 * live until merge_builder_finish. */
typedef struct merge_builder {
  bpe_model* model;
  const vocabulary* tokens;
  const char* source; /* names the file in errors */
  pending_merge pending[MERGE_BATCH];
  size_t pending_count;
  text joined;
  int32_t last_result;
  uint32_t rank;
} merge_builder;

genai_status* merge_builder_add(merge_builder* self, text_view left, text_view right) GENAI_MUST_USE;
/* "left right" as one string: the space is the first one behind the first byte. */
genai_status* merge_builder_add_line(merge_builder* self, text_view line) GENAI_MUST_USE;
genai_status* merge_builder_finish(merge_builder* self) GENAI_MUST_USE;
void merge_builder_deinit(merge_builder* self);

#endif
