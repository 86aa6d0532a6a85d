/* The executorch engine's option table and its registry rows. */
#include "genai/pipeline.h"
#include "pipeline/executorch.h"
#include "pipeline/executorch_strategy.h"

#define IN(stage) (1u << GENAI_STAGE_##stage)

const genai_option_spec executorch_option_table[EXECUTORCH_OPTION_COUNT] = {
    {"threads", GENAI_OPTION_INTEGER, IN(MODEL_PREPARATION), 0, 1024, NULL, "0", "worker threads; 0 is one per processor"},
    {"calibration_file", GENAI_OPTION_TEXT, IN(MODEL_PREPARATION), 0, 0, NULL, NULL, "text to calibrate on, in place of the built-in set"},
    {"calibration_samples", GENAI_OPTION_INTEGER, IN(MODEL_PREPARATION), 1, 100000, NULL, "128", "calibrate on at most this many samples"},
    {"calibration_length", GENAI_OPTION_INTEGER, IN(MODEL_PREPARATION), 2, 32768, NULL, "1024", "tokens of a sample, at most"},
    {"mode", GENAI_OPTION_CHOICE, IN(MODEL_PREPARATION), 0, 0, "kv|hybrid", "hybrid",
     "kv: a decode graph alone; hybrid: prefill and decode"},
    {"prefill_ar", GENAI_OPTION_INTEGER, IN(MODEL_PREPARATION), 2, 4096, NULL, "128", "tokens of one prefill call"},
    {"context", GENAI_OPTION_INTEGER, IN(MODEL_PREPARATION), 2, 131072, NULL, "512", "context length, prompt and answer together"},
    {"recipe", GENAI_OPTION_TEXT, IN(QUANTIZATION), 0, 0, NULL, "16a8w", "quantization recipe: a name or a JSON file"},
    {"dtype", GENAI_OPTION_TEXT, IN(QUANTIZATION), 0, 0, NULL, NULL, "quantized types, such as 16a4w; the recipe's when not given"},
    {"qat", GENAI_OPTION_FLAG, IN(QUANTIZATION), 0, 0, NULL, "false", "quantization-aware training (needs training data)"},
    {"name", GENAI_OPTION_TEXT, IN(COMPILATION), 0, 0, NULL, NULL,
     "first part of the artifacts' names; the model's file name when not given"},
    {"optimization_level", GENAI_OPTION_INTEGER, IN(COMPILATION), 1, 3, NULL, "3", "the vendor compiler's effort"},
    {"vtcm_mb", GENAI_OPTION_INTEGER, IN(COMPILATION), 0, 64, NULL, "0", "VTCM to compile for, in MB; 0 is all the SoC has"},
    {"simulator_twin", GENAI_OPTION_CHOICE, IN(COMPILATION), 0, 0, "inline|process|off", "inline",
     "the artifact for the simulator: compiled after the device's, beside it in a child process, or not at all"},
    {"etrecord", GENAI_OPTION_FLAG, IN(COMPILATION), 0, 0, NULL, "false",
     "also write NAME.SOC.etrecord, which tells ExecuTorch's inspector what a profile's events belong to"},
    {"profile", GENAI_OPTION_FLAG, IN(COMPILATION), 0, 0, NULL, "false",
     "the program asks ExecuTorch's runtime to note each operator's cycles in its ETDump"},
    {"qnn_dir", GENAI_OPTION_TEXT, IN(COMPILATION) | IN(INFERENCE), 0, 0, NULL, NULL,
     "folder of Qualcomm's libraries; searched when not given"},
    {"chat_template", GENAI_OPTION_TEXT, IN(MODEL_PREPARATION) | IN(INFERENCE), 0, 0, NULL, NULL,
     "chat template to use when the tokenizer brings none"},
    {"system_prompt", GENAI_OPTION_TEXT, IN(INFERENCE), 0, 0, NULL, NULL, "first message of every chat"},
    {"raw_prompt", GENAI_OPTION_FLAG, IN(INFERENCE), 0, 0, NULL, "false", "prompts are used as they are, without the chat template"},
    {"max_new_tokens", GENAI_OPTION_INTEGER, IN(INFERENCE), 0, 1000000, NULL, "128",
     "tokens to generate at most; 0: until the context is full"},
    {"temperature", GENAI_OPTION_NUMBER, IN(INFERENCE), 0, 100, NULL, "0", "sampling temperature; 0 is greedy"},
    {"top_k", GENAI_OPTION_INTEGER, IN(INFERENCE), 0, 1000000, NULL, "0", "sample among the k most likely tokens; 0 is all"},
    {"top_p", GENAI_OPTION_NUMBER, IN(INFERENCE), 0, 1, NULL, "1", "sample among the most likely tokens that hold this much probability"},
    {"repetition_penalty", GENAI_OPTION_NUMBER, IN(INFERENCE), 0.01, 100, NULL, "1", "makes tokens already seen less likely; 1 is off"},
    {"seed", GENAI_OPTION_INTEGER, IN(INFERENCE), 0, 9007199254740992.0, NULL, "0", "seed of sampling"},
    {"device", GENAI_OPTION_CHOICE, IN(INFERENCE), 0, 0, "host", "host", "where the artifact runs: host is the simulator on this machine"},
};

genai_status* executorch_register(genai_registry* registry) {
  static const genai_strategy_constructor constructors[GENAI_STAGE_COUNT] = {
      executorch_preparation_strategy, executorch_quantization_strategy, executorch_compilation_strategy, executorch_inference_strategy};
  for (unsigned i = 0; i < GENAI_STAGE_COUNT; i++)
    GENAI_TRY(genai_registry_register(registry, (genai_stage_kind)i, "executorch", constructors[i], NULL, NULL));
  return NULL;
}

const engine_parts* engine_of(const void* user) {
  static const engine_parts executorch = {"executorch", executorch_compiler_create, executorch_host_runner_create, false, NULL};
  return user ? user : &executorch;
}
