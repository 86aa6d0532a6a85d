/* Qualcomm's libGenie as an independent oracle: a small decoder (the llama fixture) compiled with Genie's names, run by Genie's own prefill,
 * cache, masks and sampling, against our decoder over the same graphs in the simulator. Greedy ids must be equal. */
#include "base/file.h"
#include "base/memory.h"
#include "genie/genie.h"
#include "qnn/qnn_support.h"
#include "quantize/quantize.h"
#include "runtime/runtime.h"

/* Genie copies its keys with memcpy between ranges that overlap, which AddressSanitizer would end the test for. */
__attribute__((visibility("default"))) const char* __asan_default_options(void);
const char* __asan_default_options(void) {
  return "replace_intrin=0";
}

enum { AR = 8, CONTEXT = 64, NEW_TOKENS = 10, LONGEST = CONTEXT - AR };

typedef struct fixture {
  checkpoint* file;
  model* source;
  model_info info;
  ir_graph* graphs[2]; /* decode, prefill */
  qnn_binary by_position, by_name;
  qnn_context* context;
  executor* executors[2];
  decoder* decoder;
  genie_library* library;
  genie_bundle bundle;
  genie_dialog* dialog;
  char folder[64];
} fixture;

static fixture f;

static int32_t token(uint32_t position) {
  return (int32_t)((position * 53 + 7) % f.info.vocab);
}

static void build_graphs(void) {
  recipe how;
  int32_t ids[40];
  for (uint32_t i = 0; i < 40; i++) ids[i] = (int32_t)((i * 37 + 5) % f.info.vocab);
  const int32_t* sequences[] = {ids};
  const size_t lengths[] = {40};
  assert_ok(recipe_load("16a8w", &how));
  recipe_adapt(&how, f.source);
  const calibration_options calibrating = {.how = &how, .max_tokens_per_pass = 40};
  calibration* ranges;
  assert_ok(calibrate(f.source, sequences, lengths, 1, &calibrating, &ranges));
  const uint32_t ar[] = {1, AR};
  for (int i = 0; i < 2; i++) {
    const model_graph_options options = {
        .name = i ? "prefill_forward" : "kv_forward", .ar_length = ar[i], .context_length = CONTEXT, .rotate_qk = how.rotate_qk};
    assert_ok(model_build_graph(f.source, &options, &f.graphs[i]));
  }
  assert_ok(quantize_graph(f.graphs[0], ranges, &how, NULL));
  assert_ok(quantize_graph_like(f.graphs[1], f.graphs[0]));
  calibration_destroy(ranges);
}

static void open_own_decoder(void) {
  const qnn_compile_options options = {.soc = test_soc()};
  assert_ok(qnn_compile(test_library, (const ir_graph* const*)f.graphs, 2, &options, &f.by_position));
  assert_ok(qnn_context_open(test_library, f.by_position.data, f.by_position.size, &f.context));
  for (int g = 0; g < 2; g++) {
    const ir_graph* graph = f.graphs[g];
    executor_port *inputs, *outputs;
    assert_ok(qnn_context_executor(f.context, graph->name, &f.executors[g]));
    qnn_executor_ports(f.executors[g], &inputs, &outputs);
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
      inputs[i].role = graph->tensors[graph->inputs[i]]->role;
      inputs[i].layer = graph->tensors[graph->inputs[i]]->layer;
    }
    for (uint32_t i = 0; i < graph->n_outputs; i++) {
      outputs[i].role = graph->tensors[graph->outputs[i]]->role;
      outputs[i].layer = graph->tensors[graph->outputs[i]]->layer;
    }
  }
  assert_ok(decoder_create(f.executors, 2, &f.decoder));
}

static const char* in_folder(const char* name) {
  return test_path(f.folder, name);
}

static void write_bundle(const int32_t* stop_ids, size_t count) {
  genie_config config = {.context_length = CONTEXT,
                         .vocab_size = f.info.vocab,
                         .head_dim = f.info.head_dim,
                         .bos_id = -1,
                         .stop_ids = stop_ids,
                         .n_stop_ids = count,
                         .binary = "model.bin",
                         .tokenizer = "none.json"};
  static const char none[] = "{\"version\":\"1.0\",\"added_tokens\":[],\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}";
  text out = {0};
  assert_ok(genie_config_write(&config, &out));
  assert_ok(file_write_atomic(in_folder("genie_config.json"), out.data, out.length));
  assert_ok(file_write_atomic(in_folder("none.json"), none, sizeof none - 1));
  assert_ok(file_write_atomic(in_folder("model.bin"), f.by_name.data, f.by_name.size));
  text_deinit(&out);
}

static const sampling_options plain = {.top_p = 1, .repetition_penalty = 1};

static void open_dialog(void) {
  genie_bundle_deinit(&f.bundle);
  assert_ok(genie_bundle_open(f.folder, &f.bundle));
  assert_ok(genie_dialog_create(f.library, &f.bundle, &plain, &f.dialog));
}

static void close_dialog(void) {
  genie_dialog_destroy(f.dialog);
  f.dialog = NULL;
}

static int set_up(void** state) {
  if (open_test_library(state)) return -1;
  if (!test_library) return 0;
  strcpy(f.folder, "/tmp/genai-genie-XXXXXX");
  if (!mkdtemp(f.folder)) return -1;
  assert_ok(checkpoint_open(test_data("checkpoints/llama"), &f.file));
  assert_ok(model_open(f.file, &f.source));
  model_get_info(f.source, &f.info);
  build_graphs();
  open_own_decoder();
  const qnn_compile_options named = {.soc = test_soc(), .name_boundary = genie_boundary_name};
  assert_ok(qnn_compile(test_library, (const ir_graph* const*)f.graphs, 2, &named, &f.by_name));
  assert_ok(genie_library_open(test_library, &f.library));
  write_bundle(NULL, 0);
  open_dialog();
  return 0;
}

static int tear_down(void** state) {
  if (!test_library) return 0;
  close_dialog();
  genie_bundle_deinit(&f.bundle);
  genie_library_close(f.library);
  decoder_destroy(f.decoder);
  for (int i = 0; i < 2; i++) executor_destroy(f.executors[i]);
  qnn_context_close(f.context);
  qnn_binary_deinit(&f.by_position);
  qnn_binary_deinit(&f.by_name);
  for (int i = 0; i < 2; i++) ir_graph_destroy(f.graphs[i]);
  model_close(f.source);
  checkpoint_close(f.file);
  char command[128];
  snprintf(command, sizeof command, "rm -r %s", f.folder);
  if (system(command)) return -1;
  return close_test_library(state);
}

/* ---- Generating ---- */
typedef struct answer {
  size_t count, stop_after; /* 0: never */
  int32_t ids[CONTEXT];
  cancel_token* cancel; /* requested at the second token; NULL: never */
} answer;

static bool keep(void* user, int32_t id) {
  answer* self = user;
  self->ids[self->count++] = id;
  if (self->cancel && self->count == 2) atomic_store(&self->cancel->requested, true);
  return self->count != self->stop_after;
}

static generate_options greedy(uint32_t max_new_tokens) {
  return (generate_options){.max_new_tokens = max_new_tokens, .sampling = plain};
}

static genai_status* ask_genie(uint32_t length, const generate_options* options, answer* out, generate_result* result) {
  int32_t prompt[CONTEXT];
  for (uint32_t i = 0; i < length; i++) prompt[i] = token(i);
  return genie_dialog_generate(f.dialog, AR, prompt, length, options, keep, out, result);
}

static void ask_own(uint32_t length, const generate_options* options, answer* out, generate_result* result) {
  int32_t prompt[CONTEXT];
  for (uint32_t i = 0; i < length; i++) prompt[i] = token(i);
  decoder_reset(f.decoder);
  assert_ok(generate(f.decoder, prompt, length, options, keep, out, result));
}

static void the_library_names_a_version(void** state) {
  (void)state;
  need_library();
  assert_int_equal(genie_library_version(f.library).major, 1);
}

/* Around the block of prefill, twice around it, and up to the longest: decode sees caches that prefill and decode filled. */
static void greedy_ids_equal_those_of_our_own_decoder(void** state) {
  (void)state;
  need_library();
  static const uint32_t lengths[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, LONGEST - NEW_TOKENS};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    answer genie = {0}, own = {0};
    generate_result got = {0}, expected = {0};
    const generate_options options = greedy(NEW_TOKENS);
    assert_ok(ask_genie(lengths[i], &options, &genie, &got));
    ask_own(lengths[i], &options, &own, &expected);
    assert_int_equal(genie.count, NEW_TOKENS);
    for (size_t t = 0; t < NEW_TOKENS; t++) {
      if (genie.ids[t] != own.ids[t])
        fail_msg("prompt of %u, token %zu: Genie says %d, we say %d", lengths[i], t, genie.ids[t], own.ids[t]);
    }
    assert_int_equal(got.end, GENERATE_MAX_TOKENS);
    assert_int_equal(got.prompt_tokens, lengths[i]);
    assert_int_equal(got.new_tokens, NEW_TOKENS);
    assert_true(got.ttft_seconds > 0 && got.decode_seconds > 0);
  }
}

static void an_answer_ends_at_a_stop_id_which_is_not_given(void** state) {
  (void)state;
  need_library();
  answer whole = {0}, ended = {0};
  generate_result result;
  const generate_options options = greedy(NEW_TOKENS);
  ask_own(7, &options, &whole, &result);
  size_t at = 4; /* the first place of the id that stands there */
  for (size_t i = 0; i < at; i++) {
    if (whole.ids[i] == whole.ids[at]) at = i;
  }
  const int32_t stops[] = {whole.ids[at], 319};
  close_dialog();
  write_bundle(stops, 2);
  open_dialog();
  assert_ok(ask_genie(7, &options, &ended, &result));
  assert_int_equal(result.end, GENERATE_STOP_TOKEN);
  assert_int_equal(ended.count, at);
  assert_memory_equal(ended.ids, whole.ids, at * sizeof(int32_t));
  close_dialog();
  write_bundle(NULL, 0);
  open_dialog();
}

static void an_answer_ends_with_the_context_and_a_longer_prompt_is_refused(void** state) {
  (void)state;
  need_library();
  answer genie = {0}, own = {0};
  generate_result result;
  generate_options options = greedy(0);
  assert_ok(ask_genie(LONGEST, &options, &genie, &result));
  ask_own(LONGEST, &options, &own, &(generate_result){0});
  assert_int_equal(result.end, GENERATE_CONTEXT_FULL);
  assert_int_equal(genie.count, CONTEXT - LONGEST);
  assert_memory_equal(genie.ids, own.ids, genie.count * sizeof(int32_t));
  assert_fails(ask_genie(LONGEST + 1, &options, &genie, &result), GENAI_ERROR_LIMIT, "Genie takes 56 at most");
  assert_fails(ask_genie(0, &options, &genie, &result), GENAI_ERROR_INVALID_ARGUMENT, "no tokens");
  int32_t outside = (int32_t)f.info.vocab;
  assert_fails(genie_dialog_generate(f.dialog, AR, &outside, 1, &options, keep, &genie, &result), GENAI_ERROR_INVALID_ARGUMENT,
               "outside the vocabulary");
}

static void a_sink_or_a_cancelled_run_ends_it_and_the_next_query_is_whole(void** state) {
  (void)state;
  need_library();
  answer ended = {.stop_after = 3}, cancelled = {0}, whole = {0}, own = {0};
  generate_result result;
  generate_options options = greedy(NEW_TOKENS);
  assert_ok(ask_genie(9, &options, &ended, &result));
  assert_int_equal(result.end, GENERATE_CALLER);
  assert_int_equal(ended.count, 3);
  cancel_token token_of_run = {0};
  options.cancel = &token_of_run;
  cancelled.cancel = &token_of_run;
  assert_fails(ask_genie(9, &options, &cancelled, &result), GENAI_ERROR_CANCELLED, "");
  assert_true(cancelled.count < NEW_TOKENS);
  options.cancel = NULL;
  assert_ok(ask_genie(9, &options, &whole, &result));
  ask_own(9, &options, &own, &result);
  assert_memory_equal(whole.ids, own.ids, NEW_TOKENS * sizeof(int32_t));
}

static void sampling_repeats_with_its_seed_and_differs_from_greedy(void** state) {
  (void)state;
  need_library();
  answer first = {0}, again = {0}, other = {0}, likely = {0};
  generate_result result;
  generate_options options = greedy(NEW_TOKENS);
  assert_ok(ask_genie(9, &options, &likely, &result));
  options.sampling = (sampling_options){.temperature = 1.5f, .top_k = 40, .top_p = 0.95f, .repetition_penalty = 1.1f, .seed = 7};
  assert_ok(ask_genie(9, &options, &first, &result));
  assert_ok(ask_genie(9, &options, &again, &result));
  options.sampling.seed = 8;
  assert_ok(ask_genie(9, &options, &other, &result));
  assert_memory_equal(first.ids, again.ids, NEW_TOKENS * sizeof(int32_t));
  assert_memory_not_equal(first.ids, other.ids, NEW_TOKENS * sizeof(int32_t));
  assert_memory_not_equal(first.ids, likely.ids, NEW_TOKENS * sizeof(int32_t));
}

static void what_genie_refuses_is_an_error_with_its_code_in_words(void** state) {
  (void)state;
  need_library();
  genie_bundle bad;
  genie_dialog* dialog;
  text config = {0};
  assert_ok(file_read_all(in_folder("genie_config.json"), 1 << 16, &config));
  memcpy(strstr(config.data, "\"kv-dim\""), "\"kv-dum\"", 8);
  assert_ok(file_write_atomic(in_folder("genie_config.json"), config.data, config.length));
  text_deinit(&config);
  assert_ok(genie_bundle_open(f.folder, &bad));
  assert_fails(genie_dialog_create(f.library, &bad, &plain, &dialog), GENAI_ERROR_VENDOR,
               "Genie error -8 (the configuration has a member it does not know, or lacks one)");
  genie_bundle_deinit(&bad);
  write_bundle(NULL, 0);
  assert_ok(file_write_atomic(in_folder("model.bin"), "not a context binary", 20));
  assert_ok(genie_bundle_open(f.folder, &bad));
  assert_fails(genie_dialog_create(f.library, &bad, &plain, &dialog), GENAI_ERROR_VENDOR, "Genie error -1 (general error)");
  genie_bundle_deinit(&bad);
}

static void graphs_that_genie_cannot_drive_are_refused(void** state) {
  (void)state;
  checkpoint* file;
  model* source;
  ir_graph* graph;
  model_graph_options options = {.name = "kv_forward", .ar_length = 1, .context_length = CONTEXT};
  assert_ok(checkpoint_open(test_data("checkpoints/gemma3"), &file));
  assert_ok(model_open(file, &source));
  assert_ok(model_build_graph(source, &options, &graph));
  assert_fails(genie_check_graph(graph), GENAI_ERROR_UNSUPPORTED, "sliding window");
  ir_graph_destroy(graph);
  model_close(source);
  checkpoint_close(file);
  assert_ok(checkpoint_open(test_data("checkpoints/llama"), &file));
  assert_ok(model_open(file, &source));
  assert_ok(model_build_graph(source, &options, &graph));
  assert_fails(genie_check_graph(graph), GENAI_ERROR_UNSUPPORTED, "quantize the model"); /* float caches */
  ir_graph_destroy(graph);
  options.ar_length = CONTEXT;
  assert_ok(model_build_graph(source, &options, &graph));
  assert_fails(genie_check_graph(graph), GENAI_ERROR_UNSUPPORTED, "no cache inputs");
  ir_graph_destroy(graph);
  model_close(source);
  checkpoint_close(file);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_library_names_a_version),
      cmocka_unit_test(greedy_ids_equal_those_of_our_own_decoder),
      cmocka_unit_test(an_answer_ends_at_a_stop_id_which_is_not_given),
      cmocka_unit_test(an_answer_ends_with_the_context_and_a_longer_prompt_is_refused),
      cmocka_unit_test(a_sink_or_a_cancelled_run_ends_it_and_the_next_query_is_whole),
      cmocka_unit_test(sampling_repeats_with_its_seed_and_differs_from_greedy),
      cmocka_unit_test(what_genie_refuses_is_an_error_with_its_code_in_words),
      cmocka_unit_test(graphs_that_genie_cannot_drive_are_refused),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
