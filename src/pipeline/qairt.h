/* The `qairt` engine: Genie bundles, run by Qualcomm's libGenie. Preparation and quantization are the executorch engine's: a quantized graph is
 * the same for both, and engines can be mixed up to there. */
#ifndef GENAI_PIPELINE_QAIRT_H
#define GENAI_PIPELINE_QAIRT_H

#include "genai/registry.h"
#include "pipeline/executorch_artifact.h"
#include "pipeline/generator.h"

/* After DIRECTORY/NAME.SOC: folders, and the file in them that stands for the bundle. */
#define QAIRT_DEVICE_SUFFIX ".genie"
#define QAIRT_SIMULATOR_SUFFIX ".sim.genie"

/* Adds the engine's four rows. */
genai_status* qairt_register(genai_registry* registry) GENAI_MUST_USE;
/* GENAI_ERROR_CONFIG_VALIDATION when what the first of two built-in engines compiles cannot be run by the second; other engines are the
 * caller's business. */
genai_status* qairt_check_engines(const char* compilation, const char* inference) GENAI_MUST_USE;

/* The default adapters that differ from the executorch engine's. */
genai_status* qairt_compiler_create(genai_compiler** out) GENAI_MUST_USE;
genai_status* qairt_host_runner_create(genai_device_runner** out) GENAI_MUST_USE;

/* ---- The bundle's files (docs/formats/genie.md) ---- */
#define QAIRT_PROVENANCE_FILE "provenance.json"
#define QAIRT_SUMS_FILE "SHA256SUMS"

/* Writes the folder `path`; its configuration goes first and comes last, so that a bundle is whole or has none. */
genai_status* qairt_bundle_write(const char* path, const void* binary, size_t size, const artifact_request* request,
                                 genai_string_list* files) GENAI_MUST_USE;
/* The configuration of the bundle at `path`, which is its folder or that file (mem_free); NULL and success when `path` is no bundle. */
genai_status* qairt_bundle_find(const char* path, char** config) GENAI_MUST_USE;
/* The record beside a configuration; `*found` is false when there is none (a bundle of another maker). */
genai_status* qairt_bundle_record(const char* config, provenance* out, bool* found) GENAI_MUST_USE;
/* Compares the files with the sums that were written with them; a bundle without sums passes. */
genai_status* qairt_bundle_verify(const char* config) GENAI_MUST_USE;
/* DIRECTORY/NAME of a file beside a configuration. The caller frees it. */
genai_status* qairt_bundle_file(const char* config, const char* name, char** out) GENAI_MUST_USE;

#endif
