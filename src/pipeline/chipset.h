/* A chipset of the public interface as the SoC that the rooms below take, and back. */
#ifndef GENAI_PIPELINE_CHIPSET_H
#define GENAI_PIPELINE_CHIPSET_H

#include "genai/context.h"
#include "qnn/soc.h"

/* Strings are borrowed. */
qnn_soc chipset_soc(const genai_chipset* chipset);
genai_chipset chipset_of_soc(const qnn_soc* soc);

#endif
