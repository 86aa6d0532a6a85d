/* Times loading a tokenizer and encoding a text on one thread.
 * Usage: tokenizer MODEL TEXT ROUNDS IDS; writes the ids (int32) to the file IDS and prints one JSON line. Driven by bench/tokenizer.py. */
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"
#include "fail.h"

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  text input = {0};
  tokenizer* self;
  token_list ids = {0};
  fail(file_read_all(argv[2], (size_t)1 << 30, &input));
  double started = clock_seconds();
  fail(tokenizer_open(argv[1], &self));
  double load = clock_seconds() - started, best = 1e9, total = 0;
  int rounds = atoi(argv[3]);
  for (int i = 0; i < rounds; i++) {
    ids.count = 0;
    started = clock_seconds();
    fail(tokenizer_encode(self, input.data, input.length, (tokenizer_encode_options){.parse_special = true}, &ids));
    double seconds = clock_seconds() - started;
    total += seconds;
    if (seconds < best) best = seconds;
  }
  fail(file_write_atomic(argv[4], ids.ids, ids.count * sizeof *ids.ids));
  printf("{\"kind\": \"%s\", \"bytes\": %zu, \"ids\": %zu, \"load_seconds\": %.6f, \"best_seconds\": %.6f, \"mean_seconds\": %.6f}\n",
         tokenizer_kind(self), input.length, ids.count, load, best, total / rounds);
  token_list_deinit(&ids);
  tokenizer_close(self);
  text_deinit(&input);
  return 0;
}
