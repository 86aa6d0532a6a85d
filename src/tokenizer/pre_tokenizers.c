/* The splitting rules behind the names in tokenizer.ggml.pre. A GGUF file names its pre-tokenizer instead of describing it; the patterns
 * here are those of the models' own tokenizer.json files (names: llama.cpp, src/llama-vocab.cpp). */
#include "base/memory.h"
#include "tokenizer/patterns.h"
#include "tokenizer/tokenizer_internal.h"

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define LLAMA3 CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES
#define QWEN2 CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES
#define DEEPSEEK3 \
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*" SPACES
#define BLOOM " ?[^(\\s|.,!?\xe2\x80\xa6\xe3\x80\x82\xef\xbc\x8c\xe3\x80\x81\xe0\xa5\xa4\xdb\x94\xd8\x8c)]+" /* …。，、।۔، */
#define CJK_KANA "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+"            /* 一-龥 and the kana */
#define CJK_HANGUL "[\xe4\xb8\x80-\xe9\xbe\xa5\xe0\xa0\x80-\xe4\xb8\x80\xea\xb0\x80-\xed\x9f\xbf]+"          /* 一-龥ࠀ-一가-U+D7FF */
#define DIGITS "digits" /* every digit by itself, as the Digits pre-tokenizer has it */

typedef struct named_rules {
  const char* names; /* separated by spaces */
  const char* splits[5];
  bool nfc;           /* the model's tokenizer normalizes to NFC */
  bool ignore_merges; /* whole words first */
} named_rules;

static const named_rules rules[] = {
    {.names = "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", .splits = {LLAMA3}, .ignore_merges = true},
    {.names = "dbrx smaug-bpe glm4 chatglm-bpe olmo2", .splits = {LLAMA3}},
    {.names = "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2", .splits = {QWEN2}, .nfc = true},
    {.names = "hunyuan solar-open grok-2", .splits = {QWEN2}},
    {.names = "qwen35",
     .splits = {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" SPACES},
     .nfc = true},
    {.names = "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2", .splits = {DIGITS, GPT2}},
    {.names = "gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert exaone4 jais trillion granite-docling "
              "codegen",
     .splits = {GPT2}},
    {.names = "olmo mpt stablelm gpt-neox", .splits = {GPT2}, .nfc = true},
    {.names = "gpt-4o llama4 kanana2 talkie minimax-m2", .splits = {O200K}},
    {.names = "tekken",
     .splits = {"[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER
                "*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" SPACES},
     .ignore_merges = true},
    {.names = "tiny_aya cohere2moe", .splits = {"\\d{1,3}(?=(?:\\d{3})*\\b)", O200K}},
    {.names = "seed-coder", .splits = {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+" SPACES}},
    {.names = "bailingmoe bailingmoe2 llada-moe",
     .splits =
         {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}},
    {.names = "deepseek-v3 hunyuan-dense joyai-llm hy_v4", .splits = {"\\p{N}{1,3}", CJK_KANA, DEEPSEEK3}},
    {.names = "deepseek-coder", .splits = {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CJK_HANGUL, DIGITS}},
    {.names = "falcon", .splits = {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}},
    {.names = "minicpm5",
     .splits = {"\\p{N}{1,3}", CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}+| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES},
     .ignore_merges = true},
    {.names = "exaone-moe",
     .splits = {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?"
                             "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}},
    {.names = "bloom poro-chat gpt3-finnish", .splits = {BLOOM}},
    {.names = "viking", .splits = {BLOOM, DIGITS}},
    {.names = "superbpe", .splits = {"\\p{N}+", "(?=(\\d{3})+(?!\\d))"}},
    {.names = "ufakzeka", .splits = {"[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES}},
    {.names = "laguna", .splits = {"[^\\n]+|[\\n]+", QWEN2}},
    {.names = "gemma4", .splits = {"[^\\n]+|[\\n]+"}},
    /* llama.cpp's rules for files that name none. */
    {.names = "default", .splits = {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}},
};
enum { RULE_COUNT = sizeof rules / sizeof rules[0] };

static bool has_name(const char* names, text_view name) {
  while (*names) {
    size_t length = strcspn(names, " ");
    if (length == name.length && memcmp(names, name.data, length) == 0) return true;
    names += length + (names[length] == ' ');
  }
  return false;
}

static genai_status* unknown_name(text_view name) {
  char wanted[64] = "", candidates[160][24];
  const char* list[160];
  size_t count = 0;
  memcpy(wanted, name.data, name.length < sizeof wanted - 1 ? name.length : sizeof wanted - 1);
  for (size_t i = 0; i < RULE_COUNT; i++) {
    for (const char* p = rules[i].names; *p && count < 160;) {
      size_t length = strcspn(p, " ");
      if (length < sizeof candidates[0]) {
        memcpy(candidates[count], p, length);
        candidates[count][length] = 0;
        list[count] = candidates[count];
        count++;
      }
      p += length + (p[length] == ' ');
    }
  }
  const char* nearest = text_nearest(wanted, list, count);
  return genai_status_create(GENAI_ERROR_UNSUPPORTED,
                             "tokenizer.ggml.pre is \"%s\", a pre-tokenizer that genai does not know%s%s%s; use the model's tokenizer.json",
                             wanted, nearest ? " (nearest: \"" : "", nearest ? nearest : "", nearest ? "\")" : "");
}

genai_status* pre_tokenizer_by_name(text_view name, tokenizer* self) {
  if (!name.length) name = text_view_of("default");
  const named_rules* found = NULL;
  for (size_t i = 0; i < RULE_COUNT && !found; i++) {
    if (has_name(rules[i].names, name)) found = &rules[i];
  }
  if (!found) return unknown_name(name);
  if (found->nfc && !normalizer_add(&self->normalize, NORMALIZE_NFC)) return genai_status_out_of_memory();
  self->bpe.ignore_merges = found->ignore_merges;
  for (size_t i = 0; i < 5 && found->splits[i]; i++) {
    if (strcmp(found->splits[i], DIGITS) == 0) {
      segment_step* step = segmenter_add(&self->segment, SEGMENT_CLASS);
      if (!step) return genai_status_out_of_memory();
      step->set = UNICODE_NUMERIC;
    } else {
      GENAI_TRY(segmenter_add_regex(&self->segment, text_view_of(found->splits[i]), SPLIT_ISOLATED, false));
    }
  }
  return NULL;
}
