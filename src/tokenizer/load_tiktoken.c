/* Ranked byte vocabularies: tiktoken files (one "BASE64 RANK" a line) and Mistral's tekken.json. A token's rank is its merge priority; a word
 * that is a token is taken whole (tiktoken, src/lib.rs). */
#include <stdio.h>

#include "base/memory.h"
#include "tokenizer/load_json.h"
#include "tokenizer/patterns.h"

#define WORDS CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
#define SYMBOLS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES

/* Special tokens: a name, or `count` names numbered from `first` when the name has a %d. */
typedef struct special_names {
  int32_t id; /* of the first; -1: behind the last one */
  const char* name;
  int first, count;
} special_names;

/* A tiktoken file holds neither its pattern nor its special tokens: those who made the model published them apart. It is recognised by its
 * number of ranks. */
typedef struct known_file {
  size_t ranks;
  const char* name;
  const char* pattern;
  bool nfc;
  const char *bos, *eos;
  special_names special[24];
} known_file;

static const known_file known_files[] = {
    {128000,
     "llama3",
     WORDS "\\p{N}{1,3}" SYMBOLS,
     false,
     "<|begin_of_text|>",
     "<|end_of_text|>",
     {{128000, "<|begin_of_text|>", 0, 0},
      {-1, "<|end_of_text|>", 0, 0},
      {-1, "<|reserved_special_token_%d|>", 0, 2},
      {-1, "<|finetune_right_pad_id|>", 0, 0},
      {-1, "<|reserved_special_token_%d|>", 2, 1},
      {-1, "<|start_header_id|>", 0, 0},
      {-1, "<|end_header_id|>", 0, 0},
      {-1, "<|eom_id|>", 0, 0},
      {-1, "<|eot_id|>", 0, 0},
      {-1, "<|python_tag|>", 0, 0},
      {-1, "<|reserved_special_token_%d|>", 3, 245}}},
    {200000,
     "llama4",
     O200K,
     false,
     "<|begin_of_text|>",
     "<|end_of_text|>",
     {{200000, "<|begin_of_text|>", 0, 0},
      {-1, "<|end_of_text|>", 0, 0},
      {-1, "<|fim_prefix|>", 0, 0},
      {-1, "<|fim_middle|>", 0, 0},
      {-1, "<|fim_suffix|>", 0, 0},
      {-1, "<|header_start|>", 0, 0},
      {-1, "<|header_end|>", 0, 0},
      {-1, "<|eom|>", 0, 0},
      {-1, "<|eot|>", 0, 0},
      {-1, "<|step|>", 0, 0},
      {-1, "<|text_post_train_reserved_special_token_%d|>", 0, 6},
      {-1, "<|python_start|>", 0, 0},
      {-1, "<|python_end|>", 0, 0},
      {-1, "<|finetune_right_pad|>", 0, 0},
      {-1, "<|text_post_train_reserved_special_token_%d|>", 8, 61},
      {200080, "<|image_start|>", 0, 0},
      {-1, "<|image_end|>", 0, 0},
      {200090, "<|image|>", 0, 0},
      {200092, "<|patch|>", 0, 0},
      {201142, "<|reasoning_thinking_start|>", 0, 0},
      {-1, "<|reasoning_thinking_end|>", 0, 0},
      {-1, "<|reserved_special_token_%d|>", 0, 904}}},
    {151643,
     "qwen",
     WORDS "\\p{N}" SYMBOLS,
     true,
     NULL,
     "<|endoftext|>",
     {{151643, "<|endoftext|>", 0, 0}, {-1, "<|im_start|>", 0, 0}, {-1, "<|im_end|>", 0, 0}, {-1, "<|extra_%d|>", 0, 205}}},
    {100256,
     "cl100k_base",
     "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s+\\z|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
     false,
     NULL,
     "<|endoftext|>",
     {{100257, "<|endoftext|>", 0, 0},
      {-1, "<|fim_prefix|>", 0, 0},
      {-1, "<|fim_middle|>", 0, 0},
      {-1, "<|fim_suffix|>", 0, 0},
      {100276, "<|endofprompt|>", 0, 0}}},
    {199998, "o200k_base", O200K, false, NULL, "<|endoftext|>", {{199999, "<|endoftext|>", 0, 0}, {200018, "<|endofprompt|>", 0, 0}}},
    {50256,
     "r50k_base",
     "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     false,
     NULL,
     "<|endoftext|>",
     {{50256, "<|endoftext|>", 0, 0}}},
};
enum { KNOWN_FILES = sizeof known_files / sizeof known_files[0] };

static genai_status* add_rank(tokenizer* self, const char* name, text_view base64, int64_t id, text* bytes, text* printable) {
  text_clear(bytes);
  text_clear(printable);
  genai_status* status;
  if (!base64_decode(base64, bytes, &status)) {
    return status ? status : genai_status_create(GENAI_ERROR_BAD_FILE, "%s: token %lld is not base64", name, (long long)id);
  }
  if (id < 0 || id >= VOCABULARY_LIMIT || !bytes->length) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: a token has the rank %lld and %zu bytes", name, (long long)id, bytes->length);
  }
  GENAI_TRY(byte_level_append((text_view){bytes->data, bytes->length}, printable));
  return vocabulary_set(&self->tokens, (int32_t)id, printable->data, printable->length, 0);
}

static genai_status* add_special(tokenizer* self, int32_t id, text_view content) {
  const added_token token = {.id = id, .special = true};
  GENAI_TRY(vocabulary_set(&self->tokens, id, content.data, content.length, TOKEN_SPECIAL | TOKEN_ADDED | TOKEN_OUTSIDE));
  return added_tokens_add(&self->added, &token, content);
}

/* Every split of a token into two tokens is a merge with the token's rank. */
static genai_status* build_model(tokenizer* self, int32_t first_id) {
  self->bpe.ignore_merges = true;
  self->decode.kind = DECODE_BYTE_LEVEL;
  GENAI_TRY(vocabulary_index(&self->tokens));
  GENAI_TRY(tokenizer_fill_bytes(self));
  GENAI_TRY(tokenizer_use_byte_symbols(self));
  GENAI_TRY(bpe_reserve_merges(&self->bpe, (size_t)self->tokens.count * 2));
  for (int32_t id = 0; id < self->bytes.count; id++) {
    text_view bytes = vocabulary_text(&self->bytes, id);
    if (!bytes.data || self->bytes.flags[id] & TOKEN_OUTSIDE) continue;
    GENAI_TRY(bpe_add_splits(&self->bpe, &self->bytes, bytes, (uint32_t)(id - first_id), (uint32_t)id));
  }
  return NULL;
}

static genai_status* read_ranks(tokenizer* self, const char* data, size_t size, const char* name, size_t* ranks) {
  text bytes = {0}, printable = {0};
  genai_status* status = vocabulary_reserve(&self->tokens, 1 << 17, size / 2 < 1 << 20 ? size / 2 : 1 << 20);
  const char *at = data, *end = data + size;
  int64_t limit = (int64_t)(size / 4) + 65536;
  while (!status && at < end) {
    const char* line_end = memchr(at, '\n', (size_t)(end - at));
    if (!line_end) line_end = end;
    const char* space = memchr(at, ' ', (size_t)(line_end - at));
    if (space) {
      int64_t rank = 0;
      const char* digit = space + 1;
      while (digit < line_end && *digit >= '0' && *digit <= '9' && rank < VOCABULARY_LIMIT) rank = rank * 10 + (*digit++ - '0');
      bool valid = digit > space + 1 && (digit == line_end || *digit == '\r') && rank <= limit;
      status = add_rank(self, name, (text_view){at, (size_t)(space - at)}, valid ? rank : -1, &bytes, &printable);
      ++*ranks;
    } else if (line_end - at > 1) {
      status = genai_status_create(GENAI_ERROR_BAD_FILE, "%s: line %zu is not \"BASE64 RANK\"", name, *ranks + 1);
    }
    at = line_end + 1;
  }
  text_deinit(&bytes);
  text_deinit(&printable);
  return status;
}

static genai_status* add_known_special(tokenizer* self, const known_file* known) {
  int32_t id = 0;
  for (size_t i = 0; i < sizeof known->special / sizeof known->special[0] && known->special[i].name; i++) {
    const special_names* names = &known->special[i];
    if (names->id >= 0) id = names->id;
    for (int k = 0; k < (names->count ? names->count : 1); k++, id++) {
      char content[96];
      const char* mark = strstr(names->name, "%d");
      if (mark)
        snprintf(content, sizeof content, "%.*s%d%s", (int)(mark - names->name), names->name, names->first + k, mark + 2);
      else
        snprintf(content, sizeof content, "%s", names->name);
      GENAI_TRY(add_special(self, id, text_view_of(content)));
    }
  }
  return NULL;
}

/* added_tokens_decoder of a tokenizer_config.json: {"128000": {"content": ...}, ...}. */
static genai_status* add_config_special(tokenizer* self, json_value listed, const char* name) {
  json_iterator at = json_iterate(listed);
  text_view key;
  for (json_value entry; json_next(&at, &key, &entry);) {
    int64_t id = 0;
    for (size_t i = 0; i < key.length && id < VOCABULARY_LIMIT; i++)
      id = key.data[i] >= '0' && key.data[i] <= '9' ? id * 10 + key.data[i] - '0' : VOCABULARY_LIMIT;
    text_view content = json_string(json_get(entry, "content"));
    if (!key.length || id > 16 * (int64_t)self->tokens.count + 65536 || !content.length) {
      return json_bad_member(name, "added_tokens_decoder", "ids with a \"content\" each");
    }
    GENAI_TRY(add_special(self, (int32_t)id, content));
  }
  return NULL;
}

static genai_status* load_tiktoken(tokenizer* self, const char* data, size_t size, const char* name, json_value config) {
  size_t ranks = 0;
  GENAI_TRY(read_ranks(self, data, size, name, &ranks));
  const known_file* known = NULL;
  for (size_t i = 0; i < KNOWN_FILES; i++) {
    if (known_files[i].ranks == ranks) known = &known_files[i];
  }
  json_value listed = json_get(config, "added_tokens_decoder");
  bool configured = json_count(listed) > 0;
  if (!known && !configured) {
    text numbers = {0};
    genai_status* status = NULL;
    for (size_t i = 0; i < KNOWN_FILES && !status; i++) {
      status = text_printf(&numbers, "%s%zu (%s)", i ? ", " : "", known_files[i].ranks, known_files[i].name);
    }
    if (!status) {
      status =
          genai_status_create(GENAI_ERROR_UNSUPPORTED,
                              "%s: a tiktoken file of %zu ranks; such files do not name their pattern and special tokens, and genai knows "
                              "those of %s. Put the model's tokenizer.json or tokenizer_config.json beside it",
                              name, ranks, numbers.data);
    }
    text_deinit(&numbers);
    return status;
  }
  if (known && known->nfc && !normalizer_add(&self->normalize, NORMALIZE_NFC)) return genai_status_out_of_memory();
  const char* pattern = known ? known->pattern : known_files[0].pattern;
  GENAI_TRY(segmenter_add_regex(&self->segment, text_view_of(pattern), SPLIT_ISOLATED, false));
  GENAI_TRY(configured ? add_config_special(self, listed, name) : add_known_special(self, known));
  GENAI_TRY(build_model(self, 0));
  if (known) {
    self->bos_id = known->bos ? tokenizer_find(self, known->bos) : -1;
    self->eos_id = known->eos ? tokenizer_find(self, known->eos) : -1;
    if (self->bos_id >= 0) GENAI_TRY(template_append(&self->prefix, self->bos_id));
  }
  return tokenizer_set_kind(self, "byte-level BPE (tiktoken%s%s)", known ? ", " : "", known ? known->name : "");
}

genai_status* tokenizer_load_tiktoken(const char* data, size_t size, const char* name, json_value config, tokenizer** out) {
  tokenizer* self = NULL;
  GENAI_TRY(tokenizer_create(&self));
  genai_status* status = load_tiktoken(self, data, size, name, config);
  if (!status) status = tokenizer_finish(self);
  if (status) {
    tokenizer_close(self);
    return status;
  }
  *out = self;
  return NULL;
}

/* The special tokens of tekken files older than v7, which list none (mistral_common, tokens/tokenizers/tekken.py). */
static const char* const old_tekken_special[] = {
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
};

static genai_status* load_tekken(tokenizer* self, json_value root, const char* name) {
  json_value config = json_get(root, "config"), vocab = json_get(root, "vocab");
  int64_t size = json_integer(json_get(config, "default_vocab_size"), -1);
  int64_t special = json_integer(json_get(config, "default_num_special_tokens"), -1);
  text_view pattern = json_string(json_get(config, "pattern"));
  if (special < 0 || size <= special || size > VOCABULARY_LIMIT || (uint64_t)(size - special) > json_count(vocab) || !pattern.length ||
      special > 1 << 20) {
    return json_bad_member(name, "config", "a pattern, default_vocab_size and default_num_special_tokens that fit the vocab");
  }
  GENAI_TRY(vocabulary_reserve(&self->tokens, (int32_t)size, (size_t)size * 8));
  json_value listed = json_get(root, "special_tokens");
  for (int32_t id = 0; id < (int32_t)special; id++) {
    char filler[32];
    snprintf(filler, sizeof filler, "<SPECIAL_%d>", (int)id);
    bool old = !json_count(listed) && (size_t)id < sizeof old_tekken_special / sizeof old_tekken_special[0];
    GENAI_TRY(vocabulary_set(&self->tokens, id, filler, strlen(filler), 0));
    if (old) GENAI_TRY(vocabulary_set(&self->tokens, id, old_tekken_special[id], strlen(old_tekken_special[id]), 0));
  }
  json_iterator at = json_iterate(listed);
  for (json_value entry; json_next(&at, NULL, &entry);) {
    int64_t rank = json_integer(json_get(entry, "rank"), -1);
    text_view content = json_string(json_get(entry, "token_str"));
    if (rank < 0 || rank >= special || !content.length) return json_bad_member(name, "special_tokens", "a rank and a token_str in each");
    GENAI_TRY(vocabulary_set(&self->tokens, (int32_t)rank, content.data, content.length, 0));
  }
  for (int32_t id = 0; id < (int32_t)special; id++) {
    text_view content = vocabulary_text(&self->tokens, id);
    const added_token token = {.id = id, .special = true};
    self->tokens.flags[id] |= TOKEN_SPECIAL | TOKEN_ADDED | TOKEN_OUTSIDE;
    GENAI_TRY(added_tokens_add(&self->added, &token, content));
  }
  text bytes = {0}, printable = {0};
  genai_status* status = NULL;
  at = json_iterate(vocab);
  for (json_value entry; !status && json_next(&at, NULL, &entry);) {
    int64_t rank = json_integer(json_get(entry, "rank"), -1);
    if (rank >= size - special) continue; /* the file holds more than the model uses */
    status = add_rank(self, name, json_string(json_get(entry, "token_bytes")), rank < 0 ? -1 : rank + special, &bytes, &printable);
  }
  text_deinit(&bytes);
  text_deinit(&printable);
  if (status) return status;
  GENAI_TRY(segmenter_add_regex(&self->segment, pattern, SPLIT_ISOLATED, false));
  GENAI_TRY(build_model(self, (int32_t)special));
  self->unknown_id = tokenizer_find(self, "<unk>");
  self->bos_id = tokenizer_find(self, "<s>");
  self->eos_id = tokenizer_find(self, "</s>");
  if (self->bos_id >= 0) GENAI_TRY(template_append(&self->prefix, self->bos_id));
  return tokenizer_set_kind(self, "byte-level BPE (tekken)");
}

genai_status* tokenizer_load_tekken(json_value root, const char* name, tokenizer** out) {
  tokenizer* self = NULL;
  GENAI_TRY(tokenizer_create(&self));
  genai_status* status = load_tekken(self, root, name);
  if (!status) status = tokenizer_finish(self);
  if (status) {
    tokenizer_close(self);
    return status;
  }
  *out = self;
  return NULL;
}
