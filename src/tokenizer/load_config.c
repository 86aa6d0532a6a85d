/* tokenizer_config.json and its neighbours: what a Hugging Face directory says about a tokenizer beyond its vocabulary. */
#include "base/file.h"
#include "base/memory.h"
#include "tokenizer/tokenizer_internal.h"

enum { MAX_TEMPLATE_BYTES = 4 << 20 };

/* A token that the configuration names, as a string or as an object with its content. */
static int32_t named_token(const tokenizer* self, json_value value) {
  text_view content = json_string(value);
  if (!content.data) content = json_string(json_get(value, "content"));
  return content.length ? vocabulary_find(&self->tokens, content.data, content.length) : -1;
}

/* The classes whose tokenizers put begin and end tokens around a text as add_bos_token and add_eos_token say, whatever tokenizer.json's
 * post-processor does (transformers, LlamaTokenizerFast.update_post_processor and its like). For others the post-processor alone counts. */
static bool configuration_rules(json_value config) {
  static const char* const classes[] = {"Llama", "CodeLlama", "Gemma", "Cohere"};
  text_view name = json_string(json_get(config, "tokenizer_class"));
  for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
    size_t length = strlen(classes[i]);
    if (name.length > length && memcmp(name.data, classes[i], length) == 0) return true;
  }
  return false;
}

/* Makes `ids` hold `id`, or not. */
static genai_status* set_template(template_ids* ids, json_value wanted, int32_t id) {
  if (json_type_of(wanted) != JSON_BOOL) return NULL;
  ids->count = 0;
  return json_bool(wanted, false) && id >= 0 ? template_append(ids, id) : NULL;
}

static genai_status* set_chat_template(tokenizer* self, json_value config, const char* directory) {
  json_value value = json_get(config, "chat_template");
  GENAI_TRY(tokenizer_set_chat_template(self, json_string(value)));
  json_iterator at = json_iterate(value); /* or a list of named ones */
  for (json_value entry; json_type_of(value) == JSON_ARRAY && json_next(&at, NULL, &entry);) {
    bool is_default = text_view_equal_cstr(json_string(json_get(entry, "name")), "default");
    if (is_default || !self->chat_template) GENAI_TRY(tokenizer_set_chat_template(self, json_string(json_get(entry, "template"))));
  }
  if (!directory) return NULL;
  char* path = NULL;
  GENAI_TRY(path_join(directory, "chat_template.jinja", &path));
  genai_status* status = NULL;
  if (file_exists(path)) {
    text source = {0};
    status = file_read_all(path, MAX_TEMPLATE_BYTES, &source);
    if (!status) status = tokenizer_set_chat_template(self, (text_view){source.data ? source.data : "", source.length});
    text_deinit(&source);
  }
  mem_free(path);
  return status;
}

static genai_status* apply(tokenizer* self, json_value config, json_value map, const char* directory) {
  GENAI_TRY(tokenizer_add_configured(self, config, map, directory));
  int32_t bos = named_token(self, json_get(config, "bos_token")), eos = named_token(self, json_get(config, "eos_token"));
  if (bos < 0) bos = named_token(self, json_get(map, "bos_token"));
  if (eos < 0) eos = named_token(self, json_get(map, "eos_token"));
  if (bos >= 0) self->bos_id = bos;
  if (eos >= 0) self->eos_id = eos;
  if (configuration_rules(config)) {
    GENAI_TRY(set_template(&self->prefix, json_get(config, "add_bos_token"), self->bos_id));
    GENAI_TRY(set_template(&self->suffix, json_get(config, "add_eos_token"), self->eos_id));
  }
  return set_chat_template(self, config, directory);
}

genai_status* tokenizer_apply_config(tokenizer* self, json_value config, const char* directory) {
  json_document* map = NULL;
  genai_status* status = NULL;
  if (directory) {
    char* path = NULL;
    GENAI_TRY(path_join(directory, "special_tokens_map.json", &path));
    if (file_exists(path)) status = json_parse_file(path, MAX_TEMPLATE_BYTES, &map);
    mem_free(path);
  }
  if (!status) status = apply(self, config, map ? json_root(map) : (json_value){0}, directory);
  json_free(map);
  return status;
}
