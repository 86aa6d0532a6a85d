/* A run's options in one JSON file: `--config FILE` reads it, `--print-config` writes it (docs/config.md). */
#ifndef GENAI_CLI_CONFIG_H
#define GENAI_CLI_CONFIG_H

#include "base/memory.h"
#include "cli/cli.h"

/* Arguments as the command line and a file together give them. */
typedef struct config {
  arguments merged;
  arena memory; /* what came from the file */
  genai_options* options;
} config;

/* Adds to the command line what the file of --config says (none: the command line alone) and the command line does not. Keys that are neither an
 * option of the command nor "model" or "options" are refused with the nearest. */
genai_status* config_merge(const arguments* given, config* out) GENAI_MUST_USE;
void config_deinit(config* self);

/* Writes the run as a file that --config takes: what was given, and the default of every other option of the pipeline. Unknown options and values
 * that are not allowed are refused. */
genai_status* config_print(const arguments* merged, const genai_engine_proxy* proxy, const genai_pipeline* pipeline,
                           const genai_context* context) GENAI_MUST_USE;

#endif
