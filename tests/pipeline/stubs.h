/* Stub adapters for tests of the framework: each writes its calls into one trace and can be told to fail or to give nothing. */
#ifndef GENAI_TESTS_PIPELINE_STUBS_H
#define GENAI_TESTS_PIPELINE_STUBS_H

#include "base/text.h"
#include "genai/genai.h"
#include "support.h"

typedef struct stubs {
  text trace;          /* "load_model;load_tokenizer;..." */
  const char* fail_at; /* the call that fails; NULL: none */
  genai_error_kind fail_kind;
  const char* absent; /* the call that succeeds and gives nothing */
  bool empty_example_inputs;
  bool no_tokenizer;
  bool own_template;  /* the tokenizer brings a chat template */
  bool gives_text;    /* the runner owns decoding */
  size_t n_artifacts; /* what the compiler gives */
  genai_cancel* cancel_at_convert;
  /* What was seen. */
  char recipe[64], dtype[64], template[64];
  char compiled_type[64];
  char options[256];
  char artifacts[256];
  size_t n_graphs;
  bool stream_consumed_before_calibrate;
  bool stream_consumed;
  bool calibrating;
  size_t n_trained; /* labels that the quantizer was trained on */
  bool pushed;      /* something is on the runner's device */
  genai_model_loader loader;
  genai_calibration_data calibration;
  genai_training_data training;
  genai_quantizer quantizer;
  genai_compiler compiler;
  genai_device_runner runner;
  genai_adapters adapters;
} stubs;

static stubs* stub_state; /* adapters carry no user pointer of their own here: one set of stubs per test */

static inline genai_status* stub_call(const char* name) {
  genai_status* status = text_printf(&stub_state->trace, "%s;", name);
  if (status) return status;
  if (stub_state->fail_at && !strcmp(stub_state->fail_at, name)) {
    genai_error_kind kind = stub_state->fail_kind ? stub_state->fail_kind : GENAI_ERROR_VENDOR;
    return genai_status_create(kind, "%s was told to fail", name);
  }
  return NULL;
}
static inline bool stub_gives(const char* name) {
  return !stub_state->absent || strcmp(stub_state->absent, name);
}

static inline void stub_nothing(void* payload) {
  (void)payload;
}
static const genai_object_type stub_model_type = {"stub.model", stub_nothing};
static const genai_object_type stub_tokenizer_type = {"stub.tokenizer", stub_nothing};
static const genai_object_type stub_graph_type = {"stub.graph", stub_nothing};

static inline genai_status* stub_load_model(genai_model_loader* s, const genai_context* c, const char* m, const genai_options* o,
                                            genai_object** out) {
  (void)s, (void)c, (void)m, (void)o;
  GENAI_TRY(stub_call("load_model"));
  return stub_gives("load_model") ? genai_object_create(&stub_model_type, NULL, out) : NULL;
}
static inline genai_status* stub_load_tokenizer(genai_model_loader* s, const genai_context* c, genai_object* m, genai_object** out) {
  (void)s, (void)c, (void)m;
  GENAI_TRY(stub_call("load_tokenizer"));
  return stub_state->no_tokenizer ? NULL : genai_object_create(&stub_tokenizer_type, NULL, out);
}
static inline genai_status* stub_example_inputs(genai_model_loader* s, const genai_context* c, genai_object* m, const genai_options* o,
                                                genai_example_inputs** out) {
  (void)s, (void)c, (void)m, (void)o;
  static const genai_tensor_spec inputs[] = {{"tokens", GENAI_I32, 2, {1, 1}}, {"mask", GENAI_F32, 4, {1, 1, 1, 8}}};
  GENAI_TRY(stub_call("get_example_inputs"));
  if (!stub_gives("get_example_inputs")) return NULL;
  genai_example_inputs* list;
  GENAI_TRY(genai_example_inputs_create(&list));
  genai_status* status = NULL;
  if (!stub_state->empty_example_inputs) {
    status = genai_example_inputs_add_graph(list, "kv_forward", inputs, 2);
    if (!status) status = genai_example_inputs_add_graph(list, "prefill_forward", inputs, 2);
  }
  if (status) {
    genai_example_inputs_release(list);
    return status;
  }
  *out = list;
  return NULL;
}
static inline genai_status* stub_export_tokenizer(genai_model_loader* s, const genai_context* c, genai_object* t, const char* d,
                                                  char** path) {
  (void)s, (void)c, (void)t, (void)d;
  GENAI_TRY(stub_call("export_tokenizer"));
  if (stub_gives("export_tokenizer")) *path = genai_strdup("tokenizer.json");
  return NULL;
}
static inline genai_status* stub_chat_template(genai_model_loader* s, genai_object* t, char** source) {
  (void)s, (void)t;
  GENAI_TRY(stub_call("get_chat_template"));
  if (stub_state->own_template) *source = genai_strdup("own template");
  return NULL;
}

/* A single-use stream of two samples, which notices when it is read too early. */
static inline genai_status* stub_next(void* self, genai_sample* out, bool* end) {
  static const int32_t ids[] = {1, 2, 3};
  size_t* left = self;
  stub_state->stream_consumed = true;
  if (!stub_state->calibrating) stub_state->stream_consumed_before_calibrate = true;
  if (!*left) {
    *end = true;
    return NULL;
  }
  --*left;
  *out = (genai_sample){.ids = ids, .n_ids = 3};
  return NULL;
}
static const genai_sample_stream_vtable stub_stream_vtable = {stub_next, NULL};
static inline genai_status* stub_generate(genai_calibration_data* s, const genai_context* c, const genai_data_request* r,
                                          genai_sample_stream** out) {
  (void)s, (void)c;
  static size_t samples;
  samples = 2;
  GENAI_TRY(stub_call("generate"));
  snprintf(stub_state->template, sizeof stub_state->template, "%s", r->chat_template ? r->chat_template : "");
  return stub_gives("generate") ? genai_sample_stream_create(&stub_stream_vtable, &samples, out) : NULL;
}

/* Each id's label is the next one. Single-use, as the calibration stream. */
static inline genai_status* stub_next_labelled(void* self, genai_sample* out, bool* end) {
  static const int32_t ids[] = {1, 2, 3, 4};
  size_t* left = self;
  if (!*left) {
    *end = true;
    return NULL;
  }
  --*left;
  *out = (genai_sample){.ids = ids, .n_ids = 3, .labels = ids + 1, .n_labels = 3};
  return NULL;
}
static inline genai_status* stub_generate_labelled(genai_training_data* s, const genai_context* c, const genai_data_request* r,
                                                   genai_sample_stream** out) {
  static const genai_sample_stream_vtable vtable = {stub_next_labelled, NULL};
  static size_t samples;
  (void)s, (void)c;
  samples = r->n_samples < 2 ? r->n_samples : 2;
  GENAI_TRY(stub_call("generate_training"));
  return stub_gives("generate_training") ? genai_sample_stream_create(&vtable, &samples, out) : NULL;
}

static inline genai_status* stub_export_model(genai_quantizer* s, const genai_context* c, genai_object* m, const genai_example_inputs* e) {
  (void)s, (void)c, (void)m, (void)e;
  return stub_call("export_model");
}
static inline genai_status* stub_make_quantizer(genai_quantizer* s, const genai_context* c, const genai_quantizer_request* r) {
  (void)s, (void)c;
  snprintf(stub_state->recipe, sizeof stub_state->recipe, "%s", r->recipe ? r->recipe : "NULL");
  snprintf(stub_state->dtype, sizeof stub_state->dtype, "%s", r->dtype ? r->dtype : "NULL");
  return stub_call("make_quantizer");
}
static inline genai_status* stub_prepare(genai_quantizer* s, const genai_context* c) {
  (void)s, (void)c;
  return stub_call("prepare");
}
static inline genai_status* stub_calibrate(genai_quantizer* s, const genai_context* c, genai_sample_stream* data) {
  (void)s;
  GENAI_TRY(genai_context_check_cancelled(c));
  stub_state->calibrating = true;
  genai_sample sample;
  for (bool end = false; !end;) GENAI_TRY(genai_sample_stream_next(data, &sample, &end));
  return stub_call("calibrate");
}
static inline genai_status* stub_train(genai_quantizer* s, const genai_context* c, genai_sample_stream* data) {
  (void)s, (void)c;
  genai_sample sample;
  for (bool end = false;;) {
    GENAI_TRY(genai_sample_stream_next(data, &sample, &end));
    if (end) break;
    stub_state->n_trained += sample.n_labels;
  }
  return stub_call("train");
}
static inline genai_status* stub_convert(genai_quantizer* s, const genai_context* c, const char* name, const genai_tensor_spec* i, size_t n,
                                         genai_object** out) {
  (void)s, (void)c, (void)name, (void)i, (void)n;
  if (stub_state->cancel_at_convert) genai_cancel_request(stub_state->cancel_at_convert);
  GENAI_TRY(stub_call("convert"));
  return stub_gives("convert") ? genai_object_create(&stub_graph_type, NULL, out) : NULL;
}

static inline genai_status* stub_compile(genai_compiler* s, const genai_context* c, const genai_compile_request* r,
                                         genai_compile_result* out) {
  (void)s;
  GENAI_TRY(genai_context_check_cancelled(c));
  stub_state->n_graphs = r->n_graphs;
  snprintf(stub_state->compiled_type, sizeof stub_state->compiled_type, "%s", genai_object_type_name(r->graphs[0].graph));
  stub_state->options[0] = 0;
  for (size_t i = 0; i < genai_options_count(r->options); i++) {
    size_t used = strlen(stub_state->options);
    snprintf(stub_state->options + used, sizeof stub_state->options - used, "%s=%s;", genai_options_key(r->options, i),
             genai_options_value(r->options, i));
  }
  GENAI_TRY(stub_call("compile"));
  for (size_t i = 0; i < stub_state->n_artifacts; i++) {
    char path[32];
    snprintf(path, sizeof path, "part%zu.pte", i);
    GENAI_TRY(genai_string_list_add(&out->artifacts, path));
  }
  return genai_statistics_add(&out->statistics, "graphs", (double)r->n_graphs);
}

static inline genai_status* stub_push(genai_device_runner* s, const genai_context* c, const genai_push_request* r) {
  (void)s, (void)c;
  stub_state->artifacts[0] = 0;
  for (size_t i = 0; i < r->n_artifacts; i++) {
    size_t used = strlen(stub_state->artifacts);
    snprintf(stub_state->artifacts + used, sizeof stub_state->artifacts - used, "%s;", r->artifacts[i]);
  }
  stub_state->pushed = true;
  return stub_call("push");
}
static inline genai_status* stub_expect_pushed(const char* call) {
  if (stub_state->pushed) return NULL;
  return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "%s was called before push", call);
}
static inline genai_status* stub_execute(genai_device_runner* s, const genai_context* c, const genai_execute_request* r,
                                         genai_execute_result* out) {
  (void)s, (void)r;
  GENAI_TRY(stub_expect_pushed("execute"));
  GENAI_TRY(stub_call("execute"));
  GENAI_TRY(genai_context_check_cancelled(c));
  if (!stub_state->gives_text) return NULL;
  out->n_generations = genai_context_prompt_count(c);
  out->generations = genai_alloc(out->n_generations, sizeof *out->generations);
  for (size_t i = 0; i < out->n_generations; i++) {
    out->generations[i].text = genai_strdup("Paris");
    out->generations[i].end = "stop token";
  }
  out->metrics.new_tokens = 1;
  return NULL;
}
static inline genai_status* stub_pull(genai_device_runner* s, const genai_context* c, const char* d, genai_string_list* out) {
  (void)s, (void)c, (void)d;
  GENAI_TRY(stub_expect_pushed("pull"));
  GENAI_TRY(stub_call("pull"));
  return genai_string_list_add(out, "outputs/result_0.raw");
}

static inline void stubs_init(stubs* self) {
  static const genai_model_loader_vtable loader = {stub_load_model,       stub_load_tokenizer, stub_example_inputs,
                                                   stub_export_tokenizer, stub_chat_template,  NULL};
  static const genai_calibration_data_vtable data = {stub_generate, NULL};
  static const genai_quantizer_vtable quantizer = {
      stub_export_model, stub_make_quantizer, stub_prepare, stub_calibrate, stub_convert, NULL, NULL, NULL, NULL};
  static const genai_compiler_vtable compiler = {stub_compile, NULL};
  static const genai_device_runner_vtable runner = {stub_push, stub_execute, stub_pull, NULL};
  *self = (stubs){.n_artifacts = 1, .gives_text = true};
  self->loader.vtable = &loader;
  self->calibration.vtable = &data;
  self->quantizer.vtable = &quantizer;
  self->compiler.vtable = &compiler;
  self->runner.vtable = &runner;
  self->adapters = (genai_adapters){.model_loader = &self->loader,
                                    .calibration_data = &self->calibration,
                                    .quantizer = &self->quantizer,
                                    .compiler = &self->compiler,
                                    .runner = &self->runner};
  stub_state = self;
}
/* A quantizer that trains, and the data for it. */
static inline void stubs_train(stubs* self) {
  static const genai_quantizer_vtable quantizer = {
      stub_export_model, stub_make_quantizer, stub_prepare, stub_calibrate, stub_convert, NULL, NULL, NULL, stub_train};
  static const genai_training_data_vtable training = {stub_generate_labelled, NULL};
  self->quantizer.vtable = &quantizer;
  self->training.vtable = &training;
  self->adapters.training_data = &self->training;
}
static inline void stubs_deinit(stubs* self) {
  text_deinit(&self->trace);
}
static inline const char* stubs_trace(const stubs* self) {
  return self->trace.data ? self->trace.data : "";
}

/* Log lines, one after the other. */
static text log_lines;
static inline void collect_log(void* user, genai_log_level level, const char* message) {
  (void)user;
  genai_status_free(text_printf(&log_lines, "%d %s\n", (int)level, message));
}
static inline void log_begin(void) {
  text_clear(&log_lines);
  genai_log_set_sink(collect_log, NULL, GENAI_LOG_DEBUG);
}
static inline void log_end(void) {
  genai_log_set_sink(NULL, NULL, GENAI_LOG_ERROR);
  text_deinit(&log_lines);
}
#define assert_logged(needle)                                                                      \
  do {                                                                                             \
    if (!log_lines.data || !strstr(log_lines.data, (needle)))                                      \
      fail_msg("\"%s\" was not logged, but:\n%s", (needle), log_lines.data ? log_lines.data : ""); \
  } while (0)

#define assert_contains(haystack, needle)                                                                     \
  do {                                                                                                        \
    const char* hay_ = (haystack);                                                                            \
    if (!hay_ || !strstr(hay_, (needle))) fail_msg("\"%s\" not in \"%s\"", (needle), hay_ ? hay_ : "(null)"); \
  } while (0)

/* A folder of this test's own. */
static inline const char* scratch_directory(void) {
  static char path[64];
  if (!*path) {
    strcpy(path, "/tmp/genai-test-XXXXXX");
    if (!mkdtemp(path)) fail_msg("mkdtemp");
  }
  return path;
}

/* Group teardown. */
static inline int remove_scratch(void** state) {
  (void)state;
  char line[128];
  snprintf(line, sizeof line, "rm -rf %s", scratch_directory());
  return system(line);
}

static inline genai_context* make_context(const char* const (*pairs)[2], size_t count, const genai_cancel* cancel) {
  genai_context_builder* builder;
  genai_context* context;
  assert_ok(genai_context_builder_create(&builder));
  assert_ok(genai_context_builder_set_model(builder, "a model"));
  assert_ok(genai_context_builder_set_soc(builder, "SM8650"));
  assert_ok(genai_context_builder_set_prompt(builder, "a prompt"));
  assert_ok(genai_context_builder_set_artifact_directory(builder, scratch_directory()));
  assert_ok(genai_context_builder_set_cancel(builder, cancel));
  for (size_t i = 0; i < count; i++) assert_ok(genai_context_builder_set_option(builder, pairs[i][0], pairs[i][1]));
  assert_ok(genai_context_builder_build(builder, &context));
  genai_context_builder_destroy(builder);
  return context;
}

/* A pipeline of the executorch strategies over stub adapters. */
static inline genai_pipeline* make_pipeline(const stubs* s, unsigned skip) {
  genai_engine_proxy* proxy;
  genai_pipeline* pipeline;
  genai_pipeline_options options = {.skip_stages = skip, .adapters = {&s->adapters, &s->adapters, &s->adapters, &s->adapters}};
  assert_ok(genai_engine_proxy_create(NULL, 0, GENAI_BACKEND_HTP, &proxy));
  assert_ok(genai_pipeline_from_proxy(proxy, &options, &pipeline));
  genai_engine_proxy_destroy(proxy);
  return pipeline;
}

#endif
