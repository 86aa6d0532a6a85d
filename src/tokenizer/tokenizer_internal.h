/* The parts of a tokenizer, shared by the loaders (which fill them), encode.c, decode.c and export_json.c (which read them). */
#ifndef GENAI_TOKENIZER_TOKENIZER_INTERNAL_H
#define GENAI_TOKENIZER_TOKENIZER_INTERNAL_H

#include "tokenizer/bpe.h"
#include "tokenizer/merge_builder.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/prefix_set.h"
#include "tokenizer/segmenter.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode_class.h"
#include "tokenizer/unigram.h"
#include "tokenizer/vocabulary.h"

/* A token that is cut out of the text before the model sees it. */
typedef struct added_token {
  int32_t id;
  bool special;                 /* plain text unless special tokens are parsed; left out by decode */
  bool normalized;              /* matched in the normalized text, in its own normalized form */
  bool as_is;                   /* matched in the normalized text, as it is */
  bool single_word;             /* only between non-word characters */
  bool strip_left, strip_right; /* takes the white space before, after it along */
  char* pattern;                /* what is matched; owned */
  size_t pattern_length;
  char* decoded; /* byte-level: the bytes that a normalized pattern decodes to, where it is not the content; owned */
  size_t decoded_length;
} added_token;

typedef struct added_tokens {
  added_token* items;
  size_t count, capacity;
  size_t built;               /* items that are in the sets */
  prefix_set raw, normalized; /* patterns; value: index into items */
} added_tokens;

typedef enum decoder_kind {
  DECODE_SPACED,     /* tokens joined by spaces: a tokenizer.json without decoder */
  DECODE_BYTE_LEVEL, /* the bytes that the printable characters stand for */
  DECODE_PIECES      /* tokens after `replace`, byte tokens joined to text */
} decoder_kind;

typedef enum byte_run {
  BYTE_RUN_NONE,      /* byte tokens are plain text */
  BYTE_RUN_WHOLE,     /* a run that is not valid UTF-8 becomes one U+FFFD per byte (the reference's ByteFallback) */
  BYTE_RUN_CHARACTERS /* only its invalid bytes do (SentencePiece) */
} byte_run;

enum { MAX_REPLACEMENTS = 4 };

typedef struct decoder {
  decoder_kind kind;
  struct {
    char *from, *to; /* owned */
  } replace[MAX_REPLACEMENTS];
  size_t replace_count;
  byte_run bytes;
  char* strip; /* one character, owned; NULL: none */
  size_t strip_start, strip_stop;
  bool strip_each;    /* from each token rather than from the whole text */
  bool drop_in_first; /* replace[0] is dropped from the first token, not replaced (Metaspace) */
} decoder;

/* Ids around an encoded text (the post-processor). */
typedef struct template_ids {
  int32_t* ids;
  size_t count;
} template_ids;

typedef enum model_kind { MODEL_BPE, MODEL_UNIGRAM } model_kind;

/* Read through tokenizer.h. */
struct tokenizer {
  vocabulary tokens;
  unicode_classes classes;
  added_tokens added;
  normalizer normalize;
  segmenter segment;
  model_kind model;
  bpe_model bpe;
  unigram_model unigram;
  decoder decode;
  template_ids prefix, suffix;
  vocabulary bytes; /* byte-level: the bytes of each token; empty otherwise */
  prefix_set keep;  /* user-defined pieces that SentencePiece's normalizer leaves alone */
  int32_t bos_id, eos_id, unknown_id;
  char* kind;
  char* chat_template; /* NULL when none */
  size_t chat_template_length;
};

genai_status* token_list_reserve(token_list* list, size_t extra) GENAI_MUST_USE;

/* An empty tokenizer, and its last step: builds the lookups from what the loader has set. May be called again after tokens were added. */
genai_status* tokenizer_create(tokenizer** out) GENAI_MUST_USE;
genai_status* tokenizer_finish(tokenizer* self) GENAI_MUST_USE;
genai_status* tokenizer_set_kind(tokenizer* self, const char* format, ...) GENAI_PRINTF(2, 3) GENAI_MUST_USE;
genai_status* tokenizer_set_chat_template(tokenizer* self, text_view source) GENAI_MUST_USE;
genai_status* template_append(template_ids* self, int32_t id) GENAI_MUST_USE;

/* Adds a token that is matched in the text; `options` says how (its pattern fields are ignored). */
genai_status* added_tokens_add(added_tokens* self, const added_token* options, text_view content) GENAI_MUST_USE;
/* Puts the items that are not in the sets yet into them; normalized patterns go through `normalize`. */
genai_status* added_tokens_build(added_tokens* self, const normalizer* normalize, const unicode_classes* classes) GENAI_MUST_USE;
void added_tokens_deinit(added_tokens* self);

/* The next added token in `in` at or after `from`: false when there is none. `*begin`..`*end` includes stripped white space. `floor` is
 * the end of the previous match. */
typedef struct added_match {
  size_t begin, end;
  const added_token* token;
} added_match;
bool added_tokens_next(const added_tokens* self, const prefix_set* set, const unicode_classes* classes, text_view in, size_t* from,
                       size_t floor, bool parse_special, added_match* out);

void decoder_deinit(decoder* self);
/* A decoder that turns U+2581 into spaces and joins byte tokens. */
genai_status* decoder_set_pieces(decoder* self, byte_run bytes) GENAI_MUST_USE;
genai_status* decoder_add_replacement(decoder* self, text_view from, text_view to) GENAI_MUST_USE;
genai_status* decoder_set_strip(decoder* self, text_view content, size_t start, size_t stop, bool each) GENAI_MUST_USE;

/* Byte-level vocabularies: fills `bytes` from the printable contents, which decoding needs; then the model's byte symbols, so that it takes
 * bytes rather than printable characters. */
genai_status* tokenizer_fill_bytes(tokenizer* self) GENAI_MUST_USE;
genai_status* tokenizer_use_byte_symbols(tokenizer* self) GENAI_MUST_USE;
/* Fills the byte fallback ids from tokens `<0xHH>`. */
void tokenizer_find_byte_tokens(const vocabulary* tokens, int32_t byte_ids[256]);

/* The loaders. `data` need not live on. */
genai_status* tokenizer_load_gguf(const checkpoint* file, tokenizer** out) GENAI_MUST_USE;
genai_status* tokenizer_load_json(json_value root, const char* name, tokenizer** out) GENAI_MUST_USE;
genai_status* tokenizer_load_tekken(json_value root, const char* name, tokenizer** out) GENAI_MUST_USE;
genai_status* tokenizer_load_sentencepiece(const uint8_t* data, size_t size, const char* name, tokenizer** out) GENAI_MUST_USE;
genai_status* tokenizer_load_tiktoken(const char* data, size_t size, const char* name, json_value config, tokenizer** out) GENAI_MUST_USE;

/* Pieces with scores (SentencePiece BPE): derives the merges, the extra symbols and the adjacency set. */
genai_status* bpe_build_from_scores(tokenizer* self, const float* scores) GENAI_MUST_USE;

/* A segmenter and normalizer for one of llama.cpp's pre-tokenizer names ("" and "default" included). */
genai_status* pre_tokenizer_by_name(text_view name, tokenizer* self) GENAI_MUST_USE;

/* Tokens that the configuration and added_tokens.json (in `directory`; NULL: none) have beside those of the vocabulary. `map`:
 * special_tokens_map.json. */
genai_status* tokenizer_add_configured(tokenizer* self, json_value config, json_value map, const char* directory) GENAI_MUST_USE;

/* tokenizer_config.json (absent value: none) beside a vocabulary: bos and eos, chat template, whether they are added. `directory` may hold
 * a chat_template.jinja; NULL: none. */
genai_status* tokenizer_apply_config(tokenizer* self, json_value config, const char* directory) GENAI_MUST_USE;

#endif
