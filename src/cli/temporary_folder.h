/* The folder that a command compiles into when nobody asked for artifacts. One at a time. */
#ifndef GENAI_CLI_TEMPORARY_FOLDER_H
#define GENAI_CLI_TEMPORARY_FOLDER_H

#include "genai/status.h"

/* Makes one below $TMPDIR, else /tmp. The path is the caller's to free, after temporary_folder_remove. */
genai_status* temporary_folder_create(char** out) GENAI_MUST_USE;
void temporary_folder_remove(const char* path); /* with everything in it; accepts NULL */
void temporary_folder_remove_current(void);     /* the one that is there, if any: for a program that must leave at once */

#endif
