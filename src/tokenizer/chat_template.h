/* Chat templates: the part of Jinja that real templates use, parsed to a tree and rendered exactly as transformers' apply_chat_template
 * does (jinja2 3.1, sandboxed and immutable, with trim_blocks, lstrip_blocks, loop controls and generation blocks; Python 3.11's values).
 *
 * Errors name line and column. GENAI_ERROR_TEMPLATE: the template's raise_exception, with its message, or whatever else the reference
 * raises while it renders; GENAI_ERROR_BAD_FILE: a syntax error; GENAI_ERROR_UNSUPPORTED: jinja2 has it and this does not (template inheritance,
 * include and import, recursive loops, a few filters); GENAI_ERROR_LIMIT: more than 20 million steps, 64 MiB of text, 256 MiB of memory, or
 * nesting too deep, so that a hostile template ends soon. Integers have 64 bits: beyond that, an error rather than a wrong number. */
#ifndef GENAI_TOKENIZER_CHAT_TEMPLATE_H
#define GENAI_TOKENIZER_CHAT_TEMPLATE_H

#include "base/json.h"
#include "base/text.h"
#include "genai/status.h"

typedef struct chat_template chat_template;

/* Parses `length` bytes of UTF-8. A syntax error says what was found and what was expected. */
genai_status* chat_template_parse(const char* source, size_t length, chat_template** out) GENAI_MUST_USE;
void chat_template_free(chat_template* self); /* accepts NULL; immutable, usable from several threads */

typedef struct chat_message {
  const char* role;
  const char* content;
} chat_message;

typedef struct chat_render_options {
  bool add_generation_prompt;
  const char* bos_token; /* content; NULL or "" when there is none: the variable is undefined then, as in the reference */
  const char* eos_token;
  json_value tools; /* zero value: none */
  json_value extra; /* zero value, or an object whose members become variables (enable_thinking, documents ...) and win over those above */
  int64_t now;      /* seconds since the epoch for strftime_now; 0 = the clock */
} chat_render_options;

/* Appends the text of at least one message to `out`; nothing on failure. `options` may be NULL: no tokens, no tools, no prompt. */
genai_status* chat_template_render(const chat_template* self, const chat_message* messages, size_t n_messages,
                                   const chat_render_options* options, text* out) GENAI_MUST_USE;
/* Full form: `messages` is a JSON array as in the OpenAI API (list content, tool calls ...). As in the reference, members of a message that
 * are null count as absent, and reasoning_content, thinking and reasoning stand for each other. */
genai_status* chat_template_render_json(const chat_template* self, json_value messages, const chat_render_options* options,
                                        text* out) GENAI_MUST_USE;

#endif
