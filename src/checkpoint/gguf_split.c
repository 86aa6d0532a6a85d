/* Opens a GGUF by path: one file, or the numbered files of a split model (NAME-00001-of-00005.gguf, written by llama-gguf-split). What is in a
 * file is gguf.c's business. */
#include <string.h>

#include "checkpoint/checkpoint_internal.h"

/* Every later file repeats only split.* keys, under which its metadata would collide with the first's: it is parsed by itself, and its tensors
 * are handed over. */
static genai_status* append_shard(checkpoint* out, const char* path, unsigned number, unsigned total) {
  const mapped_file* file;
  checkpoint shard = {0};
  genai_status* status = checkpoint_map(out, path, &file);
  if (status) goto done;
  GENAI_TRY_GOTO(status, gguf_parse(&shard, file->data, file->size, path), done);
  int64_t stored_number = checkpoint_metadata_integer(&shard, "split.no", -1);
  int64_t stored_total = checkpoint_metadata_integer(&shard, "split.count", 1);
  if (stored_number != (int64_t)number - 1 || stored_total != total) {
    status = genai_status_create(GENAI_ERROR_BAD_FILE,
                                 "%s: by its name part %u of %u, by its metadata part %lld of %lld; rename the files to what they are",
                                 path, number, total, (long long)stored_number + 1, (long long)stored_total);
    goto done;
  }
  for (size_t i = 0; i < shard.tensor_count; ++i) {
    checkpoint_tensor tensor = shard.tensors[i];
    tensor.name = arena_strdup(&out->memory, tensor.name);
    if (!tensor.name) {
      status = genai_status_out_of_memory();
      goto done;
    }
    GENAI_TRY_GOTO(status, checkpoint_add_tensor(out, &tensor, path), done);
  }
done:
  checkpoint_deinit(&shard);
  return status ? genai_status_wrap(status, genai_status_kind(status), "part %u of %u of a split GGUF cannot be read", number, total)
                : NULL;
}

/* NULL when all parts are there; otherwise which are not. */
static genai_status* check_parts_exist(const char* path, size_t digits_at, unsigned total) {
  text missing = {0};
  genai_status* status = NULL;
  unsigned absent = 0;
  for (unsigned i = 1; i <= total && !status; ++i) {
    char* part = shard_name_with(path, digits_at, i);
    if (!part) {
      status = genai_status_out_of_memory();
    } else if (!file_exists(part)) {
      if (absent++ < 8) status = text_printf(&missing, "%s%s", absent > 1 ? ", " : "", path_base_name(part));
    }
    mem_free(part);
  }
  if (!status && absent)
    status = genai_status_create(GENAI_ERROR_NOT_FOUND,
                                 "%s: %u of the %u parts of this split model are missing: %s%s; put all parts into one directory", path,
                                 absent, total, missing.data, absent > 8 ? ", ..." : "");
  text_deinit(&missing);
  return status;
}

static genai_status* open_parts(checkpoint* out, const char* path, size_t digits_at, unsigned total) {
  GENAI_TRY(check_parts_exist(path, digits_at, total));
  for (unsigned i = 1; i <= total; ++i) {
    char* part = shard_name_with(path, digits_at, i);
    if (!part) return genai_status_out_of_memory();
    genai_status* status = NULL;
    if (i > 1) {
      status = append_shard(out, part, i, total);
    } else {
      const mapped_file* file;
      status = checkpoint_map(out, part, &file);
      if (!status) status = gguf_parse(out, file->data, file->size, part);
      if (!status && (checkpoint_metadata_integer(out, "split.no", 0) || checkpoint_metadata_integer(out, "split.count", 1) != total))
        status = genai_status_create(GENAI_ERROR_BAD_FILE,
                                     "%s: not the first of %u parts by its metadata; rename the files to what they are", part, total);
    }
    mem_free(part);
    GENAI_TRY(status);
  }
  int64_t tensors = checkpoint_metadata_integer(out, "split.tensors.count", (int64_t)out->tensor_count);
  if (tensors != (int64_t)out->tensor_count)
    return genai_status_create(GENAI_ERROR_BAD_FILE, "%s: the %u parts hold %zu tensors, expected %lld (split.tensors.count)", path, total,
                               out->tensor_count, (long long)tensors);
  return NULL;
}

genai_status* gguf_open(checkpoint* out, const char* path) {
  unsigned number = 1, total = 1;
  size_t digits_at = 0;
  bool numbered = shard_name_parse(path, ".gguf", &number, &total, &digits_at);
  const mapped_file* file;
  genai_status* status = checkpoint_map(out, path, &file);
  if (!status) status = gguf_parse(out, file->data, file->size, path);
  if (status)
    return numbered && total > 1
               ? genai_status_wrap(status, genai_status_kind(status), "part %u of %u of a split GGUF cannot be read", number, total)
               : status;
  int64_t parts = checkpoint_metadata_integer(out, "split.count", 1);
  if (parts <= 1) return NULL; /* complete, whatever it is called */
  if (!numbered || total != parts)
    return genai_status_create(
        GENAI_ERROR_BAD_FILE,
        "%s: holds part %lld of a model split into %lld files, but is not named NAME-%05lld-of-%05lld.gguf, so "
        "the other parts cannot be found (parts cannot be joined byte by byte); restore the names, or merge the parts with "
        "\"llama-gguf-split --merge\"",
        path, (long long)checkpoint_metadata_integer(out, "split.no", 0) + 1, (long long)parts,
        (long long)checkpoint_metadata_integer(out, "split.no", 0) + 1, (long long)parts);
  char* kept = out->path;
  out->path = NULL;
  checkpoint_deinit(out);
  out->path = kept;
  return open_parts(out, path, digits_at, total);
}
