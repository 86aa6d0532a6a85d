/* genai tokenize: text to ids and back, one JSON line per input, to compare with a reference. */
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "pipeline/chat_prompt.h"

enum { MAX_INPUT_FILE = 1 << 30 };

static const option_spec options[] = {
    {"--text", "TEXT", true, "text to encode; may be given several times"},
    {"--file", "FILE", true, "the whole content of a file, as one input"},
    {"--jsonl", "FILE", true, "a file with one JSON string a line, each an input"},
    {"--ids", "LIST", true, "token ids to decode, such as 1,22,333"},
    {"--chat", "TEXT", true, "a user's message, put through the chat template; or a JSON array of messages"},
    {"--no-special", NULL, false, "do not add the tokenizer's own begin and end tokens"},
    {"--plain", NULL, false, "special tokens that stand in the text are plain text"},
    {"--tokens", NULL, false, "print each token's content too"},
    {"--verbose", NULL, false, "more lines about what goes on"},
};

typedef struct tokenizing {
  cli* app;
  const arguments* given;
  checkpoint* file; /* NULL when the tokenizer has a file of its own */
  tokenizer* words;
  chat_template* template;
} tokenizing;

/* A checkpoint, a folder with tokenizer.json alone, or a tokenizer's file. */
static genai_status* open_words(tokenizing* self, const char* path) {
  if (!path_is_directory(path)) return tokenizer_open(path, &self->words);
  genai_status* status = checkpoint_open(path, &self->file);
  if (!status) return tokenizer_open_checkpoint(self->file, &self->words);
  char* alone;
  genai_status* joined = path_join(path, "tokenizer.json", &alone);
  if (!joined && file_exists(alone)) {
    genai_status_free(status);
    status = tokenizer_open(alone, &self->words);
  }
  if (!joined) mem_free(alone);
  genai_status_free(joined);
  return status;
}

static genai_status* write_line(tokenizing* self, const char* string, size_t length, const char* key, const token_list* ids) {
  text out = {0};
  json_writer writer;
  json_writer_init(&writer, &out, false);
  json_begin_object(&writer);
  json_key(&writer, "ids");
  json_begin_array(&writer);
  for (size_t i = 0; i < ids->count; i++) json_write_integer(&writer, ids->ids[i]);
  json_end_array(&writer);
  if (argument_given(self->given, "--tokens")) {
    json_key(&writer, "tokens");
    json_begin_array(&writer);
    for (size_t i = 0; i < ids->count; i++) {
      text_view token = tokenizer_token(self->words, ids->ids[i]);
      json_write_bytes(&writer, token.data ? token.data : "", token.length);
    }
    json_end_array(&writer);
  }
  json_key(&writer, key);
  json_write_bytes(&writer, string, length);
  json_end_object(&writer);
  genai_status* status = cli_print_json(&writer, &out);
  text_deinit(&out);
  return status;
}

static genai_status* encode(tokenizing* self, const char* string, size_t length) {
  token_list ids = {0};
  tokenizer_encode_options how = {!argument_given(self->given, "--no-special"), !argument_given(self->given, "--plain")};
  genai_status* status = tokenizer_encode(self->words, string, length, how, &ids);
  if (!status) status = write_line(self, string, length, "text", &ids);
  token_list_deinit(&ids);
  return status;
}

static genai_status* encode_file(tokenizing* self, const char* path) {
  text content = {0};
  genai_status* status = file_read_all(path, MAX_INPUT_FILE, &content);
  if (!status) status = encode(self, content.data ? content.data : "", content.length);
  text_deinit(&content);
  return status;
}

static genai_status* encode_json_lines(tokenizing* self, const char* path) {
  text content = {0};
  genai_status* status = file_read_all(path, MAX_INPUT_FILE, &content);
  size_t number = 0;
  for (size_t begin = 0; !status && begin < content.length;) {
    const char* end = memchr(content.data + begin, '\n', content.length - begin);
    size_t length = end ? (size_t)(end - content.data) - begin : content.length - begin;
    number++;
    if (length) {
      json_document* document;
      status = json_parse(content.data + begin, length, path, &document);
      if (!status) {
        text_view string = json_string(json_root(document));
        status = string.data ? encode(self, string.data, string.length)
                             : genai_status_create(GENAI_ERROR_BAD_FILE, "\"%s\" line %zu is not a JSON string", path, number);
        json_free(document);
      }
    }
    begin += length + 1;
  }
  text_deinit(&content);
  return status;
}

static genai_status* decode(tokenizing* self, const char* list) {
  token_list ids = {0};
  text out = {0};
  GENAI_TRY(parse_ids("--ids", list, &ids.ids, &ids.count));
  genai_status* status = tokenizer_decode(self->words, ids.ids, ids.count, true, &out);
  if (!status) status = write_line(self, out.data ? out.data : "", out.length, "text", &ids);
  text_deinit(&out);
  mem_free(ids.ids);
  return status;
}

static genai_status* open_template(tokenizing* self) {
  if (self->template) return NULL;
  text_view source = tokenizer_chat_template(self->words);
  if (!source.data)
    return genai_status_create(GENAI_ERROR_UNSUPPORTED, "\"%s\" brings no chat template, as models that only continue texts do; use --text",
                               self->given->positionals[0]);
  return chat_template_parse(source.data, source.length, &self->template);
}

static genai_status* token_content(const tokenizing* self, int32_t id, char** out) {
  text_view token = id < 0 ? (text_view){NULL, 0} : tokenizer_token(self->words, id);
  *out = mem_strndup(token.data ? token.data : "", token.data ? token.length : 0);
  return *out ? NULL : genai_status_out_of_memory();
}

/* Messages as in the OpenAI API. */
static genai_status* render_messages(const tokenizing* self, const char* messages, text* out) {
  json_document* document;
  char* bos = NULL;
  char* eos = NULL;
  GENAI_TRY(json_parse(messages, strlen(messages), "--chat", &document));
  genai_status* status = token_content(self, tokenizer_bos_id(self->words), &bos);
  if (!status) status = token_content(self, tokenizer_eos_id(self->words), &eos);
  if (!status) {
    chat_render_options how = {.add_generation_prompt = true, .bos_token = bos, .eos_token = eos};
    status = chat_template_render_json(self->template, json_root(document), &how, out);
  }
  mem_free(bos);
  mem_free(eos);
  json_free(document);
  return status;
}

static genai_status* encode_chat(tokenizing* self, const char* message) {
  text rendered = {0};
  token_list ids = {0};
  GENAI_TRY(open_template(self));
  chat_message one = {"user", message};
  genai_status* status = *message == '[' ? render_messages(self, message, &rendered)
                                         : chat_prompt_render(self->words, self->template, &one, 1, true, &rendered);
  const char* string = rendered.data ? rendered.data : "";
  if (!status) status = tokenizer_encode(self->words, string, rendered.length, (tokenizer_encode_options){false, true}, &ids);
  if (!status) status = write_line(self, string, rendered.length, "rendered", &ids);
  token_list_deinit(&ids);
  text_deinit(&rendered);
  return status;
}

static genai_status* run_inputs(tokenizing* self) {
  static const struct {
    const char* name;
    genai_status* (*handle)(tokenizing*, const char*);
  } kinds[] = {{"--file", encode_file}, {"--jsonl", encode_json_lines}, {"--ids", decode}, {"--chat", encode_chat}};
  size_t inputs = argument_count(self->given, "--text");
  for (size_t i = 0; i < inputs; i++) {
    const char* string = argument_at(self->given, "--text", i);
    GENAI_TRY(encode(self, string, strlen(string)));
  }
  for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++) {
    size_t count = argument_count(self->given, kinds[kind].name);
    for (size_t i = 0; i < count; i++) GENAI_TRY(kinds[kind].handle(self, argument_at(self->given, kinds[kind].name, i)));
    inputs += count;
  }
  if (!inputs) return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "nothing to do: give --text, --file, --jsonl, --ids or --chat");
  return NULL;
}

static genai_status* run(cli* app, const arguments* given) {
  tokenizing self = {.app = app, .given = given};
  genai_status* status = open_words(&self, given->positionals[0]);
  if (!status && app->verbose) cli_line(app, "%s, %d tokens", tokenizer_kind(self.words), tokenizer_vocab_size(self.words));
  if (!status) status = run_inputs(&self);
  chat_template_free(self.template);
  tokenizer_close(self.words);
  checkpoint_close(self.file);
  return status;
}

const command_spec command_tokenize = {
    .name = "tokenize",
    .positionals = "MODEL",
    .min_positionals = 1,
    .max_positionals = 1,
    .summary = "text to token ids and back, one JSON line per input",
    .details = "MODEL is a checkpoint, or a tokenizer.json or tokenizer.model.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
