/* Text to token ids and back. Four parts, as in the reference library: normalizer, segmenter (pre-tokenizer), model, decoder.
 * A tokenizer is immutable after it is opened and may be used from several threads. */
#ifndef GENAI_TOKENIZER_TOKENIZER_H
#define GENAI_TOKENIZER_TOKENIZER_H

#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "genai/status.h"

typedef struct tokenizer tokenizer;

/* From a GGUF vocabulary in `file`, or from tokenizer.json / tokenizer.model beside a Hugging Face checkpoint. */
genai_status* tokenizer_open_checkpoint(const checkpoint* file, tokenizer** out) GENAI_MUST_USE;
/* From a file: tokenizer.json, a SentencePiece or tiktoken tokenizer.model, or a GGUF; recognised from its content. */
genai_status* tokenizer_open(const char* path, tokenizer** out) GENAI_MUST_USE;
void tokenizer_close(tokenizer* self); /* accepts NULL */

typedef struct token_list {
  int32_t* ids;
  size_t count;
  size_t capacity;
} token_list;
genai_status* token_list_append(token_list* list, int32_t id) GENAI_MUST_USE;
void token_list_deinit(token_list* list);

/* Appends the ids of `text`. With `parse_special`, special tokens that stand in the text become their ids; without, they are plain text.
 * With `add_special`, the tokenizer's own begin/end tokens are added where its files say so (never twice). Text must be valid UTF-8. */
typedef struct tokenizer_encode_options {
  bool add_special;
  bool parse_special;
} tokenizer_encode_options;
genai_status* tokenizer_encode(const tokenizer* self, const char* data, size_t length, tokenizer_encode_options options,
                               token_list* out) GENAI_MUST_USE;

/* Appends the text of the ids. Special tokens are left out unless `keep_special`. Invalid UTF-8 is replaced by U+FFFD as the reference
 * does. An id outside the vocabulary is an error. */
genai_status* tokenizer_decode(const tokenizer* self, const int32_t* ids, size_t count, bool keep_special, text* out) GENAI_MUST_USE;

/* Streaming decode: feeds one id, appends the text that is now certain; never splits a code point. finish appends what is held back.
 * The concatenation equals tokenizer_decode of all ids. */
typedef struct token_stream {
  const tokenizer* tokenizer;
  bool keep_special;
  bool at_start;
  size_t strip_left; /* leading characters still to be stripped */
  text pending;      /* bytes that are not a whole code point yet */
} token_stream;
void token_stream_init(token_stream* stream, const tokenizer* self, bool keep_special);
genai_status* token_stream_push(token_stream* stream, int32_t id, text* out) GENAI_MUST_USE;
genai_status* token_stream_finish(token_stream* stream, text* out) GENAI_MUST_USE;
void token_stream_deinit(token_stream* stream);

int32_t tokenizer_vocab_size(const tokenizer* self);
int32_t tokenizer_bos_id(const tokenizer* self);                  /* -1 when there is none */
int32_t tokenizer_eos_id(const tokenizer* self);                  /* -1 when there is none */
int32_t tokenizer_find(const tokenizer* self, const char* token); /* id of a token's exact content, or -1 */
/* The stored content of a token (byte-level BPE: in its printable alphabet). {NULL,0} outside the vocabulary. */
text_view tokenizer_token(const tokenizer* self, int32_t id);
bool tokenizer_is_special(const tokenizer* self, int32_t id);
/* Ids that end a turn: the eos id, and control tokens whose content is a known end-of-turn marker (<|im_end|>, <|eot_id|>, <end_of_turn>,
 * <|end|> ...). Checkpoint configurations may add more: see src/model. */
size_t tokenizer_stop_ids(const tokenizer* self, int32_t* ids, size_t capacity);
/* The chat template that came with the vocabulary, or {NULL,0}. */
text_view tokenizer_chat_template(const tokenizer* self);
const char* tokenizer_kind(const tokenizer* self); /* "byte-level BPE (smollm)" ... for people */

/* Writes the tokenizer as a Hugging Face tokenizer.json that the reference library loads and that gives the same ids. */
genai_status* tokenizer_export_json(const tokenizer* self, const char* path) GENAI_MUST_USE;

#endif
