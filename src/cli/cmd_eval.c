/* genai eval: quality of a model or an artifact on a text. */
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/model_session.h"
#include "evaluate/evaluate.h"
#include "pipeline/internal.h"

enum { MAX_TEXT = 256 << 20 };

static const option_spec options[] = {
    {"--text", "FILE", false, "the text to measure on"},
    {"--tokens", "N", false, "use the first N tokens of it (2048)"},
    {"--window", "N", false, "tokens of one sequence (the context length)"},
    OPTIONS_MODEL_SESSION,
    OPTIONS_OUTPUT,
};

static genai_status* read_tokens(const arguments* given, const tokenizer* words, size_t limit, token_list* out) {
  const char* path = argument_value(given, "--text");
  if (!words)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "\"%s\" has no tokenizer: its perplexity on text is not defined",
                               given->positionals[0]);
  text content = {0};
  genai_status* status = file_read_all(path, MAX_TEXT, &content);
  if (!status)
    status = tokenizer_encode(words, content.data ? content.data : "", content.length, (tokenizer_encode_options){false, false}, out);
  text_deinit(&content);
  if (status) return status;
  if (out->count < 2)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "\"%s\" has %zu tokens, at least 2 are needed", path, out->count);
  if (out->count > limit) out->count = limit;
  return NULL;
}

/* Puts the token that the tokenizer begins every text with, if it has one, in front of each window. */
static genai_status* begin_windows(const tokenizer* words, uint32_t window, token_list* ids) {
  token_list empty = {0}, all = {0};
  genai_status* status = tokenizer_encode(words, "", 0, (tokenizer_encode_options){true, false}, &empty);
  bool begins = !status && window > 1 && empty.count && empty.ids[0] == tokenizer_bos_id(words);
  token_list_deinit(&empty);
  if (status || !begins) return status;
  for (size_t i = 0; i < ids->count && !status; i++) {
    if (i % (window - 1) == 0) status = token_list_append(&all, tokenizer_bos_id(words));
    if (!status) status = token_list_append(&all, ids->ids[i]);
  }
  if (status) {
    token_list_deinit(&all);
    return status;
  }
  token_list_deinit(ids);
  *ids = all;
  return NULL;
}

static genai_status* print_result(cli* app, const perplexity_result* result) {
  if (!app->json) {
    text line = {0};
    GENAI_TRY(text_printf(&line, "perplexity %.4f over %llu tokens, %.1f s\n", result->perplexity, (unsigned long long)result->scored,
                          result->seconds));
    cli_print(&line);
    text_deinit(&line);
    return NULL;
  }
  text out = {0};
  json_writer writer;
  json_writer_init(&writer, &out, false);
  json_begin_object(&writer);
  json_key(&writer, "perplexity");
  json_write_number(&writer, result->perplexity);
  json_key(&writer, "nll");
  json_write_number(&writer, result->nll);
  json_key(&writer, "scored");
  json_write_unsigned(&writer, result->scored);
  json_key(&writer, "seconds");
  json_write_number(&writer, result->seconds);
  json_end_object(&writer);
  genai_status* status = cli_print_json(&writer, &out);
  text_deinit(&out);
  return status;
}

static void forward(void* user, const progress_event* event) {
  genai_progress copy = {event->step, event->unit, event->done, event->total, event->seconds, event->finished};
  cli_progress(user, &copy);
}

static genai_status* measure(cli* app, const arguments* given, model_session* opened, size_t limit, uint32_t window) {
  decoder* sequence = session_decoder(model_session_get(opened));
  token_list ids = {0};
  perplexity_result result;
  progress_sink progress_to = {forward, app};
  if (!window) window = decoder_context_length(sequence);
  genai_status* status = read_tokens(given, model_session_tokenizer(opened), limit, &ids);
  if (!status) status = begin_windows(model_session_tokenizer(opened), window, &ids);
  if (!status) status = evaluate_perplexity(sequence, ids.ids, ids.count, window, &progress_to, cli_cancel_token(app), &result);
  if (!status) status = print_result(app, &result);
  token_list_deinit(&ids);
  return status;
}

static genai_status* run(cli* app, const arguments* given) {
  int64_t tokens, window;
  if (!argument_given(given, "--text"))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "--text is missing: the file to measure on");
  GENAI_TRY(argument_integer(given, "--tokens", 2, INT32_MAX, 2048, &tokens));
  GENAI_TRY(argument_integer(given, "--window", 2, 131072, 0, &window));
  model_session* opened;
  GENAI_TRY(model_session_open(app, given, &opened));
  genai_status* status = measure(app, given, opened, (size_t)tokens, (uint32_t)window);
  model_session_close(opened);
  return status;
}

const command_spec command_eval = {
    .name = "eval",
    .positionals = "MODEL",
    .min_positionals = 1,
    .max_positionals = 1,
    .summary = "perplexity on a text: float, simulated quantization, HTP",
    .details =
        "MODEL is a checkpoint, or with --on htp also a NAME.SOC.sim.pte. The text is cut into windows, each a fresh sequence\n"
        "that begins with the tokenizer's begin token if it has one.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
