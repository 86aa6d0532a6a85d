/* Tiny random decoders of every family, as GGUF files and as Hugging Face folders, on the host executor in float, against the logits that
 * transformers computes from the same parameters (recorded by tests/tools/make_model_tiny.py, which says where names and storage
 * conventions come from). */
#include "model_run.h"

enum { IDS = 24, VOCAB = 96 };

static const char* const names[] = {
    "llama.gguf",
    "llama-linear.gguf",
    "llama-yarn.gguf",
    "smollm3.gguf",
    "qwen2.gguf",
    "qwen3.gguf",
    "gemma.gguf",
    "gemma2.gguf",
    "gemma3.gguf",
    "phi3.gguf",
    "phi3-longrope.gguf",
    "granite.gguf",
    "olmo2.gguf",
    "glm4.gguf",
    "exaone4.gguf",
    "stablelm.gguf",
    "stablelm-parallel.gguf",
    "starcoder2.gguf",
    "phi.gguf",
    "hf-glm",
    "hf-starcoder2",
    "hf-phi",
    "hf-codegen",
    "hf-stablelm",
    "hf-qwen2",
    "hf-smollm3",
};
enum { NAMES = sizeof names / sizeof *names };

static void test_family(void** state) {
  const char* name = *state;
  char path[128];
  checkpoint* file;
  model* m;
  model_info info;
  snprintf(path, sizeof path, "model/tiny/%s", name);
  assert_ok(checkpoint_open(test_data(path), &file));
  assert_ok(model_open(file, &m));
  model_get_info(m, &info);
  assert_int_equal(info.vocab, VOCAB);
  int32_t ids[IDS], stop = -1;
  for (int i = 0; i < IDS; ++i) ids[i] = (37 * i + 11) % VOCAB;
  assert_int_equal(model_stop_ids(m, &stop, 1), 1);
  assert_int_equal(stop, 2);

  float expected[IDS * VOCAB], logits[IDS * VOCAB];
  snprintf(path, sizeof path, "model/tiny/%.*s.f32", (int)strcspn(name, "."), name);
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
