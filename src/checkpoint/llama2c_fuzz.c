/* Fuzz target of the llama2.c reader. What the reader accepts must be readable to the last byte. */
#include "checkpoint/parse_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz_parser(llama2c_parse, data, size);
}
