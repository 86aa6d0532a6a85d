/* The insides of a fingerprint: text of everything that was added, hashed into a key. */
#ifndef GENAI_PIPELINE_FINGERPRINT_H
#define GENAI_PIPELINE_FINGERPRINT_H

#include "pipeline/internal.h"

struct genai_fingerprint {
  text content;
  const char* unknown; /* why; NULL: it is known */
};

/* Begins with what every stage depends on: the version of this code, down to the build. */
genai_status* fingerprint_init(genai_fingerprint* self) GENAI_MUST_USE;
void fingerprint_deinit(genai_fingerprint* self); /* accepts a zeroed one */
/* The key of what was added so far. */
void fingerprint_key(const genai_fingerprint* self, char key[65]);

#endif
