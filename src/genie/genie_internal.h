/* What the files of this room share. */
#ifndef GENAI_GENIE_GENIE_INTERNAL_H
#define GENAI_GENIE_GENIE_INTERNAL_H

#include "genie/genie.h"
#include "genie/genie_api.h"

struct genie_library {
  genie_api api;
  genie_handle log; /* NULL: runs without one */
  char* path;
  genie_version version;
};

/* The API is not thread safe: every call is made between these two. */
void genie_lock(void);
void genie_unlock(void);
/* Forgets the lines that the library has logged; the lock is held. */
void genie_log_clear(void);
/* GENAI_ERROR_VENDOR: the formatted text, the code with its meaning, and what the library has logged since the last clear. */
genai_status* genie_error(const genie_library* self, genie_code code, const char* format, ...) GENAI_PRINTF(3, 4) GENAI_MUST_USE;

#endif
