/* Writes a tokenizer as tokenizer.json: the vocabulary, the model and the added tokens. The other parts are in export_json_steps.c. What
 * the format cannot express is refused, because a file that gives other ids would be worse than none. */
#include "tokenizer/export_json.h"

#include <stdlib.h>

#include "base/file.h"
#include "base/memory.h"

static bool is_written(const tokenizer* self, int32_t id) {
  text_view content = vocabulary_text(&self->tokens, id);
  /* Of equal contents the lower id is the one that encoding gives; what is not text never arises from text. */
  return content.data && utf8_is_valid(content.data, content.length) && vocabulary_find(&self->tokens, content.data, content.length) == id;
}

static void write_bool(json_writer* out, const char* key, bool value) {
  json_key(out, key);
  json_write_bool(out, value);
}

void export_write_view(json_writer* out, const char* key, text_view value) {
  json_key(out, key);
  json_write_bytes(out, value.data, value.length);
}

static void write_added_tokens(const tokenizer* self, json_writer* out) {
  json_key(out, "added_tokens");
  json_begin_array(out);
  /* The reference wants them by id. */
  for (int32_t id = 0; id < self->tokens.count; id++) {
    if (!(self->tokens.flags[id] & TOKEN_ADDED) || !is_written(self, id)) continue;
    for (size_t i = 0; i < self->added.count; i++) {
      const added_token* token = &self->added.items[i];
      if (token->id != id) continue;
      json_begin_object(out);
      json_key(out, "id");
      json_write_integer(out, id);
      export_write_view(out, "content", vocabulary_text(&self->tokens, id));
      write_bool(out, "single_word", token->single_word);
      write_bool(out, "lstrip", token->strip_left);
      write_bool(out, "rstrip", token->strip_right);
      write_bool(out, "normalized", token->normalized);
      write_bool(out, "special", token->special);
      json_end_object(out);
      break;
    }
  }
  json_end_array(out);
}

static void write_optional(json_writer* out, const char* key, const char* value) {
  json_key(out, key);
  json_write_string(out, value);
}

/* A merge with what decides its place. */
typedef struct ranked_merge {
  uint32_t rank, left_length;
  int32_t left, right;
} ranked_merge;

static int by_rank(const void* a, const void* b) {
  const ranked_merge *x = a, *y = b;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  if (x->left_length != y->left_length) return x->left_length > y->left_length ? -1 : 1;
  return x->left < y->left ? -1 : x->left > y->left;
}

/* Merges in order of rank. Those of one SentencePiece piece share a rank here and must follow each other there: the longest left side
 * first, as the converters of transformers do it. Merges of characters without token cannot be written. */
static genai_status* write_merges(const tokenizer* self, json_writer* out) {
  const bpe_model* bpe = &self->bpe;
  ranked_merge* merges = mem_realloc_array(NULL, bpe->merge_count + 1, sizeof *merges);
  if (!merges) return genai_status_out_of_memory();
  size_t count = 0;
  for (size_t i = 0; i <= bpe->merge_mask; i++) {
    const bpe_merge* merge = &bpe->merges[i];
    if (merge->left == UINT32_MAX || (int64_t)merge->left >= self->tokens.count || (int64_t)merge->right >= self->tokens.count) continue;
    int32_t left = (int32_t)merge->left, right = (int32_t)merge->right;
    if (!is_written(self, left) || !is_written(self, right)) continue;
    merges[count++] = (ranked_merge){merge->rank, (uint32_t)vocabulary_text(&self->tokens, left).length, left, right};
  }
  qsort(merges, count, sizeof *merges, by_rank);
  json_key(out, "merges");
  json_begin_array(out);
  for (size_t i = 0; i < count; i++) {
    text_view left = vocabulary_text(&self->tokens, merges[i].left), right = vocabulary_text(&self->tokens, merges[i].right);
    json_begin_array(out);
    json_write_bytes(out, left.data, left.length);
    json_write_bytes(out, right.data, right.length);
    json_end_array(out);
  }
  json_end_array(out);
  mem_free(merges);
  return NULL;
}

static genai_status* write_bpe(const tokenizer* self, json_writer* out) {
  const bpe_model* bpe = &self->bpe;
  text_view unknown = vocabulary_text(&self->tokens, bpe->unknown_id);
  json_key(out, "type");
  json_write_string(out, "BPE");
  json_key(out, "dropout");
  json_write_string(out, NULL);
  json_key(out, "unk_token");
  if (unknown.data)
    json_write_bytes(out, unknown.data, unknown.length);
  else
    json_write_string(out, NULL);
  write_optional(out, "continuing_subword_prefix", bpe->word_prefix);
  write_optional(out, "end_of_word_suffix", bpe->word_suffix);
  write_bool(out, "fuse_unk", bpe->fuse_unknown);
  write_bool(out, "byte_fallback", bpe->byte_fallback);
  write_bool(out, "ignore_merges", bpe->ignore_merges);
  json_key(out, "vocab");
  json_begin_object(out);
  text key = {0};
  genai_status* status = NULL;
  for (int32_t id = 0; id < self->tokens.count && !status; id++) {
    if (!is_written(self, id)) continue;
    text_view content = vocabulary_text(&self->tokens, id);
    if (memchr(content.data, 0, content.length)) continue; /* json_key takes C strings; such a token would be one of byte 0 alone */
    text_clear(&key);
    status = text_append(&key, content.data, content.length);
    if (status) break;
    json_key(out, key.data);
    json_write_integer(out, id);
  }
  text_deinit(&key);
  json_end_object(out);
  return status ? status : write_merges(self, out);
}

static genai_status* write_unigram(const tokenizer* self, json_writer* out) {
  const unigram_model* unigram = &self->unigram;
  json_key(out, "type");
  json_write_string(out, "Unigram");
  json_key(out, "unk_id");
  if (unigram->unknown_id >= 0)
    json_write_integer(out, unigram->unknown_id);
  else
    json_write_string(out, NULL);
  json_key(out, "vocab");
  json_begin_array(out);
  for (int32_t id = 0; id < self->tokens.count; id++) {
    text_view content = vocabulary_text(&self->tokens, id);
    if (self->tokens.flags[id] & TOKEN_OUTSIDE) break; /* added tokens behind the model's */
    if (!content.data)
      return genai_status_create(GENAI_ERROR_UNSUPPORTED, "token id %d has no token; a unigram vocabulary has no holes", (int)id);
    json_begin_array(out);
    json_write_bytes(out, content.data, content.length);
    json_write_number(out, unigram->scores[id]);
    json_end_array(out);
  }
  json_end_array(out);
  write_bool(out, "byte_fallback", unigram->byte_fallback);
  return NULL;
}

static genai_status* inexpressible(const char* what) {
  return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                             "a tokenizer.json with %s would give other ids than the SentencePiece model; use the original file", what);
}

/* What SentencePiece does and the reference does otherwise: the Viterbi search adds up in float, compiled rules apply to the longest prefix
 * rather than to graphemes, and user-defined symbols are looked for in the normalized text as they stand. */
static genai_status* check_expressible(const tokenizer* self) {
  if (self->model == MODEL_UNIGRAM && self->unigram.single_precision) return inexpressible("this unigram model");
  bool prefix = false;
  for (size_t i = 0; i < self->normalize.count; i++) {
    const normalizer_step* step = &self->normalize.steps[i];
    if (step->kind == NORMALIZE_PREPEND) prefix = true;
    if (step->kind != NORMALIZE_SENTENCEPIECE) continue;
    if (step->blob_length) return inexpressible("these normalization rules");
    if (step->whitespace_suffix && step->add_dummy_prefix) return inexpressible("white space as suffix");
    prefix = prefix || step->add_dummy_prefix;
  }
  for (size_t i = 0; i < self->added.count; i++) {
    const added_token* token = &self->added.items[i];
    if (token->as_is && (prefix || memchr(token->pattern, ' ', token->pattern_length))) return inexpressible("these user-defined symbols");
  }
  return NULL;
}

static genai_status* write_all(const tokenizer* self, json_writer* out) {
  json_begin_object(out);
  json_key(out, "version");
  json_write_string(out, "1.0");
  json_key(out, "truncation");
  json_write_string(out, NULL);
  json_key(out, "padding");
  json_write_string(out, NULL);
  write_added_tokens(self, out);
  GENAI_TRY(export_normalizer(self, out));
  GENAI_TRY(export_segmenter(self, out));
  GENAI_TRY(export_post_processor(self, out));
  GENAI_TRY(export_decoder(self, out));
  json_key(out, "model");
  json_begin_object(out);
  GENAI_TRY(self->model == MODEL_BPE ? write_bpe(self, out) : write_unigram(self, out));
  json_end_object(out);
  json_end_object(out);
  return NULL;
}

genai_status* tokenizer_export_json(const tokenizer* self, const char* path) {
  text out = {0};
  json_writer writer;
  json_writer_init(&writer, &out, false);
  genai_status* status = check_expressible(self);
  if (!status) status = write_all(self, &writer);
  genai_status* written = json_writer_finish(&writer);
  if (status)
    genai_status_free(written);
  else
    status = written;
  if (!status) status = file_write_atomic(path, out.data, out.length);
  text_deinit(&out);
  return status;
}
