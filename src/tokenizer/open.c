/* Finds a tokenizer: recognises a file's format by its content, and the tokenizer that belongs to a checkpoint. The formats themselves are
 * in load_*.c. */
#include "base/file.h"
#include "base/memory.h"
#include "tokenizer/tokenizer_internal.h"

genai_status* tokenizer_open(const char* path, tokenizer** out) {
  checkpoint* file = NULL;
  GENAI_TRY(checkpoint_open(path, &file));
  genai_status* status = tokenizer_open_checkpoint(file, out);
  checkpoint_close(file);
  return status;
}

genai_status* tokenizer_open_checkpoint(const checkpoint* file, tokenizer** out) {
  return tokenizer_load_gguf(file, out);
}
