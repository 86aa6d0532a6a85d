/* The recipe of a run. Internal to the room. */
#ifndef GENAI_PIPELINE_EXECUTORCH_RECIPE_H
#define GENAI_PIPELINE_EXECUTORCH_RECIPE_H

#include "genai/context.h"
#include "quantize/quantize.h"

/* As recipe_load, fitted to the SoC: a shipped recipe gets an 8-bit cache where the SoC cannot multiply 16 by 16 bits (`tell`: with a warning).
 * A recipe from a file is taken at its word. */
genai_status* executorch_recipe_load(const char* name_or_path, const genai_chipset* chipset, bool tell, recipe* out) GENAI_MUST_USE;

#endif
