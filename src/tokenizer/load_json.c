/* tokenizer.json, the format of the Hugging Face tokenizers library: the vocabulary, the model (BPE or unigram) and the added tokens. The
 * other parts are in load_json_normalizer.c, load_json_segmenter.c and load_json_decoder.c. */
#include "tokenizer/load_json.h"

#include <math.h>

#include "base/memory.h"

genai_status* json_bad_member(const char* name, const char* member, const char* expected) {
  return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: \"%s\" is missing or of the wrong kind; %s expected", name, member, expected);
}

genai_status* json_unsupported_type(const char* name, const char* part, json_value type, const char* known) {
  text_view found = json_string(type);
  if (!found.data) return json_bad_member(name, part, "an object with a \"type\"");
  return genai_status_create(GENAI_ERROR_UNSUPPORTED, "%s: the %s's type is \"%.*s\"; genai knows %s", name, part,
                             (int)(found.length > 64 ? 64 : found.length), found.data, known);
}

genai_status* json_copy_string(json_value object, const char* key, const char* name, char** out, size_t* length) {
  text_view value = json_string(json_get(object, key));
  if (!value.data) return json_bad_member(name, key, "a string was");
  char* copy = mem_strndup(value.data, value.length);
  if (!copy) return genai_status_out_of_memory();
  mem_free(*out);
  *out = copy;
  *length = value.length;
  return NULL;
}

genai_status* json_copy_character(json_value object, const char* key, const char* name, char** out, size_t* length) {
  GENAI_TRY(json_copy_string(object, key, name, out, length));
  uint32_t codepoint;
  if (!*length || utf8_decode(*out, *length, &codepoint) != *length) return json_bad_member(name, key, "one character");
  return NULL;
}

static genai_status* load_bpe_vocabulary(json_value vocab, const char* name, tokenizer* self) {
  if (json_type_of(vocab) != JSON_OBJECT) return json_bad_member(name, "vocab", "an object of tokens and ids");
  size_t count = json_count(vocab);
  if (count > VOCABULARY_LIMIT) return json_bad_member(name, "vocab", "at most 16 million tokens");
  GENAI_TRY(vocabulary_reserve(&self->tokens, (int32_t)count, count * 8));
  json_iterator at = json_iterate(vocab);
  text_view token;
  for (json_value id; json_next(&at, &token, &id);) {
    int64_t number = json_integer(id, -1);
    /* Ids may have holes, but a few tokens cannot have ids in the millions. */
    if (number < 0 || number >= VOCABULARY_LIMIT || (uint64_t)number > 16 * (uint64_t)count + 65536) {
      return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: token \"%.*s\" has the id %lld; the vocabulary has %zu tokens", name,
                                 (int)(token.length > 64 ? 64 : token.length), token.data, (long long)number, count);
    }
    unsigned flags = byte_token_value(token.data, token.length) >= 0 ? TOKEN_BYTE : 0;
    GENAI_TRY(vocabulary_set(&self->tokens, (int32_t)number, token.data, token.length, (uint8_t)flags));
  }
  return vocabulary_index(&self->tokens);
}

static genai_status* load_merges(json_value merges, const char* name, tokenizer* self) {
  if (json_type_of(merges) != JSON_ARRAY) return json_bad_member(name, "merges", "an array");
  GENAI_TRY(bpe_reserve_merges(&self->bpe, json_count(merges)));
  merge_builder builder = {.model = &self->bpe, .tokens = &self->tokens, .source = name};
  genai_status* status = NULL;
  json_iterator at = json_iterate(merges);
  for (json_value merge; !status && json_next(&at, NULL, &merge);) {
    if (json_type_of(merge) == JSON_STRING) {
      status = merge_builder_add_line(&builder, json_string(merge));
      continue;
    }
    json_iterator sides = json_iterate(merge);
    json_value left = {0}, right = {0};
    bool both = json_type_of(merge) == JSON_ARRAY && json_next(&sides, NULL, &left) && json_next(&sides, NULL, &right) &&
                json_string(left).data && json_string(right).data;
    status = both ? merge_builder_add(&builder, json_string(left), json_string(right)) : json_bad_member(name, "merges", "pairs of tokens");
  }
  if (!status) status = merge_builder_finish(&builder);
  merge_builder_deinit(&builder);
  return status;
}

static genai_status* load_optional_string(json_value model, const char* key, char** out) {
  text_view value = json_string(json_get(model, key));
  if (!value.length) return NULL;
  *out = mem_strndup(value.data, value.length);
  return *out ? NULL : genai_status_out_of_memory();
}

static genai_status* load_bpe(json_value model, const char* name, tokenizer* self) {
  bpe_model* bpe = &self->bpe;
  GENAI_TRY(load_bpe_vocabulary(json_get(model, "vocab"), name, self));
  GENAI_TRY(load_optional_string(model, "continuing_subword_prefix", &bpe->word_prefix));
  GENAI_TRY(load_optional_string(model, "end_of_word_suffix", &bpe->word_suffix));
  GENAI_TRY(load_merges(json_get(model, "merges"), name, self));
  bpe->byte_fallback = json_bool(json_get(model, "byte_fallback"), false);
  bpe->fuse_unknown = json_bool(json_get(model, "fuse_unk"), false);
  bpe->ignore_merges = json_bool(json_get(model, "ignore_merges"), false);
  text_view unknown = json_string(json_get(model, "unk_token"));
  if (unknown.length) {
    bpe->unknown_id = vocabulary_find(&self->tokens, unknown.data, unknown.length);
    if (bpe->unknown_id < 0) return json_bad_member(name, "unk_token", "a token of the vocabulary");
    self->unknown_id = bpe->unknown_id;
  }
  if (bpe->byte_fallback) tokenizer_find_byte_tokens(&self->tokens, bpe->byte_ids);
  if (bpe->ignore_merges) bpe->whole_words = &self->tokens;
  return NULL;
}

static genai_status* load_unigram(json_value model, const char* name, tokenizer* self) {
  unigram_model* unigram = &self->unigram;
  json_value vocab = json_get(model, "vocab");
  if (json_type_of(vocab) != JSON_ARRAY) return json_bad_member(name, "vocab", "an array of tokens and scores");
  size_t count = json_count(vocab);
  if (count > VOCABULARY_LIMIT) return json_bad_member(name, "vocab", "at most 16 million tokens");
  self->model = MODEL_UNIGRAM;
  GENAI_TRY(vocabulary_reserve(&self->tokens, (int32_t)count, count * 8));
  unigram->scores = mem_calloc(count + 1, sizeof *unigram->scores);
  if (!unigram->scores) return genai_status_out_of_memory();
  unigram->lowest = INFINITY;
  json_iterator at = json_iterate(vocab);
  int32_t id = 0;
  for (json_value entry; json_next(&at, NULL, &entry); id++) {
    json_iterator sides = json_iterate(entry);
    json_value token = {0}, score = {0};
    if (json_type_of(entry) != JSON_ARRAY || !json_next(&sides, NULL, &token) || !json_next(&sides, NULL, &score) ||
        !json_string(token).data) {
      return json_bad_member(name, "vocab", "pairs of a token and its score");
    }
    text_view content = json_string(token);
    unsigned flags = byte_token_value(content.data, content.length) >= 0 ? TOKEN_BYTE : 0;
    GENAI_TRY(vocabulary_set(&self->tokens, id, content.data, content.length, (uint8_t)flags));
    unigram->scores[id] = json_number(score, 0);
    if (unigram->scores[id] < unigram->lowest) unigram->lowest = unigram->scores[id];
  }
  int64_t unknown = json_integer(json_get(model, "unk_id"), -1);
  if (unknown >= id) return json_bad_member(name, "unk_id", "an id of the vocabulary");
  unigram->unknown_id = self->unknown_id = (int32_t)unknown;
  unigram->byte_fallback = json_bool(json_get(model, "byte_fallback"), false);
  GENAI_TRY(vocabulary_index(&self->tokens));
  if (unigram->byte_fallback) tokenizer_find_byte_tokens(&self->tokens, unigram->byte_ids);
  return NULL;
}

static genai_status* load_added_tokens(json_value list, const char* name, tokenizer* self) {
  json_iterator at = json_iterate(list);
  bool changed = false;
  size_t limit = 16 * ((size_t)self->tokens.count + json_count(list)) + 65536;
  for (json_value entry; json_next(&at, NULL, &entry);) {
    text_view content = json_string(json_get(entry, "content"));
    int64_t id = json_integer(json_get(entry, "id"), -1);
    if (!content.data || id < 0 || (uint64_t)id > limit)
      return json_bad_member(name, "added_tokens", "a \"content\" and an \"id\" in each");
    if (!content.length) continue;
    int32_t known = vocabulary_find(&self->tokens, content.data, content.length);
    if (known >= 0) id = known; /* the model's own token of this content, as in the reference */
    added_token token = {
        .id = (int32_t)id,
        .special = json_bool(json_get(entry, "special"), false),
        .normalized = json_bool(json_get(entry, "normalized"), true),
        .single_word = json_bool(json_get(entry, "single_word"), false),
        .strip_left = json_bool(json_get(entry, "lstrip"), false),
        .strip_right = json_bool(json_get(entry, "rstrip"), false),
    };
    unsigned flags = TOKEN_ADDED | (token.special ? TOKEN_SPECIAL : 0);
    if (known >= 0) {
      self->tokens.flags[known] |= (uint8_t)flags;
    } else {
      GENAI_TRY(vocabulary_set(&self->tokens, (int32_t)id, content.data, content.length, (uint8_t)(flags | TOKEN_OUTSIDE)));
      changed = true;
    }
    GENAI_TRY(added_tokens_add(&self->added, &token, content));
  }
  return changed ? vocabulary_index(&self->tokens) : NULL;
}

/* Byte-level models take the bytes themselves when the last step only spells them out for the model. */
static genai_status* choose_symbols(tokenizer* self) {
  bool spelled = self->segment.count && self->segment.steps[self->segment.count - 1].kind == SEGMENT_BYTE_LEVEL;
  bpe_model* bpe = &self->bpe;
  if (spelled || self->decode.kind == DECODE_BYTE_LEVEL) GENAI_TRY(tokenizer_fill_bytes(self));
  if (self->model != MODEL_BPE) return NULL;
  if (spelled && !bpe->byte_fallback && bpe->unknown_id < 0 && !bpe->word_prefix && !bpe->word_suffix) {
    self->segment.steps[self->segment.count - 1].map = false;
    return tokenizer_use_byte_symbols(self);
  }
  bool complete = bpe->byte_fallback;
  for (int i = 0; i < 256; i++) complete = complete && bpe->byte_ids[i] >= 0;
  /* Long words may be cut where no merge crosses, unless unknown characters are dropped, which makes others neighbours, or fuse. */
  bool in_place = complete || (!bpe->byte_fallback && bpe->unknown_id >= 0 && !bpe->fuse_unknown);
  if (bpe->ignore_merges || bpe->word_prefix || bpe->word_suffix || !in_place) return NULL;
  return bpe_note_all_adjacent(bpe, &self->tokens);
}

static genai_status* load_unigram_pieces(tokenizer* self) {
  for (int32_t id = 0; id < self->tokens.count; id++) {
    if (self->tokens.flags[id] & TOKEN_OUTSIDE) continue;
    GENAI_TRY(prefix_set_add(&self->unigram.pieces, vocabulary_text(&self->tokens, id), id));
  }
  return prefix_set_build(&self->unigram.pieces);
}

/* Without tokenizer_config.json: what the template puts around a text, or else well-known names. */
static void guess_special_ids(tokenizer* self) {
  static const char* const begins[] = {"<|begin_of_text|>", "<s>", "<bos>", "<|startoftext|>"};
  static const char* const ends[] = {"<|end_of_text|>", "</s>", "<eos>", "<|endoftext|>", "<|im_end|>"};
  if (self->prefix.count) self->bos_id = self->prefix.ids[self->prefix.count - 1];
  if (self->suffix.count) self->eos_id = self->suffix.ids[0];
  for (size_t i = 0; i < sizeof begins / sizeof begins[0] && self->bos_id < 0; i++) {
    int32_t id = tokenizer_find(self, begins[i]);
    if (id >= 0 && self->tokens.flags[id] & TOKEN_SPECIAL) self->bos_id = id;
  }
  for (size_t i = 0; i < sizeof ends / sizeof ends[0] && self->eos_id < 0; i++) {
    int32_t id = tokenizer_find(self, ends[i]);
    if (id >= 0 && self->tokens.flags[id] & TOKEN_SPECIAL) self->eos_id = id;
  }
}

static genai_status* load_all(json_value root, const char* name, tokenizer* self) {
  json_value model = json_get(root, "model");
  if (json_type_of(model) != JSON_OBJECT) return json_bad_member(name, "model", "an object: is this a tokenizer.json? It was");
  json_value type = json_get(model, "type");
  bool bpe =
      text_view_equal_cstr(json_string(type), "BPE") || (!json_string(type).data && json_type_of(json_get(model, "merges")) == JSON_ARRAY);
  bool unigram = text_view_equal_cstr(json_string(type), "Unigram");
  if (!bpe && !unigram) return json_unsupported_type(name, "model", type, "BPE and Unigram");
  GENAI_TRY(bpe ? load_bpe(model, name, self) : load_unigram(model, name, self));
  GENAI_TRY(load_added_tokens(json_get(root, "added_tokens"), name, self));
  GENAI_TRY(load_json_normalizer(json_get(root, "normalizer"), name, &self->normalize));
  GENAI_TRY(load_json_segmenter(json_get(root, "pre_tokenizer"), name, &self->segment));
  GENAI_TRY(load_json_decoder(json_get(root, "decoder"), name, &self->decode));
  GENAI_TRY(load_json_post_processor(json_get(root, "post_processor"), name, self));
  GENAI_TRY(choose_symbols(self));
  if (unigram) GENAI_TRY(load_unigram_pieces(self));
  guess_special_ids(self);
  GENAI_TRY(tokenizer_set_kind(self, "%s (tokenizer.json)", unigram ? "unigram" : self->bytes.count ? "byte-level BPE" : "BPE"));
  return tokenizer_finish(self);
}

genai_status* tokenizer_load_json(json_value root, const char* name, tokenizer** out) {
  tokenizer* self = NULL;
  GENAI_TRY(tokenizer_create(&self));
  genai_status* status = load_all(root, name, self);
  if (status) {
    tokenizer_close(self);
    return status;
  }
  *out = self;
  return NULL;
}
