/* From a prompt to token ids. What a template means is src/tokenizer's business. */
#include "pipeline/chat_prompt.h"

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
