/* genai generate: text from an artifact that exists. */
#include "base/file.h"
#include "base/memory.h"
#include "cli/cli.h"
#include "cli/pipeline_run.h"
#include "executorch/pte.h"
#include "genie/genie.h"
#include "pipeline/provenance.h"
#include "pipeline/qairt.h"
#include "qnn/qnn.h"

static const option_spec options[] = {
    {NULL, NULL, false, "what to run"},
    {"--prompt", "TEXT", true, "a prompt; may be given several times"},
    {"--ids", "LIST", true, "a prompt as token ids, such as 1,22,333; may be given several times"},
    {"--device", "NAME", false, "where the artifact runs: host is the simulator on this machine (host)"},
    {"--soc-file", "FILE", false, "SoCs of your own, when the artifact is for one of them"},
    {"--qnn-dir", "DIR", false, "folder of Qualcomm's libraries (searched: genai doctor)"},
    {"--set", "KEY=VALUE", true, "any option of the pipeline by its own name"},
    OPTIONS_GENERATION,
    OPTIONS_OUTPUT,
};

static const char* soc_of_model(uint32_t id) {
  for (size_t i = 0; i < qnn_soc_count(); i++) {
    if (qnn_soc_at(i)->model == id) return qnn_soc_at(i)->name;
  }
  return NULL;
}

static genai_status* bundle_soc(const char* config, char** out) {
  provenance record;
  bool found;
  GENAI_TRY(qairt_bundle_record(config, &record, &found));
  genai_status* status = NULL;
  if (!found || !record.soc) {
    status = genai_status_create(GENAI_ERROR_UNSUPPORTED,
                                 "the bundle of \"%s\" does not say which SoC it is for: it has no " QAIRT_PROVENANCE_FILE " of genai's",
                                 config);
  } else if (!(*out = mem_strdup(record.soc))) {
    status = genai_status_out_of_memory();
  }
  if (found) provenance_deinit(&record);
  return status;
}

/* The SoC a .pte was compiled for: what its provenance says, else what its delegate options say. */
static genai_status* artifact_soc(const char* path, char** out) {
  pte_file* file;
  GENAI_TRY(pte_open(path, &file));
  provenance record;
  bool found = false;
  const char* soc = NULL;
  genai_status* status = provenance_read(file, &record, &found);
  if (!status && found) soc = record.soc;
  for (size_t i = 0; !status && !soc && i < pte_method_count(file); i++) {
    const pte_method_view* method = pte_method_at(file, i);
    if (method->is_delegate) soc = soc_of_model(method->options.soc_model);
  }
  if (!status && !soc)
    status =
        genai_status_create(GENAI_ERROR_UNSUPPORTED, "\"%s\" does not say which SoC it is for; genai inspect shows what is in it", path);
  if (!status && !(*out = mem_strdup(soc))) status = genai_status_out_of_memory();
  if (found) provenance_deinit(&record);
  pte_close(file);
  return status;
}

/* `bundle` is the configuration of a Genie bundle; NULL: the artifact is a .pte. */
static genai_status* build_context(cli* app, const arguments* given, const char* bundle, genai_context** out) {
  const char* path = bundle ? bundle : given->positionals[0];
  genai_context_builder* builder;
  char* soc = NULL;
  GENAI_TRY(genai_context_builder_create(&builder));
  genai_status* status = bundle ? bundle_soc(bundle, &soc) : artifact_soc(path, &soc);
  if (!status) status = genai_context_builder_set_model(builder, path);
  if (!status) status = genai_context_builder_set_soc(builder, soc);
  if (!status) status = genai_context_builder_add_artifact(builder, path);
  if (!status) status = run_set_prompts(app, given, true, builder);
  if (!status) status = run_set_generation(app, given, builder);
  if (!status) status = genai_context_builder_build(builder, out);
  mem_free(soc);
  genai_context_builder_destroy(builder);
  return status;
}

static genai_status* run(cli* app, const arguments* given) {
  genai_pipeline_options how = {.skip_stages = ((1u << GENAI_STAGE_COUNT) - 1) & ~(1u << GENAI_STAGE_INFERENCE)};
  genai_engine_proxy* proxy;
  genai_pipeline* pipeline = NULL;
  genai_context* context = NULL;
  char* bundle;
  GENAI_TRY(qairt_bundle_find(given->positionals[0], &bundle));
  if (!bundle && path_is_directory(given->positionals[0]))
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "\"%s\" is a folder, but no Genie bundle: it has no " GENIE_CONFIG_FILE
                               "; name the artifact in it, such as "
                               "NAME.SOC.sim.pte",
                               given->positionals[0]);
  const genai_engine_choice choices[] = {{"compilation", "qairt"}, {"inference", "qairt"}};
  genai_status* status = genai_engine_proxy_create(choices, bundle ? 2 : 0, GENAI_BACKEND_HTP, &proxy);
  if (status) {
    mem_free(bundle);
    return status;
  }
  status = build_context(app, given, bundle, &context);
  mem_free(bundle);
  if (!status) status = genai_pipeline_from_proxy(proxy, &how, &pipeline);
  if (!status) status = run_pipeline(app, pipeline, context);
  genai_context_destroy(context);
  genai_pipeline_destroy(pipeline);
  genai_engine_proxy_destroy(proxy);
  return status;
}

const command_spec command_generate = {
    .name = "generate",
    .positionals = "ARTIFACT",
    .min_positionals = 1,
    .max_positionals = 1,
    .summary = "text from an artifact that exists",
    .details =
        "ARTIFACT is a .pte file or a Genie bundle's folder, on this machine NAME.SOC.sim.pte or NAME.SOC.sim.genie. tokenizer.json and\n"
        "tokenizer_config.json are read from beside the .pte or out of the bundle.",
    .options = options,
    .n_options = sizeof options / sizeof options[0],
    .run = run,
};
