/* What the fuzz targets of this room do with a tokenizer that loaded; not part of the library. */
#ifndef GENAI_TOKENIZER_USE_FUZZ_H
#define GENAI_TOKENIZER_USE_FUZZ_H

#include <stdlib.h>

#include "tokenizer/tokenizer_internal.h"

static const char fuzz_sample[] =
    "Hello  world, it's 12345 <s>caf\xc3\xa9 e\xcc\x81 \xf0\x9f\xa6\x99\xe2\x96\x81\xe4\xb8\xad\n\n\tABCdef ab ab</s> \xef\xac\x81 ";

/* A text is encoded and decoded, whole and streamed, to the same result. */
static inline void fuzz_use(const tokenizer* self) {
  token_list ids = {0};
  text whole = {0}, streamed = {0};
  genai_status* status = tokenizer_encode(self, fuzz_sample, sizeof fuzz_sample - 1, (tokenizer_encode_options){true, true}, &ids);
  if (!status) status = tokenizer_decode(self, ids.ids, ids.count, true, &whole);
  if (!status) {
    token_stream stream;
    token_stream_init(&stream, self, true);
    for (size_t i = 0; i < ids.count && !status; i++) status = token_stream_push(&stream, ids.ids[i], &streamed);
    if (!status) status = token_stream_finish(&stream, &streamed);
    token_stream_deinit(&stream);
    if (!status && !text_view_equal((text_view){whole.data, whole.length}, (text_view){streamed.data, streamed.length})) abort();
  }
  int32_t stops[4];
  if (tokenizer_stop_ids(self, stops, 4) > 64 || !tokenizer_kind(self)[0]) abort();
  if (status && !genai_status_message(status)[0]) abort();
  genai_status_free(status);
  text_deinit(&whole);
  text_deinit(&streamed);
  token_list_deinit(&ids);
}

/* The end of every target: a loaded tokenizer is used, a refusal must say why. */
static inline int fuzz_finish(genai_status* status, tokenizer* self) {
  if (!status) fuzz_use(self);
  if (status && !genai_status_message(status)[0]) abort();
  genai_status_free(status);
  tokenizer_close(self);
  return 0;
}

#endif
