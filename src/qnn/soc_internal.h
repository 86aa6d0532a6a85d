/* What soc.c and soc_table.c share: a list of SoCs, the user's before genai's. */
#ifndef GENAI_QNN_SOC_INTERNAL_H
#define GENAI_QNN_SOC_INTERNAL_H

#include "qnn/soc.h"

enum { QNN_SOC_MAX_DEVICE_IDS = 16 };

typedef struct qnn_soc_entry {
  qnn_soc soc;
  uint32_t n_device_ids;
  uint32_t device_ids[QNN_SOC_MAX_DEVICE_IDS];
} qnn_soc_entry;

typedef struct qnn_soc_list {
  size_t n_users;
  const qnn_soc_entry* users;
  size_t n_kept;
  const size_t* kept; /* indices into genai's table that no entry of the user's replaces; NULL: all, n_kept is their count */
} qnn_soc_list;

genai_status* qnn_soc_list_find(const qnn_soc_list* list, const char* wanted, const qnn_soc** out) GENAI_MUST_USE;

#endif
