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

/* The ids of what a run is asked: through `source`, or as plain text when it is NULL. `system` may be NULL. */
genai_status* chat_prompt_encode_question(const tokenizer* words, const chat_template* source, const char* system, const char* question,
                                          token_list* out) GENAI_MUST_USE;
/* Refuse prompt `index` (from 0) of a run: ids that are not in the vocabulary, and more of them than fit. */
genai_status* prompt_check_ids(size_t index, const int32_t* ids, size_t count, uint32_t vocabulary) GENAI_MUST_USE;
genai_status* prompt_check_length(size_t index, size_t count, uint32_t context, uint32_t longest) GENAI_MUST_USE;

#endif
