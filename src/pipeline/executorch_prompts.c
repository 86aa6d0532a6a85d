/* Prompts against a prepared model: what the host runner would refuse after minutes of compiling is found out before. */
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "pipeline/chat_prompt.h"
#include "pipeline/executorch_objects.h"
#include "pipeline/executorch_strategy.h"

/* What the artifact will be. */
typedef struct future {
  const genai_context* context;
  const tokenizer* words;  /* NULL: ids only */
  chat_template* template; /* NULL: prompts are plain text */
  uint32_t vocabulary, context_length, longest_prompt;
} future;

/* Lengths out of the signature; false when it is not one of a decoder. */
static bool read_lengths(const engine_parts* engine, const genai_example_inputs* inputs, future* out) {
  uint32_t widest = 0;
  for (size_t i = 0; i < genai_example_inputs_graph_count(inputs); i++) {
    size_t count;
    uint32_t ar, length;
    const genai_tensor_spec* specs = genai_example_inputs_tensors(inputs, i, &count);
    genai_status* status = executorch_graph_lengths(genai_example_inputs_graph(inputs, i), specs, count, &ar, &length);
    if (status) {
      genai_status_free(status);
      return false;
    }
    if (ar > widest) widest = ar;
    out->context_length = length;
  }
  uint32_t kept_free = engine->keeps_block_free ? widest : 0;
  out->longest_prompt = kept_free < out->context_length ? out->context_length - kept_free : 0;
  return widest > 0;
}

/* The runner also takes a tokenizer that lies where the artifact will. */
static genai_status* tokenizer_lies_there(const genai_context* context, bool* found) {
  static const char* const names[] = {"tokenizer.json", "tokenizer.model"};
  *found = false;
  for (size_t i = 0; !*found && i < sizeof names / sizeof names[0]; i++) {
    char* path;
    GENAI_TRY(path_join(genai_context_artifact_directory(context), names[i], &path));
    *found = file_exists(path);
    mem_free(path);
  }
  return NULL;
}

static genai_status* check_text(const future* self, size_t index, const char* prompt) {
  if (!self->words) {
    bool found;
    GENAI_TRY(tokenizer_lies_there(self->context, &found));
    if (found) return NULL;
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT,
                               "the model has no tokenizer for the prompt; give token ids (--ids) or put tokenizer.json into \"%s\"",
                               genai_context_artifact_directory(self->context));
  }
  token_list ids = {0};
  const char* system = genai_options_get(genai_context_options(self->context), "system_prompt");
  genai_status* status = chat_prompt_encode_question(self->words, self->template, system, prompt, &ids);
  if (!status) status = prompt_check_length(index, ids.count, self->context_length, self->longest_prompt);
  token_list_deinit(&ids);
  return status;
}

static genai_status* check_prompt(const future* self, size_t index) {
  size_t count;
  const int32_t* ids = genai_context_prompt_ids(self->context, index, &count);
  if (!ids) return check_text(self, index, genai_context_prompt_text(self->context, index));
  GENAI_TRY(prompt_check_ids(index, ids, count, self->vocabulary));
  return prompt_check_length(index, count, self->context_length, self->longest_prompt);
}

genai_status* executorch_check_prompts(const engine_parts* engine, const genai_context* context,
                                       const genai_model_preparation_output* prepared) {
  const executorch_model* loaded = genai_object_payload(prepared->model, &executorch_model_type);
  const executorch_tokenizer* words = genai_object_payload(prepared->tokenizer, &executorch_tokenizer_type);
  future self = {.context = context, .words = words ? words->tokenizer : NULL};
  if (!loaded || (prepared->tokenizer && !words)) return NULL; /* a loader of the caller's own: only its runner knows */
  if (!read_lengths(engine, prepared->example_inputs, &self)) return NULL;
  model_info info;
  model_get_info(loaded->decoder, &info);
  self.vocabulary = info.vocab;
  genai_status* status = NULL;
  const char* source = genai_options_flag(genai_context_options(context), "raw_prompt", false) ? NULL : prepared->chat_template;
  if (self.words && source) status = chat_template_parse(source, strlen(source), &self.template);
  for (size_t i = 0; !status && i < genai_context_prompt_count(context); i++) status = check_prompt(&self, i);
  chat_template_free(self.template);
  return status;
}
