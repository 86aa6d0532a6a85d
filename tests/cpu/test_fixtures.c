/* Every fixture checkpoint on the host executor in float, against expected_logits.f32 and greedy_next of its expected.json, which the
 * reference implementation named there (transformers, float32) computed; and each family's graphs with a KV cache against its full pass. */
#include "base/json.h"
#include "model_run.h"

enum { PROMPT = 24, GREEDY = 16 };

static const char* const fixtures[] = {
    "llama", "llama-sharded-f16", "llama-tied-rope3-bf16",      "smollm3-nope", "qwen2", "qwen3", "gemma",   "gemma2",   "gemma3",
    "phi3",  "mistral-sliding",   "phi4-mini-partial-longrope", "granite",      "olmo2", "glm4",  "exaone4", "stablelm", "codegen",
};
enum { FIXTURES = sizeof fixtures / sizeof *fixtures };

typedef struct fixture {
  checkpoint* file;
  model* m;
  model_info info;
  int32_t ids[PROMPT + GREEDY];
  float* logits; /* [PROMPT][vocab] */
} fixture;

static const char* fixture_path(const char* name, const char* file) {
  char relative[256];
  snprintf(relative, sizeof relative, "checkpoints/%s%s%s", name, *file ? "/" : "", file);
  return test_data(relative);
}

static void open_fixture(const char* name, fixture* out) {
  assert_ok(checkpoint_open(fixture_path(name, ""), &out->file));
  assert_ok(model_open(out->file, &out->m));
  model_get_info(out->m, &out->info);
  json_document* expected;
  assert_ok(json_parse_file(fixture_path(name, "expected.json"), 1 << 20, &expected));
  json_value value, root = json_root(expected);
  json_iterator ids = json_iterate(json_get(root, "input_ids")), next = json_iterate(json_get(root, "greedy_next"));
  for (int i = 0; i < PROMPT; ++i) {
    assert_true(json_next(&ids, NULL, &value));
    out->ids[i] = (int32_t)json_integer(value, -1);
  }
  for (int i = 0; i < GREEDY; ++i) {
    assert_true(json_next(&next, NULL, &value));
    out->ids[PROMPT + i] = (int32_t)json_integer(value, -1);
  }
  json_free(expected);
  size_t count = (size_t)PROMPT * out->info.vocab;
  out->logits = malloc(count * sizeof *out->logits);
  FILE* file = fopen(fixture_path(name, "expected_logits.f32"), "rb");
  assert_non_null(file);
  assert_int_equal(fread(out->logits, sizeof(float), count, file), count);
  fclose(file);
}

static void close_fixture(fixture* f) {
  free(f->logits);
  model_close(f->m);
  checkpoint_close(f->file);
}

static double worst_row(const float* ours, const float* reference, uint32_t rows, uint32_t vocab) {
  double worst = 0;
  for (uint32_t i = 0; i < rows; ++i) {
    double error = run_row_error(ours + (size_t)i * vocab, reference + (size_t)i * vocab, vocab);
    if (error > worst) worst = error;
  }
  return worst;
}

static void test_logits_and_greedy(void** state) {
  fixture f;
  open_fixture(*state, &f);
  uint32_t vocab = f.info.vocab, total = PROMPT + GREEDY;
  float* logits = malloc((size_t)total * vocab * sizeof *logits);
  run_graph full, all;
  run_open(f.m, &(model_graph_options){.name = "prompt", .ar_length = PROMPT, .context_length = PROMPT}, NULL, &full);
  run_ids(&full, &f.info, NULL, f.ids, PROMPT, logits);
  double worst = worst_row(logits, f.logits, PROMPT, vocab);
  print_message("%s: largest error %.2e of the row's maximum\n", (const char*)*state, worst);
  assert_true(worst < 1e-3);
  /* Greedy ids: teacher forcing with the reference's own continuation must choose each of them. */
  run_open(f.m, &(model_graph_options){.name = "all", .ar_length = total, .context_length = total}, NULL, &all);
  run_ids(&all, &f.info, NULL, f.ids, total, logits);
  for (uint32_t i = 0; i < GREEDY; ++i) assert_int_equal(run_argmax(logits + (size_t)(PROMPT + i - 1) * vocab, vocab), f.ids[PROMPT + i]);
  run_close(&full);
  run_close(&all);
  free(logits);
  close_fixture(&f);
}

/* Blocks of 8 with a cache of 32, then single tokens, against the full pass of 24 and the reference's greedy ids. */
static void test_cache_equals_full_pass(void** state) {
  fixture f;
  open_fixture(*state, &f);
  uint32_t vocab = f.info.vocab, context = 48;
  float* logits = malloc((size_t)PROMPT * vocab * sizeof *logits);
  for (int rotated = 0; rotated < 2; ++rotated) {
    run_cache cache = run_cache_create(&f.info, context);
    run_graph prefill, decode;
    model_graph_options options = {.name = "prefill", .ar_length = 8, .context_length = context, .rotate_qk = rotated};
    run_open(f.m, &options, NULL, &prefill);
    options.name = "decode";
    options.ar_length = 1;
    run_open(f.m, &options, NULL, &decode);
    run_ids(&prefill, &f.info, &cache, f.ids, PROMPT - 3, logits); /* the last block is padded */
    run_ids(&decode, &f.info, &cache, f.ids + PROMPT - 3, 3, logits + (size_t)(PROMPT - 3) * vocab);
    double worst = worst_row(logits, f.logits, PROMPT, vocab);
    assert_true(worst < 1e-3);
    int32_t next = run_argmax(logits + (size_t)(PROMPT - 1) * vocab, vocab);
    for (int i = 0; i < GREEDY; ++i) {
      assert_int_equal(next, f.ids[PROMPT + i]);
      run_ids(&decode, &f.info, &cache, &next, 1, logits);
      next = run_argmax(logits, vocab);
    }
    run_close(&prefill);
    run_close(&decode);
    run_cache_free(&cache);
  }
  free(logits);
  close_fixture(&f);
}

static void test_last_logits_only(void** state) {
  fixture f;
  open_fixture(*state, &f);
  run_graph last;
  model_graph_options options = {.name = "last", .ar_length = PROMPT, .context_length = PROMPT, .last_logits_only = true};
  run_open(f.m, &options, NULL, &last);
  const ir_tensor* logits = ir_graph_find_role(last.graph, IR_ROLE_LOGITS, -1);
  assert_int_equal(logits->dims[1], 1);
  float* row = calloc(PROMPT, (size_t)f.info.vocab * sizeof *row); /* run_ids copies as if every row were there */
  for (uint32_t i = 0; i < last.exec->n_outputs; ++i) {
    if (last.exec->outputs[i].role != IR_ROLE_LOGITS) continue;
    free(last.outputs[i]);
    last.outputs[i] = calloc(PROMPT, (size_t)f.info.vocab * sizeof *row);
  }
  run_ids(&last, &f.info, NULL, f.ids, PROMPT, row);
  assert_true(run_row_error(row, f.logits + (size_t)(PROMPT - 1) * f.info.vocab, f.info.vocab) < 1e-3);
  run_close(&last);
  free(row);
  close_fixture(&f);
}

int main(void) {
  struct CMUnitTest tests[3 * FIXTURES];
  static char names[3 * FIXTURES][96];
  static const struct {
    const char* name;
    CMUnitTestFunction body;
  } kinds[3] = {{"logits and greedy ids", test_logits_and_greedy},
                {"cache equals full pass", test_cache_equals_full_pass},
                {"last row only", test_last_logits_only}};
  for (int i = 0; i < 3 * FIXTURES; ++i) {
    snprintf(names[i], sizeof names[i], "%s: %s", fixtures[i / 3], kinds[i % 3].name);
    tests[i] = (struct CMUnitTest){names[i], kinds[i % 3].body, NULL, NULL, (void*)(uintptr_t)fixtures[i / 3]};
  }
  return cmocka_run_group_tests(tests, NULL, NULL);
}
