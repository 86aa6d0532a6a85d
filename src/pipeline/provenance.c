/* Writing, reading and comparing the provenance record. What to do about a difference is the caller's business. */
#include "pipeline/provenance.h"

#include <string.h>

#include "base/json.h"

enum { RECORD_FORMAT = 1, MAX_LAYERS = 4096 };

void provenance_deinit(provenance* self) {
  arena_deinit(&self->memory);
  *self = (provenance){0};
}

genai_status* provenance_set_encodings(provenance* self, const ir_graph* graph) {
  size_t layers = 0;
  while (ir_graph_find_role(graph, IR_ROLE_KEY_OUT, (int32_t)layers)) layers++;
  provenance_encoding* encodings[2] = {arena_calloc(&self->memory, layers + 1, sizeof(provenance_encoding)),
                                       arena_calloc(&self->memory, layers + 1, sizeof(provenance_encoding))};
  if (!encodings[0] || !encodings[1]) return genai_status_out_of_memory();
  static const ir_role roles[] = {IR_ROLE_KEY_OUT, IR_ROLE_VALUE_OUT};
  for (size_t layer = 0; layer < layers; layer++) {
    for (size_t i = 0; i < 2; i++) {
      const ir_tensor* tensor = ir_graph_find_role(graph, roles[i], (int32_t)layer);
      if (!tensor || tensor->encoding.kind != IR_ENCODING_PER_TENSOR) return NULL;
      encodings[i][layer] = (provenance_encoding){tensor->encoding.scale, tensor->encoding.offset};
    }
  }
  self->n_kv = layers;
  self->keys = encodings[0];
  self->values = encodings[1];
  return NULL;
}

genai_status* provenance_set_recipe(provenance* self, const recipe* how) {
  text resolved = {0};
  char hex[65];
  genai_status* status = recipe_write_json(how, &resolved);
  if (!status) {
    sha256_hex(resolved.data, resolved.length, hex);
    self->recipe_name = arena_strdup(&self->memory, how->name);
    self->recipe_sha256 = arena_strdup(&self->memory, hex);
    if (!self->recipe_name || !self->recipe_sha256) status = genai_status_out_of_memory();
  }
  text_deinit(&resolved);
  return status;
}

/* ---- Writing ---- */
static void write_string(json_writer* writer, const char* key, const char* value) {
  if (!value) return;
  json_key(writer, key);
  json_write_string(writer, value);
}

static void write_integer(json_writer* writer, const char* key, int64_t value) {
  json_key(writer, key);
  json_write_integer(writer, value);
}

static void write_encodings(json_writer* writer, const char* key, const provenance_encoding* encodings, size_t count) {
  json_key(writer, key);
  json_begin_array(writer);
  for (size_t i = 0; i < count; i++) {
    json_begin_array(writer);
    json_write_number(writer, (double)encodings[i].scale);
    json_write_integer(writer, encodings[i].offset);
    json_end_array(writer);
  }
  json_end_array(writer);
}

static void write_named_hash(json_writer* writer, const char* key, const char* name, const char* hash) {
  if (!name && !hash) return;
  json_key(writer, key);
  json_begin_object(writer);
  write_string(writer, "name", name);
  write_string(writer, "sha256", hash);
  json_end_object(writer);
}

static void write_target(const provenance* self, json_writer* writer) {
  json_key(writer, "soc");
  json_begin_object(writer);
  write_string(writer, "name", self->soc);
  write_integer(writer, "model", self->soc_model);
  write_integer(writer, "htp_arch", self->htp_arch);
  write_integer(writer, "vtcm_mb", self->vtcm_mb);
  json_end_object(writer);
  write_string(writer, "backend", self->backend ? self->backend : "htp");
  json_key(writer, "library");
  json_begin_object(writer);
  write_string(writer, "build_id", self->library_build_id);
  json_end_object(writer);
}

genai_status* provenance_write(const provenance* self, text* out) {
  json_writer writer;
  json_writer_init(&writer, out, false);
  json_begin_object(&writer);
  write_integer(&writer, "format", RECORD_FORMAT);
  write_string(&writer, "genai", self->genai_version);
  write_string(&writer, "variant", self->simulator ? "simulator" : "device");
  write_target(self, &writer);
  write_string(&writer, "mode", self->mode);
  write_integer(&writer, "context_length", self->context_length);
  json_key(&writer, "ar_lengths");
  json_begin_object(&writer);
  for (size_t i = 0; i < self->n_graphs; i++) write_integer(&writer, self->graphs[i].name, self->graphs[i].ar_length);
  json_end_object(&writer);
  write_integer(&writer, "layers", self->layers);
  write_integer(&writer, "vocab_size", self->vocab_size);
  if (self->sliding_window) write_integer(&writer, "sliding_window", self->sliding_window);
  json_key(&writer, "kv");
  json_begin_object(&writer);
  write_string(&writer, "dtype", self->kv_dtype);
  if (self->n_kv) write_encodings(&writer, "key", self->keys, self->n_kv);
  if (self->n_kv) write_encodings(&writer, "value", self->values, self->n_kv);
  json_end_object(&writer);
  write_named_hash(&writer, "recipe", self->recipe_name, self->recipe_sha256);
  write_named_hash(&writer, "checkpoint", self->checkpoint_name, self->checkpoint_sha256);
  write_named_hash(&writer, "tokenizer", NULL, self->tokenizer_sha256);
  json_key(&writer, "end_of_text_ids");
  json_begin_array(&writer);
  for (size_t i = 0; i < self->n_stop_ids; i++) json_write_integer(&writer, self->stop_ids[i]);
  json_end_array(&writer);
  if (self->bos_id >= 0) write_integer(&writer, "bos_id", self->bos_id);
  if (self->eos_id >= 0) write_integer(&writer, "eos_id", self->eos_id);
  json_end_object(&writer);
  return json_writer_finish(&writer);
}

/* ---- Reading ---- */
static genai_status* copy_view(arena* memory, text_view value, const char** member) {
  *member = NULL;
  if (!value.data) return NULL;
  char* copy = arena_alloc(memory, value.length + 1);
  if (!copy) return genai_status_out_of_memory();
  memcpy(copy, value.data, value.length);
  copy[value.length] = 0;
  *member = copy;
  return NULL;
}

static genai_status* copy_string(provenance* out, json_value object, const char* key, const char** member) {
  return copy_view(&out->memory, json_string(json_get(object, key)), member);
}

static uint32_t small_number(json_value value) {
  int64_t number = json_integer(value, 0);
  return number > 0 && number <= UINT32_MAX ? (uint32_t)number : 0;
}

static int32_t token_id(json_value value) {
  int64_t id = json_integer(value, -1);
  return id >= 0 && id <= INT32_MAX ? (int32_t)id : -1;
}

static genai_status* read_encodings(arena* memory, json_value list, size_t count, const provenance_encoding** out) {
  provenance_encoding* encodings = arena_calloc(memory, count + 1, sizeof *encodings);
  if (!encodings) return genai_status_out_of_memory();
  json_value pair;
  size_t n = 0;
  for (json_iterator pairs = json_iterate(list); n < count && json_next(&pairs, NULL, &pair); n++) {
    json_value item;
    json_iterator items = json_iterate(pair);
    if (json_next(&items, NULL, &item)) encodings[n].scale = (float)json_number(item, 0);
    if (json_next(&items, NULL, &item)) encodings[n].offset = (int32_t)json_integer(item, 0);
  }
  *out = encodings;
  return NULL;
}

static genai_status* read_cache(provenance* out, json_value kv) {
  GENAI_TRY(copy_string(out, kv, "dtype", &out->kv_dtype));
  size_t count = json_count(json_get(kv, "key"));
  if (count != json_count(json_get(kv, "value")) || count > MAX_LAYERS)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "the provenance record has %zu key and %zu value encodings", count,
                               json_count(json_get(kv, "value")));
  GENAI_TRY(read_encodings(&out->memory, json_get(kv, "key"), count, &out->keys));
  GENAI_TRY(read_encodings(&out->memory, json_get(kv, "value"), count, &out->values));
  out->n_kv = count;
  return NULL;
}

static genai_status* read_graphs(provenance* out, json_value graphs) {
  text_view name;
  json_value length;
  for (json_iterator it = json_iterate(graphs); json_next(&it, &name, &length);) {
    if (out->n_graphs == PROVENANCE_MAX_GRAPHS)
      return genai_status_create(GENAI_ERROR_UNSUPPORTED, "the provenance record names more than %d graphs", PROVENANCE_MAX_GRAPHS);
    provenance_graph* graph = &out->graphs[out->n_graphs++];
    GENAI_TRY(copy_view(&out->memory, name, &graph->name));
    graph->ar_length = small_number(length);
  }
  return NULL;
}

static genai_status* read_members(json_value root, provenance* out) {
  json_value soc = json_get(root, "soc"), made_of = json_get(root, "checkpoint"), how = json_get(root, "recipe");
  GENAI_TRY(copy_string(out, root, "genai", &out->genai_version));
  GENAI_TRY(copy_string(out, soc, "name", &out->soc));
  GENAI_TRY(copy_string(out, json_get(root, "library"), "build_id", &out->library_build_id));
  GENAI_TRY(copy_string(out, root, "mode", &out->mode));
  GENAI_TRY(copy_string(out, how, "name", &out->recipe_name));
  GENAI_TRY(copy_string(out, how, "sha256", &out->recipe_sha256));
  GENAI_TRY(copy_string(out, made_of, "name", &out->checkpoint_name));
  GENAI_TRY(copy_string(out, made_of, "sha256", &out->checkpoint_sha256));
  GENAI_TRY(copy_string(out, json_get(root, "tokenizer"), "sha256", &out->tokenizer_sha256));
  out->simulator = text_view_equal_cstr(json_string(json_get(root, "variant")), "simulator");
  out->soc_model = small_number(json_get(soc, "model"));
  out->htp_arch = small_number(json_get(soc, "htp_arch"));
  out->vtcm_mb = small_number(json_get(soc, "vtcm_mb"));
  out->context_length = small_number(json_get(root, "context_length"));
  out->layers = small_number(json_get(root, "layers"));
  out->vocab_size = small_number(json_get(root, "vocab_size"));
  out->sliding_window = small_number(json_get(root, "sliding_window"));
  out->bos_id = token_id(json_get(root, "bos_id"));
  out->eos_id = token_id(json_get(root, "eos_id"));
  json_value item;
  for (json_iterator it = json_iterate(json_get(root, "end_of_text_ids")); json_next(&it, NULL, &item);) {
    if (out->n_stop_ids < PROVENANCE_MAX_STOP_IDS && token_id(item) >= 0) out->stop_ids[out->n_stop_ids++] = token_id(item);
  }
  GENAI_TRY(read_graphs(out, json_get(root, "ar_lengths")));
  return read_cache(out, json_get(root, "kv"));
}

genai_status* provenance_parse(const char* record, size_t length, const char* name, provenance* out) {
  json_document* document;
  GENAI_TRY(json_parse(record, length, name, &document));
  provenance parsed = {0};
  int64_t format = json_integer(json_get(json_root(document), "format"), 0);
  genai_status* status = NULL;
  if (format < 1) {
    status = genai_status_create(GENAI_ERROR_BAD_FILE, "the provenance record (%s) does not say its format", name);
  } else if (format > RECORD_FORMAT) {
    status =
        genai_status_create(GENAI_ERROR_UNSUPPORTED, "the provenance record has format %lld, this genai reads up to %d: use a newer one",
                            (long long)format, RECORD_FORMAT);
  } else {
    status = read_members(json_root(document), &parsed);
  }
  json_free(document);
  if (status) {
    arena_deinit(&parsed.memory);
    return status;
  }
  *out = parsed;
  return NULL;
}

genai_status* provenance_read(const pte_file* file, provenance* out, bool* found) {
  *found = false;
  const char* record = pte_get_string(file, PTE_PROVENANCE_METHOD);
  if (!record) return NULL;
  GENAI_TRY(provenance_parse(record, strlen(record), PTE_PROVENANCE_METHOD, out));
  *found = true;
  return NULL;
}

/* ---- Comparing ---- */
static genai_status* expect_number(text* out, const char* member, uint64_t recorded, uint64_t found) {
  if (recorded == found) return NULL;
  return text_printf(out, "%s%s: recorded %llu, found %llu", out->length ? "\n" : "", member, (unsigned long long)recorded,
                     (unsigned long long)found);
}

static genai_status* expect_encoding(text* out, const char* kind, size_t layer, const provenance_encoding* recorded,
                                     const qnn_tensor_info* found) {
  if (found->quantized && found->scale == recorded->scale && found->offset == recorded->offset) return NULL;
  return text_printf(out, "%skv.%s of layer %zu: recorded scale %.9g offset %d, found scale %.9g offset %d", out->length ? "\n" : "", kind,
                     layer, (double)recorded->scale, recorded->offset, (double)found->scale, found->offset);
}

/* Cache inputs are named by their position: the last 2 x layers of the inputs. */
static genai_status* compare_cache(const provenance* self, const qnn_graph_info* graph, text* out) {
  uint32_t fixed = graph->n_inputs - 2 * self->layers;
  for (uint32_t i = 0; i < graph->n_inputs; i++) {
    const qnn_tensor_info* tensor = &graph->inputs[i];
    uint32_t position = 0;
    const char* digit = strncmp(tensor->name, "input_", 6) ? "" : tensor->name + 6;
    for (; *digit >= '0' && *digit <= '9' && position < MAX_LAYERS * 4; digit++) position = position * 10 + (uint32_t)(*digit - '0');
    if (position < fixed || position >= graph->n_inputs) continue;
    size_t layer = (position - fixed) % self->layers;
    bool key = position - fixed < self->layers;
    if (layer < self->n_kv)
      GENAI_TRY(expect_encoding(out, key ? "key" : "value", layer, key ? &self->keys[layer] : &self->values[layer], tensor));
  }
  return NULL;
}

static genai_status* compare_graph(const provenance* self, const provenance_graph* recorded, const pte_file* file,
                                   const qnn_binary_info* binary, text* out) {
  const pte_method_view* method = pte_find_method(file, recorded->name);
  const qnn_graph_info* graph = NULL;
  for (uint32_t i = 0; i < binary->n_graphs; i++) {
    if (!strcmp(binary->graphs[i].name, recorded->name)) graph = &binary->graphs[i];
  }
  if (!method || !method->is_delegate || !graph || method->n_inputs < 2 || method->inputs[0].rank != 2 || method->inputs[1].rank != 4)
    return text_printf(out, "%sar_lengths: recorded a graph \"%s\", found none of a decoder", out->length ? "\n" : "", recorded->name);
  GENAI_TRY(expect_number(out, recorded->name, recorded->ar_length, method->inputs[0].dims[1]));
  GENAI_TRY(expect_number(out, "context_length", self->context_length, method->inputs[1].dims[3]));
  GENAI_TRY(expect_number(out, "layers", self->layers, (method->n_outputs - 1) / 2));
  bool same = self->layers == (method->n_outputs - 1) / 2 && graph->n_inputs >= 2 * self->layers && self->layers;
  return same && self->n_kv ? compare_cache(self, graph, out) : NULL;
}

genai_status* provenance_compare(const provenance* self, const pte_file* file, const qnn_binary_info* binary, text* differences) {
  GENAI_TRY(expect_number(differences, "soc.model", self->soc_model, binary->soc_model));
  GENAI_TRY(expect_number(differences, "soc.htp_arch", self->htp_arch, binary->htp_arch));
  for (size_t i = 0; i < self->n_graphs; i++) GENAI_TRY(compare_graph(self, &self->graphs[i], file, binary, differences));
  return NULL;
}
