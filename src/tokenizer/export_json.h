/* What the parts of the tokenizer.json writer share. Each writes its member of the root object. */
#ifndef GENAI_TOKENIZER_EXPORT_JSON_H
#define GENAI_TOKENIZER_EXPORT_JSON_H

#include "base/json.h"
#include "tokenizer/tokenizer_internal.h"

void export_write_view(json_writer* out, const char* key, text_view value);

genai_status* export_normalizer(const tokenizer* self, json_writer* out) GENAI_MUST_USE;
genai_status* export_segmenter(const tokenizer* self, json_writer* out) GENAI_MUST_USE;
genai_status* export_post_processor(const tokenizer* self, json_writer* out) GENAI_MUST_USE;
genai_status* export_decoder(const tokenizer* self, json_writer* out) GENAI_MUST_USE;

#endif
