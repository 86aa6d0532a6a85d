/* Chipsets by name, from the tables of src/qnn. */
#include "pipeline/chipset.h"

genai_chipset chipset_of_soc(const qnn_soc* soc) {
  return (genai_chipset){soc->name, soc->marketing, soc->model, soc->htp_arch, soc->vtcm_mb, soc->lpai_version, soc->float16};
}

qnn_soc chipset_soc(const genai_chipset* chipset) {
  return (qnn_soc){chipset->name,    chipset->marketing,    chipset->soc_id, chipset->htp_arch,
                   chipset->vtcm_mb, chipset->lpai_version, chipset->float16};
}

genai_status* genai_chipset_find(const char* name, genai_chipset* out) {
  const qnn_soc* soc;
  GENAI_TRY(qnn_soc_find(name, &soc));
  *out = chipset_of_soc(soc);
  return NULL;
}
