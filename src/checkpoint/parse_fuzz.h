/* What the fuzz targets of this room do with a parser's result; not part of the library. */
#ifndef GENAI_CHECKPOINT_PARSE_FUZZ_H
#define GENAI_CHECKPOINT_PARSE_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint_internal.h"

typedef genai_status* (*fuzzed_parser)(checkpoint* out, const uint8_t* data, size_t size, const char* name);

/* Touches the first and last row of every tensor, and every metadata value. Aborts when a promise of checkpoint.h is broken. */
static inline double fuzz_visit(const checkpoint* file) {
  static float row[1 << 16];
  for (size_t i = 0; i < checkpoint_tensor_count(file); ++i) {
    const checkpoint_tensor* tensor = checkpoint_tensor_at(file, i);
    if (checkpoint_find(file, tensor->name) != tensor) abort();
    uint64_t columns = tensor->rank ? tensor->dims[tensor->rank - 1] : 1;
    uint64_t rows = 1;
    for (uint32_t j = 0; j + 1 < tensor->rank; ++j) rows *= tensor->dims[j];
    if (!rows || columns > sizeof row / sizeof row[0]) continue;
    if (checkpoint_read_rows(tensor, 0, 1, row) || checkpoint_read_rows(tensor, rows - 1, 1, row)) abort();
  }
  double sum = 0;
  for (size_t i = 0; i < checkpoint_metadata_count(file); ++i) {
    const gguf_value* value = checkpoint_metadata_at(file, i);
    if (checkpoint_metadata(file, value->key) != value) abort();
    text_view string = checkpoint_metadata_string(file, value->key);
    if (string.length) sum += (double)string.data[0] + string.data[string.length - 1];
    sum += checkpoint_metadata_number(file, value->key, 0) + (double)checkpoint_metadata_integer(file, value->key, 0);
    if (value->type != GGUF_ARRAY || !value->count) continue;
    sum += gguf_array_number(value, 0) + gguf_array_number(value, value->count - 1);
    if (value->element == GGUF_STRING) {
      text_view last = ((const text_view*)value->as.items)[value->count - 1];
      if (last.length) sum += last.data[last.length - 1];
    }
  }
  return sum;
}

static inline int fuzz_parser(fuzzed_parser parse, const uint8_t* data, size_t size) {
  checkpoint file = {0};
  genai_status* status = parse(&file, data, size, "fuzz");
  if (status) {
    if (!genai_status_message(status)[0]) abort();
    genai_status_free(status);
  } else {
    static volatile double kept; /* so that the reads are not optimised away */
    kept = fuzz_visit(&file);
    (void)kept;
  }
  checkpoint_deinit(&file);
  return 0;
}

#endif
