/* Tokens that stand beside a vocabulary rather than in it: added_tokens_decoder of tokenizer_config.json, added_tokens.json, and the special
 * tokens that a configuration names. The rest of the configuration is in load_config.c. */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "tokenizer/tokenizer_internal.h"

enum { MAX_ADDED_BYTES = 16 << 20 };

typedef struct additions {
  tokenizer* self;
  bool changed, grown; /* tokens are matched that were not; the vocabulary has more */
} additions;

/* A token that a configuration names: a string, or an object with its content. */
static text_view content_of(json_value value) {
  text_view content = json_string(value);
  return content.data ? content : json_string(json_get(value, "content"));
}

/* Calls `visit` with every special token of a tokenizer_config.json or special_tokens_map.json until it fails. */
typedef genai_status* visit_token(void* user, text_view content);
static genai_status* each_special(json_value config, visit_token* visit, void* user) {
  static const char* const single[] = {"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"};
  static const char* const several[] = {"additional_special_tokens", "extra_special_tokens"};
  for (size_t i = 0; i < sizeof single / sizeof single[0]; i++) GENAI_TRY(visit(user, content_of(json_get(config, single[i]))));
  for (size_t i = 0; i < sizeof several / sizeof several[0]; i++) {
    json_value list = json_get(config, several[i]); /* or an object, by the names of attributes */
    json_iterator at = json_iterate(list);
    for (json_value entry; json_next(&at, NULL, &entry);) GENAI_TRY(visit(user, content_of(entry)));
  }
  return NULL;
}

typedef struct search {
  text_view content;
  bool found;
} search;

static genai_status* compare_content(void* user, text_view content) {
  search* wanted = user;
  wanted->found = wanted->found || (content.length && text_view_equal(content, wanted->content));
  return NULL;
}

/* One token; nothing happens when it is matched already, or when another one has its id. */
static genai_status* add(additions* all, added_token token, text_view content) {
  tokenizer* self = all->self;
  int32_t known = vocabulary_find(&self->tokens, content.data, content.length);
  unsigned flags = TOKEN_ADDED | (token.special ? TOKEN_SPECIAL : 0);
  if (known >= 0) {
    if (self->tokens.flags[known] & TOKEN_ADDED) return NULL;
    token.id = known;
    self->tokens.flags[known] |= (uint8_t)flags;
  } else if (vocabulary_text(&self->tokens, token.id).data) {
    log_write(LOG_WARNING, "the added token \"%.*s\" has the id %d, which is another token's; it is ignored", (int)content.length,
              content.data, (int)token.id);
    return NULL;
  } else {
    GENAI_TRY(vocabulary_set(&self->tokens, token.id, content.data, content.length, (uint8_t)(flags | TOKEN_OUTSIDE)));
    all->grown = true;
  }
  all->changed = true;
  /* SentencePiece's normalizer begins a text with a space; no token does. */
  if (self->normalize.count && self->normalize.steps[0].kind == NORMALIZE_SENTENCEPIECE) token.normalized = false;
  return added_tokens_add(&self->added, &token, content);
}

static genai_status* add_checked(additions* all, added_token token, int64_t id, text_view content, const char* where) {
  if (!content.length || id < 0 || id > 16 * (int64_t)all->self->tokens.count + 65536) {
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s gives \"%.*s\" the id %lld; the vocabulary has %d tokens", where,
                               (int)(content.length > 64 ? 64 : content.length), content.data, (long long)id, (int)all->self->tokens.count);
  }
  token.id = (int32_t)id;
  return add(all, token, content);
}

/* {"32000": {"content": "<|im_start|>", ...}, ...} */
static genai_status* add_listed(additions* all, json_value listed) {
  json_iterator at = json_iterate(listed);
  text_view key;
  for (json_value entry; json_next(&at, &key, &entry);) {
    int64_t id = key.length ? 0 : -1;
    for (size_t i = 0; i < key.length && id >= 0 && id < VOCABULARY_LIMIT; i++)
      id = key.data[i] >= '0' && key.data[i] <= '9' ? id * 10 + key.data[i] - '0' : -1;
    bool special = json_bool(json_get(entry, "special"), false);
    added_token token = {.special = special,
                         .normalized = json_bool(json_get(entry, "normalized"), !special),
                         .single_word = json_bool(json_get(entry, "single_word"), false),
                         .strip_left = json_bool(json_get(entry, "lstrip"), false),
                         .strip_right = json_bool(json_get(entry, "rstrip"), false)};
    GENAI_TRY(add_checked(all, token, id, json_string(json_get(entry, "content")), "added_tokens_decoder"));
  }
  return NULL;
}

/* added_tokens.json: {"<|im_start|>": 32000, ...}; which of them are special is said elsewhere. */
static genai_status* add_file(additions* all, json_value config, json_value map, const char* directory) {
  char* path = NULL;
  GENAI_TRY(path_join(directory, "added_tokens.json", &path));
  json_document* document = NULL;
  genai_status* status = file_exists(path) ? json_parse_file(path, MAX_ADDED_BYTES, &document) : NULL;
  mem_free(path);
  if (status || !document) return status;
  json_iterator at = json_iterate(json_root(document));
  text_view content;
  for (json_value id; !status && json_next(&at, &content, &id);) {
    search wanted = {.content = content};
    status = each_special(config, compare_content, &wanted);
    if (!status) status = each_special(map, compare_content, &wanted);
    if (status) break;
    added_token token = {.special = wanted.found};
    status = add_checked(all, token, json_integer(id, -1), content, "added_tokens.json");
  }
  json_free(document);
  return status;
}

/* A special token of the vocabulary is matched in the text, even where the vocabulary does not say so. */
static genai_status* add_named(void* user, text_view content) {
  additions* all = user;
  int32_t id = content.length ? vocabulary_find(&all->self->tokens, content.data, content.length) : -1;
  return id >= 0 ? add(all, (added_token){.id = id, .special = true}, content) : NULL;
}

genai_status* tokenizer_add_configured(tokenizer* self, json_value config, json_value map, const char* directory) {
  additions all = {.self = self};
  GENAI_TRY(add_listed(&all, json_get(config, "added_tokens_decoder")));
  if (directory) GENAI_TRY(add_file(&all, config, map, directory));
  GENAI_TRY(each_special(config, add_named, &all));
  GENAI_TRY(each_special(map, add_named, &all));
  if (all.grown) {
    GENAI_TRY(vocabulary_index(&self->tokens));
    if (self->bytes.count) GENAI_TRY(tokenizer_fill_bytes(self));
  }
  return all.changed ? tokenizer_finish(self) : NULL;
}
