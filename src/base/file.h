/* Files: read-only maps and writes that appear whole or not at all. */
#ifndef GENAI_BASE_FILE_H
#define GENAI_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "genai/status.h"

/* A file mapped read-only. `data` is NULL when size is 0. */
typedef struct mapped_file {
  const uint8_t* data;
  size_t size;
  char* path;
} mapped_file;

genai_status* mapped_file_open(const char* path, mapped_file* out) GENAI_MUST_USE;
void mapped_file_close(mapped_file* file); /* accepts a zeroed value */
/* Pages that were read leave this process's memory; they come back from the file when they are touched again. */
void mapped_file_release(const mapped_file* file);

/* What every temporary name ends with, the last six characters replaced (mkstemp). Nobody's own file has such a name, so that what a killed
 * program left can be told from what a user put there. */
#define TEMPORARY_SUFFIX ".genai-tmp.XXXXXX"

/* A file written under a temporary name in the same folder and renamed into place by commit. Dropped by abort, and by nothing else:
 * every path out of the writer calls one of the two. */
typedef struct atomic_file {
  int descriptor;
  char* path;
  char* temporary_path;
  uint64_t size;
} atomic_file;

genai_status* atomic_file_create(const char* path, atomic_file* out) GENAI_MUST_USE;
genai_status* atomic_file_write(atomic_file* file, const void* data, size_t size) GENAI_MUST_USE;
genai_status* atomic_file_commit(atomic_file* file) GENAI_MUST_USE; /* fsync, rename; the file is closed either way */
void atomic_file_abort(atomic_file* file);                          /* close and unlink; accepts a committed one */

/* Unlinks the temporary file of every writer still open in this process: for a program that must leave at once. */
void atomic_file_remove_all(void);

genai_status* file_read_all(const char* path, size_t max_size, text* out) GENAI_MUST_USE;
genai_status* file_write_atomic(const char* path, const void* data, size_t size) GENAI_MUST_USE;
bool file_exists(const char* path);
bool path_is_directory(const char* path);
genai_status* directory_create(const char* path) GENAI_MUST_USE;                             /* with parents; existing is fine */
genai_status* path_join(const char* directory, const char* name, char** out) GENAI_MUST_USE; /* caller frees */
const char* path_base_name(const char* path);                                                /* after the last '/' */
/* SHA-256 of a file's content, read in pieces so that it does not fill this process's memory. `size` may be NULL. */
genai_status* file_sha256(const char* path, uint64_t* size, char hex[65]) GENAI_MUST_USE;
uint64_t disk_free_bytes(const char* path); /* UINT64_MAX if unknown */

/* Fault injection, for tests only and not thread safe: the n-th operation from now (1 = next) that changes the file system (create, write, flush,
 * close after writing, rename, make a folder) fails, once, as it does on a full disk; 0 turns injection off. */
void file_inject_failure(uint64_t nth);
uint64_t file_operation_count(void); /* operations since the program started */
/* Counts one operation and says whether it is to fail, with errno set: asked before each one, also by the few files that write on their own. */
bool file_operation_fails(void);

/* SHA-256 (FIPS 180-4). */
typedef struct sha256 {
  uint64_t state[16]; /* libcrypto's context */
} sha256;
void sha256_init(sha256* hash);
void sha256_update(sha256* hash, const void* data, size_t size);
void sha256_final(sha256* hash, uint8_t digest[32]);
void sha256_digest_hex(const uint8_t digest[32], char hex[65]);
void sha256_hex(const void* data, size_t size, char hex[65]);

#endif
