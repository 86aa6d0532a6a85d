/* Chat templates: the Jinja subset that real templates use, parsed to a tree and rendered like transformers' apply_chat_template
 * (jinja2 with trim_blocks and lstrip_blocks). The template's own raise_exception becomes GENAI_ERROR_TEMPLATE with its message. */
#ifndef GENAI_TOKENIZER_CHAT_TEMPLATE_H
#define GENAI_TOKENIZER_CHAT_TEMPLATE_H

#include "base/json.h"
#include "base/text.h"
#include "genai/status.h"

typedef struct chat_template chat_template;

/* Parses; a syntax error names line and column, what was found and what was expected. */
genai_status* chat_template_parse(const char* source, size_t length, chat_template** out) GENAI_MUST_USE;
void chat_template_free(chat_template* self); /* accepts NULL; immutable, usable from several threads */

typedef struct chat_message {
  const char* role;
  const char* content;
} chat_message;

typedef struct chat_render_options {
  bool add_generation_prompt;
  const char* bos_token; /* content, "" when there is none */
  const char* eos_token;
  json_value tools;      /* zero value: none */
  json_value extra;      /* zero value, or an object whose members become variables (enable_thinking ...) */
  int64_t now;           /* seconds since the epoch for strftime_now; 0 = the clock */
} chat_render_options;

genai_status* chat_template_render(const chat_template* self, const chat_message* messages, size_t n_messages,
                                   const chat_render_options* options, text* out) GENAI_MUST_USE;
/* Full form: `messages` is a JSON array as in the OpenAI API (list content, tool calls ...). */
genai_status* chat_template_render_json(const chat_template* self, json_value messages, const chat_render_options* options,
                                        text* out) GENAI_MUST_USE;

#endif
