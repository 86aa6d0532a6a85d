/* A recorded reference (tests/data/model/NAME.json and NAME.f32, written by tests/tools/make_model_*.py) and the checks against it. */
#ifndef GENAI_TESTS_CPU_RECORDED_H
#define GENAI_TESTS_CPU_RECORDED_H

#include "base/json.h"
#include "model_run.h"

enum { RECORDED_IDS = 64, RECORDED_COLUMNS = 64, RECORDED_GREEDY = 32 };

typedef struct recorded {
  int32_t ids[RECORDED_IDS], columns[RECORDED_COLUMNS], argmax[RECORDED_IDS], greedy[RECORDED_GREEDY];
  double largest[RECORDED_IDS];
  float logits[RECORDED_IDS * RECORDED_COLUMNS];
} recorded;

static inline void recorded_list(json_value root, const char* key, int32_t* out, size_t count) {
  json_value list = json_get(root, key), value;
  assert_int_equal(json_count(list), count);
  json_iterator iterator = json_iterate(list);
  for (size_t i = 0; json_next(&iterator, NULL, &value); ++i) out[i] = (int32_t)json_integer(value, -1);
}

static inline void recorded_load(const char* name, recorded* out) {
  char relative[128];
  json_document* document;
  snprintf(relative, sizeof relative, "model/%s.json", name);
  assert_ok(json_parse_file(test_data(relative), 1 << 20, &document));
  json_value root = json_root(document), value;
  recorded_list(root, "ids", out->ids, RECORDED_IDS);
  recorded_list(root, "columns", out->columns, RECORDED_COLUMNS);
  recorded_list(root, "argmax", out->argmax, RECORDED_IDS);
  recorded_list(root, "greedy", out->greedy, RECORDED_GREEDY);
  json_iterator iterator = json_iterate(json_get(root, "largest"));
  for (size_t i = 0; i < RECORDED_IDS && json_next(&iterator, NULL, &value); ++i) out->largest[i] = json_number(value, 0);
  json_free(document);
  snprintf(relative, sizeof relative, "model/%s.f32", name);
  FILE* file = fopen(test_data(relative), "rb");
  assert_non_null(file);
  assert_int_equal(fread(out->logits, sizeof(float), RECORDED_IDS * RECORDED_COLUMNS, file), RECORDED_IDS * RECORDED_COLUMNS);
  fclose(file);
}

/* Logits [64][vocab] against the record: largest error over the row's largest magnitude, and every row's best id. */
static inline double recorded_compare(const recorded* reference, const float* logits, uint32_t vocab) {
  double worst = 0;
  for (int i = 0; i < RECORDED_IDS; ++i) {
    for (int j = 0; j < RECORDED_COLUMNS; ++j) {
      double ours = (double)logits[(size_t)i * vocab + (size_t)reference->columns[j]];
      double error = ours - (double)reference->logits[i * RECORDED_COLUMNS + j];
      error = (error < 0 ? -error : error) / reference->largest[i];
      if (!(error <= worst)) worst = error; /* NaN stays */
    }
    assert_int_equal(run_argmax(logits + (size_t)i * vocab, vocab), reference->argmax[i]);
  }
  return worst;
}

/* The full pass, then prefill in blocks of 16 with a cache and 32 greedy steps. */
static inline void recorded_check(const char* name, const char* path) {
  recorded reference;
  recorded_load(name, &reference);
  checkpoint* file;
  model* m;
  thread_pool* pool;
  model_info info;
  assert_ok(checkpoint_open(path, &file));
  assert_ok(model_open(file, &m));
  model_get_info(m, &info);
  assert_ok(thread_pool_create(0, &pool));
  float* logits = malloc((size_t)RECORDED_IDS * info.vocab * sizeof *logits);

  run_graph full;
  run_open(m, &(model_graph_options){.name = "full", .ar_length = RECORDED_IDS, .context_length = RECORDED_IDS}, pool, &full);
  run_ids(&full, &info, NULL, reference.ids, RECORDED_IDS, logits);
  double worst = recorded_compare(&reference, logits, info.vocab);
  print_message("%s: largest error %.2e of the row's maximum in a full pass\n", name, worst);
  assert_true(worst < 1e-3);
  run_close(&full);

  run_graph prefill, decode;
  uint32_t context = 112;
  run_cache cache = run_cache_create(&info, context);
  run_open(m, &(model_graph_options){.name = "prefill", .ar_length = 16, .context_length = context}, pool, &prefill);
  run_open(m, &(model_graph_options){.name = "decode", .ar_length = 1, .context_length = context}, pool, &decode);
  run_ids(&prefill, &info, &cache, reference.ids, RECORDED_IDS, logits);
  worst = recorded_compare(&reference, logits, info.vocab);
  print_message("%s: largest error %.2e with a cache\n", name, worst);
  assert_true(worst < 1e-3);
  int32_t next = run_argmax(logits + (size_t)(RECORDED_IDS - 1) * info.vocab, info.vocab);
  for (int i = 0; i < RECORDED_GREEDY; ++i) {
    assert_int_equal(next, reference.greedy[i]);
    run_ids(&decode, &info, &cache, &next, 1, logits);
    next = run_argmax(logits, info.vocab);
  }
  run_close(&prefill);
  run_close(&decode);
  run_cache_free(&cache);
  free(logits);
  thread_pool_destroy(pool);
  model_close(m);
  checkpoint_close(file);
}

#endif
