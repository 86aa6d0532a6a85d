/* The default calibration data: the built-in set or a text file, tokenized as the stream is read; seeded ids for a model without a tokenizer. */
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "pipeline/chat_prompt.h"
#include "pipeline/executorch.h"
#include "pipeline/executorch_objects.h"
#include "pipeline/internal.h"
#include "quantize/calibration_text.h"

enum { MAX_CALIBRATION_FILE = 256 << 20 };

typedef struct sample_source {
  genai_object* tokenizer; /* NULL: seeded ids */
  chat_template* template; /* NULL: none */
  size_t n_samples, sequence_length;
  size_t delivered;
  size_t next_text;    /* of the built-in set */
  token_list file_ids; /* a file, tokenized whole; windows are cut from it */
  size_t file_position;
  bool from_file;
  uint32_t vocabulary;
  uint64_t random;
  token_list current;
} sample_source;

/* splitmix64: small, and the same everywhere. */
static uint64_t next_random(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static genai_status* encode_sample(sample_source* self, const calibration_sample* sample) {
  const executorch_tokenizer* words = genai_object_payload(self->tokenizer, &executorch_tokenizer_type);
  if (sample->user && self->template) {
    chat_message messages[] = {{"user", sample->user}, {"assistant", sample->reply}};
    return chat_prompt_encode(words->tokenizer, self->template, messages, 2, false, &self->current);
  }
  text plain = {0};
  genai_status* status = NULL;
  if (sample->user) status = text_printf(&plain, "%s\n\n", sample->user);
  if (!status) status = text_append_cstr(&plain, sample->reply);
  if (!status)
    status = tokenizer_encode(words->tokenizer, plain.data, plain.length, (tokenizer_encode_options){true, false}, &self->current);
  text_deinit(&plain);
  return status;
}

static genai_status* fill(sample_source* self) {
  self->current.count = 0;
  if (!self->tokenizer) {
    for (size_t i = 0; i < self->sequence_length; i++)
      GENAI_TRY(token_list_append(&self->current, (int32_t)(next_random(&self->random) % self->vocabulary)));
    return NULL;
  }
  if (self->from_file) {
    size_t left = self->file_ids.count - self->file_position;
    size_t take = left < self->sequence_length ? left : self->sequence_length;
    for (size_t i = 0; i < take; i++) GENAI_TRY(token_list_append(&self->current, self->file_ids.ids[self->file_position + i]));
    self->file_position += take;
    return NULL;
  }
  size_t available;
  const calibration_sample* samples = calibration_samples(&available);
  while (!self->current.count && self->next_text < available) GENAI_TRY(encode_sample(self, &samples[self->next_text++]));
  return NULL;
}

static genai_status* next(void* user, genai_sample* out, bool* end) {
  sample_source* self = user;
  if (self->delivered < self->n_samples) GENAI_TRY(fill(self));
  if (self->delivered == self->n_samples || !self->current.count) {
    *end = true;
    return NULL;
  }
  self->delivered++;
  out->ids = self->current.ids;
  out->n_ids = self->current.count < self->sequence_length ? self->current.count : self->sequence_length;
  return NULL;
}

static void source_destroy(void* user) {
  sample_source* self = user;
  genai_object_release(self->tokenizer);
  chat_template_free(self->template);
  token_list_deinit(&self->file_ids);
  token_list_deinit(&self->current);
  mem_free(self);
}

static genai_status* read_file(sample_source* self, const char* path) {
  text content = {0};
  genai_status* status = file_read_all(path, MAX_CALIBRATION_FILE, &content);
  const executorch_tokenizer* words = genai_object_payload(self->tokenizer, &executorch_tokenizer_type);
  if (!status && !utf8_is_valid(content.data ? content.data : "", content.length))
    status = genai_status_create(GENAI_ERROR_BAD_FILE, "calibration file \"%s\" is not valid UTF-8", path);
  if (!status && text_is_blank(content.data))
    status = genai_status_create(GENAI_ERROR_BAD_FILE, "calibration file \"%s\" holds no text", path);
  if (!status)
    status = tokenizer_encode(words->tokenizer, content.data, content.length, (tokenizer_encode_options){true, false}, &self->file_ids);
  text_deinit(&content);
  self->from_file = true;
  return status;
}

static genai_status* seed_ids(sample_source* self, const genai_data_request* request, const char* file) {
  const executorch_model* loaded = genai_object_payload(request->model, &executorch_model_type);
  if (file)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "calibration_file \"%s\" cannot be used: the model has no tokenizer", file);
  if (!loaded)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "calibration data needs a tokenizer or an executorch.model, got \"%s\"",
                               genai_object_type_name(request->model));
  model_info info;
  model_get_info(loaded->decoder, &info);
  self->vocabulary = info.vocab;
  self->random = 1;
  if (self->n_samples > 4) self->n_samples = 4;
  if (self->sequence_length > 256) self->sequence_length = 256;
  if (info.trained_context && self->sequence_length > info.trained_context) self->sequence_length = info.trained_context;
  log_write(LOG_WARNING, "without a tokenizer, calibration uses seeded random ids: good for checking, not for text");
  return NULL;
}

static genai_status* generate_samples(genai_calibration_data* base, const genai_context* context, const genai_data_request* request,
                                      genai_sample_stream** out) {
  static const genai_sample_stream_vtable vtable = {next, source_destroy};
  (void)base;
  (void)context;
  if (request->tokenizer && !genai_object_payload(request->tokenizer, &executorch_tokenizer_type))
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "the tokenizer is a \"%s\", default calibration data needs \"%s\"",
                               genai_object_type_name(request->tokenizer), executorch_tokenizer_type.name);
  sample_source* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->n_samples = request->n_samples;
  self->sequence_length = request->sequence_length;
  self->tokenizer = genai_object_retain(request->tokenizer);
  const char* file = genai_options_get(request->options, "calibration_file");
  genai_status* status = NULL;
  if (!request->tokenizer) {
    status = seed_ids(self, request, file);
  } else {
    if (request->chat_template) status = chat_template_parse(request->chat_template, strlen(request->chat_template), &self->template);
    if (!status && file) status = read_file(self, file);
  }
  if (!status) status = genai_sample_stream_create(&vtable, self, out);
  if (status) source_destroy(self);
  return status;
}

static void destroy(genai_calibration_data* self) {
  mem_free(self);
}

genai_status* executorch_calibration_create(genai_calibration_data** out) {
  static const genai_calibration_data_vtable vtable = {generate_samples, destroy};
  genai_calibration_data* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->vtable = &vtable;
  *out = self;
  return NULL;
}
