/* Segmenters (pre-tokenizers): a normalized text becomes words. Each tokenizer has a sequence of steps; a step cuts each piece it gets
 * into smaller ones, and may rewrite it. Pieces go through all steps depth first, so nothing is stored between steps. */
#ifndef GENAI_TOKENIZER_SEGMENTER_H
#define GENAI_TOKENIZER_SEGMENTER_H

#include "tokenizer/regex.h"
#include "tokenizer/scanner.h"

typedef enum segment_kind {
  SEGMENT_SCANNER, /* hand-written pattern, every match a piece */
  SEGMENT_REGEX,   /* matches of `expression` */
  SEGMENT_STRING,  /* occurrences of `string` */
  SEGMENT_CLASS,   /* code points of the classes in `set` */
  SEGMENT_PUNCTUATION,
  SEGMENT_WORDS,      /* \w+|[^\w\s]+, white space removed (Whitespace) */
  SEGMENT_METASPACE,  /* spaces become `string`, one may go before; then, if `split`, a piece starts at each */
  SEGMENT_BYTE_LEVEL, /* optional space before, GPT-2's pattern if `split`, bytes to printable characters if `map` */
  SEGMENT_FIXED       /* `length` code points each */
} segment_kind;

/* What becomes of the matches of a splitting step (the reference's SplitDelimiterBehavior). */
typedef enum split_behavior { SPLIT_ISOLATED, SPLIT_REMOVED, SPLIT_CONTIGUOUS, SPLIT_WITH_PREVIOUS, SPLIT_WITH_NEXT } split_behavior;

typedef enum prepend_scheme { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS } prepend_scheme;

typedef struct segment_step {
  segment_kind kind;
  split_behavior behavior;
  bool invert;         /* matches and what is between them change places */
  bool split;          /* METASPACE, BYTE_LEVEL */
  bool map;            /* BYTE_LEVEL: false when the model takes bytes itself */
  const scanner* scan; /* SCANNER, BYTE_LEVEL with `split` */
  char* source;        /* REGEX: as it stands in the file; owned */
  regex* expression;   /* owned */
  char* string;        /* STRING, METASPACE; owned */
  size_t string_length;
  uint32_t set;           /* CLASS */
  prepend_scheme prepend; /* METASPACE; BYTE_LEVEL: always or never */
  size_t length;          /* FIXED */
} segment_step;

typedef struct segmenter {
  segment_step* steps;
  size_t count;
} segmenter;

segment_step* segmenter_add(segmenter* self, segment_kind kind); /* zeroed; NULL when memory is out */
/* Adds a splitting step for a regular expression: a scanner when one exists for it and matches are isolated. */
genai_status* segmenter_add_regex(segmenter* self, text_view expression, split_behavior behavior, bool invert) GENAI_MUST_USE;
void segmenter_deinit(segmenter* self);

/* Takes a word. The view is valid during the call only. */
typedef genai_status* (*segment_sink)(void* user, text_view word);

/* Working memory of one encode call. */
typedef struct segmenter_scratch {
  regex_cursor* cursors; /* per step; unset ones are zero */
  text* buffers;         /* two per step: rewritten text, rewritten word */
  size_t count;
} segmenter_scratch;
genai_status* segmenter_scratch_init(segmenter_scratch* scratch, const segmenter* self) GENAI_MUST_USE;
void segmenter_scratch_deinit(segmenter_scratch* scratch);

/* Cuts `piece` and hands the words to `sink` in order. `at_start`: the piece stands at the very beginning of the text. */
genai_status* segmenter_run(const segmenter* self, const unicode_classes* classes, segmenter_scratch* scratch, text_view piece,
                            bool at_start, segment_sink sink, void* user) GENAI_MUST_USE;

#endif
