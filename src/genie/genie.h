/* Qualcomm's Genie: names and configuration of its bundles, and generation through libGenie.so. See docs/formats/genie.md. */
#ifndef GENAI_GENIE_GENIE_H
#define GENAI_GENIE_GENIE_H

#include "base/json.h"
#include "base/text.h"
#include "qnn/qnn.h"
#include "runtime/runtime.h"

/* ---- Graphs ---- */
/* The name Genie looks for: a naming function for qnn_compile_options. Roles Genie has no name for get their own, which genie_check_graph
 * refuses before. */
void genie_boundary_name(const ir_tensor* tensor, char name[QNN_NAME_SIZE]);
/* GENAI_ERROR_UNSUPPORTED, with the reason, for a graph that Genie cannot drive: sliding windows, caches that are not 8 or 16 bits of fixed
 * point, no caches at all. */
genai_status* genie_check_graph(const ir_graph* graph) GENAI_MUST_USE;

/* ---- Bundles ---- */
#define GENIE_CONFIG_FILE "genie_config.json"

/* What a bundle's configuration says. Strings name files inside the bundle. */
typedef struct genie_config {
  uint32_t context_length, vocab_size;
  uint32_t head_dim; /* of keys and values */
  int32_t bos_id;    /* put before a prompt that Genie tokenizes itself; -1: none */
  const int32_t* stop_ids;
  size_t n_stop_ids;
  const char* binary;
  const char* tokenizer;
  const char* extensions; /* of the HTP backend, for a device; NULL: none */
} genie_config;
genai_status* genie_config_write(const genie_config* self, text* out) GENAI_MUST_USE;
/* Settings of the HTP backend for a device: the file that `extensions` names. */
genai_status* genie_extensions_write(const qnn_soc* soc, bool weight_sharing, text* out) GENAI_MUST_USE;

/* A bundle read for a run. */
typedef struct genie_bundle {
  uint32_t context_length, vocab_size;
  char* config; /* path of genie_config.json */
  char* directory;
  json_document* document;
} genie_bundle;
/* `path` is a bundle's folder or its genie_config.json. A missing, empty or unreadable file is an error that names it. */
genai_status* genie_bundle_open(const char* path, genie_bundle* out) GENAI_MUST_USE;
void genie_bundle_deinit(genie_bundle* self); /* accepts a zeroed value */
/* The configuration that Genie gets: paths are absolute, no token is put before prompts, since the caller gives ids, and sampling is as asked for.
 * Everything else is as in the file. */
genai_status* genie_bundle_configuration(const genie_bundle* self, const sampling_options* sampling, text* out) GENAI_MUST_USE;

/* ---- Library ---- */
typedef struct genie_library genie_library;
typedef struct genie_version {
  uint32_t major, minor, patch;
} genie_version;
/* libGenie.so from the folder of `base`, which must outlive it. GENAI_ERROR_ENGINE_NOT_AVAILABLE with the reason when it is not there. */
genai_status* genie_library_open(const qnn_library* base, genie_library** out) GENAI_MUST_USE;
void genie_library_close(genie_library* self); /* accepts NULL; the vendor's code stays mapped */
genie_version genie_library_version(const genie_library* self);

/* ---- Generation ---- */
typedef struct genie_dialog genie_dialog;
/* Loads a bundle's binary, ready to sample so. `bundle` must outlive the dialog. Genie is not thread safe: calls of all dialogs of a process
 * take turns. */
genai_status* genie_dialog_create(genie_library* library, const genie_bundle* bundle, const sampling_options* sampling,
                                  genie_dialog** out) GENAI_MUST_USE;
void genie_dialog_destroy(genie_dialog* self); /* accepts NULL */
/* As `generate` of runtime.h, from an empty cache; `stop_ids` are the bundle's own and those of `options` are not looked at. The time inside
 * graphs is unknown (0). `widest` is the largest AR length of the bundle's graphs, 0 when unknown: Genie keeps that many slots of the
 * context free while it prefills, so that a prompt has at most context - `widest` tokens. Cancelling ends the query before its next token. The
 * binary is loaded anew where Genie cannot go on from its last answer: after one that filled the context, and after one that was sampled. */
genai_status* genie_dialog_generate(genie_dialog* self, uint32_t widest, const int32_t* prompt, size_t count,
                                    const generate_options* options, generate_token_sink on_token, void* user,
                                    generate_result* out) GENAI_MUST_USE;

#endif
