/* From text to ids: added tokens are cut out, what is between them is normalized, split into words, and each word goes to the model. */
#include "base/memory.h"
#include "tokenizer/tokenizer_internal.h"

typedef struct encoding {
  const tokenizer* self;
  token_list* out;
  bool parse_special;
  bpe_scratch bpe;
  unigram_scratch unigram;
  segmenter_scratch segment;
  text normalized, spare;
} encoding;

static genai_status* encode_word(void* user, text_view word) {
  encoding* e = user;
  if (e->self->model == MODEL_BPE) return bpe_encode(&e->self->bpe, &e->self->tokens, &e->bpe, word, e->out);
  return unigram_encode(&e->self->unigram, &e->self->tokens, &e->unigram, word, e->out);
}

static genai_status* segment(encoding* e, text_view piece, bool at_start) {
  if (!piece.length) return NULL;
  return segmenter_run(&e->self->segment, &e->self->classes, &e->segment, piece, at_start, encode_word, e);
}

/* Text without raw added tokens: normalize it, cut out the normalized ones, segment the rest. */
static genai_status* encode_plain(encoding* e, text_view piece, bool at_start) {
  const tokenizer* self = e->self;
  if (!piece.length) return NULL;
  if (self->normalize.count) {
    GENAI_TRY(normalizer_run(&self->normalize, &self->classes, piece, &e->normalized, &e->spare, &piece));
  }
  size_t from = 0, done = 0;
  added_match match;
  while (added_tokens_next(&self->added, &self->added.normalized, &self->classes, piece, &from, done, e->parse_special, &match)) {
    /* A match may begin in white space that the one before has taken along. */
    if (match.begin > done) GENAI_TRY(segment(e, (text_view){piece.data + done, match.begin - done}, at_start && done == 0));
    GENAI_TRY(token_list_append(e->out, match.token->id));
    done = match.end;
  }
  return segment(e, (text_view){piece.data + done, piece.length - done}, at_start && done == 0);
}

static genai_status* encode_text(encoding* e, text_view all) {
  const tokenizer* self = e->self;
  size_t from = 0, done = 0;
  added_match match;
  while (added_tokens_next(&self->added, &self->added.raw, &self->classes, all, &from, done, e->parse_special, &match)) {
    if (match.begin > done) GENAI_TRY(encode_plain(e, (text_view){all.data + done, match.begin - done}, done == 0));
    GENAI_TRY(token_list_append(e->out, match.token->id));
    done = match.end;
  }
  return encode_plain(e, (text_view){all.data + done, all.length - done}, done == 0);
}

/* Where `data` stops being valid UTF-8; `length` when it does not. */
static size_t valid_prefix(const char* data, size_t length) {
  size_t i = 0;
  while (i < length) {
    uint64_t word;
    if (length - i >= 8) {
      memcpy(&word, data + i, 8);
      if (!(word & 0x8080808080808080u)) {
        i += 8;
        continue;
      }
    }
    uint32_t codepoint;
    size_t bytes = utf8_decode(data + i, length - i, &codepoint);
    if (!bytes) return i;
    i += bytes;
  }
  return i;
}

static genai_status* add_all(token_list* out, const template_ids* ids) {
  for (size_t i = 0; i < ids->count; i++) GENAI_TRY(token_list_append(out, ids->ids[i]));
  return NULL;
}

genai_status* tokenizer_encode(const tokenizer* self, const char* data, size_t length, tokenizer_encode_options options, token_list* out) {
  size_t valid = valid_prefix(data, length);
  if (valid < length) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT,
                               "the text is not valid UTF-8 at byte %zu (0x%02x); convert it to UTF-8 before tokenizing", valid,
                               (unsigned)(uint8_t)data[valid]);
  }
  size_t begin = out->count;
  encoding e = {.self = self, .out = out, .parse_special = options.parse_special};
  genai_status* status = self->model == MODEL_BPE ? bpe_scratch_init(&e.bpe, length) : NULL;
  if (!status) status = segmenter_scratch_init(&e.segment, &self->segment);
  if (!status && options.add_special) status = add_all(out, &self->prefix);
  size_t text_begin = out->count;
  if (!status) status = encode_text(&e, (text_view){data, length});
  if (!status && options.add_special && options.parse_special) {
    /* A rendered chat template often starts with the begin token already: never twice. */
    size_t count = self->prefix.count;
    if (count && out->count - text_begin >= count && memcmp(out->ids + text_begin, self->prefix.ids, count * sizeof *out->ids) == 0) {
      memmove(out->ids + begin, out->ids + text_begin, (out->count - text_begin) * sizeof *out->ids);
      out->count -= count;
      text_begin = begin;
    }
  }
  if (!status && options.add_special) {
    size_t count = self->suffix.count;
    bool present = options.parse_special && count && out->count - text_begin >= count &&
                   memcmp(out->ids + out->count - count, self->suffix.ids, count * sizeof *out->ids) == 0;
    if (!present) status = add_all(out, &self->suffix);
  }
  if (status) out->count = begin;
  bpe_scratch_deinit(&e.bpe);
  unigram_scratch_deinit(&e.unigram);
  segmenter_scratch_deinit(&e.segment);
  text_deinit(&e.normalized);
  text_deinit(&e.spare);
  return status;
}
