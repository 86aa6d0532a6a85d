/* The public side of a tokenizer object. What a tokenizer does is src/tokenizer's. */
#include <string.h>

#include "base/memory.h"
#include "genai/tokenizer.h"
#include "pipeline/chat_prompt.h"
#include "pipeline/executorch_objects.h"

static genai_status* words_of(const genai_object* object, const tokenizer** out) {
  const executorch_tokenizer* payload = genai_object_payload(object, &executorch_tokenizer_type);
  if (!payload)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the tokenizer is a \"%s\", expected a \"%s\"", genai_object_type_name(object),
                               executorch_tokenizer_type.name);
  *out = payload->tokenizer;
  return NULL;
}

genai_status* genai_tokenizer_open(const char* path, genai_object** out) {
  executorch_tokenizer* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  genai_status* status = tokenizer_open(path, &self->tokenizer);
  if (!status) status = genai_object_create(&executorch_tokenizer_type, self, out);
  if (status) executorch_tokenizer_type.destroy(self);
  return status;
}

/* Gives the ids away, or frees them after a failure. */
static genai_status* hand_over(genai_status* status, token_list* list, int32_t** ids, size_t* count) {
  if (!status && !list->ids && !(list->ids = mem_alloc(sizeof *list->ids))) status = genai_status_out_of_memory();
  if (status) {
    token_list_deinit(list);
    return status;
  }
  *ids = list->ids;
  *count = list->count;
  return NULL;
}

genai_status* genai_tokenizer_encode(const genai_object* object, const char* string, bool add_special, int32_t** ids, size_t* count) {
  const tokenizer* words = NULL;
  token_list list = {0};
  GENAI_TRY(words_of(object, &words));
  genai_status* status = tokenizer_encode(words, string, strlen(string), (tokenizer_encode_options){add_special, false}, &list);
  return hand_over(status, &list, ids, count);
}

genai_status* genai_tokenizer_encode_chat(const genai_object* object, const char* source, const char* system, const char* prompt,
                                          int32_t** ids, size_t* count) {
  const tokenizer* words = NULL;
  chat_template* parsed;
  token_list list = {0};
  GENAI_TRY(words_of(object, &words));
  GENAI_TRY(chat_template_parse(source, strlen(source), &parsed));
  chat_message messages[] = {{"system", system}, {"user", prompt}};
  genai_status* status = chat_prompt_encode(words, parsed, system ? messages : messages + 1, system ? 2 : 1, true, &list);
  chat_template_free(parsed);
  return hand_over(status, &list, ids, count);
}

genai_status* genai_tokenizer_decode(const genai_object* object, const int32_t* ids, size_t count, char** out) {
  const tokenizer* words = NULL;
  text decoded = {0};
  GENAI_TRY(words_of(object, &words));
  genai_status* status = tokenizer_decode(words, ids, count, false, &decoded);
  char* detached = status ? NULL : text_detach(&decoded);
  text_deinit(&decoded);
  if (status) return status;
  if (!detached) return genai_status_out_of_memory();
  *out = detached;
  return NULL;
}

size_t genai_tokenizer_stop_ids(const genai_object* object, int32_t* ids, size_t capacity) {
  const executorch_tokenizer* payload = genai_object_payload(object, &executorch_tokenizer_type);
  return payload ? tokenizer_stop_ids(payload->tokenizer, ids, capacity) : 0;
}
