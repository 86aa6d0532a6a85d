/* Two pipelines in two threads at once give the results of two runs in a row. Preparation and quantization are the engine's own, on the `llama`
 * fixture; the compiler is a stub that keeps a hash of what it was given, or the real one. Run under the thread sanitizer, too. */
#include <pthread.h>
#include <stdatomic.h>

#include "base/file.h"
#include "pipeline/executorch_objects.h"
#include "stubs.h"

typedef struct hashing_compiler {
  genai_compiler base;
  char hex[65];
} hashing_compiler;

static void hash_graph(sha256* hash, const ir_graph* graph) {
  sha256_update(hash, graph->name, strlen(graph->name));
  for (uint32_t i = 0; i < graph->n_tensors; i++) {
    const ir_tensor* tensor = graph->tensors[i];
    sha256_update(hash, tensor->name, strlen(tensor->name));
    sha256_update(hash, &tensor->dtype, sizeof tensor->dtype);
    sha256_update(hash, &tensor->encoding.scale, sizeof tensor->encoding.scale);
    sha256_update(hash, &tensor->encoding.offset, sizeof tensor->encoding.offset);
    if (tensor->encoding.kind == IR_ENCODING_PER_CHANNEL)
      sha256_update(hash, tensor->encoding.scales, tensor->encoding.channels * sizeof *tensor->encoding.scales);
  }
}

static genai_status* hash_graphs(genai_compiler* base, const genai_context* context, const genai_compile_request* request,
                                 genai_compile_result* out) {
  hashing_compiler* self = (hashing_compiler*)base;
  uint8_t digest[32];
  sha256 hash;
  (void)context;
  sha256_init(&hash);
  for (size_t i = 0; i < request->n_graphs; i++) {
    const executorch_graph* graph = genai_object_payload(request->graphs[i].graph, &executorch_graph_type);
    if (!graph) return genai_status_create(GENAI_ERROR_INTERNAL, "not a quantized graph");
    hash_graph(&hash, graph->graph);
  }
  sha256_final(&hash, digest);
  for (size_t i = 0; i < sizeof digest; i++) snprintf(self->hex + 2 * i, 3, "%02x", digest[i]);
  return genai_string_list_add(&out->artifacts, "none.pte");
}

typedef struct job {
  const char* recipe;
  const char* model;
  char directory[128];
  hashing_compiler compiler;
  char error[512];
} job;

/* No assertion here: cmocka's belong to the main thread. */
static genai_status* run(job* self) {
  static const genai_compiler_vtable vtable = {hash_graphs, NULL};
  genai_adapters adapters = {.compiler = &self->compiler.base};
  genai_pipeline_options how = {.skip_stages = 1u << GENAI_STAGE_INFERENCE, .adapters = {[GENAI_STAGE_COMPILATION] = &adapters}};
  genai_context_builder* builder;
  genai_context* context = NULL;
  genai_engine_proxy* proxy = NULL;
  genai_pipeline* pipeline = NULL;
  self->compiler.base.vtable = &vtable;
  GENAI_TRY(genai_context_builder_create(&builder));
  static const char* const options[][2] = {{"context", "32"}, {"prefill_ar", "8"}, {"threads", "2"}, {"calibration_samples", "1"}};
  genai_status* status = genai_context_builder_set_model(builder, self->model);
  if (!status) status = genai_context_builder_set_soc(builder, "SM8650");
  if (!status) status = genai_context_builder_set_no_inference(builder);
  if (!status) status = genai_context_builder_set_artifact_directory(builder, self->directory);
  if (!status) status = genai_context_builder_set_option(builder, "recipe", self->recipe);
  for (size_t i = 0; !status && i < 4; i++) status = genai_context_builder_set_option(builder, options[i][0], options[i][1]);
  if (!status) status = genai_context_builder_build(builder, &context);
  if (!status) status = genai_engine_proxy_create(NULL, 0, GENAI_BACKEND_HTP, &proxy);
  if (!status) status = genai_pipeline_from_proxy(proxy, &how, &pipeline);
  if (!status) status = genai_pipeline_invoke(pipeline, context, NULL, NULL);
  genai_pipeline_destroy(pipeline);
  genai_engine_proxy_destroy(proxy);
  genai_context_destroy(context);
  genai_context_builder_destroy(builder);
  return status;
}

static void* run_in_thread(void* user) {
  job* self = user;
  genai_status* status = run(self);
  genai_status_format(status, self->error, sizeof self->error);
  genai_status_free(status);
  return NULL;
}

static void two_pipelines_at_once_give_the_results_of_two_in_a_row(void** state) {
  (void)state;
  static const char* const recipes[] = {"16a8w", "16a4w"};
  job alone[2], together[2];
  pthread_t threads[2];
  memset(alone, 0, sizeof alone);
  memset(together, 0, sizeof together);
  for (size_t i = 0; i < 2; i++) {
    alone[i].recipe = together[i].recipe = recipes[i];
    alone[i].model = together[i].model = test_data("checkpoints/llama");
    snprintf(alone[i].directory, sizeof alone[i].directory, "%s/alone%zu", scratch_directory(), i);
    snprintf(together[i].directory, sizeof together[i].directory, "%s/together%zu", scratch_directory(), i);
    assert_ok(run(&alone[i]));
  }
  for (size_t i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_in_thread, &together[i]), 0);
  for (size_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < 2; i++) {
    assert_string_equal(together[i].error, "");
    assert_string_equal(together[i].compiler.hex, alone[i].compiler.hex);
  }
  assert_string_not_equal(alone[0].compiler.hex, alone[1].compiler.hex);
}

/* The whole way, with Qualcomm's compiler and simulator, whose bytes differ from run to run within one process (docs/formats/qnn.md) but not what
 * they compute. Not under the thread sanitizer: the vendor's threads are not instrumented. */
typedef struct whole_job {
  const char* recipe;
  const char* model;
  char directory[128];
  int32_t ids[8];
  char error[512];
} whole_job;

static genai_status* run_whole(whole_job* self) {
  static const int32_t prompt[] = {246, 158, 223, 129, 291, 78, 249, 193, 56, 175};
  static const char* const options[][2] = {{"context", "32"}, {"prefill_ar", "8"}, {"threads", "1"}, {"max_new_tokens", "8"}};
  genai_context_builder* builder;
  genai_context* context = NULL;
  genai_engine_proxy* proxy = NULL;
  genai_pipeline* pipeline = NULL;
  genai_inference_output output = {0};
  GENAI_TRY(genai_context_builder_create(&builder));
  genai_status* status = genai_context_builder_set_model(builder, self->model);
  if (!status) status = genai_context_builder_set_soc(builder, "SM8650");
  if (!status) status = genai_context_builder_add_prompt_ids(builder, prompt, 10);
  if (!status) status = genai_context_builder_set_artifact_directory(builder, self->directory);
  if (!status) status = genai_context_builder_set_option(builder, "recipe", self->recipe);
  for (size_t i = 0; !status && i < 4; i++) status = genai_context_builder_set_option(builder, options[i][0], options[i][1]);
  if (!status) status = genai_context_builder_build(builder, &context);
  if (!status) status = genai_engine_proxy_create(NULL, 0, GENAI_BACKEND_HTP, &proxy);
  if (!status) status = genai_pipeline_from_proxy(proxy, NULL, &pipeline);
  if (!status) status = genai_pipeline_invoke(pipeline, context, &output, NULL);
  if (!status && output.run.generations[0].n_ids == 8) memcpy(self->ids, output.run.generations[0].ids, sizeof self->ids);
  genai_inference_output_deinit(&output);
  genai_pipeline_destroy(pipeline);
  genai_engine_proxy_destroy(proxy);
  genai_context_destroy(context);
  genai_context_builder_destroy(builder);
  return status;
}

static void* run_whole_in_thread(void* user) {
  whole_job* self = user;
  genai_status* status = run_whole(self);
  genai_status_format(status, self->error, sizeof self->error);
  genai_status_free(status);
  return NULL;
}

static void two_whole_runs_at_once_give_the_results_of_two_in_a_row(void** state) {
  (void)state;
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  skip();
#endif
#endif
  const char* folder = test_environment("GENAI_QNN_DIR");
  char library[1024];
  snprintf(library, sizeof library, "%s/libQnnHtp.so", folder ? folder : "");
  skip_unless_file(library);
  static const char* const recipes[] = {"16a8w", "16a4w"};
  whole_job alone[2], together[2];
  pthread_t threads[2];
  memset(alone, 0, sizeof alone);
  memset(together, 0, sizeof together);
  for (size_t i = 0; i < 2; i++) {
    alone[i].recipe = together[i].recipe = recipes[i];
    alone[i].model = together[i].model = test_data("checkpoints/llama");
    snprintf(alone[i].directory, sizeof alone[i].directory, "%s/whole-alone%zu", scratch_directory(), i);
    snprintf(together[i].directory, sizeof together[i].directory, "%s/whole-together%zu", scratch_directory(), i);
    assert_ok(run_whole(&alone[i]));
    assert_true(alone[i].ids[0] || alone[i].ids[1]);
  }
  for (size_t i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, run_whole_in_thread, &together[i]), 0);
  for (size_t i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < 2; i++) {
    assert_string_equal(together[i].error, "");
    assert_memory_equal(together[i].ids, alone[i].ids, sizeof alone[i].ids);
  }
}

/* Cancelling from another thread. */
typedef struct waiting_compiler {
  genai_compiler base;
  atomic_bool entered;
} waiting_compiler;

static genai_status* wait_for_cancel(genai_compiler* base, const genai_context* context, const genai_compile_request* request,
                                     genai_compile_result* out) {
  (void)request, (void)out;
  atomic_store(&((waiting_compiler*)base)->entered, true);
  for (int i = 0; i < 10000; i++) {
    GENAI_TRY(genai_context_check_cancelled(context));
    usleep(1000);
  }
  return genai_status_create(GENAI_ERROR_INTERNAL, "nobody cancelled");
}

typedef struct canceller {
  waiting_compiler* compiler;
  genai_cancel* cancel;
} canceller;

static void* cancel_when_entered(void* user) {
  canceller* self = user;
  while (!atomic_load(&self->compiler->entered)) usleep(1000);
  genai_cancel_request(self->cancel);
  return NULL;
}

static void a_run_is_cancelled_from_another_thread(void** state) {
  (void)state;
  static const genai_compiler_vtable vtable = {wait_for_cancel, NULL};
  stubs s;
  waiting_compiler compiler = {.base = {&vtable}};
  canceller c = {.compiler = &compiler};
  pthread_t thread;
  stubs_init(&s);
  s.adapters.compiler = &compiler.base;
  assert_ok(genai_cancel_create(&c.cancel));
  genai_context* context = make_context(NULL, 0, c.cancel);
  genai_pipeline* pipeline = make_pipeline(&s, 0);
  assert_int_equal(pthread_create(&thread, NULL, cancel_when_entered, &c), 0);
  genai_status* status = genai_pipeline_invoke(pipeline, context, NULL, NULL);
  pthread_join(thread, NULL);
  assert_string_equal(genai_status_stage(status), "compilation");
  assert_int_equal(genai_status_kind(genai_status_cause(status)), GENAI_ERROR_CANCELLED);
  genai_status_free(status);
  genai_pipeline_destroy(pipeline);
  genai_context_destroy(context);
  genai_cancel_destroy(c.cancel);
  stubs_deinit(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_pipelines_at_once_give_the_results_of_two_in_a_row),
      cmocka_unit_test(two_whole_runs_at_once_give_the_results_of_two_in_a_row),
      cmocka_unit_test(a_run_is_cancelled_from_another_thread),
  };
  return cmocka_run_group_tests(tests, NULL, remove_scratch);
}
