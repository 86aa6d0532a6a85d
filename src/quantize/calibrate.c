/* Calibration: runs the float host executor over token sequences and keeps each tensor's smallest and largest value, second moments of the
 * inputs of linear layers, and which neurons stand out.
 *
 * Sequences are packed into passes: one graph call carries several documents side by side, kept apart by a block-diagonal causal mask, so that
 * every token sees exactly what it would see alone. Where the residual stream is rotated between norms, each begins at a position of its own: scores
 * depend on distances alone, but the queries and keys that rotary embedding turns do not, and documents that all begin at 0 show the ranges of
 * the first few angles only. */
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "quantize/calibration.h"
#include "quantize/rewrite.h"

/* What the observer of one pass needs. */
typedef struct observation {
  calibration* seen;
  const ir_graph* graph;
  const calibration_options* options;
  const int32_t* places; /* of the pass's rows: tokens before each in its document */
  size_t rows;
  bool* linear_input; /* by tensor: a weight of the checkpoint reads it */
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

static genai_status* observe_range(const observation* self, const ir_tensor* tensor, const float* values, size_t count) {
  observed* slot;
  float low, high;
  GENAI_TRY(calibration_entry(self->seen, tensor->name, &slot));
  if (!cpu_value_range(self->options->pool, values, count, &low, &high))
    return genai_status_create(
        GENAI_ERROR_BAD_FILE,
        "tensor \"%s\" holds a value that is not finite in the float model; the checkpoint is damaged or the family's "
        "arithmetic does not fit it",
        tensor->name);
  slot->low = low < slot->low ? low : slot->low;
  slot->high = high > slot->high ? high : slot->high;
  return NULL;
}

static genai_status* observe_moments(const observation* self, const ir_tensor* tensor, const float* values, size_t count) {
  uint32_t cols = tensor->dims[tensor->rank - 1];
  if (count != self->rows * cols) return NULL;
  observed* slot;
  GENAI_TRY(calibration_entry(self->seen, tensor->name, &slot));
  if (!slot->inputs) GENAI_TRY(moments_create(cols, self->options->how->feedback, &slot->inputs));
  return moments_add(slot->inputs, values, self->places, self->rows);
}

static genai_status* observe(void* user, const ir_tensor* tensor, const float* values, size_t count) {
  const observation* self = user;
  if (!adds_nothing(self->graph, tensor)) GENAI_TRY(observe_range(self, tensor, values, count));
  return self->linear_input[tensor->id] && self->options->how->feedback ? observe_moments(self, tensor, values, count) : NULL;
}

/* Channels of feed-forward products that stand out in this pass. */
static genai_status* observe_neurons(void* user, const ir_tensor* tensor, const float* values, size_t count) {
  const observation* self = user;
  if (!neurons_site(self->graph, tensor)) return NULL;
  uint32_t channels = tensor->dims[3], chosen[NEURONS_PER_LAYER];
  float* largest = mem_calloc(channels, sizeof *largest);
  if (!largest) return genai_status_out_of_memory();
  for (size_t i = 0; i < count; i += channels) {
    for (uint32_t c = 0; c < channels; c++) {
      float magnitude = fabsf(values[i + c]);
      largest[c] = magnitude > largest[c] ? magnitude : largest[c];
    }
  }
  genai_status* status = NULL;
  uint32_t found = neurons_choose(largest, channels, chosen);
  for (uint32_t i = 0; i < found && !status; i++) status = calibration_add_neuron(self->seen, tensor->name, chosen[i]);
  mem_free(largest);
  return status;
}

static void mark_linear_inputs(const ir_graph* graph, bool* marks) {
  for (uint32_t i = 0; i < graph->n_ops; i++) {
    const ir_op* op = graph->ops[i];
    if (op->kind == IR_CONV2D && !graph->tensors[op->inputs[1]]->source->constants) marks[op->inputs[0]] = true;
  }
}

/* Positions that documents are spread over, where the model was trained on so many. */
enum { POSITIONS = 4096 };

static uint32_t positions_of(const model_info* info, uint32_t tokens) {
  uint32_t positions = info->trained_context && info->trained_context < POSITIONS ? info->trained_context : POSITIONS;
  return positions > tokens ? positions : tokens;
}

/* Where document `index` of all begins: 0 for the first, the others evenly spread (multiples of the golden ratio). */
static int32_t position_of(size_t index, size_t length, uint32_t positions) {
  double turns = (double)index * 0.6180339887498949;
  return (int32_t)((turns - floor(turns)) * (double)(positions - length));
}

/* One pass: documents `first` .. `first + count`, `total` tokens. */
typedef struct pass {
  size_t first, count;
  uint32_t total;
} pass;

static genai_status* run_pass(const model* source, const int32_t* const* sequences, const size_t* lengths, const pass* part,
                              const calibration_options* options, cpu_observer observer, calibration* self) {
  model_info info;
  model_get_info(source, &info);
  uint32_t positions_end = positions_of(&info, part->total);
  model_graph_options graph_options = {.name = "calibration",
                                       .ar_length = part->total,
                                       .context_length = part->total,
                                       .positions = positions_end,
                                       .rotate_qk = options->how->rotate_qk};
  ir_graph* graph = NULL;
  executor* exec = NULL;
  int32_t *tokens = NULL, *positions = NULL, *places = NULL;
  float *mask = NULL, *sliding = NULL;
  bool* linear_input = NULL;
  const void** inputs = NULL;
  void** outputs = NULL;
  GENAI_TRY(model_build_graph(source, &graph_options, &graph));
  genai_status* status = NULL;
  GENAI_TRY_GOTO(status, recipe_prepare_graph(graph, options->how, self, options->pool), done);
  observation watch = {.seen = self, .graph = graph, .options = options, .rows = part->total};
  cpu_options executor_options = {
      .mode = CPU_FLOAT, .pool = options->pool, .observer = observer, .observer_user = &watch, .cancel = options->cancel};
  GENAI_TRY_GOTO(status, cpu_executor_create(graph, &executor_options, &exec), done);
  size_t n = part->total;
  tokens = mem_calloc(n, sizeof *tokens);
  positions = mem_calloc(n, sizeof *positions);
  places = mem_calloc(n, sizeof *places);
  mask = mem_calloc(n * n, sizeof *mask);
  sliding = mem_calloc(n * n, sizeof *sliding);
  linear_input = mem_calloc(graph->n_tensors, sizeof *linear_input);
  inputs = mem_calloc(exec->n_inputs, sizeof *inputs);
  outputs = mem_calloc(exec->n_outputs, sizeof *outputs);
  if (!tokens || !positions || !places || !mask || !sliding || !linear_input || !inputs || !outputs) {
    status = genai_status_out_of_memory();
    goto done;
  }
  mark_linear_inputs(graph, linear_input);
  watch.linear_input = linear_input;
  watch.places = places;
  for (size_t i = 0; i < n * n; i++) mask[i] = sliding[i] = -60000.0f;
  bool spread = rotated_between_norms(graph);
  size_t row = 0;
  for (size_t d = part->first; d < part->first + part->count; d++) {
    size_t start = row;
    int32_t position = spread ? position_of(d, lengths[d], positions_end) : 0;
    for (size_t i = 0; i < lengths[d]; i++, row++) {
      tokens[row] = sequences[d][i];
      places[row] = (int32_t)i;
      positions[row] = position + (int32_t)i;
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
  mem_free(places);
  mem_free(mask);
  mem_free(sliding);
  mem_free(linear_input);
  mem_free(inputs);
  mem_free(outputs);
  return status;
}

/* The beginnings of the first sequences, in one pass: neurons that stand out do so on a sequence's first tokens. The other passes need to know
 * them, for they see the graph with these split off. */
static genai_status* find_neurons(const model* source, const int32_t* const* sequences, const size_t* lengths, size_t n_sequences,
                                  const calibration_options* options, calibration* self) {
  enum { SEQUENCES = 4, TOKENS = 32 };
  size_t beginnings[SEQUENCES];
  pass part = {0, n_sequences < SEQUENCES ? n_sequences : SEQUENCES, 0};
  for (size_t i = 0; i < part.count; i++) {
    beginnings[i] = lengths[i] < TOKENS ? lengths[i] : TOKENS;
    part.total += (uint32_t)beginnings[i];
  }
  return run_pass(source, sequences, beginnings, &part, options, observe_neurons, self);
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
  genai_status* status = options->how->split_neurons ? find_neurons(source, sequences, lengths, n_sequences, options, self) : NULL;
  for (size_t first = 0; first < n_sequences && !status;) {
    pass part = {first, 0, 0};
    while (first + part.count < n_sequences && part.total + lengths[first + part.count] <= limit) {
      part.total += (uint32_t)lengths[first + part.count];
      part.count++;
    }
    status = cancel_check(options->cancel);
    if (!status) status = run_pass(source, sequences, lengths, &part, options, observe, self);
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
