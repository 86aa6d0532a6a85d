/* Opening a model: which family it is, its hyper-parameters, its tensors; and what it tells about itself. The graph is made in build.c. */
#include <string.h>

#include "base/log.h"
#include "model_internal.h"

/* The type string and the key it came from. */
static genai_status* find_type(const checkpoint* file, text_view* type, const char** key) {
  if (checkpoint_format_of(file) == CHECKPOINT_HUGGING_FACE) {
    *key = "model_type";
    *type = json_string(json_get(hyper_decoder_config(file), "model_type"));
    if (!type->data) *type = json_string(json_get(checkpoint_config(file), "model_type"));
  } else {
    *key = "general.architecture";
    *type = checkpoint_metadata_string(file, *key);
    if (!type->data && checkpoint_format_of(file) == CHECKPOINT_LLAMA2C) *type = text_view_of("llama");
  }
  if (type->data && type->length > 0 && type->length < 64 && !memchr(type->data, 0, type->length)) return NULL;
  return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: %s is missing or unusable; it must name the model's architecture",
                             checkpoint_path(file), *key);
}

static genai_status* find_family(model* self) {
  text_view type;
  const char* key;
  GENAI_TRY(find_type(self->file, &type, &key));
  char* architecture = arena_calloc(&self->memory, type.length + 1, 1);
  if (!architecture) return genai_status_out_of_memory();
  memcpy(architecture, type.data, type.length);
  self->architecture = architecture;
  genai_status* status = family_find(architecture, key, &self->family);
  if (!status) return NULL;
  return genai_status_wrap(status, genai_status_kind(status), "%s cannot be built", checkpoint_path(self->file));
}

static genai_status* find_name(model* self) {
  text_view named = self->gguf ? checkpoint_metadata_string(self->file, "general.name") : (text_view){NULL, 0};
  const char* path = checkpoint_path(self->file);
  if (!named.data || !named.length) { /* the path's last part, trailing slashes aside */
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/') --end;
    for (begin = end; begin > 0 && path[begin - 1] != '/'; --begin) {
    }
    named = (text_view){path + begin, end - begin};
  }
  char* name = arena_calloc(&self->memory, named.length + 1, 1);
  if (!name) return genai_status_out_of_memory();
  memcpy(name, named.data, named.length);
  self->name = name;
  return NULL;
}

static genai_status* open_model(model* self) {
  self->gguf = checkpoint_format_of(self->file) != CHECKPOINT_HUGGING_FACE;
  GENAI_TRY(find_family(self));
  GENAI_TRY(find_name(self));
  json_value config = hyper_decoder_config(self->file);
  GENAI_TRY(hyper_read(self, config));
  GENAI_TRY(self->gguf ? rope_read_metadata(self) : rope_read_config(self, config));
  GENAI_TRY(hyper_read_layers(self, config));
  return tensors_check(self);
}

genai_status* model_open(const checkpoint* file, model** out) {
  model* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->file = file;
  genai_status* status = open_model(self);
  if (status) {
    model_close(self);
    return status;
  }
  log_write(LOG_INFO, "model %s: %s, %u layers, hidden %u, %u heads (%u key-value) of %u, vocabulary %u", self->name, self->family->name,
            self->layers, self->hidden, self->heads, self->kv_heads, self->head_dim, self->vocab);
  *out = self;
  return NULL;
}

void model_close(model* self) {
  if (!self) return;
  arena_deinit(&self->memory);
  mem_free(self);
}

void model_get_info(const model* self, model_info* out) {
  *out = (model_info){.family = self->family->name,
                      .name = self->name,
                      .layers = self->layers,
                      .hidden = self->hidden,
                      .heads = self->heads,
                      .kv_heads = self->kv_heads,
                      .head_dim = self->head_dim,
                      .feed_forward = self->feed_forward,
                      .vocab = self->vocab,
                      .trained_context = self->trained_context,
                      .parameters = self->parameters,
                      .sliding_window = self->sliding_window,
                      .tied_embeddings = self->tied};
}

typedef struct id_list {
  int32_t* ids;
  size_t count, capacity;
} id_list;

static void add_id(id_list* list, int64_t id) {
  if (id < 0 || id > INT32_MAX) return;
  for (size_t i = 0; i < list->count && i < list->capacity; ++i) {
    if (list->ids[i] == id) return;
  }
  if (list->count < list->capacity) list->ids[list->count++] = (int32_t)id;
}

/* A number or a list of numbers. */
static void add_json_ids(id_list* list, json_value value) {
  if (json_type_of(value) == JSON_INTEGER) add_id(list, json_integer(value, -1));
  if (json_type_of(value) != JSON_ARRAY) return;
  json_iterator iterator = json_iterate(value);
  json_value item;
  while (json_next(&iterator, NULL, &item)) add_id(list, json_integer(item, -1));
}

size_t model_stop_ids(const model* self, int32_t* ids, size_t capacity) {
  static const char* const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
  id_list list = {ids, 0, capacity};
  if (self->gguf) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; ++i) add_id(&list, checkpoint_metadata_integer(self->file, keys[i], -1));
  } else {
    add_json_ids(&list, json_get(checkpoint_config(self->file), "eos_token_id"));
    add_json_ids(&list, json_get(hyper_decoder_config(self->file), "eos_token_id"));
    add_json_ids(&list, json_get(checkpoint_generation_config(self->file), "eos_token_id"));
  }
  return list.count;
}
