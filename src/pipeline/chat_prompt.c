/* From a prompt to token ids. What a template means is src/tokenizer's business. */
#include "pipeline/chat_prompt.h"

#include <string.h>

#include "base/memory.h"

static genai_status* token_text(const tokenizer* words, int32_t id, char** out) {
  text_view token = id < 0 ? (text_view){NULL, 0} : tokenizer_token(words, id);
  *out = mem_strndup(token.data ? token.data : "", token.data ? token.length : 0);
  return *out ? NULL : genai_status_out_of_memory();
}

genai_status* chat_prompt_render(const tokenizer* words, const chat_template* source, const chat_message* messages, size_t count,
                                 bool add_generation_prompt, text* out) {
  char* bos = NULL;
  char* eos = NULL;
  genai_status* status = token_text(words, tokenizer_bos_id(words), &bos);
  if (!status) status = token_text(words, tokenizer_eos_id(words), &eos);
  if (!status) {
    chat_render_options options = {.add_generation_prompt = add_generation_prompt, .bos_token = bos, .eos_token = eos};
    status = chat_template_render(source, messages, count, &options, out);
  }
  mem_free(bos);
  mem_free(eos);
  return status;
}

genai_status* chat_prompt_encode(const tokenizer* words, const chat_template* source, const chat_message* messages, size_t count,
                                 bool add_generation_prompt, token_list* out) {
  text rendered = {0};
  genai_status* status = chat_prompt_render(words, source, messages, count, add_generation_prompt, &rendered);
  if (!status)
    status = tokenizer_encode(words, rendered.data ? rendered.data : "", rendered.length, (tokenizer_encode_options){false, true}, out);
  text_deinit(&rendered);
  return status;
}

genai_status* chat_prompt_encode_question(const tokenizer* words, const chat_template* source, const char* system, const char* question,
                                          token_list* out) {
  size_t length = strlen(question);
  if (!utf8_is_valid(question, length)) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the prompt is not valid UTF-8");
  if (!source) return tokenizer_encode(words, question, length, (tokenizer_encode_options){true, true}, out);
  chat_message messages[] = {{"system", system}, {"user", question}};
  return chat_prompt_encode(words, source, system ? messages : messages + 1, system ? 2 : 1, true, out);
}

genai_status* prompt_check_ids(size_t index, const int32_t* ids, size_t count, uint32_t vocabulary) {
  for (size_t i = 0; i < count; i++) {
    if (ids[i] >= 0 && (uint32_t)ids[i] < vocabulary) continue;
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "prompt %zu: id %d at position %zu is outside the vocabulary of %u", index + 1,
                               ids[i], i, vocabulary);
  }
  return NULL;
}

genai_status* prompt_check_length(size_t index, size_t count, uint32_t context, uint32_t longest) {
  if (!count) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "prompt %zu has no tokens", index + 1);
  if (count > context)
    return genai_status_create(
        GENAI_ERROR_LIMIT,
        "prompt %zu has %zu tokens, but the context length of the artifact is %u; shorten the prompt or compile with a "
        "larger --context",
        index + 1, count, context);
  if (count > longest)
    return genai_status_create(
        GENAI_ERROR_LIMIT,
        "prompt %zu has %zu tokens, but the artifact takes prompts of %u at most, because prefill keeps a block of its context of %u free; "
        "shorten the prompt, or compile with a larger --context or a smaller --prefill-ar",
        index + 1, count, longest, context);
  return NULL;
}
