/* A tokenizer's life and what can be asked of it. Encoding is in encode.c, decoding in decode.c, the formats in load_*.c. */
#include "tokenizer/tokenizer.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"
#include "tokenizer/tokenizer_internal.h"

genai_status* tokenizer_create(tokenizer** out) {
  tokenizer* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->bos_id = self->eos_id = self->unknown_id = -1;
  self->bpe.unknown_id = self->unigram.unknown_id = -1;
  for (int i = 0; i < 256; i++) self->bpe.byte_ids[i] = self->unigram.byte_ids[i] = -1;
  genai_status* status = unicode_classes_init(&self->classes);
  if (status) {
    mem_free(self);
    return status;
  }
  *out = self;
  return NULL;
}

/* The bytes that a token's printable characters stand for; false when one of them stands for none. */
static genai_status* printable_bytes(text_view token, text* out, bool* printable) {
  text_clear(out);
  *printable = true;
  for (size_t i = 0; i < token.length;) {
    uint32_t codepoint = 0;
    size_t length = utf8_decode(token.data + i, token.length - i, &codepoint);
    int byte = length ? byte_level_byte(codepoint) : -1;
    *printable = byte >= 0;
    if (!*printable) return NULL;
    GENAI_TRY(text_append_char(out, (char)byte));
    i += length;
  }
  return NULL;
}

/* Added tokens whose normalized form is not their content decode to that form. */
static genai_status* mark_renormalized(tokenizer* self, size_t from) {
  text bytes = {0};
  genai_status* status = NULL;
  for (size_t i = from; i < self->added.count && !status; i++) {
    added_token* token = &self->added.items[i];
    text_view pattern = {token->pattern, token->pattern_length};
    if (token->as_is || text_view_equal(vocabulary_text(&self->tokens, token->id), pattern)) continue;
    self->tokens.flags[token->id] |= TOKEN_RENORMALIZED;
    if (!self->bytes.count) continue;
    bool printable;
    status = printable_bytes(pattern, &bytes, &printable);
    if (status || !printable) continue;
    token->decoded_length = bytes.length;
    token->decoded = mem_strndup(bytes.data ? bytes.data : "", bytes.length);
    if (!token->decoded) status = genai_status_out_of_memory();
  }
  text_deinit(&bytes);
  return status;
}

genai_status* tokenizer_finish(tokenizer* self) {
  if (self->tokens.count == 0) return genai_status_create(GENAI_ERROR_BAD_FILE, "the vocabulary is empty");
  if (!self->tokens.slots) GENAI_TRY(vocabulary_index(&self->tokens));
  if (self->model == MODEL_BPE && !self->bpe.merges) GENAI_TRY(bpe_reserve_merges(&self->bpe, 0));
  int32_t* ids[] = {&self->bos_id, &self->eos_id, &self->unknown_id};
  for (size_t i = 0; i < 3; i++) {
    if (!vocabulary_text(&self->tokens, *ids[i]).data) *ids[i] = -1;
  }
  size_t built = self->added.built;
  GENAI_TRY(added_tokens_build(&self->added, &self->normalize, &self->classes));
  return mark_renormalized(self, built);
}

void tokenizer_close(tokenizer* self) {
  if (!self) return;
  vocabulary_deinit(&self->tokens);
  vocabulary_deinit(&self->bytes);
  unicode_classes_deinit(&self->classes);
  added_tokens_deinit(&self->added);
  normalizer_deinit(&self->normalize);
  segmenter_deinit(&self->segment);
  bpe_deinit(&self->bpe);
  unigram_deinit(&self->unigram);
  decoder_deinit(&self->decode);
  prefix_set_deinit(&self->keep);
  mem_free(self->prefix.ids);
  mem_free(self->suffix.ids);
  mem_free(self->kind);
  mem_free(self->chat_template);
  mem_free(self);
}

genai_status* tokenizer_set_kind(tokenizer* self, const char* format, ...) {
  char buffer[128];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  char* kind = mem_strdup(buffer);
  if (!kind) return genai_status_out_of_memory();
  mem_free(self->kind);
  self->kind = kind;
  return NULL;
}

genai_status* tokenizer_set_chat_template(tokenizer* self, text_view source) {
  if (!source.data) return NULL;
  char* copy = mem_strndup(source.data, source.length);
  if (!copy) return genai_status_out_of_memory();
  mem_free(self->chat_template);
  self->chat_template = copy;
  self->chat_template_length = source.length;
  return NULL;
}

genai_status* template_append(template_ids* self, int32_t id) {
  int32_t* ids = mem_realloc_array(self->ids, self->count + 1, sizeof *ids);
  if (!ids) return genai_status_out_of_memory();
  self->ids = ids;
  ids[self->count++] = id;
  return NULL;
}

void tokenizer_find_byte_tokens(const vocabulary* tokens, int32_t byte_ids[256]) {
  static const char digits[] = "0123456789ABCDEF";
  for (int i = 0; i < 256; i++) {
    char content[6] = {'<', '0', 'x', digits[i >> 4], digits[i & 15], '>'};
    byte_ids[i] = vocabulary_find(tokens, content, sizeof content);
  }
}

genai_status* tokenizer_fill_bytes(tokenizer* self) {
  text bytes = {0};
  genai_status* status = vocabulary_reserve(&self->bytes, self->tokens.count, self->tokens.pool_length);
  for (int32_t id = 0; id < self->tokens.count && !status; id++) {
    text_view token = vocabulary_text(&self->tokens, id);
    if (!token.data || vocabulary_text(&self->bytes, id).data) continue;
    bool printable;
    status = printable_bytes(token, &bytes, &printable);
    if (status) break;
    /* A token with other characters stands for itself when it is decoded, and is no word of the model. */
    unsigned flags = self->tokens.flags[id] | (printable ? 0 : TOKEN_OUTSIDE);
    text_view content = printable ? (text_view){bytes.data ? bytes.data : "", bytes.length} : token;
    status = vocabulary_set(&self->bytes, id, content.data, content.length, (uint8_t)flags);
  }
  text_deinit(&bytes);
  return status;
}

genai_status* tokenizer_use_byte_symbols(tokenizer* self) {
  for (int32_t id = 0; id < self->bytes.count; id++) {
    text_view bytes = vocabulary_text(&self->bytes, id);
    if (bytes.length != 1 || self->bytes.flags[id] & (TOKEN_OUTSIDE | TOKEN_UNUSED)) continue;
    int32_t* symbol = &self->bpe.byte_ids[(uint8_t)bytes.data[0]];
    if (*symbol < 0) *symbol = id;
  }
  self->bpe.byte_symbols = true;
  if (!self->bpe.ignore_merges) return NULL;
  self->bpe.whole_words = &self->bytes;
  return vocabulary_index(&self->bytes);
}

int32_t tokenizer_vocab_size(const tokenizer* self) {
  return self->tokens.count;
}
int32_t tokenizer_bos_id(const tokenizer* self) {
  return self->bos_id;
}
int32_t tokenizer_eos_id(const tokenizer* self) {
  return self->eos_id;
}
int32_t tokenizer_find(const tokenizer* self, const char* token) {
  return vocabulary_find(&self->tokens, token, strlen(token));
}
text_view tokenizer_token(const tokenizer* self, int32_t id) {
  return vocabulary_text(&self->tokens, id);
}
bool tokenizer_is_special(const tokenizer* self, int32_t id) {
  return vocabulary_flags(&self->tokens, id) & TOKEN_SPECIAL;
}
const char* tokenizer_kind(const tokenizer* self) {
  return self->kind ? self->kind : "tokenizer";
}

text_view tokenizer_chat_template(const tokenizer* self) {
  return (text_view){self->chat_template, self->chat_template ? self->chat_template_length : 0};
}

/* Contents that end a turn or a text in the models genai knows; one that a vocabulary holds as a control token is a stop token of it. */
static const char* const end_markers[] = {
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<end_of_turn>",
    "<turn|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|eot|>",
    "<|return|>",
    "<|call|>",
    "<EOT>",
    "<|end_of_turn|>",
    "<|endofturn|>",
    "[|endofturn|]",
    "<end_of_utterance>",
    "<|END_OF_TURN_TOKEN|>",
    ("<\xef\xbd\x9c"
     "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"), /* DeepSeek, with its full-width bars */
};

size_t tokenizer_stop_ids(const tokenizer* self, int32_t* ids, size_t capacity) {
  /* In the harmony format (<|return|>, <|call|>) a message inside a turn ends with <|end|>, which does not end the turn. */
  bool harmony = tokenizer_find(self, "<|return|>") >= 0 && tokenizer_find(self, "<|call|>") >= 0;
  size_t count = 0;
  if (self->eos_id >= 0) {
    if (count < capacity) ids[count] = self->eos_id;
    count++;
  }
  for (size_t i = 0; i < sizeof end_markers / sizeof end_markers[0]; i++) {
    int32_t id = tokenizer_find(self, end_markers[i]);
    if (id < 0 || id == self->eos_id || !(self->tokens.flags[id] & (TOKEN_SPECIAL | TOKEN_ADDED))) continue;
    if (harmony && strcmp(end_markers[i], "<|end|>") == 0) continue;
    if (count < capacity) ids[count] = id;
    count++;
  }
  return count;
}
