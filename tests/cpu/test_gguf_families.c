/* Tiny random decoders of every family that llama.cpp's converters write as GGUF, on the host executor in float, against the logits that
 * transformers computes from the same parameters (recorded by tests/tools/make_model_gguf.py, which says where names and storage
 * conventions come from). */
#include "model_run.h"

enum { IDS = 24, VOCAB = 96 };

static const char* const names[] = {
    "llama", "llama-linear",  "llama-yarn", "smollm3", "qwen2", "qwen3",   "gemma",    "gemma2",           "gemma3",
    "phi3",  "phi3-longrope", "granite",    "olmo2",   "glm4",  "exaone4", "stablelm", "stablelm-parallel"};
enum { NAMES = sizeof names / sizeof *names };

static void test_family(void** state) {
  const char* name = *state;
  char path[128];
  checkpoint* file;
  model* m;
  model_info info;
  snprintf(path, sizeof path, "model/gguf/%s.gguf", name);
  assert_ok(checkpoint_open(test_data(path), &file));
  assert_ok(model_open(file, &m));
  model_get_info(m, &info);
  assert_int_equal(info.vocab, VOCAB);
  int32_t ids[IDS], stop = -1;
  for (int i = 0; i < IDS; ++i) ids[i] = (37 * i + 11) % VOCAB;
  assert_int_equal(model_stop_ids(m, &stop, 1), 1);
  assert_int_equal(stop, 2);

  float expected[IDS * VOCAB], logits[IDS * VOCAB];
  snprintf(path, sizeof path, "model/gguf/%s.f32", name);
  FILE* recorded = fopen(test_data(path), "rb");
  assert_non_null(recorded);
  assert_int_equal(fread(expected, sizeof *expected, IDS * VOCAB, recorded), IDS * VOCAB);
  fclose(recorded);
  run_graph graph;
  run_open(m, &(model_graph_options){.name = "all", .ar_length = IDS, .context_length = IDS}, NULL, &graph);
  run_ids(&graph, &info, NULL, ids, IDS, logits);
  double worst = 0;
  for (int i = 0; i < IDS; ++i) {
    double error = run_row_error(logits + i * VOCAB, expected + i * VOCAB, VOCAB);
    if (error > worst) worst = error;
  }
  print_message("%s: largest error %.2e of the row's maximum\n", name, worst);
  assert_true(worst < 1e-4);
  run_close(&graph);
  model_close(m);
  checkpoint_close(file);
}

int main(void) {
  struct CMUnitTest tests[NAMES];
  for (int i = 0; i < NAMES; ++i) {
    tests[i] = (struct CMUnitTest){names[i], test_family, NULL, NULL, (void*)(uintptr_t)names[i]};
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
