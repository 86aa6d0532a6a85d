/* Vocabularies in GGUF metadata (tokenizer.ggml.*): byte-level BPE ("gpt2"), SentencePiece BPE by scores ("llama"), SentencePiece unigram
 * ("t5") and BPE over U+2581 text ("gemma4"). Keys and defaults follow llama.cpp's src/llama-vocab.cpp and docs/gguf.md of ggml. The
 * splitting patterns by name are in pre_tokenizers.c. */
#include <ctype.h>

#include "base/memory.h"
#include "tokenizer/tokenizer_internal.h"

#define LOWER_BLOCK "\xe2\x96\x81" /* U+2581 */

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER_DEFINED, TYPE_UNUSED, TYPE_BYTE };

static genai_status* missing(const checkpoint* file, const char* key, const char* expected) {
  return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: the vocabulary has no %s (%s expected); convert the model again",
                             checkpoint_path(file), key, expected);
}

static genai_status* string_array(const checkpoint* file, const char* key, const gguf_value** out) {
  const gguf_value* value = checkpoint_metadata(file, key);
  if (!value || value->type != GGUF_ARRAY || value->element != GGUF_STRING) return missing(file, key, "an array of strings");
  *out = value;
  return NULL;
}

static bool is_number(gguf_type type) {
  return type != GGUF_STRING && type != GGUF_ARRAY;
}

/* An optional array of numbers, one per token. */
static genai_status* number_array(const checkpoint* file, const char* key, uint64_t count, const gguf_value** out) {
  const gguf_value* value = checkpoint_metadata(file, key);
  *out = NULL;
  if (!value) return NULL;
  if (value->type != GGUF_ARRAY || !is_number(value->element) || value->count < count) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %s has %llu entries, one for each of %llu tokens was expected",
                               checkpoint_path(file), key, (unsigned long long)(value->type == GGUF_ARRAY ? value->count : 0),
                               (unsigned long long)count);
  }
  *out = value;
  return NULL;
}

/* Phi-3's tokenizer takes the white space behind its special tokens along; its GGUF files do not say so, only the model's name does. */
static bool strips_after_special(const checkpoint* file, text_view token) {
  char name[128] = "";
  text_view general = checkpoint_metadata_string(file, "general.name");
  for (size_t i = 0; i < general.length && i + 1 < sizeof name; i++) name[i] = (char)tolower((unsigned char)general.data[i]);
  if (!strstr(name, "phi-3") && !strstr(name, "phi3")) return false;
  return !text_view_equal_cstr(token, "<unk>") && !text_view_equal_cstr(token, "<s>") && !text_view_equal_cstr(token, "<|endoftext|>");
}

/* A user-defined piece with spaces in it, of a vocabulary with scores: SentencePiece looks for it where spaces are U+2581 already. */
static genai_status* add_spaced(tokenizer* self, added_token* added, text_view content) {
  text pattern = {0};
  genai_status* status = NULL;
  for (size_t i = 0; i < content.length && !status; i++) {
    status = content.data[i] == ' ' ? text_append_cstr(&pattern, LOWER_BLOCK) : text_append_char(&pattern, content.data[i]);
  }
  added->normalized = added->as_is = true;
  if (!status) status = added_tokens_add(&self->added, added, (text_view){pattern.data, pattern.length});
  text_deinit(&pattern);
  return status;
}

/* Types that llama.cpp does not know count as normal, as there. */
static int type_of(const gguf_value* types, uint64_t index) {
  double type = types ? gguf_array_number(types, index) : TYPE_NORMAL;
  return type >= 0 && type <= 255 ? (int)type : TYPE_NORMAL;
}

static genai_status* load_tokens(const checkpoint* file, bool scored, tokenizer* self) {
  const gguf_value *tokens = NULL, *types = NULL;
  GENAI_TRY(string_array(file, "tokenizer.ggml.tokens", &tokens));
  if (tokens->count > VOCABULARY_LIMIT) return missing(file, "tokenizer.ggml.tokens of a credible size", "at most 16 million");
  GENAI_TRY(number_array(file, "tokenizer.ggml.token_type", tokens->count, &types));
  const text_view* contents = tokens->as.items;
  GENAI_TRY(vocabulary_reserve(&self->tokens, (int32_t)tokens->count, (size_t)tokens->count * 8));
  for (uint64_t i = 0; i < tokens->count; i++) {
    int type = type_of(types, i);
    unsigned flags = 0;
    added_token added = {.id = (int32_t)i, .special = type != TYPE_USER_DEFINED};
    switch (type) {
      case TYPE_UNKNOWN:
      case TYPE_CONTROL:
        flags = TOKEN_SPECIAL | TOKEN_ADDED | TOKEN_OUTSIDE;
        break;
      case TYPE_USER_DEFINED:
        flags = TOKEN_ADDED | TOKEN_OUTSIDE;
        break;
      case TYPE_UNUSED:
        flags = TOKEN_UNUSED;
        break;
      case TYPE_BYTE:
        flags = TOKEN_BYTE;
        break;
      default:
        break;
    }
    GENAI_TRY(vocabulary_set(&self->tokens, (int32_t)i, contents[i].data, contents[i].length, (uint8_t)flags));
    if (!(flags & TOKEN_ADDED)) continue;
    added.strip_right = strips_after_special(file, contents[i]);
    if (scored && type == TYPE_USER_DEFINED && memchr(contents[i].data, ' ', contents[i].length)) {
      GENAI_TRY(add_spaced(self, &added, contents[i]));
    } else {
      GENAI_TRY(added_tokens_add(&self->added, &added, contents[i]));
    }
  }
  return vocabulary_index(&self->tokens);
}

static genai_status* load_merges(const checkpoint* file, tokenizer* self) {
  const gguf_value* merges = NULL;
  GENAI_TRY(string_array(file, "tokenizer.ggml.merges", &merges));
  GENAI_TRY(bpe_reserve_merges(&self->bpe, (size_t)merges->count));
  merge_builder builder = {.model = &self->bpe, .tokens = &self->tokens, .source = checkpoint_path(file)};
  genai_status* status = NULL;
  const text_view* lines = merges->as.items;
  for (uint64_t i = 0; i < merges->count && !status; i++) status = merge_builder_add_line(&builder, lines[i]);
  if (!status) status = merge_builder_finish(&builder);
  merge_builder_deinit(&builder);
  return status;
}

static genai_status* add_space_rules(tokenizer* self, bool prefix) {
  if (prefix) {
    normalizer_step* prepend = normalizer_add(&self->normalize, NORMALIZE_PREPEND);
    if (!prepend) return genai_status_out_of_memory();
    prepend->content = mem_strdup(LOWER_BLOCK);
    prepend->content_length = strlen(LOWER_BLOCK);
    if (!prepend->content) return genai_status_out_of_memory();
  }
  normalizer_step* replace = normalizer_add(&self->normalize, NORMALIZE_REPLACE);
  if (!replace) return genai_status_out_of_memory();
  replace->pattern = mem_strdup(" ");
  replace->pattern_length = 1;
  replace->content = mem_strdup(LOWER_BLOCK);
  replace->content_length = strlen(LOWER_BLOCK);
  return replace->pattern && replace->content ? NULL : genai_status_out_of_memory();
}

static genai_status* load_byte_level(const checkpoint* file, tokenizer* self) {
  text_view pre = checkpoint_metadata_string(file, "tokenizer.ggml.pre");
  GENAI_TRY(pre_tokenizer_by_name(pre, self));
  GENAI_TRY(load_merges(file, self));
  self->decode.kind = DECODE_BYTE_LEVEL;
  GENAI_TRY(tokenizer_fill_bytes(self));
  GENAI_TRY(tokenizer_use_byte_symbols(self));
  if (!pre.length) pre = text_view_of("default");
  return tokenizer_set_kind(self, "byte-level BPE (%.*s)", (int)(pre.length > 64 ? 64 : pre.length), pre.data);
}

static genai_status* load_gemma4(const checkpoint* file, tokenizer* self) {
  GENAI_TRY(pre_tokenizer_by_name(text_view_of("gemma4"), self));
  GENAI_TRY(add_space_rules(self, false));
  GENAI_TRY(load_merges(file, self));
  tokenizer_find_byte_tokens(&self->tokens, self->bpe.byte_ids);
  self->bpe.byte_fallback = true;
  self->bpe.unknown_id = (int32_t)checkpoint_metadata_integer(file, "tokenizer.ggml.unknown_token_id", -1);
  if (self->bpe.unknown_id >= self->tokens.count) self->bpe.unknown_id = -1;
  bool complete = true; /* no character is dropped, so long words may be cut where no merge crosses */
  for (int i = 0; i < 256; i++) complete = complete && self->bpe.byte_ids[i] >= 0;
  if (complete) GENAI_TRY(bpe_note_all_adjacent(&self->bpe, &self->tokens));
  GENAI_TRY(decoder_set_pieces(&self->decode, BYTE_RUN_WHOLE));
  return tokenizer_set_kind(self, "BPE with byte fallback (gemma4)");
}

static genai_status* load_scores(const checkpoint* file, tokenizer* self, float** out) {
  const gguf_value* array = NULL;
  GENAI_TRY(number_array(file, "tokenizer.ggml.scores", (uint64_t)self->tokens.count, &array));
  if (!array) return missing(file, "tokenizer.ggml.scores", "an array of numbers");
  float* scores = mem_realloc_array(NULL, (size_t)self->tokens.count, sizeof *scores);
  if (!scores) return genai_status_out_of_memory();
  for (int32_t i = 0; i < self->tokens.count; i++) scores[i] = (float)gguf_array_number(array, (uint64_t)i);
  *out = scores;
  return NULL;
}

static genai_status* load_sentencepiece_bpe(const checkpoint* file, tokenizer* self) {
  bool prefix = checkpoint_metadata_integer(file, "tokenizer.ggml.add_space_prefix", 1) != 0;
  GENAI_TRY(add_space_rules(self, prefix));
  tokenizer_find_byte_tokens(&self->tokens, self->bpe.byte_ids);
  self->bpe.byte_fallback = true;
  self->bpe.unknown_id = (int32_t)checkpoint_metadata_integer(file, "tokenizer.ggml.unknown_token_id", 0);
  if (self->bpe.unknown_id >= self->tokens.count) self->bpe.unknown_id = -1;
  float* scores = NULL;
  GENAI_TRY(load_scores(file, self, &scores));
  genai_status* status = bpe_build_from_scores(self, scores);
  mem_free(scores);
  if (status) return status;
  GENAI_TRY(decoder_set_pieces(&self->decode, BYTE_RUN_CHARACTERS));
  if (prefix) GENAI_TRY(decoder_set_strip(&self->decode, text_view_of(" "), 1, 0, false));
  return tokenizer_set_kind(self, "SentencePiece BPE");
}

/* Begin and end tokens: which they are, and whether encoding adds them. */
static genai_status* load_special_ids(const checkpoint* file, tokenizer* self, bool add_bos, int default_bos, int default_eos) {
  self->bos_id = (int32_t)checkpoint_metadata_integer(file, "tokenizer.ggml.bos_token_id", default_bos);
  self->eos_id = (int32_t)checkpoint_metadata_integer(file, "tokenizer.ggml.eos_token_id", default_eos);
  self->unknown_id = (int32_t)checkpoint_metadata_integer(file, "tokenizer.ggml.unknown_token_id", -1);
  add_bos = checkpoint_metadata_integer(file, "tokenizer.ggml.add_bos_token", add_bos) != 0;
  bool add_eos = checkpoint_metadata_integer(file, "tokenizer.ggml.add_eos_token", 0) != 0;
  if (add_bos && vocabulary_text(&self->tokens, self->bos_id).data) GENAI_TRY(template_append(&self->prefix, self->bos_id));
  if (add_eos && vocabulary_text(&self->tokens, self->eos_id).data) GENAI_TRY(template_append(&self->suffix, self->eos_id));
  return tokenizer_set_chat_template(self, checkpoint_metadata_string(file, "tokenizer.chat_template"));
}

static bool adds_bos_by_default(text_view pre) {
  static const char* const names[] = {"llama3",   "llama-v3", "llama-bpe", "falcon3",      "falcon-h1", "pixtral",
                                      "midm-2.0", "lfm2",     "tekken",    "jina-v5-nano", "chameleon"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (text_view_equal_cstr(pre, names[i])) return true;
  }
  return false;
}

genai_status* tokenizer_load_gguf(const checkpoint* file, tokenizer** out) {
  text_view model = checkpoint_metadata_string(file, "tokenizer.ggml.model");
  if (!model.data) return missing(file, "tokenizer.ggml.model", "\"gpt2\", \"llama\" or \"gemma4\"");
  tokenizer* self = NULL;
  GENAI_TRY(tokenizer_create(&self));
  bool scored = text_view_equal_cstr(model, "llama"), gemma4 = text_view_equal_cstr(model, "gemma4");
  genai_status* status = load_tokens(file, scored, self);
  if (!status) {
    if (text_view_equal_cstr(model, "gpt2"))
      status = load_byte_level(file, self);
    else if (scored)
      status = load_sentencepiece_bpe(file, self);
    else if (gemma4)
      status = load_gemma4(file, self);
    else {
      status = genai_status_create(GENAI_ERROR_UNSUPPORTED,
                                   "%s: tokenizer.ggml.model is \"%.*s\"; genai reads \"gpt2\", \"llama\" and \"gemma4\" vocabularies",
                                   checkpoint_path(file), (int)(model.length > 64 ? 64 : model.length), model.data);
    }
  }
  if (!status) {
    bool add_bos = scored || gemma4 || adds_bos_by_default(checkpoint_metadata_string(file, "tokenizer.ggml.pre"));
    status = load_special_ids(file, self, add_bos, scored ? 1 : -1, scored ? 2 : -1);
  }
  if (!status) status = tokenizer_finish(self);
  if (status) {
    tokenizer_close(self);
    return status;
  }
  *out = self;
  return NULL;
}
