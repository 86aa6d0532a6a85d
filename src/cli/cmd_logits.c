/* genai logits: raw logits of given ids, to compare with any reference. */
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/model_session.h"

static const option_spec options[] = {
    {"--ids", "LIST", false, "token ids, such as 1,22,333"},
    {"--text", "TEXT", false, "text in place of ids: tokenized with the model's own special tokens"},
    {"--out", "FILE", false, "where the logits go: little-endian float32, one row per position"},
    {"--ar", "N", false, "run through the graph of this AR length alone (1: decode); chosen by length when not given"},
    OPTIONS_MODEL_SESSION,
    OPTIONS_OUTPUT,
};

typedef struct sink {
  atomic_file file;
  uint32_t vocabulary;
  uint64_t rows;
} sink;

static genai_status* take_row(void* user, uint32_t position, const float* logits) {
  sink* self = user;
  (void)position;
  self->rows++;
  return atomic_file_write(&self->file, logits, (size_t)self->vocabulary * sizeof *logits);
}

static genai_status* find_ids(const arguments* given, const tokenizer* words, token_list* out) {
  const char* list = argument_value(given, "--ids");
  const char* string = argument_value(given, "--text");
  if (list) return parse_ids("--ids", list, &out->ids, &out->count);
  if (!words) return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "there is no tokenizer for --text; give --ids");
  return tokenizer_encode(words, string, strlen(string), (tokenizer_encode_options){true, true}, out);
}

static genai_status* write_logits(cli* app, decoder* sequence, const token_list* ids, uint32_t ar, sink* out) {
  const cancel_token* cancel = cli_cancel_token(app);
  out->vocabulary = decoder_vocab_size(sequence);
  for (size_t i = 0; i < ids->count; i++) {
    if (ids->ids[i] < 0 || (uint32_t)ids->ids[i] >= out->vocabulary)
      return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "id %d at position %zu is outside the vocabulary of %u", ids->ids[i], i,
                                 out->vocabulary);
  }
  return ar ? decoder_run_with(sequence, ar, ids->ids, ids->count, true, take_row, out, cancel)
            : decoder_run(sequence, ids->ids, ids->count, true, take_row, out, cancel);
}

static genai_status* print_result(cli* app, const char* path, const sink* written, decoder* sequence, double seconds) {
  cli_line(app, "%llu rows of %u logits in %s, %.2f s (%llu graph calls)", (unsigned long long)written->rows, written->vocabulary, path,
           seconds, (unsigned long long)decoder_calls(sequence));
  if (!app->json) return NULL;
  text out = {0};
  json_writer writer;
  json_writer_init(&writer, &out, false);
  json_begin_object(&writer);
  json_key(&writer, "rows");
  json_write_unsigned(&writer, written->rows);
  json_key(&writer, "vocabulary");
  json_write_unsigned(&writer, written->vocabulary);
  json_key(&writer, "seconds");
  json_write_number(&writer, seconds);
  json_key(&writer, "execute_seconds");
  json_write_number(&writer, decoder_execute_seconds(sequence));
  json_key(&writer, "calls");
  json_write_unsigned(&writer, decoder_calls(sequence));
  json_end_object(&writer);
  genai_status* status = cli_print_json(&writer, &out);
  text_deinit(&out);
  return status;
}

static genai_status* run_session(cli* app, const arguments* given, model_session* opened, uint32_t ar, sink* out) {
  decoder* sequence = session_decoder(model_session_get(opened));
  token_list ids = {0};
  GENAI_TRY(find_ids(given, model_session_tokenizer(opened), &ids));
  double started = clock_seconds();
  genai_status* status = write_logits(app, sequence, &ids, ar, out);
  if (!status) status = atomic_file_commit(&out->file);
  if (!status) status = print_result(app, argument_value(given, "--out"), out, sequence, clock_seconds() - started);
  token_list_deinit(&ids);
  return status;
}

/* What is wrong with the command line is said before anything is calibrated or compiled. */
static genai_status* check_usage(const arguments* given) {
  const char* list = argument_value(given, "--ids");
  int32_t* ids;
  size_t count;
  if (!argument_given(given, "--out"))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "--out is missing: the file for the logits");
  if (!list == !argument_given(given, "--text")) return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "give either --ids or --text");
  if (!list) return NULL;
  GENAI_TRY(parse_ids("--ids", list, &ids, &count));
  mem_free(ids);
  return NULL;
}

static genai_status* run(cli* app, const arguments* given) {
  int64_t ar;
  GENAI_TRY(check_usage(given));
  GENAI_TRY(argument_integer(given, "--ar", 1, 4096, 0, &ar));
  sink out = {0};
  GENAI_TRY(atomic_file_create(argument_value(given, "--out"), &out.file)); /* so that it is known to be possible */
  model_session* opened = NULL;
  genai_status* status = model_session_open(app, given, &opened);
  if (!status) status = run_session(app, given, opened, (uint32_t)ar, &out);
  model_session_close(opened);
  atomic_file_abort(&out.file); /* unless it was committed */
  return status;
}

const command_spec command_logits = {
    .name = "logits",
    .positionals = "MODEL",
    .min_positionals = 1,
    .max_positionals = 1,
    .summary = "raw logits of given token ids, to compare with any reference",
    .details =
        "MODEL is a checkpoint, or with --on htp also a NAME.SOC.sim.pte. A checkpoint on htp is first compiled into a temporary folder.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
