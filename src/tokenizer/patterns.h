/* Pieces of splitting patterns that several vocabularies share: of cl100k (GPT-4) and o200k (GPT-4o). Internal to the room. */
#ifndef GENAI_TOKENIZER_PATTERNS_H
#define GENAI_TOKENIZER_PATTERNS_H

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K                                                                                                           \
  "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" CONTRACTIONS \
  "?|\\p{N}{1,3}"                                                                                                       \
  "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACES

#endif
