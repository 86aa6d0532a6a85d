/* Fuzz target of hyper-parameters: a GGUF file, or else config.json and, after a NUL byte, generation_config.json, beside the tensors of a
 * small decoder under the names that Hugging Face files use. What opens must build both kinds of graph. */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint_internal.h"
#include "model/model.h"

enum { LAYERS = 2, HIDDEN = 8, HEAD = 4, FEED_FORWARD = 16, VOCAB = 16, CONTEXT = 4, MOST_LAYERS = 64 };

static const struct {
  const char* name; /* behind "model." or, in a layer, "model.layers.N." */
  uint64_t rows, cols;
} whole[] = {{"embed_tokens.weight", VOCAB, HIDDEN}, {"norm.weight", HIDDEN, 0}},
  layered[] = {{"input_layernorm.weight", HIDDEN, 0},
               {"post_attention_layernorm.weight", HIDDEN, 0},
               {"pre_feedforward_layernorm.weight", HIDDEN, 0},
               {"post_feedforward_layernorm.weight", HIDDEN, 0},
               {"self_attn.q_proj.weight", 2 * HEAD, HIDDEN},
               {"self_attn.k_proj.weight", HEAD, HIDDEN},
               {"self_attn.v_proj.weight", HEAD, HIDDEN},
               {"self_attn.q_proj.bias", 2 * HEAD, 0},
               {"self_attn.k_proj.bias", HEAD, 0},
               {"self_attn.v_proj.bias", HEAD, 0},
               {"self_attn.o_proj.weight", HIDDEN, 2 * HEAD},
               {"mlp.gate_proj.weight", FEED_FORWARD, HIDDEN},
               {"mlp.up_proj.weight", FEED_FORWARD, HIDDEN},
               {"mlp.down_proj.weight", HIDDEN, FEED_FORWARD}},
  normed[] = {{"self_attn.q_norm.weight", HEAD, 0}, {"self_attn.k_norm.weight", HEAD, 0}};

static void add(checkpoint* file, const char* name, uint64_t rows, uint64_t cols) {
  static const float zeros[FEED_FORWARD * HIDDEN];
  checkpoint_tensor tensor = {.name = name, .type = ELEMENT_F32, .rank = cols ? 2 : 1, .dims = {rows, cols}, .data = (const uint8_t*)zeros};
  tensor.bytes = rows * (cols ? cols : 1) * sizeof *zeros;
  if (!name || tensor.bytes > sizeof zeros || checkpoint_add_tensor(file, &tensor, "fuzz")) abort();
}

/* Families with norms of queries and keys want them; the others refuse them. */
static void add_tensors(checkpoint* file, bool query_norms) {
  for (size_t i = 0; i < sizeof whole / sizeof *whole; ++i) {
    add(file, arena_printf(&file->memory, "model.%s", whole[i].name), whole[i].rows, whole[i].cols);
  }
  add(file, "lm_head.weight", VOCAB, HIDDEN);
  for (unsigned layer = 0; layer < LAYERS; ++layer) {
    for (size_t i = 0; i < sizeof layered / sizeof *layered; ++i) {
      add(file, arena_printf(&file->memory, "model.layers.%u.%s", layer, layered[i].name), layered[i].rows, layered[i].cols);
    }
    for (size_t i = 0; query_norms && i < 2; ++i) {
      add(file, arena_printf(&file->memory, "model.layers.%u.%s", layer, normed[i].name), normed[i].rows, normed[i].cols);
    }
  }
}

static genai_status* build(const model* self) {
  for (uint32_t ar = 1; ar <= CONTEXT; ar *= 2) { /* decode, prefill, and without caches */
    const model_graph_options options = {.name = "graph", .ar_length = ar, .context_length = CONTEXT};
    ir_graph* graph;
    GENAI_TRY(model_build_graph(self, &options, &graph));
    ir_graph_destroy(graph);
  }
  return NULL;
}

static void open_and_build(const checkpoint* file) {
  model* self = NULL;
  genai_status* status = model_open(file, &self);
  if (!status) {
    model_info info;
    int32_t stops[8];
    model_get_info(self, &info);
    if (!info.layers || !info.heads || !info.kv_heads || info.heads % info.kv_heads || !info.vocab) abort();
    model_stop_ids(self, stops, 8);
    if (info.layers <= MOST_LAYERS) status = build(self);
  }
  if (status && !genai_status_message(status)[0]) abort();
  genai_status_free(status);
  model_close(self);
}

static genai_status* parse_configs(checkpoint* file, const char* data, size_t size) {
  const char* end = memchr(data, 0, size);
  size_t length = end ? (size_t)(end - data) : size;
  GENAI_TRY(json_parse(data, length, "fuzz", &file->config));
  return end ? json_parse(end + 1, size - length - 1, "fuzz", &file->generation_config) : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bool gguf = size >= 4 && !memcmp(data, "GGUF", 4);
  for (int query_norms = 0; query_norms < (gguf ? 1 : 2); ++query_norms) {
    checkpoint file = {.format = gguf ? CHECKPOINT_GGUF : CHECKPOINT_HUGGING_FACE, .path = mem_strdup("fuzz")};
    genai_status* status = gguf ? gguf_parse(&file, data, size, "fuzz") : parse_configs(&file, (const char*)data, size);
    if (!status && !gguf) add_tensors(&file, query_norms);
    if (!status) open_and_build(&file);
    genai_status_free(status);
    checkpoint_deinit(&file);
  }
  return 0;
}
