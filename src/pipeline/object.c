/* Values between stages: counted objects, example inputs, sample streams, graph sets, and the records that own them. */
#include <stdatomic.h>
#include <string.h>

#include "pipeline/internal.h"

struct genai_object {
  atomic_size_t references;
  const genai_object_type* type;
  void* payload;
};

genai_status* genai_object_create(const genai_object_type* type, void* payload, genai_object** out) {
  genai_object* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  atomic_init(&self->references, 1);
  self->type = type;
  self->payload = payload;
  *out = self;
  return NULL;
}

genai_object* genai_object_retain(genai_object* self) {
  if (self) atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
  return self;
}

void genai_object_release(genai_object* self) {
  if (!self || atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1) return;
  if (self->type->destroy) self->type->destroy(self->payload);
  mem_free(self);
}

const char* genai_object_type_name(const genai_object* self) {
  return self ? self->type->name : "";
}

void* genai_object_payload(const genai_object* self, const genai_object_type* type) {
  return self && self->type == type ? self->payload : NULL;
}

/* ---- Example inputs ---- */
typedef struct graph_inputs {
  char* graph;
  size_t count;
  genai_tensor_spec* tensors;
} graph_inputs;

struct genai_example_inputs {
  atomic_size_t references;
  arena memory;
  size_t count;
  graph_inputs* graphs;
};

genai_status* genai_example_inputs_create(genai_example_inputs** out) {
  genai_example_inputs* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  atomic_init(&self->references, 1);
  *out = self;
  return NULL;
}

genai_status* genai_example_inputs_add_graph(genai_example_inputs* self, const char* graph, const genai_tensor_spec* inputs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (inputs[i].rank > sizeof inputs[i].dims / sizeof inputs[i].dims[0])
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "input %zu of graph \"%s\" has rank %u, at most 5 is possible", i, graph,
                                 inputs[i].rank);
  }
  graph_inputs added = {arena_strdup(&self->memory, graph), count, arena_calloc(&self->memory, count + 1, sizeof *inputs)};
  graph_inputs* grown = mem_realloc_array(self->graphs, self->count + 1, sizeof *grown);
  if (grown) self->graphs = grown;
  if (!added.graph || !added.tensors || !grown) return genai_status_out_of_memory();
  for (size_t i = 0; i < count; i++) {
    added.tensors[i] = inputs[i];
    added.tensors[i].name = arena_strdup(&self->memory, inputs[i].name ? inputs[i].name : "");
    if (!added.tensors[i].name) return genai_status_out_of_memory();
  }
  self->graphs[self->count++] = added;
  return NULL;
}

genai_example_inputs* genai_example_inputs_retain(genai_example_inputs* self) {
  if (self) atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
  return self;
}

void genai_example_inputs_release(genai_example_inputs* self) {
  if (!self || atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1) return;
  arena_deinit(&self->memory);
  mem_free(self->graphs);
  mem_free(self);
}

size_t genai_example_inputs_graph_count(const genai_example_inputs* self) {
  return self ? self->count : 0;
}

const char* genai_example_inputs_graph(const genai_example_inputs* self, size_t graph) {
  return graph < self->count ? self->graphs[graph].graph : NULL;
}

const genai_tensor_spec* genai_example_inputs_tensors(const genai_example_inputs* self, size_t graph, size_t* count) {
  if (graph >= self->count) return NULL;
  *count = self->graphs[graph].count;
  return self->graphs[graph].tensors;
}

/* ---- Sample streams ---- */
struct genai_sample_stream {
  atomic_size_t references;
  const genai_sample_stream_vtable* vtable;
  void* self;
};

genai_status* genai_sample_stream_create(const genai_sample_stream_vtable* vtable, void* source, genai_sample_stream** out) {
  genai_sample_stream* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  atomic_init(&self->references, 1);
  self->vtable = vtable;
  self->self = source;
  *out = self;
  return NULL;
}

genai_sample_stream* genai_sample_stream_retain(genai_sample_stream* self) {
  if (self) atomic_fetch_add_explicit(&self->references, 1, memory_order_relaxed);
  return self;
}

void genai_sample_stream_release(genai_sample_stream* self) {
  if (!self || atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1) return;
  if (self->vtable->destroy) self->vtable->destroy(self->self);
  mem_free(self);
}

genai_status* genai_sample_stream_next(genai_sample_stream* self, genai_sample* out, bool* end) {
  *end = false;
  *out = (genai_sample){0};
  return self->vtable->next(self->self, out, end);
}

typedef struct id_sequences {
  size_t count, next;
  size_t* lengths;
  int32_t** sequences;
} id_sequences;

static genai_status* id_sequences_next(void* user, genai_sample* out, bool* end) {
  id_sequences* self = user;
  if (self->next == self->count) {
    *end = true;
  } else {
    out->ids = self->sequences[self->next];
    out->n_ids = self->lengths[self->next];
    self->next++;
  }
  return NULL;
}

static void id_sequences_destroy(void* user) {
  id_sequences* self = user;
  for (size_t i = 0; self->sequences && i < self->count; i++) mem_free(self->sequences[i]);
  mem_free(self->sequences);
  mem_free(self->lengths);
  mem_free(self);
}

genai_status* genai_sample_stream_from_ids(const int32_t* const* sequences, const size_t* lengths, size_t count,
                                           genai_sample_stream** out) {
  static const genai_sample_stream_vtable vtable = {id_sequences_next, id_sequences_destroy};
  id_sequences* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->count = count;
  self->sequences = mem_calloc(count, sizeof *self->sequences);
  self->lengths = mem_dup(lengths, count * sizeof *lengths);
  genai_status* status = self->sequences && self->lengths ? NULL : genai_status_out_of_memory();
  for (size_t i = 0; !status && i < count; i++) {
    self->sequences[i] = mem_dup(sequences[i], lengths[i] * sizeof **sequences);
    if (!self->sequences[i]) status = genai_status_out_of_memory();
  }
  if (!status) status = genai_sample_stream_create(&vtable, self, out);
  if (status) id_sequences_destroy(self);
  return status;
}

/* ---- Graph sets ---- */
typedef struct graph_set {
  size_t count;
  struct {
    char* name;
    genai_object* graph;
  } * graphs;
} graph_set;

static void graph_set_destroy(void* payload) {
  graph_set* self = payload;
  for (size_t i = 0; i < self->count; i++) {
    mem_free(self->graphs[i].name);
    genai_object_release(self->graphs[i].graph);
  }
  mem_free(self->graphs);
  mem_free(self);
}

const genai_object_type genai_graph_set_type = {"genai.graph_set", graph_set_destroy};

genai_status* genai_graph_set_create(genai_object** out) {
  graph_set* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  genai_status* status = genai_object_create(&genai_graph_set_type, self, out);
  if (status) mem_free(self);
  return status;
}

genai_status* genai_graph_set_add(genai_object* object, const char* name, genai_object* graph) {
  graph_set* self = genai_object_payload(object, &genai_graph_set_type);
  if (!self) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "\"%s\" is not a graph set", genai_object_type_name(object));
  char* copy = mem_strdup(name);
  void* grown = mem_realloc_array(self->graphs, self->count + 1, sizeof self->graphs[0]);
  if (grown) self->graphs = grown;
  if (!copy || !grown) {
    mem_free(copy);
    return genai_status_out_of_memory();
  }
  self->graphs[self->count].name = copy;
  self->graphs[self->count].graph = genai_object_retain(graph);
  self->count++;
  return NULL;
}

size_t genai_graph_set_count(const genai_object* object) {
  const graph_set* self = genai_object_payload(object, &genai_graph_set_type);
  return self ? self->count : 0;
}

const char* genai_graph_set_name(const genai_object* object, size_t index) {
  const graph_set* self = genai_object_payload(object, &genai_graph_set_type);
  return self && index < self->count ? self->graphs[index].name : NULL;
}

genai_object* genai_graph_set_graph(const genai_object* object, size_t index) {
  const graph_set* self = genai_object_payload(object, &genai_graph_set_type);
  return self && index < self->count ? self->graphs[index].graph : NULL;
}

/* ---- Records ---- */
genai_status* genai_statistics_add(genai_statistics* self, const char* name, double value) {
  char* copy = mem_strdup(name);
  genai_named_number* grown = mem_realloc_array(self->items, self->count + 1, sizeof *grown);
  if (grown) self->items = grown;
  if (!copy || !grown) {
    mem_free(copy);
    return genai_status_out_of_memory();
  }
  self->items[self->count++] = (genai_named_number){copy, value};
  return NULL;
}

bool genai_statistics_get(const genai_statistics* self, const char* name, double* out) {
  for (size_t i = 0; i < self->count; i++) {
    if (strcmp(self->items[i].name, name)) continue;
    *out = self->items[i].value;
    return true;
  }
  return false;
}

void genai_statistics_deinit(genai_statistics* self) {
  for (size_t i = 0; i < self->count; i++) mem_free(self->items[i].name);
  mem_free(self->items);
  *self = (genai_statistics){0};
}

void genai_model_preparation_output_deinit(genai_model_preparation_output* self) {
  genai_object_release(self->model);
  genai_object_release(self->tokenizer);
  genai_example_inputs_release(self->example_inputs);
  genai_sample_stream_release(self->calibration_data);
  mem_free(self->runtime_tokenizer);
  mem_free(self->chat_template);
  *self = (genai_model_preparation_output){0};
}

void genai_quantization_output_deinit(genai_quantization_output* self) {
  genai_object_release(self->model);
  mem_free(self->to_store);
  *self = (genai_quantization_output){0};
}

void genai_compilation_output_deinit(genai_compilation_output* self) {
  genai_string_list_deinit(&self->artifacts);
  mem_free(self->etrecord);
  genai_statistics_deinit(&self->statistics);
  *self = (genai_compilation_output){0};
}

void genai_compile_result_deinit(genai_compile_result* self) {
  genai_string_list_deinit(&self->artifacts);
  mem_free(self->etrecord);
  genai_statistics_deinit(&self->statistics);
  *self = (genai_compile_result){0};
}

void genai_execute_result_deinit(genai_execute_result* self) {
  for (size_t i = 0; i < self->n_generations; i++) {
    mem_free(self->generations[i].prompt);
    mem_free(self->generations[i].text);
    mem_free(self->generations[i].ids);
  }
  mem_free(self->generations);
  genai_statistics_deinit(&self->evaluation);
  mem_free(self->etdump);
  *self = (genai_execute_result){0};
}

void genai_inference_output_deinit(genai_inference_output* self) {
  genai_execute_result_deinit(&self->run);
  genai_string_list_deinit(&self->files);
  *self = (genai_inference_output){0};
}
