/* The constant methods of an artifact, with the names and meanings that the ExecuTorch runner knows (docs/formats/pte.md). */
#include "pipeline/executorch_constants.h"

#include "pipeline/executorch_objects.h"

static genai_status* add_values(executorch_constants* out, const char* name, const genai_value* values, size_t count) {
  genai_constant_method* grown = arena_calloc(&out->memory, out->count + 1, sizeof *grown);
  genai_value* copy = arena_dup(&out->memory, values, count * sizeof *values);
  char* name_copy = arena_strdup(&out->memory, name);
  if (!grown || !copy || !name_copy) return genai_status_out_of_memory();
  for (size_t i = 0; i < out->count; i++) grown[i] = out->methods[i];
  grown[out->count] = (genai_constant_method){name_copy, count, copy};
  out->methods = grown;
  out->count++;
  return NULL;
}

static genai_status* add_integer(executorch_constants* out, const char* name, int64_t value) {
  genai_value v = {GENAI_VALUE_INTEGER, {.i = value}};
  return add_values(out, name, &v, 1);
}

static genai_status* add_model(executorch_constants* out, const executorch_model* source, uint32_t ar, uint32_t context) {
  model_info info;
  model_get_info(source->decoder, &info);
  const executorch_tokenizer* words = genai_object_payload(source->tokenizer, &executorch_tokenizer_type);
  const struct {
    const char* name;
    int64_t value;
  } integers[] = {{"get_ar_len", ar},
                  {"get_bos_id", words ? tokenizer_bos_id(words->tokenizer) : -1},
                  {"get_eos_id", words ? tokenizer_eos_id(words->tokenizer) : -1},
                  {"get_dim", info.hidden},
                  {"get_head_dim", info.head_dim},
                  {"get_max_batch_size", 1},
                  {"get_max_seq_len", context},
                  {"get_max_context_len", context},
                  {"get_n_bos", 1},
                  {"get_n_eos", 1},
                  {"get_n_kv_heads", info.kv_heads},
                  {"get_n_layers", info.layers},
                  {"get_vocab_size", info.vocab}};
  for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) GENAI_TRY(add_integer(out, integers[i].name, integers[i].value));
  if (info.sliding_window) GENAI_TRY(add_integer(out, "get_sliding_window", info.sliding_window));
  genai_value cached = {GENAI_VALUE_BOOL, {.b = true}};
  return add_values(out, "get_use_kv_cache", &cached, 1);
}

static genai_status* add_cache_encoding(executorch_constants* out, const ir_tensor* tensor, size_t index) {
  char* name = arena_printf(&out->memory, "get_kv_output_%zu_quant_attr", index);
  if (!name) return genai_status_out_of_memory();
  genai_value values[] = {{GENAI_VALUE_DOUBLE, {.d = (double)tensor->encoding.scale}},
                          {GENAI_VALUE_INTEGER, {.i = -(int64_t)tensor->encoding.offset}},
                          {GENAI_VALUE_INTEGER, {.i = 0}},
                          {GENAI_VALUE_INTEGER, {.i = tensor->dtype == IR_U8 ? 255 : 65535}},
                          {GENAI_VALUE_STRING, {.s = "torch.int32"}}};
  return add_values(out, name, values, sizeof values / sizeof values[0]);
}

static genai_status* add_encodings(executorch_constants* out, const ir_graph* graph, uint32_t layers) {
  const ir_tensor* logits = ir_graph_find_role(graph, IR_ROLE_LOGITS, -1);
  const ir_tensor* key = ir_graph_find_role(graph, IR_ROLE_KEY_OUT, 0);
  if (key) GENAI_TRY(add_integer(out, "get_kv_io_bit_width", (int64_t)ir_dtype_size(key->dtype) * 8));
  if (logits && logits->encoding.kind == IR_ENCODING_PER_TENSOR) {
    genai_value scale = {GENAI_VALUE_DOUBLE, {.d = (double)logits->encoding.scale}};
    GENAI_TRY(add_values(out, "get_logits_scale", &scale, 1));
    GENAI_TRY(add_integer(out, "get_logits_zero_point", -(int64_t)logits->encoding.offset));
  }
  /* Values before keys, layer by layer: the order upstream's files have. */
  size_t index = 0;
  for (uint32_t layer = 0; layer < layers; layer++) {
    static const ir_role roles[] = {IR_ROLE_VALUE_OUT, IR_ROLE_KEY_OUT};
    for (size_t i = 0; i < 2; i++) {
      const ir_tensor* tensor = ir_graph_find_role(graph, roles[i], (int32_t)layer);
      if (tensor && tensor->encoding.kind == IR_ENCODING_PER_TENSOR) GENAI_TRY(add_cache_encoding(out, tensor, index++));
    }
  }
  return NULL;
}

genai_status* executorch_constants_gather(const genai_compile_graph* graphs, size_t count, executorch_constants* out) {
  if (!count) return NULL;
  const executorch_graph* graph = genai_object_payload(graphs[0].graph, &executorch_graph_type);
  const executorch_model* source = genai_object_payload(graph ? graph->model : graphs[0].graph, &executorch_model_type);
  if (!source) return NULL;
  uint32_t ar, context;
  GENAI_TRY(executorch_graph_lengths(graphs[0].name, graphs[0].inputs, graphs[0].n_inputs, &ar, &context));
  GENAI_TRY(add_model(out, source, ar, context));
  model_info info;
  model_get_info(source->decoder, &info);
  return graph ? add_encodings(out, graph->graph, info.layers) : add_integer(out, "get_kv_io_bit_width", 32);
}

void executorch_constants_deinit(executorch_constants* self) {
  arena_deinit(&self->memory);
  *self = (executorch_constants){0};
}
