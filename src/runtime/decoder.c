/* The decoder: one sequence over static graphs. Keeps the KV cache, builds masks and positions, chooses the graph for each block. Knows
 * nothing of text, sampling or where a graph executes.
 *
 * Cache layout, per layer: keys [KV, D, capacity] and values [KV, capacity, D], capacity = C - (smallest AR). A graph with a larger AR
 * takes a narrower cache ([KV, D, C - AR]), so the cache is re-strided in place around its calls. In a call the cached tokens occupy
 * columns 0..position-1 of the window and the new tokens its last AR columns; the mask selects. */
#include <string.h>

#include "base/memory.h"
#include "runtime/runtime.h"

typedef struct graph_binding {
  executor* exec;
  uint32_t ar;
  uint32_t capacity;                                     /* cache columns this graph takes: C - AR, or 0 without cache inputs */
  int32_t tokens, positions, mask, mask_sliding, logits; /* port indices, -1: absent */
  int32_t *key_in, *value_in, *key_out, *value_out;      /* [layers] */
  uint32_t logits_rows;
  void** inputs;
  void** outputs;
} graph_binding;

struct decoder {
  size_t n_graphs;
  graph_binding* graphs; /* ascending AR */
  uint32_t context, vocab, layers, sliding_window;
  uint32_t capacity; /* of the cache at rest */
  uint32_t position;
  uint64_t calls;
  double execute_seconds;
  /* Per layer geometry may differ only in head count and head size. */
  uint32_t *kv_heads, *head_dim;
  size_t* key_element; /* bytes */
  size_t* value_element;
  void **key_cache, **value_cache;
  float* logits_row;
  arena memory; /* small arrays */
};

static genai_status* describe_mismatch(const executor* exec, const executor_port* port, const char* what) {
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph \"%s\": port \"%s\" (%s) %s", exec->name, port->name,
                             ir_role_name(port->role), what);
}

static genai_status* count_layers(executor* const* executors, size_t count, uint32_t* layers) {
  int32_t last = -1;
  for (size_t e = 0; e < count; e++) {
    for (uint32_t i = 0; i < executors[e]->n_outputs; i++) {
      const executor_port* port = &executors[e]->outputs[i];
      if (port->role == IR_ROLE_KEY_OUT && port->layer > last) last = port->layer;
      if (port->layer >= 4096) return describe_mismatch(executors[e], port, "names a layer beyond 4095");
    }
  }
  *layers = (uint32_t)(last + 1);
  return NULL;
}

static genai_status* bind_layer_port(const executor* exec, const executor_port* port, int32_t index, uint32_t layers, int32_t* slots) {
  if (port->layer < 0 || (uint32_t)port->layer >= layers || port->rank != 4)
    return describe_mismatch(exec, port, "has a wrong layer or rank");
  if (slots[port->layer] >= 0) return describe_mismatch(exec, port, "appears twice");
  slots[port->layer] = index;
  return NULL;
}

static int32_t* new_slots(arena* memory, uint32_t layers) {
  int32_t* slots = arena_calloc(memory, layers, sizeof *slots);
  for (uint32_t l = 0; slots && l < layers; l++) slots[l] = -1;
  return slots;
}

static genai_status* bind_graph(decoder* self, graph_binding* graph) {
  executor* exec = graph->exec;
  graph->tokens = graph->positions = graph->mask = graph->mask_sliding = graph->logits = -1;
  graph->key_in = new_slots(&self->memory, self->layers);
  graph->value_in = new_slots(&self->memory, self->layers);
  graph->key_out = new_slots(&self->memory, self->layers);
  graph->value_out = new_slots(&self->memory, self->layers);
  graph->inputs = arena_calloc(&self->memory, exec->n_inputs, sizeof *graph->inputs);
  graph->outputs = arena_calloc(&self->memory, exec->n_outputs, sizeof *graph->outputs);
  if (!graph->key_in || !graph->value_in || !graph->key_out || !graph->value_out || !graph->inputs || !graph->outputs)
    return genai_status_out_of_memory();
  for (uint32_t i = 0; i < exec->n_inputs; i++) {
    const executor_port* port = &exec->inputs[i];
    int32_t index = (int32_t)i;
    switch (port->role) {
      case IR_ROLE_TOKENS:
        graph->tokens = index;
        break;
      case IR_ROLE_POSITIONS:
        graph->positions = index;
        break;
      case IR_ROLE_MASK:
        graph->mask = index;
        break;
      case IR_ROLE_MASK_SLIDING:
        graph->mask_sliding = index;
        break;
      case IR_ROLE_KEY_IN:
        GENAI_TRY(bind_layer_port(exec, port, index, self->layers, graph->key_in));
        break;
      case IR_ROLE_VALUE_IN:
        GENAI_TRY(bind_layer_port(exec, port, index, self->layers, graph->value_in));
        break;
      default:
        return describe_mismatch(exec, port, "is an input the runtime cannot fill");
    }
  }
  for (uint32_t i = 0; i < exec->n_outputs; i++) {
    const executor_port* port = &exec->outputs[i];
    int32_t index = (int32_t)i;
    switch (port->role) {
      case IR_ROLE_LOGITS:
        graph->logits = index;
        break;
      case IR_ROLE_KEY_OUT:
        GENAI_TRY(bind_layer_port(exec, port, index, self->layers, graph->key_out));
        break;
      case IR_ROLE_VALUE_OUT:
        GENAI_TRY(bind_layer_port(exec, port, index, self->layers, graph->value_out));
        break;
      default:
        return describe_mismatch(exec, port, "is an output the runtime does not know");
    }
  }
  if (graph->tokens < 0 || graph->logits < 0 || (graph->mask < 0 && graph->mask_sliding < 0))
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT,
                               "graph \"%s\" lacks %s; expected tokens and a mask as inputs, logits as output", exec->name,
                               graph->tokens < 0   ? "tokens"
                               : graph->logits < 0 ? "logits"
                                                   : "a mask");
  const executor_port* tokens = &exec->inputs[graph->tokens];
  if (tokens->rank < 1 || tokens->dtype != IR_I32) return describe_mismatch(exec, tokens, "must be 32-bit integers");
  graph->ar = tokens->dims[tokens->rank - 1];
  for (int pass = 0; pass < 2; pass++) {
    int32_t index = pass ? graph->mask_sliding : graph->mask;
    if (index < 0) continue;
    const executor_port* mask = &exec->inputs[index];
    uint32_t columns = mask->rank ? mask->dims[mask->rank - 1] : 0;
    if (!self->context) self->context = columns;
    if (mask->rank < 2 || columns != self->context || mask->dims[mask->rank - 2] != graph->ar || ir_dtype_size(mask->dtype) > 4)
      return describe_mismatch(exec, mask, "must have one row per token and one column per position of the context");
  }
  if (!graph->ar || graph->ar > self->context) return describe_mismatch(exec, tokens, "has a length outside 1..context");
  const executor_port* logits = &exec->outputs[graph->logits];
  uint32_t vocab = logits->rank ? logits->dims[logits->rank - 1] : 0;
  if (!self->vocab) self->vocab = vocab;
  uint64_t elements = executor_port_bytes(logits) / ir_dtype_size(logits->dtype);
  if (!vocab || vocab != self->vocab || (elements / vocab != graph->ar && elements / vocab != 1))
    return describe_mismatch(exec, logits, "must be [AR or 1, vocabulary]");
  graph->logits_rows = (uint32_t)(elements / vocab);
  graph->capacity = self->layers && graph->key_in[0] >= 0 ? self->context - graph->ar : 0;
  return NULL;
}

static bool same_encoding(const executor_port* a, const executor_port* b) {
  return a->dtype == b->dtype && a->offset == b->offset && memcmp(&a->scale, &b->scale, sizeof a->scale) == 0;
}

/* Keys are [1, KV, D, n], values [1, KV, n, D]; every graph agrees on KV, D, type and encoding, and inputs take what outputs give. */
static genai_status* check_layer(decoder* self, uint32_t layer) {
  const executor_port *key = NULL, *value = NULL;
  for (size_t g = 0; g < self->n_graphs; g++) {
    const graph_binding* graph = &self->graphs[g];
    const executor* exec = graph->exec;
    bool cached = graph->key_in[layer] >= 0;
    if (graph->key_out[layer] < 0 || graph->value_out[layer] < 0 || cached != (graph->value_in[layer] >= 0) ||
        cached != (graph->key_in[0] >= 0))
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph \"%s\": layer %u lacks a key or value port", exec->name, layer);
    if (!cached && graph->ar < self->context)
      return genai_status_create(
          GENAI_ERROR_INVALID_ARGUMENT,
          "graph \"%s\" has AR length %u below its context length %u but takes no cache; expected key and value inputs", exec->name,
          graph->ar, self->context);
    const executor_port* ports[4] = {&exec->outputs[graph->key_out[layer]], &exec->outputs[graph->value_out[layer]],
                                     cached ? &exec->inputs[graph->key_in[layer]] : NULL,
                                     cached ? &exec->inputs[graph->value_in[layer]] : NULL};
    if (!key) {
      key = ports[0];
      value = ports[1];
      self->kv_heads[layer] = key->dims[1];
      self->head_dim[layer] = key->dims[2];
      self->key_element[layer] = ir_dtype_size(key->dtype);
      self->value_element[layer] = ir_dtype_size(value->dtype);
    }
    for (size_t i = 0; i < 4; i++) {
      const executor_port* port = ports[i];
      if (!port) continue;
      bool is_key = i % 2 == 0;
      uint32_t columns = i < 2 ? graph->ar : graph->capacity;
      uint32_t heads = self->kv_heads[layer], dim = self->head_dim[layer];
      if (port->dims[0] != 1 || port->dims[1] != heads || port->dims[2] != (is_key ? dim : columns) ||
          port->dims[3] != (is_key ? columns : dim))
        return describe_mismatch(exec, port,
                                 is_key ? "must be [1, KV heads, head size, tokens]" : "must be [1, KV heads, tokens, head size]");
      if (!same_encoding(port, is_key ? key : value))
        return describe_mismatch(exec, port,
                                 "differs from the other graph ports of its layer in type or encoding; the cache is copied bit by bit");
    }
  }
  return NULL;
}

static genai_status* allocate_buffers(decoder* self) {
  size_t largest_key = 0, largest_value = 0;
  for (uint32_t l = 0; l < self->layers; l++) {
    size_t row = (size_t)self->kv_heads[l] * self->head_dim[l];
    self->key_cache[l] = mem_calloc(row * (self->capacity ? self->capacity : 1), self->key_element[l]);
    self->value_cache[l] = mem_calloc(row * (self->capacity ? self->capacity : 1), self->value_element[l]);
    if (!self->key_cache[l] || !self->value_cache[l]) return genai_status_out_of_memory();
    if (row * self->key_element[l] > largest_key) largest_key = row * self->key_element[l];
    if (row * self->value_element[l] > largest_value) largest_value = row * self->value_element[l];
  }
  self->logits_row = mem_calloc(self->vocab, sizeof *self->logits_row);
  if (!self->logits_row) return genai_status_out_of_memory();
  for (size_t g = 0; g < self->n_graphs; g++) {
    graph_binding* graph = &self->graphs[g];
    for (uint32_t i = 0; i < graph->exec->n_inputs; i++) {
      const executor_port* port = &graph->exec->inputs[i];
      if (port->role == IR_ROLE_KEY_IN) {
        graph->inputs[i] = self->key_cache[port->layer];
      } else if (port->role == IR_ROLE_VALUE_IN) {
        graph->inputs[i] = self->value_cache[port->layer];
      } else {
        graph->inputs[i] = mem_calloc(executor_port_bytes(port), 1);
        if (!graph->inputs[i]) return genai_status_out_of_memory();
      }
    }
    for (uint32_t i = 0; i < graph->exec->n_outputs; i++) {
      graph->outputs[i] = mem_calloc(executor_port_bytes(&graph->exec->outputs[i]), 1);
      if (!graph->outputs[i]) return genai_status_out_of_memory();
    }
  }
  return NULL;
}

static genai_status* decoder_setup(decoder* self, executor* const* executors, size_t count) {
  GENAI_TRY(count_layers(executors, count, &self->layers));
  uint32_t n = self->layers;
  self->graphs = arena_calloc(&self->memory, count, sizeof *self->graphs);
  self->kv_heads = arena_calloc(&self->memory, n, sizeof *self->kv_heads);
  self->head_dim = arena_calloc(&self->memory, n, sizeof *self->head_dim);
  self->key_element = arena_calloc(&self->memory, n, sizeof *self->key_element);
  self->value_element = arena_calloc(&self->memory, n, sizeof *self->value_element);
  self->key_cache = arena_calloc(&self->memory, n, sizeof *self->key_cache);
  self->value_cache = arena_calloc(&self->memory, n, sizeof *self->value_cache);
  if (!self->graphs || !self->kv_heads || !self->head_dim || !self->key_element || !self->value_element || !self->key_cache ||
      !self->value_cache)
    return genai_status_out_of_memory();
  for (size_t e = 0; e < count; e++) {
    self->graphs[e].exec = executors[e];
    GENAI_TRY(bind_graph(self, &self->graphs[e]));
    self->n_graphs = e + 1;
    for (size_t i = e; i > 0 && self->graphs[i].ar < self->graphs[i - 1].ar; i--) {
      graph_binding swapped = self->graphs[i];
      self->graphs[i] = self->graphs[i - 1];
      self->graphs[i - 1] = swapped;
    }
  }
  self->capacity = self->graphs[0].capacity;
  for (uint32_t l = 0; l < n; l++) GENAI_TRY(check_layer(self, l));
  return allocate_buffers(self);
}

genai_status* decoder_create(executor* const* executors, size_t count, decoder** out) {
  if (!count) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "a decoder needs at least one graph, got none");
  decoder* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  genai_status* status = decoder_setup(self, executors, count);
  if (status) {
    decoder_destroy(self);
    return status;
  }
  *out = self;
  return NULL;
}

void decoder_destroy(decoder* self) {
  if (!self) return;
  for (size_t g = 0; g < self->n_graphs; g++) {
    graph_binding* graph = &self->graphs[g];
    for (uint32_t i = 0; graph->inputs && i < graph->exec->n_inputs; i++) {
      ir_role role = graph->exec->inputs[i].role;
      if (role != IR_ROLE_KEY_IN && role != IR_ROLE_VALUE_IN) mem_free(graph->inputs[i]);
    }
    for (uint32_t i = 0; graph->outputs && i < graph->exec->n_outputs; i++) mem_free(graph->outputs[i]);
  }
  for (uint32_t l = 0; self->value_cache && l < self->layers; l++) {
    mem_free(self->key_cache[l]);
    mem_free(self->value_cache[l]);
  }
  mem_free(self->logits_row);
  arena_deinit(&self->memory);
  mem_free(self);
}

void decoder_set_sliding_window(decoder* self, uint32_t window) {
  self->sliding_window = window;
}

uint32_t decoder_context_length(const decoder* self) {
  return self->context;
}

uint32_t decoder_vocab_size(const decoder* self) {
  return self->vocab;
}

uint32_t decoder_largest_ar(const decoder* self) {
  return self->graphs[self->n_graphs - 1].ar;
}

uint32_t decoder_position(const decoder* self) {
  return self->position;
}

uint64_t decoder_calls(const decoder* self) {
  return self->calls;
}

double decoder_execute_seconds(const decoder* self) {
  return self->execute_seconds;
}

void decoder_reset(decoder* self) {
  self->position = 0;
}

genai_status* decoder_rewind(decoder* self, uint32_t position) {
  if (position > self->position)
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "cannot rewind to token %u: the sequence has %u", position, self->position);
  self->position = position;
  return NULL;
}

/* Changes the row length of a [rows, from] matrix to `to`, in place, keeping the first `used` elements of each row. */
static void restride(uint8_t* data, size_t rows, size_t from, size_t to, size_t used, size_t element) {
  if (to < from) {
    for (size_t r = 1; r < rows; r++) memmove(data + r * to * element, data + r * from * element, used * element);
  } else {
    for (size_t r = rows; r-- > 1;) memmove(data + r * to * element, data + r * from * element, used * element);
  }
}

static void restride_cache(decoder* self, uint32_t from, uint32_t to, uint32_t used) {
  if (from == to) return;
  for (uint32_t l = 0; l < self->layers; l++) {
    size_t heads = self->kv_heads[l], dim = self->head_dim[l];
    restride(self->key_cache[l], heads * dim, from, to, used, self->key_element[l]);
    restride(self->value_cache[l], heads, from * dim, to * dim, used * dim, self->value_element[l]);
  }
}

/* Copies the first `count` new columns of each layer into the cache at `position`. Columns past the capacity are not kept: they can only
 * be the last token of a full context, which no later call may see. */
static void store_new_tokens(decoder* self, const graph_binding* graph, uint32_t position, uint32_t count) {
  if (position >= self->capacity) return;
  if (count > self->capacity - position) count = self->capacity - position;
  for (uint32_t l = 0; l < self->layers; l++) {
    size_t heads = self->kv_heads[l], dim = self->head_dim[l], capacity = self->capacity, ar = graph->ar;
    const uint8_t* key = graph->outputs[graph->key_out[l]];
    const uint8_t* value = graph->outputs[graph->value_out[l]];
    size_t ke = self->key_element[l], ve = self->value_element[l];
    uint8_t *keys = self->key_cache[l], *values = self->value_cache[l];
    for (size_t r = 0; r < heads * dim; r++) memcpy(keys + (r * capacity + position) * ke, key + r * ar * ke, count * ke);
    for (size_t h = 0; h < heads; h++) memcpy(values + (h * capacity + position) * dim * ve, value + h * ar * dim * ve, count * dim * ve);
  }
}

/* Float ports get a value that is finite in half precision; quantized ones their lowest and the one that means zero. */
static void fill_mask(const executor_port* port, uint8_t* buffer, uint32_t context, uint32_t ar, uint32_t position, uint32_t window) {
  uint8_t attend[8], masked[8];
  size_t element = ir_dtype_size(port->dtype);
  executor_port_write(port, attend, 0, 0.0f);
  executor_port_write(port, masked, 0, port->dtype == IR_F32 || port->dtype == IR_F16 ? -60000.0f : -3.0e38f);
  for (uint32_t row = 0; row < ar; row++) {
    uint32_t own = position + row;
    uint32_t first = window && own + 1 > window ? own + 1 - window : 0; /* oldest position that this token sees */
    for (uint32_t column = 0; column < context; column++) {
      bool visible;
      if (column < context - ar) {
        visible = column < position && column >= first;
      } else {
        uint32_t token = column - (context - ar);
        visible = token <= row && position + token >= first;
      }
      memcpy(buffer + ((size_t)row * context + column) * element, visible ? attend : masked, element);
    }
  }
}

static genai_status* call(decoder* self, graph_binding* graph, const int32_t* ids, uint32_t count) {
  executor* exec = graph->exec;
  int32_t* tokens = graph->inputs[graph->tokens];
  for (uint32_t i = 0; i < graph->ar; i++) tokens[i] = i < count ? ids[i] : 0;
  if (graph->positions >= 0) {
    int32_t* positions = graph->inputs[graph->positions];
    for (uint32_t i = 0; i < graph->ar; i++) {
      uint32_t position = self->position + i; /* padding stays inside the rotary tables */
      positions[i] = (int32_t)(position < self->context ? position : self->context - 1);
    }
  }
  if (graph->mask >= 0) fill_mask(&exec->inputs[graph->mask], graph->inputs[graph->mask], self->context, graph->ar, self->position, 0);
  if (graph->mask_sliding >= 0) {
    if (!self->sliding_window)
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph \"%s\" has a sliding-window mask, but no window width was set",
                                 exec->name);
    fill_mask(&exec->inputs[graph->mask_sliding], graph->inputs[graph->mask_sliding], self->context, graph->ar, self->position,
              self->sliding_window);
  }
  restride_cache(self, self->capacity, graph->capacity, self->position < graph->capacity ? self->position : graph->capacity);
  double started = clock_seconds();
  genai_status* status = executor_run(exec, (const void* const*)graph->inputs, graph->outputs);
  self->execute_seconds += clock_seconds() - started;
  restride_cache(self, graph->capacity, self->capacity, self->position < graph->capacity ? self->position : graph->capacity);
  if (status)
    return genai_status_wrap(status, GENAI_ERROR_VENDOR, "executing graph \"%s\" at position %u failed", exec->name, self->position);
  self->calls++;
  store_new_tokens(self, graph, self->position, count);
  return NULL;
}

static genai_status* send_logits(decoder* self, const graph_binding* graph, uint32_t count, bool all, decoder_logits_sink sink,
                                 void* user) {
  if (!sink) return NULL;
  if (graph->logits_rows != graph->ar && (all || count != graph->ar))
    return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                               "graph \"%s\" gives logits of the last of its %u tokens only, but those of %s were asked for",
                               graph->exec->name, graph->ar, all ? "every token" : "an earlier token");
  const executor_port* port = &graph->exec->outputs[graph->logits];
  for (uint32_t i = all ? 0 : count - 1; i < count; i++) {
    uint64_t row = graph->logits_rows == graph->ar ? i : 0;
    const void* logits = graph->outputs[graph->logits];
    for (uint32_t v = 0; v < self->vocab; v++) self->logits_row[v] = executor_port_read(port, logits, row * self->vocab + v);
    GENAI_TRY(sink(user, self->position + i, self->logits_row));
  }
  return NULL;
}

/* The smallest graph that takes all of `count`, else the largest that the cache still allows; NULL when none does. */
static graph_binding* choose_graph(decoder* self, size_t count, uint32_t exact_ar) {
  graph_binding* chosen = NULL;
  for (size_t g = 0; g < self->n_graphs; g++) {
    graph_binding* graph = &self->graphs[g];
    if (self->position > self->context - graph->ar) break;
    if (self->position > graph->capacity) break;
    if (exact_ar && graph->ar != exact_ar) continue;
    chosen = graph;
    if (graph->ar >= count) break;
  }
  return chosen;
}

genai_status* decoder_run_with(decoder* self, uint32_t ar_length, const int32_t* ids, size_t count, bool all_logits,
                               decoder_logits_sink sink, void* user, const cancel_token* cancel) {
  if (count > self->context - self->position)
    return genai_status_create(GENAI_ERROR_LIMIT,
                               "%zu tokens after %u do not fit the context of %u tokens; shorten the text or compile with a larger context",
                               count, self->position, self->context);
  for (size_t i = 0; i < count; i++) {
    if (ids[i] < 0 || (uint32_t)ids[i] >= self->vocab)
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "token %zu has id %d, expected 0 to %u", i, ids[i], self->vocab - 1);
  }
  while (count) {
    GENAI_TRY(cancel_check(cancel));
    graph_binding* graph = choose_graph(self, count, ar_length);
    if (!graph)
      return genai_status_create(GENAI_ERROR_LIMIT,
                                 "no graph takes tokens at position %u of a context of %u (smallest AR length here: %u); compile with a "
                                 "decode graph (AR 1) or a larger context",
                                 self->position, self->context, self->graphs[0].ar);
    uint32_t block = count < graph->ar ? (uint32_t)count : graph->ar;
    GENAI_TRY(call(self, graph, ids, block));
    if (all_logits || block == count) GENAI_TRY(send_logits(self, graph, block, all_logits, sink, user));
    self->position += block;
    ids += block;
    count -= block;
  }
  return NULL;
}

genai_status* decoder_run(decoder* self, const int32_t* ids, size_t count, bool all_logits, decoder_logits_sink sink, void* user,
                          const cancel_token* cancel) {
  return decoder_run_with(self, 0, ids, count, all_logits, sink, user, cancel);
}
