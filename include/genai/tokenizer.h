/* Text to token ids and back, through the tokenizer that model_preparation gives (an object of type "executorch.tokenizer") or one from a file: for
 * calibration data and device runners of a caller's own. A tokenizer may be used from several threads. */
#ifndef GENAI_TOKENIZER_H
#define GENAI_TOKENIZER_H

#include "genai/adapters.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From a tokenizer.json, a SentencePiece or tiktoken tokenizer.model, or a GGUF file. The caller releases the object. */
GENAI_API genai_status* genai_tokenizer_open(const char* path, genai_object** out) GENAI_MUST_USE;

/* The ids of UTF-8 text (genai_free). With `add_special`, begin and end tokens are added where the tokenizer's files say so. An object of
 * another type is GENAI_ERROR_INVALID_ARGUMENT, here and below. */
GENAI_API genai_status* genai_tokenizer_encode(const genai_object* tokenizer, const char* text, bool add_special, int32_t** ids,
                                               size_t* count) GENAI_MUST_USE;
/* The ids of a chat that waits for the answer to `prompt`, in the form of `chat_template` (Jinja source, as model_preparation gives it).
 * `system` may be NULL. */
GENAI_API genai_status* genai_tokenizer_encode_chat(const genai_object* tokenizer, const char* chat_template, const char* system,
                                                    const char* prompt, int32_t** ids, size_t* count) GENAI_MUST_USE;
/* The text of ids (genai_free), special tokens left out. An id outside the vocabulary is an error. */
GENAI_API genai_status* genai_tokenizer_decode(const genai_object* tokenizer, const int32_t* ids, size_t count, char** text) GENAI_MUST_USE;
/* Writes at most `capacity` ids that end a turn and gives how many there are; 0 for an object of another type. */
GENAI_API size_t genai_tokenizer_stop_ids(const genai_object* tokenizer, int32_t* ids, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
