/* The SoCs that graphs are compiled for: genai's table, what a user's file adds to it, finding one by what a person types, and what each can
 * compute. The file's format: docs/formats/socs.md. */
#ifndef GENAI_QNN_SOC_H
#define GENAI_QNN_SOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "genai/status.h"

typedef struct qnn_soc {
  const char* name;      /* "SM8650" */
  const char* marketing; /* "Snapdragon 8 Gen 3" */
  uint32_t model;        /* QNN's soc id: 57 */
  uint32_t htp_arch;     /* 75 */
  uint32_t vtcm_mb;      /* 8 */
  uint32_t lpai_version; /* 0: none */
  bool float16;          /* the HTP computes in half precision */
} qnn_soc;

/* ---- genai's own table ---- */
size_t qnn_soc_count(void);
const qnn_soc* qnn_soc_at(size_t index);
/* By name or marketing name (case ignored), by QNN's soc id, or by the id that Linux gives the chip on a device (/sys/devices/soc0/soc_id).
 * An id without a name in the table whose architecture is known, or given as ID:vARCH, is mapped to the SoC of that architecture with the
 * nearest id, with a warning in the log. Else GENAI_ERROR_CONFIG_VALIDATION that offers the nearest names. */
genai_status* qnn_soc_find(const char* wanted, const qnn_soc** out) GENAI_MUST_USE;

/* ---- With a user's own ---- */
typedef struct qnn_soc_table qnn_soc_table;
/* genai's table and the entries of `path`; NULL: those of $XDG_CONFIG_HOME/genai/socs.json (~/.config when unset), if there is one. An entry
 * whose name genai's table has takes that one's place. What is wrong with a file is GENAI_ERROR_CONFIG_VALIDATION that names file, entry
 * and member. */
genai_status* qnn_soc_table_open(const char* path, qnn_soc_table** out) GENAI_MUST_USE;
void qnn_soc_table_close(qnn_soc_table* self); /* accepts NULL; its SoCs are gone then */
size_t qnn_soc_table_count(const qnn_soc_table* self);
const qnn_soc* qnn_soc_table_at(const qnn_soc_table* self, size_t index); /* the user's first */
bool qnn_soc_table_is_users(const qnn_soc_table* self, size_t index);
genai_status* qnn_soc_table_find(const qnn_soc_table* self, const char* wanted, const qnn_soc** out) GENAI_MUST_USE;

/* ---- What an architecture can compute ---- */
typedef enum qnn_feature {
  QNN_FEATURE_BINARY,         /* context binaries compiled ahead of time */
  QNN_FEATURE_BLOCK_WEIGHTS,  /* weights with block scales (LPBQ) */
  QNN_FEATURE_WEIGHT_SHARING, /* one copy of the weights for several graphs */
  QNN_FEATURE_MATMUL_16,      /* products of two 16-bit activations: a 16-bit KV cache */
  QNN_FEATURE_FLOAT16,        /* graphs in half precision */
  QNN_FEATURE_COUNT
} qnn_feature;
const char* qnn_feature_name(qnn_feature feature); /* "block_weights" */
uint32_t qnn_feature_arch(qnn_feature feature);    /* the oldest architecture that has it */
bool qnn_soc_supports(const qnn_soc* soc, qnn_feature feature);
/* GENAI_ERROR_CONFIG_VALIDATION that names what needs it (`user`, such as "recipe 16a4w_block"), the SoC, what it would take, and what to do
 * instead. */
genai_status* qnn_soc_require(const qnn_soc* soc, qnn_feature feature, const char* user) GENAI_MUST_USE;

#endif
