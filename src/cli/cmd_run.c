/* genai run: the whole pipeline. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/config.h"
#include "cli/pipeline_run.h"
#include "genie/genie.h"
#include "pipeline/executorch.h"
#include "pipeline/qairt.h"
#include "qnn/soc.h"

static const option_spec options[] = {
    {NULL, NULL, false, "what to run"},
    {"--soc", "NAME", false, "the chip to compile for: a name such as SM8650, or an id (genai soc lists them)"},
    {"--soc-file", "FILE", false, "SoCs of your own, beside those genai knows ($XDG_CONFIG_HOME/genai/socs.json when there is one)"},
    {"--prompt", "TEXT", true, "a prompt; may be given several times"},
    {"--ids", "LIST", true, "a prompt as token ids, such as 1,22,333; may be given several times"},
    {"--until", "STAGE", false, "stop after model_preparation, quantization, compilation or inference"},
    {"--from", "STAGE", false,
     "begin at a stage: what earlier ones gave must be stored by an earlier run, and this one and later ones run"},
    {"--skip", "STAGE", true, "leave a stage out; without quantization the model is compiled in half precision"},
    {"--engine", "NAME", true, "executorch gives and runs .pte files, qairt Genie bundles; or STAGE=NAME,... by stage (executorch)"},
    {"--backend", "NAME", false, "htp, gpu or lpai (htp)"},
    {"--device", "NAME", false, "where the artifact runs: host is the simulator on this machine (host)"},
    {NULL, NULL, false, "how to compile"},
    {"--artifact-dir", "DIR", false, "where artifacts go (./genai_artifacts)"},
    {"--name", "NAME", false, "first part of the artifacts' names (the model's file name)"},
    {"--recipe", "NAME", false, "quantization recipe: a name (genai recipes lists them) or a JSON file (16a8w)"},
    {"--mode", "MODE", false, "kv: a decode graph alone; hybrid: prefill and decode (hybrid)"},
    {"--prefill-ar", "N", false, "tokens of one prefill call (128)"},
    {"--context", "N", false, "context length, prompt and answer together (512)"},
    {"--calibration", "FILE", false, "text to calibrate on, in place of the built-in set"},
    {"--calibration-samples", "N", false, "calibrate on at most N samples"},
    {"--no-cache", NULL, false, "run every stage, also one whose result is stored for equal inputs, options and versions"},
    {"--twin", "HOW", false,
     "the artifact for the simulator: process compiles it beside the device's, inline after it, off not at all (process)"},
    {"--etrecord", NULL, false, "also write NAME.SOC.etrecord, for ExecuTorch's inspector"},
    {"--profile", NULL, false, "the program asks ExecuTorch's runtime to note each operator's cycles (with --etrecord: which ones)"},
    {"--qnn-dir", "DIR", false, "folder of Qualcomm's libraries (searched: genai doctor)"},
    {"--threads", "N", false, "worker threads; 0 is one per processor (0)"},
    {"--set", "KEY=VALUE", true, "any option of the pipeline by its own name"},
    {"--config", "FILE", false, "JSON file with options of a run; the command line wins over it"},
    {"--print-config", NULL, false, "write the run's options as such a file to stdout, and do not run"},
    OPTIONS_GENERATION,
    OPTIONS_OUTPUT,
};

enum {
  EARLIER_STAGES = (1u << GENAI_STAGE_INFERENCE) - 1,
  COMPILES = 1u << GENAI_STAGE_COMPILATION,
  WITH_MODEL = COMPILES | 1u << GENAI_STAGE_QUANTIZATION
};

/* What --until, --from and --skip leave out, as bits. */
static genai_status* stages_to_skip(const arguments* given, unsigned* out, bool* from_inference) {
  genai_stage_kind stage;
  unsigned skip = 0;
  if (argument_given(given, "--until")) {
    GENAI_TRY(genai_stage_find(argument_value(given, "--until"), &stage));
    for (unsigned i = stage + 1u; i < GENAI_STAGE_COUNT; i++) skip |= 1u << i;
  }
  if (argument_given(given, "--from")) {
    GENAI_TRY(genai_stage_find(argument_value(given, "--from"), &stage));
    *from_inference = stage == GENAI_STAGE_INFERENCE;
    if (*from_inference) skip |= EARLIER_STAGES; /* the others need what preparation reads: the pipeline's option `from` is theirs */
  }
  for (size_t i = 0; i < argument_count(given, "--skip"); i++) {
    GENAI_TRY(genai_stage_find(argument_at(given, "--skip", i), &stage));
    skip |= 1u << stage;
  }
  if (skip == (1u << GENAI_STAGE_COUNT) - 1) return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "no stage is left to run");
  bool compiles = !(skip & COMPILES), infers = !(skip & 1u << GENAI_STAGE_INFERENCE);
  if (skip & 1u << GENAI_STAGE_MODEL_PREPARATION && (skip & WITH_MODEL) != WITH_MODEL)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "stage %s needs the model that model_preparation opens: leave out --skip model_preparation",
                               skip & 1u << GENAI_STAGE_QUANTIZATION ? "compilation" : "quantization");
  if (infers && !compiles && !*from_inference)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "inference needs an artifact, and compilation is skipped: --from inference runs the one that an earlier run "
                               "stored, genai generate ARTIFACT the one you name, --until stops before");
  *out = skip;
  return NULL;
}

static genai_status* add_stored_artifact(const arguments* given, genai_context_builder* builder) {
  const char* directory = argument_value(given, "--artifact-dir");
  char* path = NULL;
  qnn_soc_table* socs;
  const qnn_soc* soc;
  genai_engine_proxy* proxy;
  GENAI_TRY(run_set_engine(given, &proxy));
  bool bundle = !strcmp(genai_engine_proxy_engine(proxy, GENAI_STAGE_INFERENCE), "qairt");
  const char* suffix = bundle ? QAIRT_SIMULATOR_SUFFIX "/" GENIE_CONFIG_FILE : ".sim.pte";
  genai_engine_proxy_destroy(proxy);
  GENAI_TRY(qnn_soc_table_open(argument_value(given, "--soc-file"), &socs));
  genai_status* status = qnn_soc_table_find(socs, argument_value(given, "--soc"), &soc);
  if (!status)
    status = executorch_artifact_path(directory ? directory : "./genai_artifacts", argument_value(given, "--name"), given->positionals[0],
                                      soc->name, suffix, &path);
  if (!status) status = genai_context_builder_add_artifact(builder, path);
  mem_free(path);
  qnn_soc_table_close(socs);
  return status;
}

static genai_status* set_file_options(const genai_options* from_file, genai_context_builder* builder) {
  for (size_t i = 0; i < genai_options_count(from_file); i++)
    GENAI_TRY(genai_context_builder_set_option(builder, genai_options_key(from_file, i), genai_options_value(from_file, i)));
  return NULL;
}

static genai_status* fill_context(cli* app, const config* file, bool inference, bool from_inference, genai_context_builder* builder) {
  static const option_mapping mappings[] = {{"--name", "name"},
                                            {"--recipe", "recipe"},
                                            {"--mode", "mode"},
                                            {"--prefill-ar", "prefill_ar"},
                                            {"--context", "context"},
                                            {"--calibration", "calibration_file"},
                                            {"--calibration-samples", "calibration_samples"},
                                            {"--twin", "simulator_twin"},
                                            {"--etrecord", "etrecord"},
                                            {"--profile", "profile"},
                                            {"--threads", "threads"}};
  const arguments* given = &file->merged;
  const char* soc = argument_value(given, "--soc");
  if (!given->n_positionals)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "genai run needs MODEL: name a checkpoint, here or as key \"model\" in the file of --config");
  if (!soc)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "--soc is missing: the chip to compile for, such as SM8650 (genai soc lists them)");
  GENAI_TRY(genai_context_builder_set_model(builder, given->positionals[0]));
  GENAI_TRY(genai_context_builder_set_soc(builder, soc));
  if (argument_given(given, "--artifact-dir"))
    GENAI_TRY(genai_context_builder_set_artifact_directory(builder, argument_value(given, "--artifact-dir")));
  GENAI_TRY(run_set_prompts(app, given, inference, builder));
  /* The program knows its own threads, so that a child process is safe; the library's default is one process. */
  GENAI_TRY(genai_context_builder_set_option(builder, "simulator_twin", "process"));
  GENAI_TRY(set_file_options(file->options, builder));
  GENAI_TRY(cli_map_options(given, mappings, sizeof mappings / sizeof mappings[0], builder));
  if (argument_given(given, "--no-cache")) GENAI_TRY(genai_context_builder_set_option(builder, "reuse", "false"));
  if (argument_given(given, "--from") && !from_inference)
    GENAI_TRY(genai_context_builder_set_option(builder, "from", argument_value(given, "--from")));
  if (from_inference) GENAI_TRY(add_stored_artifact(given, builder));
  return run_set_generation(app, given, builder);
}

static genai_status* build_context(cli* app, const config* file, bool inference, bool from_inference, genai_context** out) {
  genai_context_builder* builder;
  GENAI_TRY(genai_context_builder_create(&builder));
  genai_status* status = fill_context(app, file, inference, from_inference, builder);
  if (!status) status = genai_context_builder_build(builder, out);
  genai_context_builder_destroy(builder);
  return status;
}

static genai_status* run_merged(cli* app, const config* file) {
  const arguments* given = &file->merged;
  genai_pipeline_options how = {0};
  bool from_inference = false, print = argument_given(given, "--print-config");
  GENAI_TRY(stages_to_skip(given, &how.skip_stages, &from_inference));
  genai_engine_proxy* proxy;
  GENAI_TRY(run_set_engine(given, &proxy));
  genai_pipeline* pipeline = NULL;
  genai_context* context = NULL;
  genai_status* status = genai_pipeline_from_proxy(proxy, &how, &pipeline);
  bool inference = !(how.skip_stages & 1u << GENAI_STAGE_INFERENCE);
  if (!status) status = build_context(app, file, inference && !print, from_inference, &context);
  if (!status) status = print ? config_print(given, proxy, pipeline, context) : run_pipeline(app, pipeline, context);
  genai_context_destroy(context);
  genai_pipeline_destroy(pipeline);
  genai_engine_proxy_destroy(proxy);
  return status;
}

static genai_status* run(cli* app, const arguments* given) {
  config file;
  GENAI_TRY(config_merge(given, &file));
  genai_status* status = run_merged(app, &file);
  config_deinit(&file);
  return status;
}

const command_spec command_run = {
    .name = "run",
    .positionals = "MODEL",
    .min_positionals = 0, /* the file of --config may name the model */
    .max_positionals = 1,
    .summary = "checkpoint to artifact to text: prepare, quantize, compile, infer",
    .details =
        "MODEL is a GGUF file, a Hugging Face directory or a llama2.c file. Writes NAME.SOC.pte for the device, NAME.SOC.sim.pte for the\n"
        "simulator and tokenizer.json into the artifact directory; with --engine qairt the folders NAME.SOC.genie\n"
        "and NAME.SOC.sim.genie. Generated text goes to stdout, everything else to stderr.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
