/* The provenance record of an artifact: what it was made from and for, as JSON in a constant method (docs/formats/provenance.md). */
#ifndef GENAI_PIPELINE_PROVENANCE_H
#define GENAI_PIPELINE_PROVENANCE_H

#include "base/memory.h"
#include "base/text.h"
#include "executorch/pte.h"
#include "genai/status.h"
#include "ir/ir.h"
#include "qnn/qnn.h"
#include "quantize/quantize.h"

enum { PROVENANCE_MAX_GRAPHS = 8, PROVENANCE_MAX_STOP_IDS = 64 };

typedef struct provenance_graph {
  const char* name;
  uint32_t ar_length;
} provenance_graph;

typedef struct provenance_encoding {
  float scale;
  int32_t offset;
} provenance_encoding;

typedef struct provenance {
  const char* genai_version;
  const char* backend; /* NULL: "htp" */
  bool simulator;      /* the variant that loads on x86-64, not the one for a device */
  const char* soc;
  uint32_t soc_model, htp_arch, vtcm_mb;
  const char* library_build_id;
  const char* mode; /* "kv", "hybrid" */
  uint32_t context_length;
  size_t n_graphs;
  provenance_graph graphs[PROVENANCE_MAX_GRAPHS];
  uint32_t layers, vocab_size;
  uint32_t sliding_window; /* 0: none */
  const char* kv_dtype;    /* "u8", "u16", "f16", "f32" */
  size_t n_kv;             /* layers with encodings; 0 for a float artifact */
  const provenance_encoding* keys;
  const provenance_encoding* values;
  const char* recipe_name; /* NULL for a float artifact */
  const char* recipe_sha256;
  const char* checkpoint_name;
  const char* checkpoint_sha256;
  const char* tokenizer_sha256; /* of the file that the runner needs; NULL: no tokenizer */
  int32_t bos_id, eos_id;       /* -1: none */
  size_t n_stop_ids;
  int32_t stop_ids[PROVENANCE_MAX_STOP_IDS];
  arena memory; /* what belongs to the record itself */
} provenance;

/* Takes keys and values from a graph's cache outputs, in the record's own memory. A float graph has none. */
genai_status* provenance_set_encodings(provenance* self, const ir_graph* graph) GENAI_MUST_USE;
/* Name and hash of the resolved recipe, in the record's own memory. */
genai_status* provenance_set_recipe(provenance* self, const recipe* how) GENAI_MUST_USE;

genai_status* provenance_write(const provenance* self, text* out) GENAI_MUST_USE;
/* Reads a record's JSON; `name` names it in errors. */
genai_status* provenance_parse(const char* record, size_t length, const char* name, provenance* out) GENAI_MUST_USE;
/* Reads the record of a file; `*found` is false when it has none. */
genai_status* provenance_read(const pte_file* file, provenance* out, bool* found) GENAI_MUST_USE;
void provenance_deinit(provenance* self);

/* Compares the record with the file around it and its context binary. Every difference is a line `member: recorded X, found Y`. */
genai_status* provenance_compare(const provenance* self, const pte_file* file, const qnn_binary_info* binary,
                                 text* differences) GENAI_MUST_USE;

#endif
