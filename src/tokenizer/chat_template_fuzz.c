/* Fuzz target of chat templates: a template, and after a NUL byte the messages as JSON. Whatever is rendered must be valid UTF-8 and come
 * out the same a second time. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "tokenizer/chat_template.h"

static const char MESSAGES[] =
    "[{\"role\": \"system\", \"content\": \"Be kind.\"}, {\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"Hé 🦊\"}]},"
    "{\"role\": \"assistant\", \"content\": \" <think>x</think> y\\n\", \"tool_calls\": [{\"id\": \"abcdefghi\", \"type\": \"function\","
    "\"function\": {\"name\": \"f\", \"arguments\": {\"a\": 1.5, \"b\": [true, null]}}}]}, {\"role\": \"user\", \"content\": \"Bye\"}]";

static genai_status* render(const chat_template* template, json_value messages, text* out) {
  chat_render_options options = {.add_generation_prompt = true, .bos_token = "<s>", .eos_token = "</s>", .now = 1764500645};
  return chat_template_render_json(template, messages, &options, out);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const uint8_t* end = memchr(data, 0, size);
  size_t length = end ? (size_t)(end - data) : size;
  chat_template* template = NULL;
  json_document* document = NULL;
  genai_status* status = chat_template_parse((const char*)data, length, &template);
  if (status) {
    genai_status_free(status);
    return 0;
  }
  if (end) status = json_parse((const char*)end + 1, size - length - 1, "messages", &document);
  genai_status_free(status);
  if (!document && (status = json_parse(MESSAGES, strlen(MESSAGES), "messages", &document))) abort();
  text first = {0}, second = {0};
  status = render(template, json_root(document), &first);
  if (status) {
    if (genai_status_kind(status) == GENAI_ERROR_INTERNAL || first.length) abort();
    genai_status_free(status);
  } else {
    if (!utf8_is_valid(first.data ? first.data : "", first.length)) abort();
    if (render(template, json_root(document), &second)) abort();
    if (first.length != second.length || (first.length && memcmp(first.data, second.data, first.length))) abort();
  }
  text_deinit(&first);
  text_deinit(&second);
  json_free(document);
  chat_template_free(template);
  return 0;
}
