/* What finished stages gave, kept beside the artifacts for later runs: DIRECTORY/.genai/STAGE-KEY16.json (compilation: names and hashes of the
 * artifacts) and DIRECTORY/.genai/STAGE-KEY16.bin (bytes in a frame with their hash). Callers hold the directory's lock.
 *
 * What is not there, damaged or changed since is "not found", with a line in the log that says why; only a lack of memory is an error. */
#ifndef GENAI_PIPELINE_STORE_H
#define GENAI_PIPELINE_STORE_H

#include "genai/stage.h"

#define STORE_FOLDER ".genai"

/* `out` and `*record` (its path, mem_free) are set when `*found`. */
genai_status* store_find_compilation(const char* directory, const char* key, genai_compilation_output* out, char** record,
                                     bool* found) GENAI_MUST_USE;
/* Records what compilation wrote and forgets records that named the same files. */
genai_status* store_keep_compilation(const char* directory, const char* key, const genai_compilation_output* output) GENAI_MUST_USE;

genai_status* store_find_bytes(const char* directory, genai_stage_kind stage, const char* key, void** data, size_t* size, char** record,
                               bool* found) GENAI_MUST_USE;
/* Keeps the newest few of a stage. */
genai_status* store_keep_bytes(const char* directory, genai_stage_kind stage, const char* key, const void* data,
                               size_t size) GENAI_MUST_USE;

#endif
