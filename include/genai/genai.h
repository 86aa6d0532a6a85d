/* genai: from a language model's checkpoint to an artifact for Qualcomm's HTP and the text it generates. This header includes the whole
 * public interface; docs/errors.md lists what can go wrong. */
#ifndef GENAI_GENAI_H
#define GENAI_GENAI_H

#include "genai/adapters.h"
#include "genai/context.h"
#include "genai/pipeline.h"
#include "genai/registry.h"
#include "genai/stage.h"
#include "genai/status.h"
#include "genai/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

GENAI_API const char* genai_version(void); /* "0.1.0" */

#ifdef __cplusplus
}
#endif
#endif
