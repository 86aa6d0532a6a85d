// The public interface from C++: a strategy written as a class, run by a pipeline with a registry of its own. Each header was also compiled
// alone, as C and as C++ (CMake generates one file per header and language), and is linked in here.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "genai/genai.h"

namespace {

int failures = 0;

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  failures++;
}

void check_ok(genai_status* status, const char* what) {
  if (!status) return;
  char text[1024];
  genai_status_format(status, text, sizeof text);
  std::fprintf(stderr, "failed: %s: %s\n", what, text);
  genai_status_free(status);
  failures++;
}

// The base struct comes first, so that a pointer to it is a pointer to the whole.
struct Echo {
  genai_strategy base;
  std::string prefix;
};

genai_status* infer(genai_strategy* base, const genai_context* context, const genai_inference_input*, genai_inference_output* output) {
  auto* self = reinterpret_cast<Echo*>(base);
  output->run.generations = static_cast<genai_generation*>(genai_alloc(1, sizeof(genai_generation)));
  if (!output->run.generations) return genai_status_out_of_memory();
  output->run.n_generations = 1;
  output->run.generations[0].end = "stop token";
  output->run.generations[0].text = genai_strdup((self->prefix + genai_context_prompt_text(context, 0)).c_str());
  return nullptr;
}

void destroy(genai_strategy* base) {
  delete reinterpret_cast<Echo*>(base);
}

genai_status* make(void*, const genai_adapters*, genai_strategy** out) {
  static genai_strategy_vtable vtable = {};
  vtable.stage = GENAI_STAGE_INFERENCE;
  vtable.engine = "echo";
  vtable.infer = infer;
  vtable.destroy = destroy;
  auto* self = new Echo{{&vtable}, "heard: "};
  *out = &self->base;
  return nullptr;
}

template <typename T, void (*release)(T*)>
struct Deleter {
  void operator()(T* object) const { release(object); }
};
using Registry = std::unique_ptr<genai_registry, Deleter<genai_registry, genai_registry_destroy>>;
using Proxy = std::unique_ptr<genai_engine_proxy, Deleter<genai_engine_proxy, genai_engine_proxy_destroy>>;
using Pipeline = std::unique_ptr<genai_pipeline, Deleter<genai_pipeline, genai_pipeline_destroy>>;
using Context = std::unique_ptr<genai_context, Deleter<genai_context, genai_context_destroy>>;
using Builder = std::unique_ptr<genai_context_builder, Deleter<genai_context_builder, genai_context_builder_destroy>>;

void a_strategy_written_in_cplusplus_runs() {
  genai_registry* registry = nullptr;
  check_ok(genai_registry_create(false, &registry), "registry");
  Registry owned_registry(registry);
  check_ok(genai_registry_register(registry, GENAI_STAGE_INFERENCE, "echo", make, nullptr, nullptr), "register");

  const genai_engine_choice choice = {"inference", "echo"};
  genai_engine_proxy* proxy = nullptr;
  check_ok(genai_engine_proxy_create(&choice, 1, GENAI_BACKEND_HTP, &proxy), "proxy");
  Proxy owned_proxy(proxy);

  genai_pipeline_options options = {};
  options.registry = registry;
  options.skip_stages = 1u << GENAI_STAGE_MODEL_PREPARATION | 1u << GENAI_STAGE_QUANTIZATION | 1u << GENAI_STAGE_COMPILATION;
  genai_pipeline* pipeline = nullptr;
  check_ok(genai_pipeline_from_proxy(proxy, &options, &pipeline), "pipeline");
  Pipeline owned_pipeline(pipeline);

  genai_context_builder* builder = nullptr;
  check_ok(genai_context_builder_create(&builder), "builder");
  Builder owned_builder(builder);
  check_ok(genai_context_builder_set_model(builder, "none"), "model");
  check_ok(genai_context_builder_set_soc(builder, "SM8650"), "soc");
  check_ok(genai_context_builder_set_prompt(builder, "hello"), "prompt");
  genai_context* context = nullptr;
  check_ok(genai_context_builder_build(builder, &context), "build");
  Context owned_context(context);

  genai_inference_output output = {};
  genai_pipeline_report report = {};
  check_ok(genai_pipeline_invoke(pipeline, context, &output, &report), "invoke");
  check(output.run.n_generations == 1 && std::string(output.run.generations[0].text) == "heard: hello", "the strategy's text comes back");
  check(report.stages[GENAI_STAGE_INFERENCE].state == GENAI_STAGE_COMPLETED, "the stage completed");
  genai_inference_output_deinit(&output);
  genai_pipeline_report_deinit(&report);
}

void what_is_missing_is_an_error_with_a_message() {
  genai_context_builder* builder = nullptr;
  check_ok(genai_context_builder_create(&builder), "builder");
  genai_context* context = nullptr;
  genai_status* status = genai_context_builder_build(builder, &context);
  check(genai_status_kind(status) == GENAI_ERROR_CONFIG_VALIDATION, "an empty builder does not build");
  check(std::string(genai_status_message(status)).find("genai_context_builder_set_soc") != std::string::npos, "it names the setter");
  genai_status_free(status);
  genai_context_builder_destroy(builder);
}

}  // namespace

int main() {
  a_strategy_written_in_cplusplus_runs();
  what_is_missing_is_an_error_with_a_message();
  if (!failures) std::puts("2 tests passed");
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
