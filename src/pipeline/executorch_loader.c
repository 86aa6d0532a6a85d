/* The default model loader: checkpoint, hyper-parameters, tokenizer and chat template, and the signature of the deployed graphs. */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "pipeline/executorch.h"
#include "pipeline/executorch_objects.h"
#include "pipeline/internal.h"

static genai_status* open_checkpoint(const char* path, genai_object** out) {
  checkpoint* file;
  GENAI_TRY(checkpoint_open(path, &file));
  genai_status* status = genai_object_create(&executorch_checkpoint_type, file, out);
  if (status) checkpoint_close(file);
  return status;
}

static genai_status* load_model(genai_model_loader* self, const genai_context* context, const char* path, const genai_options* options,
                                genai_object** out) {
  (void)self;
  (void)context;
  executorch_model* loaded = mem_calloc(1, sizeof *loaded);
  if (!loaded) return genai_status_out_of_memory();
  genai_status* status = open_checkpoint(path, &loaded->file);
  if (!status) status = model_open(genai_object_payload(loaded->file, &executorch_checkpoint_type), &loaded->decoder);
  if (!status) status = thread_pool_create((size_t)genai_options_integer(options, "threads", 0), &loaded->pool);
  if (!status) status = genai_object_create(&executorch_model_type, loaded, out);
  if (status) executorch_model_type.destroy(loaded);
  return status;
}

static genai_status* wrong_object(const char* what, const genai_object* object, const genai_object_type* expected) {
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "%s is a \"%s\", the default loader works on \"%s\"", what,
                             genai_object_type_name(object), expected->name);
}

/* A Hugging Face directory without tokenizer files holds a model without a tokenizer; so does a llama2.c file. */
static bool has_tokenizer(const checkpoint* file) {
  static const char* const names[] = {"tokenizer.json", "tokenizer.model", "vocab.json"};
  switch (checkpoint_format_of(file)) {
    case CHECKPOINT_GGUF:
      return checkpoint_metadata(file, "tokenizer.ggml.tokens") != NULL;
    case CHECKPOINT_LLAMA2C:
      return false;
    case CHECKPOINT_HUGGING_FACE:
      break;
  }
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char* path;
    genai_status* status = path_join(checkpoint_path(file), names[i], &path);
    if (status) {
      genai_status_free(status);
      return true; /* let the tokenizer say what is wrong */
    }
    bool found = file_exists(path);
    mem_free(path);
    if (found) return true;
  }
  return false;
}

static genai_status* load_tokenizer(genai_model_loader* self, const genai_context* context, genai_object* object, genai_object** out) {
  (void)self;
  (void)context;
  executorch_model* loaded = genai_object_payload(object, &executorch_model_type);
  if (!loaded) return wrong_object("the model", object, &executorch_model_type);
  const checkpoint* file = genai_object_payload(loaded->file, &executorch_checkpoint_type);
  if (!has_tokenizer(file)) {
    log_write(LOG_WARNING, "\"%s\" has no tokenizer: prompts must be token ids", checkpoint_path(file));
    return NULL;
  }
  executorch_tokenizer* words = mem_calloc(1, sizeof *words);
  if (!words) return genai_status_out_of_memory();
  words->file = genai_object_retain(loaded->file);
  genai_status* status = tokenizer_open_checkpoint(file, &words->tokenizer);
  if (!status) status = genai_object_create(&executorch_tokenizer_type, words, out);
  if (status) {
    executorch_tokenizer_type.destroy(words);
    return status;
  }
  genai_object_release(loaded->tokenizer);
  loaded->tokenizer = genai_object_retain(*out);
  return NULL;
}

static genai_dtype public_dtype(ir_dtype type) {
  switch (type) {
    case IR_F16:
      return GENAI_F16;
    case IR_I32:
      return GENAI_I32;
    case IR_U8:
      return GENAI_U8;
    case IR_U16:
      return GENAI_U16;
    default:
      return GENAI_F32;
  }
}

static genai_status* add_graph_inputs(const executorch_model* loaded, const char* name, uint32_t ar, uint32_t context,
                                      genai_example_inputs* out) {
  model_graph_options options = {.name = name, .ar_length = ar, .context_length = context};
  ir_graph* graph;
  GENAI_TRY(model_build_graph(loaded->decoder, &options, &graph));
  genai_tensor_spec* specs = mem_calloc(graph->n_inputs + 1, sizeof *specs);
  genai_status* status = specs ? NULL : genai_status_out_of_memory();
  for (uint32_t i = 0; !status && i < graph->n_inputs; i++) {
    const ir_tensor* tensor = graph->tensors[graph->inputs[i]];
    specs[i] = (genai_tensor_spec){.name = tensor->name, .dtype = public_dtype(tensor->dtype), .rank = tensor->rank};
    memcpy(specs[i].dims, tensor->dims, sizeof specs[i].dims);
  }
  if (!status) status = genai_example_inputs_add_graph(out, name, specs, graph->n_inputs);
  mem_free(specs);
  ir_graph_destroy(graph);
  return status;
}

static genai_status* get_example_inputs(genai_model_loader* self, const genai_context* run, genai_object* object,
                                        const genai_options* options, genai_example_inputs** out) {
  (void)self;
  (void)run;
  executorch_model* loaded = genai_object_payload(object, &executorch_model_type);
  if (!loaded) return wrong_object("the model", object, &executorch_model_type);
  uint32_t context = (uint32_t)genai_options_integer(options, "context", EXECUTORCH_DEFAULT_CONTEXT);
  uint32_t ar = (uint32_t)genai_options_integer(options, "prefill_ar", EXECUTORCH_DEFAULT_PREFILL_AR);
  model_info info;
  model_get_info(loaded->decoder, &info);
  if (info.trained_context && context > info.trained_context)
    log_write(LOG_WARNING, "context %u is longer than the %u tokens the model was trained on: text will degrade beyond them", context,
              info.trained_context);
  genai_example_inputs* inputs;
  GENAI_TRY(genai_example_inputs_create(&inputs));
  /* Decode comes first: its constants and KV encodings are authoritative. */
  genai_status* status = add_graph_inputs(loaded, "kv_forward", 1, context, inputs);
  if (!status && !strcmp(genai_options_text(options, "mode", "hybrid"), "hybrid"))
    status = add_graph_inputs(loaded, "prefill_forward", ar, context, inputs);
  if (status) {
    genai_example_inputs_release(inputs);
    return status;
  }
  *out = inputs;
  return NULL;
}

/* tokenizer_config.json as the reference library reads it: what tokenizer.json does not say. */
static genai_status* write_tokenizer_config(const tokenizer* words, const char* directory) {
  text content = {0};
  json_writer writer;
  json_writer_init(&writer, &content, true);
  json_begin_object(&writer);
  json_key(&writer, "tokenizer_class");
  json_write_string(&writer, "PreTrainedTokenizerFast");
  const struct {
    const char* key;
    int32_t id;
  } specials[] = {{"bos_token", tokenizer_bos_id(words)}, {"eos_token", tokenizer_eos_id(words)}};
  for (size_t i = 0; i < 2; i++) {
    text_view token = tokenizer_token(words, specials[i].id);
    if (specials[i].id < 0 || !token.data) continue;
    json_key(&writer, specials[i].key);
    json_write_bytes(&writer, token.data, token.length);
  }
  text_view template = tokenizer_chat_template(words);
  if (template.data) {
    json_key(&writer, "chat_template");
    json_write_bytes(&writer, template.data, template.length);
  }
  json_end_object(&writer);
  genai_status* status = json_writer_finish(&writer);
  if (!status) status = text_append_char(&content, '\n');
  char* path = NULL;
  if (!status) status = path_join(directory, "tokenizer_config.json", &path);
  if (!status) status = file_write_atomic(path, content.data, content.length);
  mem_free(path);
  text_deinit(&content);
  return status;
}

static genai_status* export_tokenizer(genai_model_loader* self, const genai_context* context, genai_object* object, const char* directory,
                                      char** path) {
  (void)self;
  (void)context;
  const executorch_tokenizer* words = genai_object_payload(object, &executorch_tokenizer_type);
  if (!words) return wrong_object("the tokenizer", object, &executorch_tokenizer_type);
  GENAI_TRY(directory_create(directory));
  char* file;
  GENAI_TRY(path_join(directory, "tokenizer.json", &file));
  genai_status* status = tokenizer_export_json(words->tokenizer, file);
  if (!status) status = write_tokenizer_config(words->tokenizer, directory);
  if (status) {
    mem_free(file);
    return status;
  }
  *path = file;
  return NULL;
}

static genai_status* get_chat_template(genai_model_loader* self, genai_object* object, char** source) {
  (void)self;
  const executorch_tokenizer* words = genai_object_payload(object, &executorch_tokenizer_type);
  if (!words) return wrong_object("the tokenizer", object, &executorch_tokenizer_type);
  text_view template = tokenizer_chat_template(words->tokenizer);
  if (!template.data) return NULL;
  *source = mem_strndup(template.data, template.length);
  return *source ? NULL : genai_status_out_of_memory();
}

static void destroy(genai_model_loader* self) {
  mem_free(self);
}

genai_status* executorch_loader_create(genai_model_loader** out) {
  static const genai_model_loader_vtable vtable = {load_model,       load_tokenizer,    get_example_inputs,
                                                   export_tokenizer, get_chat_template, destroy};
  genai_model_loader* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->vtable = &vtable;
  *out = self;
  return NULL;
}
