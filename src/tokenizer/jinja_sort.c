/* A merge sort whose comparison can fail. */
#include "tokenizer/jinja_sort.h"

typedef struct keyed {
  jinja_value key, item;
} keyed;

/* Merges the sorted halves [begin, middle) and [middle, end) of `from` into `to`. The right one goes first only when it is strictly less
 * (greater when reversed), as Python asks only `<`. */
static genai_status* merge(jinja_machine* machine, const keyed* from, keyed* to, size_t begin, size_t middle, size_t end, bool reverse) {
  size_t left = begin, right = middle;
  for (size_t i = begin; i < end; i++) {
    bool take_right = left == middle;
    if (!take_right && right < end) {
      const keyed *a = &from[right], *b = &from[left];
      GENAI_TRY(jinja_compare(machine, JINJA_LESS, reverse ? b->key : a->key, reverse ? a->key : b->key, &take_right));
    }
    to[i] = take_right ? from[right++] : from[left++];
  }
  return NULL;
}

genai_status* jinja_sort(jinja_machine* machine, jinja_list* list, const jinja_value* keys, bool reverse) {
  size_t count = list->count;
  keyed* from = jinja_alloc(&machine->heap, count, sizeof *from);
  keyed* to = from ? jinja_alloc(&machine->heap, count, sizeof *to) : NULL;
  if (!to) return jinja_heap_status(&machine->heap);
  for (size_t i = 0; i < count; i++) from[i] = (keyed){.key = keys[i], .item = list->items[i]};
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * width) {
      size_t middle = begin + width < count ? begin + width : count;
      size_t end = begin + 2 * width < count ? begin + 2 * width : count;
      GENAI_TRY(merge(machine, from, to, begin, middle, end, reverse));
    }
    keyed* swap = from;
    from = to;
    to = swap;
  }
  for (size_t i = 0; i < count; i++) list->items[i] = from[i].item;
  return NULL;
}
