/* What is in a checkpoint: hyper-parameters, metadata, tensors, tokenizer. */
#include <stdio.h>
#include <string.h>

#include "checkpoint/checkpoint.h"
#include "cli/cli.h"
#include "cli/inspect.h"
#include "model/model.h"
#include "tokenizer/tokenizer.h"

static const char* format_name(checkpoint_format format) {
  switch (format) {
    case CHECKPOINT_GGUF:
      return "GGUF";
    case CHECKPOINT_HUGGING_FACE:
      return "Hugging Face";
    case CHECKPOINT_LLAMA2C:
      return "llama2.c";
  }
  return "?";
}

/* ---- Lines ---- */
static genai_status* print_value(text* out, const gguf_value* value) {
  switch (value->type) {
    case GGUF_STRING: {
      size_t length = value->as.s.length < 100 ? value->as.s.length : 100;
      return text_printf(out, "\"%.*s\"%s", (int)length, value->as.s.data, length < value->as.s.length ? "..." : "");
    }
    case GGUF_ARRAY:
      return text_printf(out, "array of %llu", (unsigned long long)value->count);
    case GGUF_BOOL:
      return text_append_cstr(out, value->as.b ? "true" : "false");
    case GGUF_F32:
    case GGUF_F64:
      return text_printf(out, "%g", value->as.f);
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64:
      return text_printf(out, "%lld", (long long)value->as.i);
    default:
      return text_printf(out, "%llu", (unsigned long long)value->as.u);
  }
}

/* `facts`: one a line. */
static genai_status* print_model(text* out, const model_info* info, const text* facts, const char* problem) {
  if (problem) return text_printf(out, "model      not one that genai builds: %s\n", problem);
  GENAI_TRY(
      text_printf(out, "model      %s, family %s, %.1f million parameters\n", info->name, info->family, (double)info->parameters / 1e6));
  GENAI_TRY(text_printf(
      out,
      "           %u layers, hidden %u, %u heads (%u for keys and values) of %u, feed-forward %u, vocabulary %u, context %u\n           ",
      info->layers, info->hidden, info->heads, info->kv_heads, info->head_dim, info->feed_forward, info->vocab, info->trained_context));
  for (size_t i = 0; i < facts->length; i++) {
    GENAI_TRY(text_append_char(out, facts->data[i]));
    if (facts->data[i] == '\n') GENAI_TRY(text_append_cstr(out, "           "));
  }
  return text_append_char(out, '\n');
}

static genai_status* print_words(text* out, const tokenizer* words) {
  if (!words) return text_append_cstr(out, "tokenizer  none\n");
  return text_printf(out, "tokenizer  %s, %d tokens, begin %d, end %d, %s\n", tokenizer_kind(words), tokenizer_vocab_size(words),
                     tokenizer_bos_id(words), tokenizer_eos_id(words),
                     tokenizer_chat_template(words).data ? "chat template" : "no chat template");
}

static genai_status* print_types(text* out, const checkpoint* file) {
  uint64_t counts[ELEMENT_TYPE_COUNT] = {0}, bytes[ELEMENT_TYPE_COUNT] = {0};
  for (size_t i = 0; i < checkpoint_tensor_count(file); i++) {
    const checkpoint_tensor* tensor = checkpoint_tensor_at(file, i);
    counts[tensor->type]++;
    bytes[tensor->type] += tensor->bytes;
  }
  GENAI_TRY(text_printf(out, "tensors    %zu\n", checkpoint_tensor_count(file)));
  for (size_t i = 0; i < ELEMENT_TYPE_COUNT; i++) {
    char size[32];
    if (!counts[i]) continue;
    format_bytes(bytes[i], size);
    GENAI_TRY(
        text_printf(out, "           %-6s %5llu tensors  %s\n", element_type_name((element_type)i), (unsigned long long)counts[i], size));
  }
  return NULL;
}

static genai_status* print_tensors(text* out, const checkpoint* file) {
  GENAI_TRY(text_append_cstr(out, "\n"));
  for (size_t i = 0; i < checkpoint_tensor_count(file); i++) {
    const checkpoint_tensor* tensor = checkpoint_tensor_at(file, i);
    GENAI_TRY(text_printf(out, "%-56s %-6s [", tensor->name, element_type_name(tensor->type)));
    for (uint32_t d = 0; d < tensor->rank; d++) GENAI_TRY(text_printf(out, "%s%llu", d ? ", " : "", (unsigned long long)tensor->dims[d]));
    GENAI_TRY(text_append_cstr(out, "]\n"));
  }
  return NULL;
}

static genai_status* print_metadata(text* out, const checkpoint* file, bool all) {
  size_t count = checkpoint_metadata_count(file);
  if (!count) return NULL;
  GENAI_TRY(text_printf(out, "\nmetadata   %zu values\n", count));
  for (size_t i = 0; i < count; i++) {
    const gguf_value* value = checkpoint_metadata_at(file, i);
    if (!all && value->type == GGUF_ARRAY) continue;
    GENAI_TRY(text_printf(out, "  %-48s ", value->key));
    GENAI_TRY(print_value(out, value));
    GENAI_TRY(text_append_char(out, '\n'));
  }
  return NULL;
}

/* ---- JSON ---- */
static void write_integer(json_writer* writer, const char* key, uint64_t value) {
  json_key(writer, key);
  json_write_unsigned(writer, value);
}

static void write_model(json_writer* writer, const model_info* info, const text* facts, const char* problem) {
  json_key(writer, "model");
  json_begin_object(writer);
  if (problem) {
    json_key(writer, "problem");
    json_write_string(writer, problem);
  } else {
    json_key(writer, "name");
    json_write_string(writer, info->name);
    json_key(writer, "family");
    json_write_string(writer, info->family);
    write_integer(writer, "parameters", info->parameters);
    write_integer(writer, "layers", info->layers);
    write_integer(writer, "hidden", info->hidden);
    write_integer(writer, "heads", info->heads);
    write_integer(writer, "kv_heads", info->kv_heads);
    write_integer(writer, "head_dim", info->head_dim);
    write_integer(writer, "feed_forward", info->feed_forward);
    write_integer(writer, "vocabulary", info->vocab);
    write_integer(writer, "trained_context", info->trained_context);
    write_integer(writer, "sliding_window", info->sliding_window);
    json_key(writer, "tied_embeddings");
    json_write_bool(writer, info->tied_embeddings);
    json_key(writer, "traits");
    json_begin_array(writer);
    for (const char* line = facts->data; line && *line;) {
      size_t length = strcspn(line, "\n");
      json_write_bytes(writer, line, length);
      line += length + (line[length] == '\n');
    }
    json_end_array(writer);
  }
  json_end_object(writer);
}

static void write_words(json_writer* writer, const tokenizer* words) {
  json_key(writer, "tokenizer");
  if (!words) {
    json_write_string(writer, NULL);
    return;
  }
  json_begin_object(writer);
  json_key(writer, "kind");
  json_write_string(writer, tokenizer_kind(words));
  json_key(writer, "vocabulary");
  json_write_integer(writer, tokenizer_vocab_size(words));
  json_key(writer, "bos_id");
  json_write_integer(writer, tokenizer_bos_id(words));
  json_key(writer, "eos_id");
  json_write_integer(writer, tokenizer_eos_id(words));
  json_key(writer, "chat_template");
  json_write_bool(writer, tokenizer_chat_template(words).data != NULL);
  json_end_object(writer);
}

static void write_tensors(json_writer* writer, const checkpoint* file) {
  json_key(writer, "tensors");
  json_begin_array(writer);
  for (size_t i = 0; i < checkpoint_tensor_count(file); i++) {
    const checkpoint_tensor* tensor = checkpoint_tensor_at(file, i);
    json_begin_object(writer);
    json_key(writer, "name");
    json_write_string(writer, tensor->name);
    json_key(writer, "type");
    json_write_string(writer, element_type_name(tensor->type));
    json_key(writer, "shape");
    json_begin_array(writer);
    for (uint32_t d = 0; d < tensor->rank; d++) json_write_unsigned(writer, tensor->dims[d]);
    json_end_array(writer);
    write_integer(writer, "bytes", tensor->bytes);
    json_end_object(writer);
  }
  json_end_array(writer);
}

static genai_status* explain(inspection* self, const checkpoint* file, const model_info* info, const text* facts, const char* problem,
                             const tokenizer* words) {
  if (self->json) {
    json_begin_object(&self->writer);
    json_key(&self->writer, "format");
    json_write_string(&self->writer, format_name(checkpoint_format_of(file)));
    write_model(&self->writer, info, facts, problem);
    write_words(&self->writer, words);
    write_tensors(&self->writer, file);
    json_end_object(&self->writer);
    return NULL;
  }
  GENAI_TRY(text_printf(self->out, "format     %s\n", format_name(checkpoint_format_of(file))));
  GENAI_TRY(print_model(self->out, info, facts, problem));
  GENAI_TRY(print_words(self->out, words));
  GENAI_TRY(print_types(self->out, file));
  GENAI_TRY(print_metadata(self->out, file, self->all));
  return self->all ? print_tensors(self->out, file) : NULL;
}

genai_status* inspect_checkpoint(inspection* self) {
  checkpoint* file;
  model* source = NULL;
  tokenizer* words = NULL;
  model_info info = {0};
  char problem[512] = "";
  GENAI_TRY(checkpoint_open(self->path, &file));
  /* A checkpoint that genai cannot build is explained all the same. */
  genai_status* unknown = model_open(file, &source);
  if (unknown) {
    genai_status_format(unknown, problem, sizeof problem);
    genai_status_free(unknown);
  } else {
    model_get_info(source, &info);
  }
  text facts = {0};
  genai_status* status = source ? model_describe(source, &facts) : NULL;
  genai_status_free(tokenizer_open_checkpoint(file, &words));
  if (!status) status = explain(self, file, &info, &facts, *problem ? problem : NULL, words);
  text_deinit(&facts);
  tokenizer_close(words);
  model_close(source);
  checkpoint_close(file);
  return status;
}
