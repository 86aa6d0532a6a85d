/* Fuzz target of the safetensors reader. What the reader accepts must be readable to the last byte. */
#include "checkpoint/parse_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz_parser(safetensors_parse, data, size);
}
