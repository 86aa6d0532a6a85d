/* A model ready to give logits, on any of the executors: for `logits` and `eval`. */
#ifndef GENAI_CLI_MODEL_SESSION_H
#define GENAI_CLI_MODEL_SESSION_H

#include "cli/cli.h"
#include "pipeline/executorch_objects.h"
#include "pipeline/session.h"
#include "tokenizer/tokenizer.h"

#define OPTIONS_MODEL_SESSION                                                                                              \
  {"--on", "WHERE", false,                                                                                                 \
   "float: the host executor on the checkpoint; simulated: the same with the recipe's encodings; htp: the "                \
   "HTP simulator (float)"},                                                                                               \
      {"--recipe", "NAME", false, "quantization recipe for simulated and htp (16a8w)"},                                    \
      {"--prefill-ar", "N", false, "tokens of one prefill call (128)"}, {"--context", "N", false, "context length (512)"}, \
      {"--calibration", "FILE", false, "text to calibrate on, in place of the built-in set"},                              \
      {"--soc", "NAME", false, "for a checkpoint on htp: the chip to compile for (SM8650)"},                               \
      {"--soc-file", "FILE", false, "SoCs of your own, beside those genai knows"},                                         \
      {"--qnn-dir", "DIR", false, "folder of Qualcomm's libraries (searched: genai doctor)"},                              \
      {"--threads", "N", false, "worker threads; 0 is one per processor (0)"}, {                                           \
    "--set", "KEY=VALUE", true, "any option of the pipeline by its own name"                                               \
  }

typedef struct model_session model_session;
/* Opens the positional argument: a checkpoint, or with --on htp also a .pte. A checkpoint on htp is compiled into a temporary folder first. */
genai_status* model_session_open(cli* app, const arguments* given, model_session** out) GENAI_MUST_USE;
/* The context's checkpoint on the host executor, quantized with the context's options (`simulated`) or float. Takes the context on success. */
genai_status* model_session_open_context(cli* app, genai_context* context, bool simulated, model_session** out) GENAI_MUST_USE;
void model_session_close(model_session* self); /* accepts NULL */
session* model_session_get(model_session* self);
const tokenizer* model_session_tokenizer(const model_session* self); /* NULL: none */
/* Of a checkpoint on the host; NULL otherwise. */
const executorch_model* model_session_model(const model_session* self);
const ir_graph* model_session_graph(const model_session* self, size_t index); /* NULL past the last */
const cancel_token* cli_cancel_token(const cli* app);

#endif
