/* The residual rotation: R is orthogonal and spreads, and a rotated graph still computes the fixtures' reference logits (transformers, see
 * tests/data/checkpoints). */
#include <math.h>

#include "base/json.h"
#include "base/memory.h"
#include "causal_inputs.h"
#include "cpu/cpu.h"
#include "ir/rotation.h"
#include "quantize/quantize.h"
#include "support.h"

/* By columns R^T I must be what `rows`, the first rows of R, are by rows. */
static void check_columns(const rotation* r, const float* rows, uint32_t n, uint32_t width) {
  float* columns = mem_calloc((size_t)n * width, sizeof *columns);
  float* scratch = mem_calloc(rotation_scratch(r) * width, sizeof *scratch);
  for (uint32_t c = 0; c < width; c++) columns[(size_t)c * width + c] = 1;
  rotation_apply_columns(r, columns, width, scratch);
  for (uint32_t i = 0; i < n; i++) {
    for (uint32_t c = 0; c < width; c++) assert_true(fabsf(columns[(size_t)i * width + c] - rows[(size_t)c * n + i]) < 1e-6f);
  }
  mem_free(columns);
  mem_free(scratch);
}

static void test_matrix_is_orthogonal_and_flat(void** state) {
  (void)state;
  static const uint32_t sizes[] = {1, 2, 3, 48, 60, 64, 255, 576, 896, 960, 1536};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    uint32_t n = sizes[s];
    rotation* r;
    assert_ok(rotation_create(n, &r));
    float* matrix = mem_calloc((size_t)n * n, sizeof *matrix);
    for (uint32_t i = 0; i < n; i++) matrix[(size_t)i * n + i] = 1;
    rotation_apply_rows(r, matrix, n); /* rows of I times R: R itself */
    double worst = 0;
    float largest = 0;
    for (uint32_t i = 0; i<n; i += n> 300 ? 37 : 1) {
      for (uint32_t j = 0; j < n; j++) {
        double dot = 0;
        for (uint32_t k = 0; k < n; k++) dot += (double)matrix[(size_t)i * n + k] * (double)matrix[(size_t)j * n + k];
        worst = fmax(worst, fabs(dot - (i == j)));
        largest = fmaxf(largest, fabsf(matrix[(size_t)i * n + j]));
      }
    }
    assert_true(worst < 1e-5);
    assert_true((double)largest <= 1.42 / sqrt(n)); /* a Hartley entry is at most sqrt(2) / sqrt(m) */
    check_columns(r, matrix, n, n < 5 ? n : 5);
    mem_free(matrix);
    rotation_destroy(r);
  }
  rotation* none;
  assert_fails(rotation_create(257, &none), GENAI_ERROR_UNSUPPORTED, "odd part above 255");
  assert_fails(rotation_create(0, &none), GENAI_ERROR_INVALID_ARGUMENT, "at least 1");
}

/* Hadamard matrices: R R^T = I, and every entry is plus or minus 1 / sqrt(n). Sizes of published models with norms on both sides, and small ones
 * of both of Paley's constructions. */
static void test_flat_matrix(void** state) {
  (void)state;
  static const uint32_t sizes[] = {1, 2, 4, 12, 20, 24, 28, 36, 64, 640, 1152, 2304, 2560, 3584, 3840, 5376};
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    uint32_t n = sizes[s], step = n > 100 ? n / 24 + 1 : 1;
    rotation* r;
    assert_ok(rotation_create_flat(n, &r));
    uint32_t count = (n + step - 1) / step;
    float* rows = mem_calloc(count, (size_t)n * sizeof *rows);
    for (uint32_t i = 0; i < count; i++) rows[(size_t)i * n + (size_t)i * step] = 1;
    rotation_apply_rows(r, rows, count);
    for (uint32_t i = 0; i < count; i++) {
      for (uint32_t j = 0; j <= i; j++) {
        double dot = 0;
        for (uint32_t k = 0; k < n; k++) dot += (double)rows[(size_t)i * n + k] * (double)rows[(size_t)j * n + k];
        assert_true(fabs(dot - (i == j)) < 1e-5);
      }
      for (uint32_t k = 0; k < n; k++) assert_true(fabs(fabs((double)rows[(size_t)i * n + k]) * sqrt(n) - 1) < 1e-5);
    }
    if (step == 1) check_columns(r, rows, n, n);
    mem_free(rows);
    rotation_destroy(r);
  }
  rotation* none;
  assert_fails(rotation_create_flat(184, &none), GENAI_ERROR_UNSUPPORTED, "no Hadamard matrix");
  assert_fails(rotation_create_flat(3, &none), GENAI_ERROR_UNSUPPORTED, "no Hadamard matrix");
  assert_fails(rotation_create_flat(0, &none), GENAI_ERROR_INVALID_ARGUMENT, "at least 1");
}

typedef struct reference {
  int32_t ids[64];
  size_t count;
  float* logits;
  size_t vocab;
} reference;

static void load_reference(const char* directory, reference* out) {
  char path[512];
  json_document* document;
  snprintf(path, sizeof path, "%s/expected.json", directory);
  assert_ok(json_parse_file(path, 1 << 20, &document));
  json_iterator iterator = json_iterate(json_get(json_root(document), "input_ids"));
  json_value value;
  out->count = 0;
  while (json_next(&iterator, NULL, &value)) out->ids[out->count++] = (int32_t)json_integer(value, -1);
  json_free(document);
  snprintf(path, sizeof path, "%s/expected_logits.f32", directory);
  mapped_file file;
  assert_ok(mapped_file_open(path, &file));
  out->logits = mem_dup(file.data, file.size);
  out->vocab = file.size / sizeof(float) / out->count;
  mapped_file_close(&file);
}

static bool check_fixture(const char* name) {
  char relative[128];
  snprintf(relative, sizeof relative, "checkpoints/%s", name);
  const char* directory = test_data(relative);
  reference expected;
  load_reference(directory, &expected);
  checkpoint* file;
  model* source;
  ir_graph* graph;
  executor* exec;
  bool done;
  assert_ok(checkpoint_open(directory, &file));
  assert_ok(model_open(file, &source));
  uint32_t n = (uint32_t)expected.count;
  model_graph_options options = {.name = "full", .ar_length = n, .context_length = n};
  assert_ok(model_build_graph(source, &options, &graph));
  assert_ok(rotate_residual(graph, &done));
  assert_ok(ir_graph_verify(graph));
  cpu_options cpu = {.mode = CPU_FLOAT};
  assert_ok(cpu_executor_create(graph, &cpu, &exec));
  model_info info;
  model_get_info(source, &info);
  int32_t positions[64];
  float mask[64 * 64], sliding[64 * 64];
  fill_causal_inputs(n, info.sliding_window, positions, mask, sliding);
  const void* inputs[4];
  for (uint32_t i = 0; i < exec->n_inputs; i++) {
    ir_role role = exec->inputs[i].role;
    inputs[i] = role == IR_ROLE_TOKENS      ? (const void*)expected.ids
                : role == IR_ROLE_POSITIONS ? (const void*)positions
                : role == IR_ROLE_MASK      ? (const void*)mask
                                            : (const void*)sliding;
  }
  float* logits = mem_calloc(expected.count * expected.vocab, sizeof *logits);
  void** outputs = mem_calloc(exec->n_outputs, sizeof *outputs);
  outputs[0] = logits;
  assert_ok(executor_run(exec, inputs, outputs));
  for (size_t row = 0; row < expected.count; row++) {
    float largest = 0, worst = 0;
    for (size_t v = 0; v < expected.vocab; v++) {
      float reference_value = expected.logits[row * expected.vocab + v];
      largest = fmaxf(largest, fabsf(reference_value));
      worst = fmaxf(worst, fabsf(reference_value - logits[row * expected.vocab + v]));
    }
    if (!(worst <= 1e-3f * largest)) fail_msg("%s, row %zu: off by %g of %g", name, row, (double)worst, (double)largest);
  }
  mem_free(logits);
  mem_free(outputs);
  mem_free(expected.logits);
  executor_destroy(exec);
  ir_graph_destroy(graph);
  model_close(source);
  checkpoint_close(file);
  return done;
}

static void test_rotated_fixtures_agree_with_the_reference(void** state) {
  (void)state;
  static const char* const rotated[] = {
      "llama", "llama-sharded-f16",          "llama-tied-rope3-bf16", "smollm3-nope", "qwen2",  "qwen3",  "gemma",
      "phi3",  "phi4-mini-partial-longrope", "mistral-sliding",       "granite",      "gemma2", "gemma3", "glm4"};
  /* Norms behind projections and none before, or LayerNorm: the stream stays as it is, and so do the logits. */
  static const char* const plain[] = {"olmo2", "exaone4", "stablelm", "codegen"};
  for (size_t i = 0; i < sizeof rotated / sizeof rotated[0]; i++) {
    if (!check_fixture(rotated[i])) fail_msg("%s was not rotated", rotated[i]);
  }
  for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
    if (check_fixture(plain[i])) fail_msg("%s was rotated", plain[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_matrix_is_orthogonal_and_flat),
      cmocka_unit_test(test_flat_matrix),
      cmocka_unit_test(test_rotated_fixtures_agree_with_the_reference),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
