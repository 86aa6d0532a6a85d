/* The executorch engine's objects: destruction, and facts read off them. */
#include "pipeline/executorch_objects.h"

#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "pipeline/executorch_strategy.h"

static void checkpoint_destroy(void* payload) {
  checkpoint_close(payload);
}
const genai_object_type executorch_checkpoint_type = {"executorch.checkpoint", checkpoint_destroy};

static void model_destroy(void* payload) {
  executorch_model* self = payload;
  model_close(self->decoder);
  thread_pool_destroy(self->pool);
  genai_object_release(self->tokenizer);
  genai_object_release(self->file);
  mem_free(self);
}
const genai_object_type executorch_model_type = {"executorch.model", model_destroy};

static void tokenizer_destroy(void* payload) {
  executorch_tokenizer* self = payload;
  tokenizer_close(self->tokenizer);
  genai_object_release(self->file);
  mem_free(self);
}
const genai_object_type executorch_tokenizer_type = {"executorch.tokenizer", tokenizer_destroy};

static void graph_destroy(void* payload) {
  executorch_graph* self = payload;
  ir_graph_destroy(self->graph);
  genai_object_release(self->model);
  mem_free(self);
}
const genai_object_type executorch_graph_type = {"executorch.graph", graph_destroy};

genai_status* executorch_graph_create(genai_object* source, ir_graph* graph, const recipe* how, genai_object** out) {
  executorch_graph* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  *self = (executorch_graph){source, graph, *how};
  genai_status* status = genai_object_create(&executorch_graph_type, self, out);
  if (status) {
    mem_free(self);
    return status;
  }
  genai_object_retain(source);
  return NULL;
}

genai_status* executorch_graph_lengths(const char* name, const genai_tensor_spec* inputs, size_t count, uint32_t* ar, uint32_t* context) {
  if (count < 2 || inputs[0].rank != 2 || inputs[1].rank != 4 || !inputs[0].dims[1] || !inputs[1].dims[3])
    return genai_status_create(
        GENAI_ERROR_INVALID_ARGUMENT,
        "the example inputs of graph \"%s\" do not begin with tokens [1, AR] and a mask [1, 1, AR, context], which a "
        "decoder needs",
        name);
  *ar = inputs[0].dims[1];
  *context = inputs[1].dims[3];
  return NULL;
}

genai_status* executorch_model_fingerprint(executorch_model* self, const char** hex) {
  if (!*self->fingerprint)
    GENAI_TRY(checkpoint_fingerprint(genai_object_payload(self->file, &executorch_checkpoint_type), self->fingerprint));
  *hex = self->fingerprint;
  return NULL;
}

size_t executorch_stop_ids(const executorch_model* self, int32_t ids[EXECUTORCH_MAX_STOP_IDS]) {
  int32_t found[2 * EXECUTORCH_MAX_STOP_IDS];
  size_t n = model_stop_ids(self->decoder, found, EXECUTORCH_MAX_STOP_IDS);
  if (n > EXECUTORCH_MAX_STOP_IDS) n = EXECUTORCH_MAX_STOP_IDS;
  const executorch_tokenizer* words = genai_object_payload(self->tokenizer, &executorch_tokenizer_type);
  if (words) {
    size_t more = tokenizer_stop_ids(words->tokenizer, found + n, EXECUTORCH_MAX_STOP_IDS);
    n += more < EXECUTORCH_MAX_STOP_IDS ? more : EXECUTORCH_MAX_STOP_IDS;
  }
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    bool known = false;
    for (size_t j = 0; j < count; j++) known |= ids[j] == found[i];
    if (!known && count < EXECUTORCH_MAX_STOP_IDS) ids[count++] = found[i];
  }
  return count;
}

/* The hash of a checkpoint covers its weights; what else a Hugging Face directory says of the model is beside them. */
genai_status* executorch_add_checkpoint(const genai_object* object, genai_fingerprint* out) {
  static const char* const beside[] = {"config.json", "generation_config.json", "tokenizer_config.json"};
  executorch_model* loaded = genai_object_payload(object, &executorch_model_type);
  if (!loaded) {
    genai_fingerprint_set_unknown(out, "the model is not of the default loader");
    return NULL;
  }
  const checkpoint* file = genai_object_payload(loaded->file, &executorch_checkpoint_type);
  const char* hex;
  model_info info;
  GENAI_TRY(executorch_model_fingerprint(loaded, &hex));
  model_get_info(loaded->decoder, &info);
  GENAI_TRY(genai_fingerprint_add(out, "checkpoint", hex));
  GENAI_TRY(genai_fingerprint_add(out, "name", info.name)); /* the artifact records it */
  for (size_t i = 0; path_is_directory(checkpoint_path(file)) && i < sizeof beside / sizeof beside[0]; i++) {
    char* path;
    GENAI_TRY(path_join(checkpoint_path(file), beside[i], &path));
    genai_status* status = file_exists(path) ? genai_fingerprint_add_file(out, beside[i], path) : NULL;
    mem_free(path);
    if (status) return status;
  }
  return NULL;
}
