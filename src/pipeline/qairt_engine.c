/* The qairt engine's registry rows: the strategies are the executorch engine's, with a compiler and a runner of its own. */
#include <string.h>

#include "base/memory.h"
#include "genie/genie.h"
#include "pipeline/executorch.h"
#include "pipeline/executorch_strategy.h"
#include "pipeline/internal.h"
#include "pipeline/qairt.h"

genai_status* qairt_compiler_create(genai_compiler** out) {
  static const artifact_format format = {.engine = "qairt",
                                         .device_suffix = QAIRT_DEVICE_SUFFIX,
                                         .simulator_suffix = QAIRT_SIMULATOR_SUFFIX,
                                         .name_boundary = genie_boundary_name,
                                         .check_graph = genie_check_graph,
                                         .write = qairt_bundle_write};
  return artifact_compiler_create(&format, out);
}

/* Whether libGenie loads, in a child process where that is possible: compiling may need a process without the vendor's libraries. */
static genai_status* probe_genie(void* user, text* payload) {
  (void)payload;
  qnn_library* base;
  genie_library* library;
  GENAI_TRY(qnn_library_open(user, &base));
  genai_status* status = genie_library_open(base, &library);
  if (!status) genie_library_close(library);
  qnn_library_close(base);
  return status;
}

static const engine_parts qairt_engine = {"qairt", qairt_compiler_create, qairt_host_runner_create, true, probe_genie};

genai_status* qairt_register(genai_registry* registry) {
  static const genai_strategy_constructor constructors[GENAI_STAGE_COUNT] = {
      executorch_preparation_strategy, executorch_quantization_strategy, executorch_compilation_strategy, executorch_inference_strategy};
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++)
    GENAI_TRY(
        genai_registry_register(registry, (genai_stage_kind)i, qairt_engine.name, constructors[i], NULL, (void*)(uintptr_t)&qairt_engine));
  return NULL;
}

genai_status* qairt_check_engines(const char* compilation, const char* inference) {
  static const struct {
    const char* engine;
    const char* gives;
    const char* runs;
  } engines[] = {{"executorch", "a .pte", ".pte files"}, {"qairt", "a Genie bundle", "Genie bundles"}};
  enum { COUNT = sizeof engines / sizeof engines[0] };
  size_t from = 0, to = 0;
  while (from < COUNT && strcmp(engines[from].engine, compilation)) from++;
  while (to < COUNT && strcmp(engines[to].engine, inference)) to++;
  if (from == COUNT || to == COUNT || from == to) return NULL;
  return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                             "compilation by engine %s gives %s, but inference by engine %s runs %s: choose one engine for both stages",
                             compilation, engines[from].gives, inference, engines[to].runs);
}
