/* What the parts of the tokenizer.json loader share. */
#ifndef GENAI_TOKENIZER_LOAD_JSON_H
#define GENAI_TOKENIZER_LOAD_JSON_H

#include "tokenizer/tokenizer_internal.h"

/* Errors that name the file, the member and what was expected of it. */
genai_status* json_bad_member(const char* name, const char* member, const char* expected) GENAI_MUST_USE;
genai_status* json_unsupported_type(const char* name, const char* part, json_value type, const char* known) GENAI_MUST_USE;

/* A string member as a NUL-terminated copy. */
genai_status* json_copy_string(json_value object, const char* key, const char* name, char** out, size_t* length) GENAI_MUST_USE;

/* The same for a member that is one character. */
genai_status* json_copy_character(json_value object, const char* key, const char* name, char** out, size_t* length) GENAI_MUST_USE;

genai_status* load_json_normalizer(json_value value, const char* name, normalizer* out) GENAI_MUST_USE;
genai_status* load_json_segmenter(json_value value, const char* name, segmenter* out) GENAI_MUST_USE;
genai_status* load_json_decoder(json_value value, const char* name, decoder* out) GENAI_MUST_USE;
genai_status* load_json_post_processor(json_value value, const char* name, tokenizer* out) GENAI_MUST_USE;

/* Base64 (RFC 4648, padded) of `in`, appended as bytes; false when it is not base64. */
bool base64_decode(text_view in, text* out, genai_status** status);
bool base64_encode(text_view in, text* out, genai_status** status);

#endif
