/* The `executorch` engine: what it puts into a registry, its options, and its default adapters for those who compose their own. */
#ifndef GENAI_PIPELINE_EXECUTORCH_H
#define GENAI_PIPELINE_EXECUTORCH_H

#include "genai/registry.h"

/* Adds the engine's four rows. */
genai_status* executorch_register(genai_registry* registry) GENAI_MUST_USE;

/* Every option the engine takes, in the order of help texts. */
enum { EXECUTORCH_OPTION_COUNT = 27 };
extern const genai_option_spec executorch_option_table[EXECUTORCH_OPTION_COUNT];

enum { EXECUTORCH_DEFAULT_CONTEXT = 512, EXECUTORCH_DEFAULT_PREFILL_AR = 128, EXECUTORCH_DEFAULT_NEW_TOKENS = 128 };
#define EXECUTORCH_DEFAULT_RECIPE "16a8w"

/* The default adapters; each is destroyed through its vtable. */
genai_status* executorch_loader_create(genai_model_loader** out) GENAI_MUST_USE;
genai_status* executorch_calibration_create(genai_calibration_data** out) GENAI_MUST_USE;
genai_status* executorch_quantizer_create(genai_quantizer** out) GENAI_MUST_USE;
genai_status* executorch_compiler_create(genai_compiler** out) GENAI_MUST_USE;
genai_status* executorch_host_runner_create(genai_device_runner** out) GENAI_MUST_USE;

/* What the engine asks of calibration data, by `options`; all is borrowed. */
genai_data_request executorch_calibration_request(genai_object* source, genai_object* words, const char* chat_template,
                                                  const genai_options* options);

/* Where the engine puts an artifact of `model` for `soc`: DIRECTORY/NAME.SOC.SUFFIX, with NAME from `name` or, when that is NULL, from the
 * model's path. `soc` is a chipset's name, `suffix` is ".pte" or ".sim.pte". The caller frees the path. */
genai_status* executorch_artifact_path(const char* directory, const char* name, const char* model, const char* soc, const char* suffix,
                                       char** out) GENAI_MUST_USE;

/* Strategy constructors, one per stage (genai_strategy_constructor). */
genai_status* executorch_preparation_strategy(void* user, const genai_adapters* adapters, genai_strategy** out);
genai_status* executorch_quantization_strategy(void* user, const genai_adapters* adapters, genai_strategy** out);
genai_status* executorch_compilation_strategy(void* user, const genai_adapters* adapters, genai_strategy** out);
genai_status* executorch_inference_strategy(void* user, const genai_adapters* adapters, genai_strategy** out);

#endif
