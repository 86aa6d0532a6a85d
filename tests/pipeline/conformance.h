/* What every implementation of an adapter interface does, one suite per interface: the rules of genai/adapters.h on order, ownership, absent and
 * empty, errors, and cancellation. A suite knows nothing of the implementation but what it is handed. */
#ifndef GENAI_TESTS_PIPELINE_CONFORMANCE_H
#define GENAI_TESTS_PIPELINE_CONFORMANCE_H

#include "base/file.h"
#include "base/memory.h"
#include "stubs.h"

static const genai_chipset conformance_soc = {"SM8650", "Snapdragon 8 Gen 3", 57, 75, 8, 6, true};
static const char* const small_options[][2] = {
    {"context", "32"}, {"prefill_ar", "8"}, {"threads", "1"}, {"max_new_tokens", "3"}, {"simulator_twin", "inline"}};
enum { SMALL_OPTIONS = sizeof small_options / sizeof small_options[0] };

/* A context with two prompts of ids; the `cancelled` one was cancelled before the call. */
static inline genai_context* conformance_context(const genai_cancel* cancel) {
  static const int32_t prompts[2][3] = {{5, 6, 7}, {9, 8, 7}};
  genai_context_builder* builder;
  genai_context* context;
  assert_ok(genai_context_builder_create(&builder));
  assert_ok(genai_context_builder_set_model(builder, "a model"));
  assert_ok(genai_context_builder_set_soc(builder, "SM8650"));
  for (size_t i = 0; i < 2; i++) assert_ok(genai_context_builder_add_prompt_ids(builder, prompts[i], 3));
  assert_ok(genai_context_builder_set_artifact_directory(builder, scratch_directory()));
  assert_ok(genai_context_builder_set_cancel(builder, cancel));
  for (size_t i = 0; i < SMALL_OPTIONS; i++) assert_ok(genai_context_builder_set_option(builder, small_options[i][0], small_options[i][1]));
  assert_ok(genai_context_builder_build(builder, &context));
  genai_context_builder_destroy(builder);
  return context;
}

/* Fails the test unless a call with a cancelled context (made here, as `cancelled`) ends as cancelled. */
#define assert_cancels(call)                                                                                                      \
  do {                                                                                                                            \
    genai_cancel* token_;                                                                                                         \
    assert_ok(genai_cancel_create(&token_));                                                                                      \
    genai_cancel_request(token_);                                                                                                 \
    genai_context* cancelled = conformance_context(token_);                                                                       \
    genai_status* status_ = (call);                                                                                               \
    const genai_status* root_ = status_;                                                                                          \
    while (genai_status_cause(root_)) root_ = genai_status_cause(root_);                                                          \
    if (genai_status_kind(root_) != GENAI_ERROR_CANCELLED) fail_msg("%s: not cancelled: %s", #call, genai_status_message(root_)); \
    genai_status_free(status_);                                                                                                   \
    genai_context_destroy(cancelled);                                                                                             \
    genai_cancel_destroy(token_);                                                                                                 \
  } while (0)

/* ---- Streams of samples ---- */
typedef struct stream_bounds {
  size_t samples, length; /* at most */
  bool labels;
} stream_bounds;

/* Reads a stream to its end; gives all ids, and releases it. */
static inline void conform_stream(genai_sample_stream* stream, const stream_bounds* bounds, text* ids) {
  genai_sample sample;
  size_t samples = 0;
  bool end = false;
  assert_non_null(stream);
  genai_sample_stream_release(genai_sample_stream_retain(stream)); /* to look whether it is there consumes nothing */
  for (;; samples++) {
    sample = (genai_sample){0};
    assert_ok(genai_sample_stream_next(stream, &sample, &end));
    if (end) break;
    assert_true(sample.n_ids > 0 && sample.n_ids <= bounds->length);
    assert_non_null(sample.ids);
    if (bounds->labels) {
      assert_non_null(sample.labels);
      assert_true(sample.n_labels > 0);
    }
    assert_ok(text_append(ids, (const char*)sample.ids, sample.n_ids * sizeof *sample.ids));
  }
  assert_true(samples > 0 && samples <= bounds->samples);
  end = false;
  assert_ok(genai_sample_stream_next(stream, &sample, &end)); /* the end stays the end */
  assert_true(end);
  genai_sample_stream_release(stream);
}

static inline void conform_calibration_data(genai_calibration_data* data, genai_object* source, genai_object* words) {
  genai_context* context = conformance_context(NULL);
  const stream_bounds bounds = {.samples = 2, .length = 32};
  genai_data_request request = {.model = source,
                                .tokenizer = words,
                                .n_samples = bounds.samples,
                                .sequence_length = bounds.length,
                                .options = genai_context_options(context)};
  genai_sample_stream* stream = NULL;
  text first = {0}, second = {0};
  assert_ok(data->vtable->generate(data, context, &request, &stream));
  conform_stream(stream, &bounds, &first);
  assert_ok(data->vtable->generate(data, context, &request, &stream));
  conform_stream(stream, &bounds, &second);
  assert_int_equal(first.length, second.length); /* deterministic */
  assert_memory_equal(first.data, second.data, first.length);
  text_deinit(&first);
  text_deinit(&second);
  genai_context_destroy(context);
}

static inline void conform_training_data(genai_training_data* data, genai_object* source, genai_object* words) {
  genai_context* context = conformance_context(NULL);
  const stream_bounds bounds = {.samples = 1, .length = 32, .labels = true};
  genai_data_request request = {.model = source,
                                .tokenizer = words,
                                .n_samples = bounds.samples,
                                .sequence_length = bounds.length,
                                .options = genai_context_options(context)};
  for (int round = 0; round < 2; round++) { /* an adapter can be asked again */
    genai_sample_stream* stream = NULL;
    text ids = {0};
    assert_ok(data->vtable->generate(data, context, &request, &stream));
    conform_stream(stream, &bounds, &ids);
    text_deinit(&ids);
  }
  genai_context_destroy(context);
}

/* ---- ModelLoader ---- */
static inline void conform_inputs(const genai_example_inputs* inputs) {
  for (size_t i = 0; i < genai_example_inputs_graph_count(inputs); i++) {
    size_t count = 0;
    const genai_tensor_spec* specs = genai_example_inputs_tensors(inputs, i, &count);
    assert_true(*genai_example_inputs_graph(inputs, i) != 0);
    for (size_t j = 0; j < i; j++) assert_string_not_equal(genai_example_inputs_graph(inputs, i), genai_example_inputs_graph(inputs, j));
    for (size_t j = 0; j < count; j++) {
      assert_true(specs[j].name && *specs[j].name);
      assert_true(specs[j].rank >= 1 && specs[j].rank <= 5);
      for (uint32_t k = 0; k < specs[j].rank; k++) assert_true(specs[j].dims[k] > 0); /* static shapes */
    }
  }
}

/* `missing` (may be NULL) is a model that is not there. `files`: the adapter writes what it says it writes. */
static inline void conform_model_loader(genai_model_loader* loader, const char* path, const char* missing, bool files) {
  const genai_model_loader_vtable* v = loader->vtable;
  genai_context* context = conformance_context(NULL);
  const genai_options* options = genai_context_options(context);
  if (missing) {
    genai_object* untouched = NULL;
    genai_status* status = v->load_model(loader, context, missing, options, &untouched);
    assert_non_null(status);
    assert_contains(genai_status_message(status), missing);
    assert_null(untouched);
    genai_status_free(status);
  }
  for (int round = 0; round < 2; round++) { /* a loader can be used again, after a failure too */
    genai_object* loaded = NULL;
    genai_object* words = NULL;
    genai_example_inputs* inputs = NULL;
    assert_ok(v->load_model(loader, context, path, options, &loaded));
    assert_non_null(loaded);
    assert_ok(v->load_tokenizer(loader, context, loaded, &words));
    assert_ok(v->get_example_inputs(loader, context, loaded, options, &inputs));
    assert_non_null(inputs);
    conform_inputs(inputs);
    if (words) {
      char folder[160];
      char* file = NULL;
      char* source = NULL;
      snprintf(folder, sizeof folder, "%s/tokenizer/of/round%d", scratch_directory(), round);
      assert_ok(v->export_tokenizer(loader, context, words, folder, &file)); /* creates the folder */
      assert_non_null(file);
      assert_true(!strcmp(path_base_name(file), "tokenizer.json") || !strcmp(path_base_name(file), "tokenizer.model"));
      if (files) {
        assert_contains(file, folder);
        assert_true(file_exists(file));
      }
      if (v->get_chat_template) assert_ok(v->get_chat_template(loader, words, &source));
      genai_free(source);
      genai_free(file);
    }
    genai_example_inputs_release(inputs);
    genai_object_release(words);
    genai_object_release(loaded);
  }
  genai_context_destroy(context);
}

/* ---- Quantizer ---- */
static inline void conform_quantizer_order(genai_quantizer* quantizer, genai_object* source, const genai_example_inputs* inputs,
                                           const genai_quantizer_request* request, genai_sample_stream* data, genai_context* context) {
  const genai_quantizer_vtable* v = quantizer->vtable;
  genai_object* graph = NULL;
  size_t count;
  const genai_tensor_spec* specs = genai_example_inputs_tensors(inputs, 0, &count);
  assert_fails(v->make_quantizer(quantizer, context, request), GENAI_ERROR_INVALID_ARGUMENT, "export_model must come first");
  assert_ok(v->export_model(quantizer, context, source, inputs));
  assert_fails(v->prepare(quantizer, context), GENAI_ERROR_INVALID_ARGUMENT, "make_quantizer must come first");
  assert_ok(v->make_quantizer(quantizer, context, request));
  assert_fails(v->calibrate(quantizer, context, data), GENAI_ERROR_INVALID_ARGUMENT, "prepare must come first");
  assert_ok(v->prepare(quantizer, context));
  assert_fails(v->convert(quantizer, context, "kv_forward", specs, count, &graph), GENAI_ERROR_INVALID_ARGUMENT,
               "calibrate must come first");
  assert_null(graph);
}

/* One whole sequence, with what was saved put back in place of calibrating when `saved` has it. */
static inline void conform_quantizer_round(genai_quantizer* quantizer, genai_object* source, const genai_example_inputs* inputs,
                                           const genai_quantizer_request* request, text* saved, genai_context* context) {
  static const int32_t ids[] = {1, 2, 3, 4, 5, 6, 7, 8};
  static const int32_t* const sequences[] = {ids};
  static const size_t lengths[] = {8};
  const genai_quantizer_vtable* v = quantizer->vtable;
  genai_sample_stream* data;
  assert_ok(v->export_model(quantizer, context, source, inputs));
  assert_ok(v->make_quantizer(quantizer, context, request));
  assert_ok(v->prepare(quantizer, context));
  assert_ok(genai_sample_stream_from_ids(sequences, lengths, 1, &data));
  if (v->restore && saved->length) {
    assert_ok(v->restore(quantizer, context, saved->data, saved->length));
  } else {
    assert_ok(v->calibrate(quantizer, context, data));
  }
  genai_sample_stream_release(data);
  if (v->save && !saved->length) {
    void* bytes = NULL;
    size_t size = 0;
    assert_ok(v->save(quantizer, &bytes, &size));
    assert_ok(text_append(saved, bytes, size));
    genai_free(bytes);
  }
  for (size_t i = 0; i < genai_example_inputs_graph_count(inputs); i++) {
    size_t count;
    const genai_tensor_spec* specs = genai_example_inputs_tensors(inputs, i, &count);
    genai_object* graph = NULL;
    assert_ok(v->convert(quantizer, context, genai_example_inputs_graph(inputs, i), specs, count, &graph));
    assert_non_null(graph);
    genai_object_release(graph);
  }
}

/* `order`: the adapter keeps the order itself; a stub has none. */
static inline void conform_quantizer(genai_quantizer* quantizer, genai_object* source, const genai_example_inputs* inputs, bool order) {
  const genai_quantizer_vtable* v = quantizer->vtable;
  genai_context* context = conformance_context(NULL);
  genai_quantizer_request request = {.backend = GENAI_BACKEND_HTP, .soc = &conformance_soc, .options = genai_context_options(context)};
  static const int32_t id = 7;
  static const int32_t* const sequences[] = {&id};
  static const size_t lengths[] = {1};
  genai_sample_stream* data;
  text saved = {0};
  assert_ok(genai_sample_stream_from_ids(sequences, lengths, 1, &data));
  assert_true(!v->save == !v->restore);
  if (order) conform_quantizer_order(quantizer, source, inputs, &request, data, context);
  conform_quantizer_round(quantizer, source, inputs, &request, &saved, context);
  assert_ok(v->export_model(quantizer, context, source, inputs)); /* starts over */
  assert_ok(v->make_quantizer(quantizer, context, &request));
  assert_ok(v->prepare(quantizer, context));
  assert_cancels(v->calibrate(quantizer, cancelled, data));
  conform_quantizer_round(quantizer, source, inputs, &request, &saved, context); /* restores, where it can; after a cancelled one */
  text_deinit(&saved);
  genai_sample_stream_release(data);
  genai_context_destroy(context);
}

/* ---- Compiler ---- */
static inline bool is_untouched(const genai_compile_result* result) {
  static const genai_compile_result nothing;
  return !memcmp(result, &nothing, sizeof nothing);
}

/* `graphs` as a request has them. `files`: the adapter writes what it says it writes. What it wrote last stays, in `out`. */
static inline void conform_compiler(genai_compiler* compiler, const genai_compile_graph* graphs, size_t n_graphs, const char* directory,
                                    bool files, genai_compile_result* out) {
  const genai_compiler_vtable* v = compiler->vtable;
  genai_context* context = conformance_context(NULL);
  genai_options* options;
  genai_compile_request request = {.graphs = graphs,
                                   .n_graphs = n_graphs,
                                   .artifact_directory = directory,
                                   .file_name = "conforming",
                                   .soc = &conformance_soc,
                                   .backend = GENAI_BACKEND_HTP};
  genai_compile_result result = {0}, again = {0};
  assert_ok(genai_options_create(&options));
  assert_ok(genai_options_set(options, "simulator_twin", "inline"));
  request.options = options;
  assert_cancels(v->compile(compiler, cancelled, &request, &result));
  assert_true(is_untouched(&result));
  assert_ok(v->compile(compiler, context, &request, &result));
  assert_true(result.artifacts.count > 0); /* a list, never absent */
  for (size_t i = 0; files && i < result.artifacts.count; i++) {
    const char* path = result.artifacts.items[i];
    assert_memory_equal(path, directory, strlen(directory));
    assert_contains(path, "/conforming.SM8650."); /* the compiler adds SoC and suffix */
    assert_true(file_exists(path));
  }
  if (result.etrecord && files) assert_true(file_exists(result.etrecord));
  assert_ok(v->compile(compiler, context, &request, &again)); /* over what is there */
  assert_int_equal(result.artifacts.count, again.artifacts.count);
  for (size_t i = 0; i < again.artifacts.count; i++) assert_string_equal(result.artifacts.items[i], again.artifacts.items[i]);
  genai_compile_result_deinit(&result);
  *out = again;
  genai_options_destroy(options);
  genai_context_destroy(context);
}

/* ---- DeviceRunner ---- */
static inline void conform_runner_order(genai_device_runner* runner) {
  genai_context* context = conformance_context(NULL);
  genai_execute_request execute = {.options = genai_context_options(context)};
  genai_execute_result result = {0};
  genai_string_list files = {0};
  assert_fails(runner->vtable->execute(runner, context, &execute, &result), GENAI_ERROR_INVALID_ARGUMENT, "execute was called before push");
  assert_fails(runner->vtable->pull(runner, context, scratch_directory(), &files), GENAI_ERROR_INVALID_ARGUMENT,
               "pull was called before push");
  assert_true(!result.n_generations && !result.generations && !files.count);
  genai_context_destroy(context);
}

/* One answer per prompt; what an answer is, the runner may leave to the files. Gives the ids. */
static inline void conform_runner_execute(genai_device_runner* runner, const genai_context* context, bool files, text* ids) {
  genai_execute_request execute = {.options = genai_context_options(context)};
  genai_execute_result result = {0};
  genai_string_list pulled = {0};
  assert_ok(genai_string_list_add(&pulled, "mine"));
  assert_ok(runner->vtable->execute(runner, context, &execute, &result));
  assert_ok(runner->vtable->pull(runner, context, scratch_directory(), &pulled));
  assert_string_equal(pulled.items[0], "mine"); /* appended */
  assert_true(result.n_generations == genai_context_prompt_count(context) || (!result.n_generations && pulled.count > 1));
  for (size_t i = 0; i < result.n_generations; i++) {
    const genai_generation* answer = &result.generations[i];
    assert_true(answer->text || answer->ids);
    assert_true(answer->end && *answer->end);
    if (answer->n_ids) assert_ok(text_append(ids, (const char*)answer->ids, answer->n_ids * sizeof *answer->ids));
  }
  for (size_t i = 1; files && i < pulled.count; i++) assert_true(file_exists(pulled.items[i]));
  genai_string_list_deinit(&pulled);
  genai_execute_result_deinit(&result);
}

/* `artifacts` as a compiler gave them. */
static inline void conform_runner(genai_device_runner* runner, const genai_string_list* artifacts, bool files) {
  genai_context* context = conformance_context(NULL);
  genai_push_request push = {.artifacts = (const char* const*)artifacts->items,
                             .n_artifacts = artifacts->count,
                             .soc = &conformance_soc,
                             .options = genai_context_options(context)};
  genai_execute_request execute = {.options = genai_context_options(context)};
  genai_execute_result result = {0};
  text first = {0}, second = {0};
  conform_runner_order(runner);
  for (int round = 0; round < 2; round++) { /* pushed again */
    text* ids = round ? &second : &first;
    assert_ok(runner->vtable->push(runner, context, &push));
    assert_cancels(runner->vtable->execute(runner, cancelled, &execute, &result));
    assert_true(!result.n_generations && !result.generations);
    conform_runner_execute(runner, context, files, ids);
    text_clear(ids);
    conform_runner_execute(runner, context, files, ids); /* any number of times */
  }
  assert_int_equal(first.length, second.length); /* greedy */
  if (first.length) assert_memory_equal(first.data, second.data, first.length);
  text_deinit(&first);
  text_deinit(&second);
  genai_context_destroy(context);
}

#endif
