/* The lock on an artifact directory, and the removal of what a killed run left there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "pipeline/internal.h"
#include "pipeline/store.h"

/* Whether a name is one that genai gives while it writes a file: anything else is the user's. */
static bool is_leftover(const char* name) {
  static const char suffix[] = TEMPORARY_SUFFIX;
  enum { RANDOM = 6, LENGTH = sizeof suffix - 1 }; /* mkstemp replaces the last ones */
  size_t length = strlen(name);
  return length > LENGTH && !memcmp(name + length - LENGTH, suffix, LENGTH - RANDOM);
}

static void remove_leftovers_in(const char* directory) {
  DIR* entries = opendir(directory);
  if (!entries) return;
  for (const struct dirent* entry; (entry = readdir(entries));) {
    if (!is_leftover(entry->d_name)) continue;
    if (!unlinkat(dirfd(entries), entry->d_name, 0))
      log_write(LOG_INFO, "removed \"%s\" in \"%s\": a run that was killed had left it", entry->d_name, directory);
  }
  closedir(entries);
}

/* The folders below an artifact directory that genai writes into: stored results, and bundles. */
static bool is_own_folder(const char* name) {
  static const char bundle[] = ".genie";
  size_t length = strlen(name);
  return !strcmp(name, STORE_FOLDER) || (length >= sizeof bundle && !strcmp(name + length - sizeof bundle + 1, bundle));
}

static genai_status* remove_leftovers(const char* directory) {
  remove_leftovers_in(directory);
  genai_status* status = NULL;
  DIR* entries = opendir(directory);
  for (const struct dirent* entry; !status && entries && (entry = readdir(entries));) {
    if (!is_own_folder(entry->d_name)) continue;
    char* folder = NULL;
    status = path_join(directory, entry->d_name, &folder);
    if (!status) remove_leftovers_in(folder);
    mem_free(folder);
  }
  if (entries) closedir(entries);
  return status;
}

genai_status* directory_lock_acquire(const char* directory, directory_lock* out) {
  GENAI_TRY(directory_create(directory));
  char* path;
  GENAI_TRY(path_join(directory, ".genai.lock", &path));
  genai_status* status = NULL;
  int descriptor = file_operation_fails() ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor < 0) {
    status = genai_status_create(GENAI_ERROR_IO,
                                 "cannot write into the artifact directory \"%s\": %s; check its permissions or choose another one",
                                 directory, strerror(errno));
  } else if (flock(descriptor, LOCK_EX | LOCK_NB)) {
    char owner[32] = "";
    ssize_t length = errno == EWOULDBLOCK ? pread(descriptor, owner, sizeof owner - 1, 0) : 0;
    owner[length > 0 ? length : 0] = 0;
    owner[strspn(owner, "0123456789")] = 0;
    status =
        genai_status_create(GENAI_ERROR_IO, "the artifact directory \"%s\" is in use by another run%s%s; wait for it or choose another one",
                            directory, *owner ? " with process id " : "", owner);
  } else {
    char owner[32];
    int length = snprintf(owner, sizeof owner, "%ld\n", (long)getpid());
    if (ftruncate(descriptor, 0) || pwrite(descriptor, owner, (size_t)length, 0) != length) {
      /* The id only makes another run's message better. */
    }
    status = remove_leftovers(directory);
  }
  mem_free(path);
  if (status) {
    if (descriptor >= 0) close(descriptor);
    return status;
  }
  out->descriptor = descriptor;
  return NULL;
}

void directory_lock_release(directory_lock* lock) {
  if (lock->descriptor >= 0) close(lock->descriptor);
  lock->descriptor = -1;
}
