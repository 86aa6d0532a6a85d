/* The provenance record of an artifact: where it comes from and what it was made for, as JSON in a constant method
 * (docs/formats/provenance.md). Runners read it before they run. */
#ifndef GENAI_PIPELINE_PROVENANCE_H
#define GENAI_PIPELINE_PROVENANCE_H

#include "base/memory.h"
#include "base/text.h"
#include "executorch/pte.h"
#include "genai/status.h"
#include "ir/ir.h"
#include "quantize/quantize.h"

enum { PROVENANCE_MAX_GRAPHS = 8, PROVENANCE_MAX_STOP_IDS = 64 };

typedef struct provenance {
  const char* genai_version;
  const char* model_name;
  const char* model_family;
  const char* soc;
  uint32_t soc_id, htp_arch, vtcm_mb;
  const char* library_build_id;
  bool simulator;   /* the artifact for the simulator, not for a device */
  const char* mode; /* "kv", "hybrid" */
  uint32_t context_length;
  size_t n_ar;
  uint32_t ar_lengths[PROVENANCE_MAX_GRAPHS]; /* in the order of the graphs */
  uint32_t sliding_window;                    /* 0: none */
  const char* kv_type;                        /* "u8", "u16", "f16", "f32" */
  const recipe* how;                          /* writing: NULL for a float artifact. Not filled by reading. */
  const char* recipe_name;                    /* reading: NULL for a float artifact */
  const ir_graph* encodings;                  /* writing: the graph whose KV encodings are recorded; NULL: none. Not filled by reading. */
  const char* checkpoint_sha256;
  const char* tokenizer_sha256; /* of the exported file; NULL: no tokenizer */
  int32_t bos_id, eos_id;       /* -1: none */
  size_t n_stop_ids;
  int32_t stop_ids[PROVENANCE_MAX_STOP_IDS];
  arena memory; /* strings of a record that was read */
} provenance;

genai_status* provenance_write(const provenance* self, text* out) GENAI_MUST_USE;
/* Reads the record of a file; `*found` is false when it has none. Unknown members are ignored. */
genai_status* provenance_read(const pte_file* file, provenance* out, bool* found) GENAI_MUST_USE;
void provenance_deinit(provenance* self);

#endif
