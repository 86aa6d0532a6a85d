/* Mapped files and atomic writes. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/memory.h"

static atomic_uint_fast64_t operations;
static atomic_uint_fast64_t failing_operation; /* 0: none */

void file_inject_failure(uint64_t nth) {
  atomic_store(&failing_operation, nth ? atomic_load(&operations) + nth : 0);
}

uint64_t file_operation_count(void) {
  return atomic_load(&operations);
}

bool file_operation_fails(void) {
  uint64_t number = atomic_fetch_add_explicit(&operations, 1, memory_order_relaxed) + 1;
  uint64_t failing = atomic_load_explicit(&failing_operation, memory_order_relaxed);
  if (!failing || number != failing) return false;
  atomic_store_explicit(&failing_operation, 0, memory_order_relaxed);
  errno = ENOSPC;
  return true;
}

static genai_status* system_error(const char* action, const char* path) {
  int code = errno;
  genai_error_kind kind = code == ENOENT || code == ENOTDIR ? GENAI_ERROR_NOT_FOUND : GENAI_ERROR_IO;
  const char* hint = code == ENOSPC || code == EDQUOT                   ? "; free disk space or choose another folder"
                     : code == EACCES || code == EPERM || code == EROFS ? "; check the permissions or choose another folder"
                     : code == ENOENT                                   ? "; check the path"
                                                                        : "";
  return genai_status_create(kind, "cannot %s \"%s\": %s%s", action, path, strerror(code), hint);
}

genai_status* mapped_file_open(const char* path, mapped_file* out) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error("open", path);
  genai_status* status = NULL;
  struct stat info;
  if (fstat(descriptor, &info)) {
    status = system_error("examine", path);
  } else if (!S_ISREG(info.st_mode)) {
    status = genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "\"%s\" is %s, expected a regular file", path,
                                 S_ISDIR(info.st_mode) ? "a directory" : "not a regular file");
  } else {
    mapped_file file = {NULL, (size_t)info.st_size, mem_strdup(path)};
    if (!file.path) {
      status = genai_status_out_of_memory();
    } else if (file.size) {
      void* data = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (data == MAP_FAILED) {
        status = system_error("map", path);
        mem_free(file.path);
      } else {
        file.data = data;
      }
    }
    if (!status) *out = file;
  }
  close(descriptor);
  return status;
}

void mapped_file_close(mapped_file* file) {
  if (file->data) munmap((void*)(uintptr_t)file->data, file->size);
  mem_free(file->path);
  *file = (mapped_file){0};
}

void mapped_file_release(const mapped_file* file) {
  if (file->data) (void)madvise((void*)(uintptr_t)file->data, file->size, MADV_DONTNEED);
}

/* Temporary names of writers that are still open, so that a program that must leave at once can remove them. */
enum { MAX_OPEN_WRITERS = 16 };
static pthread_mutex_t writers_lock = PTHREAD_MUTEX_INITIALIZER;
static const char* open_writers[MAX_OPEN_WRITERS];

static void writer_register(const char* temporary_path) {
  pthread_mutex_lock(&writers_lock);
  for (size_t i = 0; i < MAX_OPEN_WRITERS; i++) {
    if (!open_writers[i]) {
      open_writers[i] = temporary_path;
      break;
    }
  }
  pthread_mutex_unlock(&writers_lock);
}

static void writer_forget(const char* temporary_path) {
  pthread_mutex_lock(&writers_lock);
  for (size_t i = 0; i < MAX_OPEN_WRITERS; i++) {
    if (open_writers[i] == temporary_path) open_writers[i] = NULL;
  }
  pthread_mutex_unlock(&writers_lock);
}

void atomic_file_remove_all(void) {
  pthread_mutex_lock(&writers_lock);
  for (size_t i = 0; i < MAX_OPEN_WRITERS; i++) {
    if (open_writers[i]) unlink(open_writers[i]);
    open_writers[i] = NULL;
  }
  pthread_mutex_unlock(&writers_lock);
}

genai_status* atomic_file_create(const char* path, atomic_file* out) {
  size_t length = strlen(path);
  char* copy = mem_strdup(path);
  char* temporary = mem_alloc(length + sizeof TEMPORARY_SUFFIX);
  if (!copy || !temporary) {
    mem_free(copy);
    mem_free(temporary);
    return genai_status_out_of_memory();
  }
  memcpy(temporary, path, length);
  memcpy(temporary + length, TEMPORARY_SUFFIX, sizeof TEMPORARY_SUFFIX);
  int descriptor = file_operation_fails() ? -1 : mkostemp(temporary, O_CLOEXEC);
  if (descriptor < 0) {
    genai_status* status = system_error("create a file beside", path);
    mem_free(copy);
    mem_free(temporary);
    return status;
  }
  mode_t mask = umask(0);
  umask(mask);
  (void)fchmod(descriptor, 0666 & ~mask);
  *out = (atomic_file){descriptor, copy, temporary, 0};
  writer_register(temporary);
  return NULL;
}

genai_status* atomic_file_write(atomic_file* file, const void* data, size_t size) {
  const uint8_t* bytes = data;
  while (size) {
    ssize_t written = file_operation_fails() ? -1 : write(file->descriptor, bytes, size);
    if (written < 0) {
      if (errno == EINTR) continue;
      return system_error("write to", file->path);
    }
    bytes += written;
    size -= (size_t)written;
    file->size += (uint64_t)written;
  }
  return NULL;
}

static void atomic_file_release(atomic_file* file) {
  if (file->descriptor >= 0) close(file->descriptor);
  mem_free(file->path);
  mem_free(file->temporary_path);
  *file = (atomic_file){.descriptor = -1};
}

genai_status* atomic_file_commit(atomic_file* file) {
  genai_status* status = NULL;
  if ((file_operation_fails() || fsync(file->descriptor)) && errno != EINVAL && errno != EROFS) status = system_error("flush", file->path);
  if (!status) {
    int failed = close(file->descriptor); /* closed either way */
    file->descriptor = -1;
    if (file_operation_fails() || failed) status = system_error("close", file->path);
  }
  if (!status && (file_operation_fails() || rename(file->temporary_path, file->path))) status = system_error("put in place", file->path);
  if (status) {
    atomic_file_abort(file);
    return status;
  }
  writer_forget(file->temporary_path);
  atomic_file_release(file);
  return NULL;
}

void atomic_file_abort(atomic_file* file) {
  if (!file->temporary_path) return;
  writer_forget(file->temporary_path);
  unlink(file->temporary_path);
  atomic_file_release(file);
}

genai_status* file_write_atomic(const char* path, const void* data, size_t size) {
  atomic_file file;
  GENAI_TRY(atomic_file_create(path, &file));
  genai_status* status = atomic_file_write(&file, data, size);
  if (status) {
    atomic_file_abort(&file);
    return status;
  }
  return atomic_file_commit(&file);
}

genai_status* file_read_all(const char* path, size_t max_size, text* out) {
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error("open", path);
  genai_status* status = NULL;
  struct stat info;
  if (fstat(descriptor, &info)) {
    status = system_error("examine", path);
  } else if (S_ISDIR(info.st_mode)) {
    status = genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "\"%s\" is a directory, expected a file", path);
  }
  char buffer[16384];
  size_t total = 0;
  while (!status) {
    ssize_t got = read(descriptor, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = system_error("read", path);
    if (got <= 0) break;
    total += (size_t)got;
    if (total > max_size) {
      status = genai_status_create(GENAI_ERROR_LIMIT, "\"%s\" is larger than %zu bytes, the most that is read here", path, max_size);
      break;
    }
    status = text_append(out, buffer, (size_t)got);
  }
  close(descriptor);
  return status;
}

genai_status* file_sha256(const char* path, uint64_t* size, char hex[65]) {
  enum { PIECE = 1 << 18 };
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error("open", path);
  genai_status* status = NULL;
  uint8_t digest[32];
  uint64_t total = 0;
  sha256 hash;
  sha256_init(&hash);
  uint8_t* piece = mem_alloc(PIECE);
  if (!piece) status = genai_status_out_of_memory();
  while (!status) {
    ssize_t got = read(descriptor, piece, PIECE);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = system_error("read", path);
    if (got <= 0) break;
    sha256_update(&hash, piece, (size_t)got);
    total += (uint64_t)got;
  }
  sha256_final(&hash, digest);
  mem_free(piece);
  close(descriptor);
  if (status) return status;
  sha256_digest_hex(digest, hex);
  if (size) *size = total;
  return NULL;
}

bool file_exists(const char* path) {
  return access(path, F_OK) == 0;
}

bool path_is_directory(const char* path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

genai_status* directory_create(const char* path) {
  char* copy = mem_strdup(path);
  if (!copy) return genai_status_out_of_memory();
  genai_status* status = NULL;
  for (char* p = copy + 1; !status && *copy; p++) {
    if (*p != '/' && *p) continue;
    char saved = *p;
    *p = 0;
    bool failed = file_operation_fails() || mkdir(copy, 0777);
    if (failed && (errno != EEXIST || !path_is_directory(copy))) status = system_error("create the folder", copy);
    *p = saved;
    if (!saved) break;
  }
  mem_free(copy);
  return status;
}

genai_status* path_join(const char* directory, const char* name, char** out) {
  text joined = {0};
  size_t length = strlen(directory);
  genai_status* status = text_printf(&joined, "%s%s%s", directory, length && directory[length - 1] == '/' ? "" : "/", name);
  if (status) {
    text_deinit(&joined);
    return status;
  }
  *out = joined.data;
  return NULL;
}

const char* path_base_name(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

uint64_t disk_free_bytes(const char* path) {
  struct statvfs info;
  return statvfs(path, &info) ? UINT64_MAX : (uint64_t)info.f_bavail * info.f_frsize;
}
