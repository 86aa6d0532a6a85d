/* Building and changing a graph: tensors, operators, names, the boundary. What a graph must satisfy as a whole is checked in verify.c. */
#include <string.h>

#include "ir/ir.h"
#include "ir/rotation.h"

genai_status* ir_graph_create(const char* name, ir_graph** out) {
  ir_graph* graph = mem_calloc(1, sizeof *graph);
  if (!graph) return genai_status_out_of_memory();
  graph->name = arena_strdup(&graph->memory, name);
  if (!graph->name) {
    ir_graph_destroy(graph);
    return genai_status_out_of_memory();
  }
  *out = graph;
  return NULL;
}

void ir_graph_destroy(ir_graph* graph) {
  if (!graph) return;
  mem_free(graph->tensors);
  mem_free(graph->ops);
  mem_free(graph->inputs);
  mem_free(graph->outputs);
  mem_free(graph->tensor_table);
  mem_free(graph->op_table);
  rotation_destroy(graph->residual_rotation);
  arena_deinit(&graph->memory);
  mem_free(graph);
}

/* FNV-1a, 32 bits. */
static uint32_t hash_name(const char* name) {
  uint32_t hash = 2166136261u;
  for (; *name; ++name) hash = (hash ^ (uint8_t)*name) * 16777619u;
  return hash;
}

static void table_insert(uint32_t* table, uint32_t size, const char* name, uint32_t index) {
  uint32_t slot = hash_name(name) & (size - 1);
  while (table[slot]) slot = (slot + 1) & (size - 1);
  table[slot] = index + 1;
}

static ir_tensor* find_tensor(const ir_graph* graph, const char* name) {
  if (!graph->tensor_table) return NULL;
  uint32_t mask = graph->tensor_table_size - 1;
  for (uint32_t slot = hash_name(name) & mask; graph->tensor_table[slot]; slot = (slot + 1) & mask) {
    ir_tensor* tensor = graph->tensors[graph->tensor_table[slot] - 1];
    if (!strcmp(tensor->name, name)) return tensor;
  }
  return NULL;
}

ir_tensor* ir_graph_find(const ir_graph* graph, const char* name) {
  return find_tensor(graph, name);
}

ir_op* ir_graph_find_op(const ir_graph* graph, const char* name) {
  if (!graph->op_table) return NULL;
  uint32_t mask = graph->op_table_size - 1;
  for (uint32_t slot = hash_name(name) & mask; graph->op_table[slot]; slot = (slot + 1) & mask) {
    ir_op* op = graph->ops[graph->op_table[slot] - 1];
    if (!strcmp(op->name, name)) return op;
  }
  return NULL;
}

/* Makes room for one more pointer in `items`, and a name table at most half full. `*grown` is NULL when there was room already. */
static genai_status* reserve(void* items, uint32_t count, uint32_t* capacity, uint32_t** table, uint32_t* table_size, void** grown) {
  *grown = NULL;
  if (count < *capacity) return NULL;
  if (*capacity > UINT32_MAX / 8) return genai_status_create(GENAI_ERROR_LIMIT, "a graph of more than %u parts", *capacity);
  uint32_t larger = *capacity ? *capacity * 2 : 64;
  uint32_t* slots = mem_calloc((size_t)larger * 2, sizeof *slots);
  void* moved = slots ? mem_realloc_array(items, larger, sizeof(void*)) : NULL;
  if (!moved) {
    mem_free(slots);
    return genai_status_out_of_memory();
  }
  mem_free(*table);
  *table = slots;
  *table_size = larger * 2;
  *capacity = larger;
  *grown = moved;
  return NULL;
}

static genai_status* reserve_tensor(ir_graph* graph) {
  void* grown;
  GENAI_TRY(reserve(graph->tensors, graph->n_tensors, &graph->tensor_capacity, &graph->tensor_table, &graph->tensor_table_size, &grown));
  if (!grown) return NULL;
  graph->tensors = grown;
  for (uint32_t i = 0; i < graph->n_tensors; ++i) table_insert(graph->tensor_table, graph->tensor_table_size, graph->tensors[i]->name, i);
  return NULL;
}

static void index_ops(ir_graph* graph) {
  memset(graph->op_table, 0, graph->op_table_size * sizeof *graph->op_table);
  for (uint32_t i = 0; i < graph->n_ops; ++i) table_insert(graph->op_table, graph->op_table_size, graph->ops[i]->name, i);
}

static genai_status* reserve_op(ir_graph* graph) {
  void* grown;
  GENAI_TRY(reserve(graph->ops, graph->n_ops, &graph->op_capacity, &graph->op_table, &graph->op_table_size, &grown));
  if (!grown) return NULL;
  graph->ops = grown;
  index_ops(graph);
  return NULL;
}

/* Appends an id to a boundary list. */
static genai_status* append_id(int32_t** list, uint32_t* count, int32_t id) {
  int32_t* grown = mem_realloc_array(*list, (size_t)*count + 1, sizeof **list);
  if (!grown) return genai_status_out_of_memory();
  grown[*count] = id;
  *list = grown;
  ++*count;
  return NULL;
}

genai_status* ir_graph_add_tensor(ir_graph* graph, const char* name, ir_tensor_kind kind, ir_dtype dtype, uint32_t rank,
                                  const uint32_t* dims, ir_tensor** out) {
  if (rank == 0 || rank > IR_MAX_RANK) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "tensor %s: rank %u; a graph's tensors have 1 to %d dimensions", name, rank,
                               IR_MAX_RANK);
  }
  uint64_t elements = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    if (dims[i] == 0) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "tensor %s: dimension %u is 0", name, i);
    if (!u64_mul(elements, dims[i], &elements) || elements > UINT64_MAX / 8) {
      return genai_status_create(GENAI_ERROR_LIMIT, "tensor %s: its dimensions multiply beyond 64 bits", name);
    }
  }
  if (find_tensor(graph, name)) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s has a tensor %s already", graph->name, name);
  }
  GENAI_TRY(reserve_tensor(graph));
  ir_tensor* tensor = arena_calloc(&graph->memory, 1, sizeof *tensor);
  char* copy = tensor ? arena_strdup(&graph->memory, name) : NULL;
  if (!copy) return genai_status_out_of_memory();
  tensor->id = (int32_t)graph->n_tensors;
  tensor->name = copy;
  tensor->kind = kind;
  tensor->dtype = dtype;
  tensor->rank = rank;
  memcpy(tensor->dims, dims, rank * sizeof *dims);
  tensor->layer = -1;
  tensor->producer = -1;
  if (kind == IR_INPUT) GENAI_TRY(append_id(&graph->inputs, &graph->n_inputs, tensor->id));
  if (kind == IR_OUTPUT) GENAI_TRY(append_id(&graph->outputs, &graph->n_outputs, tensor->id));
  graph->tensors[graph->n_tensors] = tensor;
  table_insert(graph->tensor_table, graph->tensor_table_size, copy, graph->n_tensors);
  ++graph->n_tensors;
  *out = tensor;
  return NULL;
}

genai_status* ir_graph_add_static(ir_graph* graph, const char* name, uint32_t rank, const uint32_t* dims, const ir_static* source,
                                  ir_tensor** out) {
  uint64_t elements = 1, described;
  for (uint32_t i = 0; i < rank && i < IR_MAX_RANK; ++i) {
    if (!u64_mul(elements, dims[i], &elements)) elements = UINT64_MAX;
  }
  if (!u64_mul(source->rows, source->cols, &described) || described != elements) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "static %s: %llu rows of %llu do not fill its dimensions (%llu elements)",
                               name, (unsigned long long)source->rows, (unsigned long long)source->cols, (unsigned long long)elements);
  }
  if (!source->tensor == !source->constants) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "static %s needs a checkpoint tensor or constants, one of the two", name);
  }
  ir_static* copy = arena_dup(&graph->memory, source, sizeof *source);
  if (!copy) return genai_status_out_of_memory();
  GENAI_TRY(ir_graph_add_tensor(graph, name, IR_STATIC, IR_F32, rank, dims, out));
  (*out)->source = copy;
  return NULL;
}

genai_status* ir_graph_mark_output(ir_graph* graph, ir_tensor* tensor, ir_role role, int32_t layer) {
  if (tensor->kind != IR_INTERMEDIATE) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "tensor %s cannot become an output: it is not an intermediate", tensor->name);
  }
  GENAI_TRY(append_id(&graph->outputs, &graph->n_outputs, tensor->id));
  tensor->kind = IR_OUTPUT;
  tensor->role = role;
  tensor->layer = layer;
  return NULL;
}

genai_status* ir_graph_add_op(ir_graph* graph, ir_op_kind kind, const char* name, const int32_t* inputs, uint32_t n_inputs, int32_t output,
                              ir_op** out) {
  if ((unsigned)kind >= IR_OP_KIND_COUNT || n_inputs == 0) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "operator %s: kind %d with %u inputs", name, (int)kind, n_inputs);
  }
  for (uint32_t i = 0; i <= n_inputs; ++i) {
    int32_t id = i < n_inputs ? inputs[i] : output;
    if (id < 0 || (uint32_t)id >= graph->n_tensors) {
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "operator %s: tensor id %d does not exist", name, id);
    }
  }
  ir_tensor* target = graph->tensors[output];
  if (target->producer >= 0 || target->kind == IR_STATIC || target->kind == IR_INPUT) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "operator %s: tensor %s is written elsewhere or is not written at all", name,
                               target->name);
  }
  if (ir_graph_find_op(graph, name)) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s has an operator %s already", graph->name, name);
  }
  GENAI_TRY(reserve_op(graph));
  ir_op* op = arena_calloc(&graph->memory, 1, sizeof *op);
  char* copy = op ? arena_strdup(&graph->memory, name) : NULL;
  int32_t* ids = copy ? arena_dup(&graph->memory, inputs, n_inputs * sizeof *inputs) : NULL;
  if (!ids) return genai_status_out_of_memory();
  op->id = (int32_t)graph->n_ops;
  op->name = copy;
  op->kind = kind;
  op->n_inputs = n_inputs;
  op->inputs = ids;
  op->output = output;
  target->producer = op->id;
  graph->ops[graph->n_ops] = op;
  table_insert(graph->op_table, graph->op_table_size, copy, graph->n_ops);
  ++graph->n_ops;
  *out = op;
  return NULL;
}

ir_tensor* ir_graph_find_role(const ir_graph* graph, ir_role role, int32_t layer) {
  for (uint32_t i = 0; i < graph->n_inputs + graph->n_outputs; ++i) {
    ir_tensor* tensor = graph->tensors[i < graph->n_inputs ? graph->inputs[i] : graph->outputs[i - graph->n_inputs]];
    if (tensor->role == role && tensor->layer == layer) return tensor;
  }
  return NULL;
}

genai_status* ir_graph_remove_op(ir_graph* graph, int32_t op, int32_t replacement) {
  if (op < 0 || (uint32_t)op >= graph->n_ops || replacement < 0 || (uint32_t)replacement >= graph->n_tensors) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "graph %s: no operator %d or no tensor %d", graph->name, op, replacement);
  }
  ir_op* gone = graph->ops[op];
  ir_tensor* old = graph->tensors[gone->output];
  ir_tensor* substitute = graph->tensors[replacement];
  if (substitute == old || substitute->producer >= op) {
    return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "operator %s: its replacement %s must be computed before it", gone->name,
                               substitute->name);
  }
  if (old->kind == IR_OUTPUT) {
    if (substitute->kind != IR_INTERMEDIATE) {
      return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT,
                                 "operator %s writes the output %s, and %s cannot take its place: only an intermediate can", gone->name,
                                 old->name, substitute->name);
    }
    for (uint32_t i = 0; i < graph->n_outputs; ++i) {
      if (graph->outputs[i] == old->id) graph->outputs[i] = replacement;
    }
    substitute->kind = IR_OUTPUT;
    substitute->role = old->role;
    substitute->layer = old->layer;
    old->kind = IR_INTERMEDIATE;
    old->role = IR_ROLE_NONE;
    old->layer = -1;
  }
  for (uint32_t i = 0; i < graph->n_ops; ++i) {
    for (uint32_t j = 0; j < graph->ops[i]->n_inputs; ++j) {
      if (graph->ops[i]->inputs[j] == old->id) graph->ops[i]->inputs[j] = replacement;
    }
  }
  old->producer = -1;
  --graph->n_ops;
  for (uint32_t i = (uint32_t)op; i < graph->n_ops; ++i) {
    graph->ops[i] = graph->ops[i + 1];
    graph->ops[i]->id = (int32_t)i;
    graph->tensors[graph->ops[i]->output]->producer = (int32_t)i;
  }
  index_ops(graph);
  return NULL;
}

void ir_graph_move_op(ir_graph* graph, int32_t op, int32_t position) {
  ir_op* moved = graph->ops[op];
  for (int32_t i = op; i > position; --i) graph->ops[i] = graph->ops[i - 1];
  for (int32_t i = op; i < position; ++i) graph->ops[i] = graph->ops[i + 1];
  graph->ops[position] = moved;
  for (uint32_t i = 0; i < graph->n_ops; ++i) {
    graph->ops[i]->id = (int32_t)i;
    graph->tensors[graph->ops[i]->output]->producer = (int32_t)i;
  }
  index_ops(graph);
}
