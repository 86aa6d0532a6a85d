/* Running a pipeline from the command line and saying what came of it: shared by `run` and `generate`. */
#ifndef GENAI_CLI_PIPELINE_RUN_H
#define GENAI_CLI_PIPELINE_RUN_H

#include "cli/cli.h"

/* Options of generation, for tables of commands. */
#define OPTIONS_GENERATION                                                                                                               \
  {NULL, NULL, false, "generation"}, {"--max-new-tokens", "N", false, "tokens to generate at most (128); 0: until the context is full"}, \
      {"--system", "TEXT", false, "system message of the chat"},                                                                         \
      {"--raw", NULL, false, "use prompts as they are, without the chat template"},                                                      \
      {"--chat-template", "FILE", false, "template to use when the tokenizer brings none"},                                              \
      {"--temperature", "T", false, "sampling temperature; 0, the default, is greedy"},                                                  \
      {"--top-k", "K", false, "sample among the K most likely tokens"},                                                                  \
      {"--top-p", "P", false, "sample among the most likely tokens that hold this much probability"},                                    \
      {"--repetition-penalty", "R", false, "makes tokens already seen less likely; 1 is off"}, {                                         \
    "--seed", "N", false, "seed of sampling"                                                                                             \
  }

/* Sets prompts (--prompt, --ids), generation options and --set on the builder; connects cancellation and callbacks. */
genai_status* run_set_prompts(cli* app, const arguments* given, bool required, genai_context_builder* builder) GENAI_MUST_USE;
genai_status* run_set_generation(cli* app, const arguments* given, genai_context_builder* builder) GENAI_MUST_USE;
genai_status* run_set_engine(const arguments* given, genai_engine_proxy** out) GENAI_MUST_USE;

/* Invokes and prints the summary (human to stderr, facts to stdout with --json), also after a failure. A run that gave artifacts stores its
 * facts beside them. */
genai_status* run_pipeline(cli* app, genai_pipeline* pipeline, const genai_context* context) GENAI_MUST_USE;

/* Where the record of the run that wrote this artifact is: NAME.SOC.run.json beside it. */
genai_status* run_record_path(const char* artifact, text* out) GENAI_MUST_USE;

#endif
