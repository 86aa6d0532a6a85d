/* What the files of this room share: the insides of public handles, and small helpers. */
#ifndef GENAI_PIPELINE_INTERNAL_H
#define GENAI_PIPELINE_INTERNAL_H

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "genai/genai.h"

struct genai_cancel {
  cancel_token token;
};

struct genai_options {
  size_t count, capacity;
  struct {
    char* key;
    char* value;
  } * pairs;
};

/* The token of a context in the form the rooms below take; NULL when there is none. */
static inline const cancel_token* context_cancel_token(const genai_context* context) {
  const genai_cancel* cancel = genai_context_cancel(context);
  return cancel ? &cancel->token : NULL;
}

/* A progress sink of the rooms below that forwards to the context's callback. `context` must outlive the sink. */
progress_sink context_progress_sink(const genai_context* context);

genai_status* options_copy(const genai_options* source, genai_options** out) GENAI_MUST_USE;
bool text_is_blank(const char* string); /* also for NULL */

/* "12.3s"; below a second with its precision: "0.042s", "0.000310s". */
void format_seconds(double seconds, char buffer[32]);

/* A lock on an artifact directory, so that two runs do not write there at once. The directory is created when absent. Leftovers of a killed
 * run (temporary names) are removed once the lock is held. */
typedef struct directory_lock {
  int descriptor;
} directory_lock;
genai_status* directory_lock_acquire(const char* directory, directory_lock* out) GENAI_MUST_USE;
void directory_lock_release(directory_lock* lock); /* accepts {-1} */

#endif
