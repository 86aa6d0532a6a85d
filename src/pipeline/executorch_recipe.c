/* Which recipe a run has: the one named, and what the SoC makes of it. What a recipe is, is src/quantize's business. */
#include "pipeline/executorch_recipe.h"

#include "pipeline/chipset.h"

genai_status* executorch_recipe_load(const char* name_or_path, const genai_chipset* chipset, bool tell, recipe* out) {
  GENAI_TRY(recipe_load(name_or_path, out));
  qnn_soc soc = chipset_soc(chipset);
  if (out->kv_bits != 16 || !recipe_find(name_or_path) || qnn_soc_supports(&soc, QNN_FEATURE_MATMUL_16)) return NULL;
  out->kv_bits = 8;
  if (tell)
    log_write(LOG_WARNING, "recipe %s: the key and value cache gets 8 bits, %s (HTP v%u) does not multiply 16 by 16 bits", out->name,
              soc.name, soc.htp_arch);
  return NULL;
}
