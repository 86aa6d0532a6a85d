/* From a prompt to token ids: chat template, special tokens, begin token. Shared by calibration, the runner and the command line. */
#ifndef GENAI_PIPELINE_CHAT_PROMPT_H
#define GENAI_PIPELINE_CHAT_PROMPT_H

#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

/* Renders the messages through `source` and appends the ids. The template's text holds the special tokens, the begin token among them, so none
 * is added. */
genai_status* chat_prompt_encode(const tokenizer* words, const chat_template* source, const chat_message* messages, size_t count,
                                 bool add_generation_prompt, token_list* out) GENAI_MUST_USE;
/* Renders without encoding. */
genai_status* chat_prompt_render(const tokenizer* words, const chat_template* source, const chat_message* messages, size_t count,
                                 bool add_generation_prompt, text* out) GENAI_MUST_USE;

#endif
