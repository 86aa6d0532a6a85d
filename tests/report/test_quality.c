/* Float against simulated by layer: the numbers for two tapped tensors of the `llama` fixture are computed once more here, from whole
 * recordings and by evaluate_sqnr's formula in double. */
#include <math.h>

#include "base/memory.h"
#include "checkpoint/checkpoint.h"
#include "cpu/cpu.h"
#include "model/model.h"
#include "quantize/quantize.h"
#include "report/report.h"
#include "runtime/runtime.h"
#include "support.h"

enum { AR = 8, CONTEXT = 32, TOKENS = 12 }; /* two calls, the second with four tokens of eight */
static const int32_t ids[TOKENS] = {1, 17, 250, 3, 99, 42, 42, 7, 311, 5, 64, 128};

typedef struct fixture {
  checkpoint* file;
  model* source;
  ir_graph* graph;
} fixture;

static void open_fixture(fixture* self) {
  recipe how;
  calibration* ranges;
  int32_t sample[64];
  for (int i = 0; i < 64; i++) sample[i] = (i * 37 + 11) % 320;
  const int32_t* sequences[] = {sample};
  const size_t lengths[] = {64};
  assert_ok(checkpoint_open(test_data("checkpoints/llama"), &self->file));
  assert_ok(model_open(self->file, &self->source));
  assert_ok(recipe_load("16a8w", &how));
  recipe_adapt(&how, self->source);
  assert_ok(calibrate(self->source, sequences, lengths, 1, &(calibration_options){.how = &how}, &ranges));
  model_graph_options options = {.name = "prefill_forward", .ar_length = AR, .context_length = CONTEXT, .rotate_qk = how.rotate_qk};
  assert_ok(model_build_graph(self->source, &options, &self->graph));
  assert_ok(quantize_graph(self->graph, ranges, &how, NULL));
  calibration_destroy(ranges);
}

static void close_fixture(fixture* self) {
  ir_graph_destroy(self->graph);
  model_close(self->source);
  checkpoint_close(self->file);
}

/* ---- A recording of one tensor, whole calls ---- */
typedef struct recording {
  const char* name;
  size_t calls, width;
  float values[2][AR * 64];
} recording;

static genai_status* record(void* user, const ir_tensor* tensor, const float* values, size_t count) {
  recording* self = user;
  if (strcmp(tensor->name, self->name)) return NULL;
  assert_true(self->calls < 2 && count <= AR * 64 && count % AR == 0);
  memcpy(self->values[self->calls++], values, count * sizeof *values);
  self->width = count / AR;
  return NULL;
}

static void run_once(const fixture* self, cpu_mode mode, recording* out) {
  executor* exec;
  decoder* sequence;
  const cpu_options options = {.mode = mode, .observer = record, .observer_user = out};
  assert_ok(cpu_executor_create(self->graph, &options, &exec));
  assert_ok(decoder_create(&exec, 1, &sequence));
  assert_ok(decoder_run(sequence, ids, TOKENS, false, NULL, NULL, NULL));
  assert_int_equal(out->calls, 2);
  decoder_destroy(sequence);
  executor_destroy(exec);
}

static double expected(const fixture* self, const char* name) {
  static recording reference, test;
  reference = (recording){.name = name};
  test = (recording){.name = name};
  run_once(self, CPU_FLOAT, &reference);
  run_once(self, CPU_SIMULATED, &test);
  double signal = 0, noise = 0;
  for (size_t token = 0; token < TOKENS; token++) {
    for (size_t i = 0; i < reference.width; i++) {
      double a = reference.values[token / AR][token % AR * reference.width + i],
             b = test.values[token / AR][token % AR * reference.width + i];
      signal += a * a;
      noise += (a - b) * (a - b);
    }
  }
  return 10 * log10(signal / noise);
}

static void agrees_with_whole_recordings(void** state) {
  (void)state;
  fixture self;
  report_quality quality;
  const report_quality_options options = {0};
  open_fixture(&self);
  assert_ok(report_measure_quality(self.graph, ids, TOKENS, &options, &quality));
  assert_int_equal(quality.n_layers, 2);
  assert_int_equal(quality.tokens, TOKENS);
  assert_in_range(quality.same_choice, 1, TOKENS);
  assert_true(quality.logits > 10 && quality.logits < 100);
  assert_float_equal(quality.layers[0].attention, expected(&self, "layer0.attention.o_proj"), 1e-6);
  assert_float_equal(quality.layers[1].feed_forward, expected(&self, "layer1.feed_forward.down_proj"), 1e-6);
  assert_float_equal(quality.layers[1].output, expected(&self, "layer1.feed_forward_residual"), 1e-6);
  report_quality_deinit(&quality);
  close_fixture(&self);
}

static void refuses_what_it_cannot_measure(void** state) {
  (void)state;
  fixture self;
  report_quality quality;
  const report_quality_options options = {0};
  open_fixture(&self);
  assert_fails(report_measure_quality(self.graph, ids, 0, &options, &quality), GENAI_ERROR_CONFIG_VALIDATION, "0 tokens");
  assert_fails(report_measure_quality(self.graph, ids, CONTEXT + 1, &options, &quality), GENAI_ERROR_CONFIG_VALIDATION, "33 tokens");
  cancel_token cancelled = {.requested = true};
  const report_quality_options stopped = {.cancel = &cancelled};
  assert_fails(report_measure_quality(self.graph, ids, TOKENS, &stopped, &quality), GENAI_ERROR_CANCELLED, "");
  close_fixture(&self);
}

static void statistics_count_the_graph(void** state) {
  (void)state;
  fixture self;
  report_graph counted;
  open_fixture(&self);
  report_graph_statistics(self.graph, &counted);
  uint32_t operators = 0, tensors = 0;
  for (unsigned i = 0; i < IR_OP_KIND_COUNT; i++) operators += counted.by_kind[i];
  for (unsigned i = 0; i < REPORT_TENSOR_KINDS; i++) tensors += counted.tensors[i];
  assert_int_equal(operators, self.graph->n_ops);
  assert_int_equal(tensors, self.graph->n_tensors);
  assert_int_equal(counted.by_kind[IR_SOFTMAX], 2); /* one for each layer */
  assert_int_equal(counted.by_kind[IR_MATMUL], 4);
  assert_int_equal(counted.tensors[IR_INPUT], 3 + 2 * 2);
  assert_int_equal(counted.tensors[IR_OUTPUT], 1 + 2 * 2);
  uint64_t elements = 0;
  for (uint32_t i = 0; i < counted.n_weights; i++) {
    elements += counted.weights[i].elements;
    assert_true(!i || counted.weights[i - 1].elements >= counted.weights[i].elements);
    assert_int_equal(counted.weights[i].bytes, counted.weights[i].elements * counted.weights[i].bits / 8);
  }
  assert_int_equal(elements, counted.weight_elements);
  close_fixture(&self);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(agrees_with_whole_recordings),
      cmocka_unit_test(refuses_what_it_cannot_measure),
      cmocka_unit_test(statistics_count_the_graph),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
