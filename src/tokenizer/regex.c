/* PCRE2 behind a small interface: compile (with JIT), search, iterate. The translation of patterns is in regex_translate.c. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "tokenizer/regex.h"

#include <pcre2.h>
#include <string.h>

#include "base/memory.h"

struct regex {
  pcre2_code* code;
};

static void* allocate(PCRE2_SIZE size, void* user) {
  (void)user;
  return mem_alloc(size);
}

static void release(void* pointer, void* user) {
  (void)user;
  mem_free(pointer);
}

genai_status* regex_compile(text_view pattern, regex** out) {
  text translated = {0};
  genai_status* status = regex_translate(pattern, &translated);
  regex* self = NULL;
  pcre2_general_context* general = NULL;
  pcre2_compile_context* context = NULL;
  if (status) goto done;
  self = mem_calloc(1, sizeof *self);
  general = pcre2_general_context_create(allocate, release, NULL);
  context = general ? pcre2_compile_context_create(general) : NULL;
  if (!self || !context) {
    status = genai_status_out_of_memory();
    goto done;
  }
  int code;
  PCRE2_SIZE offset;
  self->code = pcre2_compile((PCRE2_SPTR)translated.data, translated.length,
                             PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &code, &offset, context);
  if (!self->code) {
    char message[256] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR*)message, sizeof message);
    status = code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED
                 ? genai_status_out_of_memory()
                 : genai_status_create(GENAI_ERROR_UNSUPPORTED, "the regular expression \"%.*s\" does not compile: %s",
                                       (int)(pattern.length > 200 ? 200 : pattern.length), pattern.data, message);
    goto done;
  }
  /* Without JIT (a platform without it, or no executable memory) the interpreter gives the same matches. */
  pcre2_jit_compile(self->code, PCRE2_JIT_COMPLETE);
  *out = self;
  self = NULL;
done:
  regex_free(self);
  pcre2_compile_context_free(context);
  pcre2_general_context_free(general);
  text_deinit(&translated);
  return status;
}

genai_status* regex_is_script(text_view name, bool* out) {
  char pattern[64] = "\\p{sc:";
  size_t length = strlen(pattern);
  *out = false;
  if (name.length > 40) return NULL;
  for (size_t i = 0; i < name.length; i++) {
    char c = name.data[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')) return NULL;
    pattern[length++] = c;
  }
  pattern[length++] = '}';
  pcre2_general_context* general = pcre2_general_context_create(allocate, release, NULL);
  pcre2_compile_context* context = general ? pcre2_compile_context_create(general) : NULL;
  int error = PCRE2_ERROR_NOMEMORY;
  PCRE2_SIZE offset;
  pcre2_code* code = context ? pcre2_compile((PCRE2_SPTR)pattern, length, PCRE2_UTF, &error, &offset, context) : NULL;
  *out = code != NULL;
  bool memory = !code && (error == PCRE2_ERROR_NOMEMORY || error == PCRE2_ERROR_HEAP_FAILED);
  pcre2_code_free(code);
  pcre2_compile_context_free(context);
  pcre2_general_context_free(general);
  return memory ? genai_status_out_of_memory() : NULL;
}

void regex_free(regex* self) {
  if (!self) return;
  pcre2_code_free(self->code);
  mem_free(self);
}

genai_status* regex_cursor_init(regex_cursor* cursor, const regex* expression) {
  pcre2_general_context* general = pcre2_general_context_create(allocate, release, NULL);
  *cursor = (regex_cursor){.expression = expression};
  if (general) {
    cursor->match = pcre2_match_data_create_from_pattern(expression->code, general);
    cursor->context = pcre2_match_context_create(general);
    /* Long runs that match one repetition need more than the 32 KiB that JIT code has by itself. */
    cursor->stack = pcre2_jit_stack_create(32 * 1024, 16 * 1024 * 1024, general);
  }
  pcre2_general_context_free(general);
  if (!cursor->match || !cursor->context || !cursor->stack) {
    regex_cursor_deinit(cursor);
    return genai_status_out_of_memory();
  }
  pcre2_jit_stack_assign(cursor->context, NULL, cursor->stack);
  return NULL;
}

void regex_cursor_deinit(regex_cursor* cursor) {
  pcre2_match_data_free(cursor->match);
  pcre2_match_context_free(cursor->context);
  pcre2_jit_stack_free(cursor->stack);
  *cursor = (regex_cursor){0};
}

genai_status* regex_search(regex_cursor* cursor, text_view in, size_t from, bool* found, size_t* begin, size_t* end) {
  int code =
      pcre2_match(cursor->expression->code, (PCRE2_SPTR)in.data, in.length, from, PCRE2_NO_UTF_CHECK, cursor->match, cursor->context);
  *found = code > 0;
  if (code == PCRE2_ERROR_NOMATCH) return NULL;
  if (code == PCRE2_ERROR_NOMEMORY) return genai_status_out_of_memory();
  if (code <= 0) {
    char message[256] = "";
    pcre2_get_error_message(code, (PCRE2_UCHAR*)message, sizeof message);
    return genai_status_create(GENAI_ERROR_LIMIT, "splitting a text of %zu bytes with the tokenizer's regular expression failed: %s",
                               in.length, message);
  }
  const PCRE2_SIZE* range = pcre2_get_ovector_pointer(cursor->match);
  *begin = range[0];
  *end = range[1];
  return NULL;
}
