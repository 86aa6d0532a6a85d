/* Chipsets by name, from the table of src/qnn. */
#include "pipeline/internal.h"
#include "qnn/qnn.h"

genai_status* genai_chipset_find(const char* name, genai_chipset* out) {
  const qnn_soc* soc;
  GENAI_TRY(qnn_soc_find(name, &soc));
  *out = (genai_chipset){soc->name, soc->marketing, soc->model, soc->htp_arch, soc->vtcm_mb, soc->lpai_version};
  return NULL;
}
