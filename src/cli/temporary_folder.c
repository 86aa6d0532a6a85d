/* Temporary folders: made, and removed with all that is in them. */
#include "cli/temporary_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"

/* Known here too, because a second signal ends the program from another thread. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char* current;

genai_status* temporary_folder_create(char** out) {
  const char* root = getenv("TMPDIR");
  char* path;
  GENAI_TRY(path_join(root && *root ? root : "/tmp", "genai.XXXXXX", &path));
  if (!mkdtemp(path)) {
    genai_status* status = genai_status_create(
        GENAI_ERROR_IO, "cannot create a temporary folder \"%s\": %s; TMPDIR names another place for it", path, strerror(errno));
    mem_free(path);
    return status;
  }
  pthread_mutex_lock(&lock);
  current = path;
  pthread_mutex_unlock(&lock);
  *out = path;
  return NULL;
}

static int remove_one(const char* path, const struct stat* info, int type, struct FTW* place) {
  (void)info, (void)type, (void)place;
  (void)remove(path); /* what cannot be removed stays; the rest goes */
  return 0;
}

static void remove_locked(const char* path) {
  enum { OPEN_FOLDERS = 8 };
  (void)nftw(path, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

void temporary_folder_remove(const char* path) {
  if (!path) return;
  pthread_mutex_lock(&lock);
  current = NULL;
  remove_locked(path);
  pthread_mutex_unlock(&lock);
}

void temporary_folder_remove_current(void) {
  pthread_mutex_lock(&lock);
  if (current) remove_locked(current);
  current = NULL;
  pthread_mutex_unlock(&lock);
}
