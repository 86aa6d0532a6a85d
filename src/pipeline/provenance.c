/* Writing and reading the provenance record. Judging it is the runner's business. */
#include "pipeline/provenance.h"

#include <string.h>

#include "base/json.h"

static void write_optional(json_writer* writer, const char* key, const char* value) {
  json_key(writer, key);
  json_write_string(writer, value);
}

static void write_integer(json_writer* writer, const char* key, int64_t value) {
  json_key(writer, key);
  json_write_integer(writer, value);
}

static void write_cache_encodings(json_writer* writer, const ir_graph* graph) {
  json_key(writer, "kv_encodings");
  json_begin_array(writer);
  for (int32_t layer = 0;; layer++) {
    const ir_tensor* tensors[] = {ir_graph_find_role(graph, IR_ROLE_KEY_OUT, layer), ir_graph_find_role(graph, IR_ROLE_VALUE_OUT, layer)};
    if (!tensors[0] || !tensors[1] || tensors[0]->encoding.kind != IR_ENCODING_PER_TENSOR) break;
    json_begin_array(writer);
    for (size_t i = 0; i < 2; i++) {
      json_write_number(writer, (double)tensors[i]->encoding.scale);
      json_write_integer(writer, tensors[i]->encoding.offset);
    }
    json_end_array(writer);
  }
  json_end_array(writer);
}

static genai_status* write_recipe(json_writer* writer, const recipe* how) {
  text content = {0};
  json_document* document = NULL;
  genai_status* status = recipe_write_json(how, &content);
  if (!status) status = json_parse(content.data, content.length, "recipe", &document);
  if (!status) {
    json_begin_object(writer);
    text_view key;
    json_value value;
    for (json_iterator it = json_iterate(json_root(document)); json_next(&it, &key, &value);) {
      char name[64] = "";
      if (key.length >= sizeof name) continue;
      memcpy(name, key.data, key.length);
      json_key(writer, name);
      switch (json_type_of(value)) {
        case JSON_BOOL:
          json_write_bool(writer, json_bool(value, false));
          break;
        case JSON_INTEGER:
          json_write_integer(writer, json_integer(value, 0));
          break;
        case JSON_NUMBER:
          json_write_number(writer, json_number(value, 0));
          break;
        case JSON_STRING:
          json_write_bytes(writer, json_string(value).data, json_string(value).length);
          break;
        default:
          json_write_string(writer, NULL);
          break;
      }
    }
    json_end_object(writer);
  }
  json_free(document);
  text_deinit(&content);
  return status;
}

genai_status* provenance_write(const provenance* self, text* out) {
  json_writer writer;
  json_writer_init(&writer, out, false);
  json_begin_object(&writer);
  write_integer(&writer, "record", 1);
  write_optional(&writer, "genai_version", self->genai_version);
  write_optional(&writer, "model", self->model_name);
  write_optional(&writer, "family", self->model_family);
  write_optional(&writer, "soc", self->soc);
  write_integer(&writer, "soc_id", self->soc_id);
  write_integer(&writer, "htp_arch", self->htp_arch);
  write_integer(&writer, "vtcm_mb", self->vtcm_mb);
  write_optional(&writer, "library_build_id", self->library_build_id);
  json_key(&writer, "simulator");
  json_write_bool(&writer, self->simulator);
  write_optional(&writer, "mode", self->mode);
  write_integer(&writer, "context_length", self->context_length);
  json_key(&writer, "ar_lengths");
  json_begin_array(&writer);
  for (size_t i = 0; i < self->n_ar; i++) json_write_integer(&writer, self->ar_lengths[i]);
  json_end_array(&writer);
  write_integer(&writer, "sliding_window", self->sliding_window);
  write_optional(&writer, "kv_type", self->kv_type);
  if (self->encodings) write_cache_encodings(&writer, self->encodings);
  json_key(&writer, "recipe");
  genai_status* status = NULL;
  if (self->how) {
    status = write_recipe(&writer, self->how);
  } else {
    json_write_string(&writer, NULL);
  }
  write_optional(&writer, "checkpoint_sha256", self->checkpoint_sha256);
  write_optional(&writer, "tokenizer_sha256", self->tokenizer_sha256);
  write_integer(&writer, "bos_id", self->bos_id);
  write_integer(&writer, "eos_id", self->eos_id);
  json_key(&writer, "stop_ids");
  json_begin_array(&writer);
  for (size_t i = 0; i < self->n_stop_ids; i++) json_write_integer(&writer, self->stop_ids[i]);
  json_end_array(&writer);
  json_end_object(&writer);
  genai_status* written = json_writer_finish(&writer);
  if (!status) return written;
  genai_status_free(written);
  return status;
}

static genai_status* copy_string(provenance* out, json_value object, const char* key, const char** member) {
  text_view value = json_string(json_get(object, key));
  *member = NULL;
  if (!value.data) return NULL;
  char* copy = arena_alloc(&out->memory, value.length + 1);
  if (!copy) return genai_status_out_of_memory();
  memcpy(copy, value.data, value.length);
  copy[value.length] = 0;
  *member = copy;
  return NULL;
}

static uint32_t small_number(json_value object, const char* key) {
  int64_t value = json_integer(json_get(object, key), 0);
  return value > 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static int32_t token_id(json_value value) {
  int64_t id = json_integer(value, -1);
  return id >= 0 && id <= INT32_MAX ? (int32_t)id : -1;
}

static genai_status* read_members(json_value root, provenance* out) {
  GENAI_TRY(copy_string(out, root, "genai_version", &out->genai_version));
  GENAI_TRY(copy_string(out, root, "model", &out->model_name));
  GENAI_TRY(copy_string(out, root, "family", &out->model_family));
  GENAI_TRY(copy_string(out, root, "soc", &out->soc));
  GENAI_TRY(copy_string(out, root, "library_build_id", &out->library_build_id));
  GENAI_TRY(copy_string(out, root, "mode", &out->mode));
  GENAI_TRY(copy_string(out, root, "kv_type", &out->kv_type));
  GENAI_TRY(copy_string(out, json_get(root, "recipe"), "name", &out->recipe_name));
  GENAI_TRY(copy_string(out, root, "checkpoint_sha256", &out->checkpoint_sha256));
  GENAI_TRY(copy_string(out, root, "tokenizer_sha256", &out->tokenizer_sha256));
  out->soc_id = small_number(root, "soc_id");
  out->htp_arch = small_number(root, "htp_arch");
  out->vtcm_mb = small_number(root, "vtcm_mb");
  out->simulator = json_bool(json_get(root, "simulator"), false);
  out->context_length = small_number(root, "context_length");
  out->sliding_window = small_number(root, "sliding_window");
  out->bos_id = token_id(json_get(root, "bos_id"));
  out->eos_id = token_id(json_get(root, "eos_id"));
  json_value item;
  for (json_iterator it = json_iterate(json_get(root, "ar_lengths")); json_next(&it, NULL, &item);) {
    int64_t ar = json_integer(item, 0);
    if (out->n_ar < PROVENANCE_MAX_GRAPHS && ar > 0 && ar <= UINT32_MAX) out->ar_lengths[out->n_ar++] = (uint32_t)ar;
  }
  for (json_iterator it = json_iterate(json_get(root, "stop_ids")); json_next(&it, NULL, &item);) {
    if (out->n_stop_ids < PROVENANCE_MAX_STOP_IDS && token_id(item) >= 0) out->stop_ids[out->n_stop_ids++] = token_id(item);
  }
  return NULL;
}

genai_status* provenance_read(const pte_file* file, provenance* out, bool* found) {
  *found = false;
  const char* record = pte_get_string(file, PTE_PROVENANCE_METHOD);
  if (!record) return NULL;
  json_document* document;
  GENAI_TRY(json_parse(record, strlen(record), PTE_PROVENANCE_METHOD, &document));
  provenance parsed = {.bos_id = -1, .eos_id = -1};
  genai_status* status = NULL;
  if (json_type_of(json_root(document)) != JSON_OBJECT || json_integer(json_get(json_root(document), "record"), 0) != 1)
    status = genai_status_create(GENAI_ERROR_UNSUPPORTED, "the provenance record (%s) is not of version 1, which this genai reads",
                                 PTE_PROVENANCE_METHOD);
  if (!status) status = read_members(json_root(document), &parsed);
  json_free(document);
  if (status) {
    arena_deinit(&parsed.memory);
    return status;
  }
  *out = parsed;
  *found = true;
  return NULL;
}

void provenance_deinit(provenance* self) {
  arena_deinit(&self->memory);
  *self = (provenance){0};
}
