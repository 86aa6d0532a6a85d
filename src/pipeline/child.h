/* Work in a forked child process: the way to use a second core while a vendor call of this process cannot share it.
 *
 * A fork copies one thread alone. The child may therefore use what that thread owns and memory, files and the loader (glibc makes those safe
 * across fork), but neither a thread pool of the parent nor a library that had started threads before the fork. It never prints: its
 * standard output and error are /dev/null and its log sink is gone. It dies with its parent. */
#ifndef GENAI_PIPELINE_CHILD_H
#define GENAI_PIPELINE_CHILD_H

#include <sys/types.h>

#include "base/log.h"
#include "base/text.h"

typedef struct child_process {
  pid_t id; /* 0: none */
  int pipe;
} child_process;

/* Runs in the child; what it appends to `payload` goes to the parent, as does the status it returns. */
typedef genai_status* (*child_work)(void* user, text* payload);

genai_status* child_start(child_work work, void* user, child_process* out) GENAI_MUST_USE;
/* Waits for the end and gives the child's status and payload. When `cancel` is set, the child is killed and the status is
 * GENAI_ERROR_CANCELLED. `step` (may be NULL) is updated with the seconds waited. The child is gone afterwards. */
genai_status* child_wait(child_process* self, const cancel_token* cancel, progress* step, text* payload) GENAI_MUST_USE;
void child_stop(child_process* self); /* kills it if it still runs; accepts a zeroed or finished one */

#endif
