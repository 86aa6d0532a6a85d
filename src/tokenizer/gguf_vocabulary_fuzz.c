/* Fuzz target of vocabularies in GGUF metadata. What loads must encode and decode a text, whole and streamed, to the same result. */
#include "checkpoint/checkpoint_internal.h"
#include "tokenizer/use_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  checkpoint file = {0};
  tokenizer* self = NULL;
  genai_status* status = gguf_parse(&file, data, size, "fuzz");
  if (!status) {
    file.path = mem_strdup("fuzz");
    status = tokenizer_load_gguf(&file, &self);
  }
  checkpoint_deinit(&file);
  return fuzz_finish(status, self);
}
