/* The growing list of token ids. */
#include "base/memory.h"
#include "tokenizer/tokenizer_internal.h"

genai_status* token_list_reserve(token_list* list, size_t extra) {
  size_t needed;
  if (!size_add(list->count, extra, &needed)) return genai_status_out_of_memory();
  if (needed <= list->capacity) return NULL;
  size_t capacity = list->capacity < 32 ? 64 : list->capacity * 2;
  if (capacity < needed) capacity = needed;
  int32_t* ids = mem_realloc_array(list->ids, capacity, sizeof *ids);
  if (!ids) return genai_status_out_of_memory();
  list->ids = ids;
  list->capacity = capacity;
  return NULL;
}

genai_status* token_list_append(token_list* list, int32_t id) {
  GENAI_TRY(token_list_reserve(list, 1));
  list->ids[list->count++] = id;
  return NULL;
}

void token_list_deinit(token_list* list) {
  mem_free(list->ids);
  *list = (token_list){0};
}
