/* Calibration: runs the float host executor over token sequences and keeps each tensor's smallest and largest value.
 *
 * Sequences are packed into passes: one graph call carries several documents side by side, kept apart by a block-diagonal causal mask and
 * positions that restart, so that every token sees exactly what it would see alone. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "quantize/quantize.h"

typedef struct range {
  const char* name;
  float low, high;
} range;

struct calibration {
  arena names;
  range* table; /* open addressing, power of two */
  size_t capacity, count;
  uint64_t tokens;
  double seconds;
};

static uint64_t hash_name(const char* name) {
  uint64_t hash = 14695981039346656037u; /* FNV-1a */
  for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 1099511628211u;
  return hash;
}

static range* slot_of(range* table, size_t capacity, const char* name) {
  for (size_t i = hash_name(name) & (capacity - 1);; i = (i + 1) & (capacity - 1)) {
    if (!table[i].name || !strcmp(table[i].name, name)) return &table[i];
  }
}

static genai_status* grow(calibration* self) {
  size_t capacity = self->capacity ? self->capacity * 2 : 1024;
  range* table = mem_calloc(capacity, sizeof *table);
  if (!table) return genai_status_out_of_memory();
  for (size_t i = 0; i < self->capacity; i++) {
    if (self->table[i].name) *slot_of(table, capacity, self->table[i].name) = self->table[i];
  }
  mem_free(self->table);
  self->table = table;
  self->capacity = capacity;
  return NULL;
}

bool calibration_range(const calibration* self, const char* tensor, float* low, float* high) {
  if (!self->capacity) return false;
  const range* found = slot_of(self->table, self->capacity, tensor);
  if (!found->name) return false;
  *low = found->low;
  *high = found->high;
  return true;
}

typedef struct observation {
  calibration* ranges;
  const ir_graph* graph;
  thread_pool* pool;
} observation;

/* Values that stand in another observed tensor already, or whose range assign.c takes from their meaning. */
static bool adds_nothing(const ir_graph* graph, const ir_tensor* tensor) {
  if (tensor->producer < 0) return true;
  const ir_op* op = graph->ops[tensor->producer];
  switch (op->kind) {
    case IR_RESHAPE:
    case IR_TRANSPOSE:
    case IR_SLICE:
    case IR_CONCAT:
    case IR_SOFTMAX:
    case IR_SIGMOID:
    case IR_TANH:
      return true;
    default:
      return false;
  }
}

static genai_status* observe(void* user, const ir_tensor* tensor, const float* values, size_t count) {
  observation* self = user;
  calibration* ranges = self->ranges;
  if (adds_nothing(self->graph, tensor)) return NULL;
  if (2 * (ranges->count + 1) > ranges->capacity) GENAI_TRY(grow(ranges));
  range* slot = slot_of(ranges->table, ranges->capacity, tensor->name);
  if (!slot->name) {
    char* name = arena_strdup(&ranges->names, tensor->name);
    if (!name) return genai_status_out_of_memory();
    *slot = (range){name, INFINITY, -INFINITY};
    ranges->count++;
  }
  float low, high;
  if (!cpu_value_range(self->pool, values, count, &low, &high))
    return genai_status_create(
        GENAI_ERROR_BAD_FILE,
        "tensor \"%s\" holds a value that is not finite in the float model; the checkpoint is damaged or the family's "
        "arithmetic does not fit it",
        tensor->name);
  slot->low = low < slot->low ? low : slot->low;
  slot->high = high > slot->high ? high : slot->high;
  return NULL;
}

/* One pass: documents `first` .. `first + count`, `total` tokens. */
typedef struct pass {
  size_t first, count;
  uint32_t total;
} pass;

static genai_status* run_pass(const model* source, const int32_t* const* sequences, const size_t* lengths, const pass* part,
                              const calibration_options* options, calibration* self) {
  model_graph_options graph_options = {
      .name = "calibration", .ar_length = part->total, .context_length = part->total, .rotate_qk = options->how->rotate_qk};
  ir_graph* graph = NULL;
  executor* exec = NULL;
  int32_t *tokens = NULL, *positions = NULL;
  float *mask = NULL, *sliding = NULL;
  const void** inputs = NULL;
  void** outputs = NULL;
  GENAI_TRY(model_build_graph(source, &graph_options, &graph));
  genai_status* status = NULL;
  GENAI_TRY_GOTO(status, recipe_prepare_graph(graph, options->how, options->pool), done);
  observation watch = {self, graph, options->pool};
  cpu_options executor_options = {
      .mode = CPU_FLOAT, .pool = options->pool, .observer = observe, .observer_user = &watch, .cancel = options->cancel};
  GENAI_TRY_GOTO(status, cpu_executor_create(graph, &executor_options, &exec), done);
  size_t n = part->total;
  model_info info;
  model_get_info(source, &info);
  tokens = mem_calloc(n, sizeof *tokens);
  positions = mem_calloc(n, sizeof *positions);
  mask = mem_calloc(n * n, sizeof *mask);
  sliding = mem_calloc(n * n, sizeof *sliding);
  inputs = mem_calloc(exec->n_inputs, sizeof *inputs);
  outputs = mem_calloc(exec->n_outputs, sizeof *outputs);
  if (!tokens || !positions || !mask || !sliding || !inputs || !outputs) {
    status = genai_status_out_of_memory();
    goto done;
  }
  for (size_t i = 0; i < n * n; i++) mask[i] = sliding[i] = -60000.0f;
  size_t row = 0;
  for (size_t d = part->first; d < part->first + part->count; d++) {
    size_t start = row;
    for (size_t i = 0; i < lengths[d]; i++, row++) {
      tokens[row] = sequences[d][i];
      positions[row] = (int32_t)i;
      for (size_t column = start; column <= row; column++) {
        mask[row * n + column] = 0;
        if (!info.sliding_window || row - column < info.sliding_window) sliding[row * n + column] = 0;
      }
    }
  }
  for (uint32_t i = 0; i < exec->n_inputs; i++) {
    switch (exec->inputs[i].role) {
      case IR_ROLE_TOKENS:
        inputs[i] = tokens;
        break;
      case IR_ROLE_POSITIONS:
        inputs[i] = positions;
        break;
      case IR_ROLE_MASK:
        inputs[i] = mask;
        break;
      case IR_ROLE_MASK_SLIDING:
        inputs[i] = sliding;
        break;
      default:
        status = genai_status_create(GENAI_ERROR_INTERNAL, "calibration graph has the unexpected input \"%s\"", exec->inputs[i].name);
        goto done;
    }
  }
  status = executor_run(exec, inputs, outputs);
done:
  executor_destroy(exec);
  ir_graph_destroy(graph);
  mem_free(tokens);
  mem_free(positions);
  mem_free(mask);
  mem_free(sliding);
  mem_free(inputs);
  mem_free(outputs);
  return status;
}

genai_status* calibrate(const model* source, const int32_t* const* sequences, const size_t* lengths, size_t n_sequences,
                        const calibration_options* options, calibration** out) {
  uint32_t limit = options->max_tokens_per_pass ? options->max_tokens_per_pass : 512;
  uint64_t total = 0;
  for (size_t i = 0; i < n_sequences; i++) {
    if (!lengths[i]) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "calibration sequence %zu has no tokens", i);
    if (lengths[i] > limit)
      return genai_status_create(GENAI_ERROR_LIMIT, "calibration sequence %zu has %zu tokens, a pass takes %u; split it", i, lengths[i],
                                 limit);
    total += lengths[i];
  }
  if (!total) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "calibration needs at least one token, got none");
  calibration* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  progress step;
  progress_begin(&step, options->progress, "calibrating", "tokens", total);
  genai_status* status = NULL;
  for (size_t first = 0; first < n_sequences && !status;) {
    pass part = {first, 0, 0};
    while (first + part.count < n_sequences && part.total + lengths[first + part.count] <= limit) {
      part.total += (uint32_t)lengths[first + part.count];
      part.count++;
    }
    status = cancel_check(options->cancel);
    if (!status) status = run_pass(source, sequences, lengths, &part, options, self);
    self->tokens += part.total;
    first += part.count;
    progress_update(&step, self->tokens);
  }
  self->seconds = clock_seconds() - step.started;
  if (status) {
    calibration_destroy(self);
    return status;
  }
  progress_end(&step, self->tokens);
  *out = self;
  return NULL;
}

void calibration_destroy(calibration* self) {
  if (!self) return;
  arena_deinit(&self->names);
  mem_free(self->table);
  mem_free(self);
}

uint64_t calibration_tokens(const calibration* self) {
  return self->tokens;
}

double calibration_seconds(const calibration* self) {
  return self->seconds;
}

/* ---- As bytes ---- */
static const char magic[8] = "genaical";
enum { FORMAT = 1 };

/* A member more must be written and read below, else a resumed run would quantize in another way than an undisturbed one. */
static_assert(sizeof(calibration) == sizeof(arena) + sizeof(range*) + 2 * sizeof(size_t) + sizeof(uint64_t) + sizeof(double),
              "calibration_write and calibration_read know every member");

typedef struct calibration_header {
  char magic[8];
  uint32_t format, reserved;
  uint64_t count, tokens;
  double seconds;
} calibration_header;

typedef struct range_header {
  uint32_t name_length;
  float low, high;
} range_header;

genai_status* calibration_write(const calibration* self, text* out) {
  calibration_header header = {.format = FORMAT, .count = self->count, .tokens = self->tokens, .seconds = self->seconds};
  memcpy(header.magic, magic, sizeof magic);
  GENAI_TRY(text_append(out, (const char*)&header, sizeof header));
  for (size_t i = 0; i < self->capacity; i++) {
    const range* item = &self->table[i];
    if (!item->name) continue;
    range_header entry = {(uint32_t)strlen(item->name), item->low, item->high};
    GENAI_TRY(text_append(out, (const char*)&entry, sizeof entry));
    GENAI_TRY(text_append(out, item->name, entry.name_length));
  }
  return NULL;
}

static genai_status* read_ranges(const uint8_t* data, size_t size, uint64_t count, calibration* self) {
  for (uint64_t i = 0; i < count; i++) {
    range_header entry;
    bool whole = size >= sizeof entry;
    if (whole) memcpy(&entry, data, sizeof entry);
    if (!whole || entry.name_length > size - sizeof entry || memchr(data + sizeof entry, 0, entry.name_length))
      return genai_status_create(GENAI_ERROR_BAD_FILE, "the stored calibration is cut short at range %llu of %llu", (unsigned long long)i,
                                 (unsigned long long)count);
    if (2 * (self->count + 1) > self->capacity) GENAI_TRY(grow(self));
    char* name = arena_alloc(&self->names, entry.name_length + (size_t)1);
    if (!name) return genai_status_out_of_memory();
    memcpy(name, data + sizeof entry, entry.name_length);
    name[entry.name_length] = 0;
    range* slot = slot_of(self->table, self->capacity, name);
    if (slot->name) return genai_status_create(GENAI_ERROR_BAD_FILE, "the stored calibration has tensor \"%s\" twice", name);
    *slot = (range){name, entry.low, entry.high};
    self->count++;
    data += sizeof entry + entry.name_length;
    size -= sizeof entry + entry.name_length;
  }
  return size ? genai_status_create(GENAI_ERROR_BAD_FILE, "the stored calibration has %zu bytes too many", size) : NULL;
}

genai_status* calibration_read(const void* data, size_t size, calibration** out) {
  calibration_header header;
  if (size < sizeof header) return genai_status_create(GENAI_ERROR_BAD_FILE, "the stored calibration has %zu bytes, too few", size);
  memcpy(&header, data, sizeof header);
  if (memcmp(header.magic, magic, sizeof magic) || header.format != FORMAT)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "the stored calibration has another format than %d", FORMAT);
  calibration* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  self->tokens = header.tokens;
  self->seconds = header.seconds;
  genai_status* status = read_ranges((const uint8_t*)data + sizeof header, size - sizeof header, header.count, self);
  if (status) {
    calibration_destroy(self);
    return status;
  }
  *out = self;
  return NULL;
}
