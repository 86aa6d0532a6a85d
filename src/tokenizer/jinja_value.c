/* Making values: strings, sequences, the insertion-ordered dict, undefined values and the errors they cause. How values compare is in
 * jinja_compare.c, how they print in jinja_print.c. */
#include "tokenizer/jinja_value.h"

#include <string.h>

#include "tokenizer/jinja_compare.h"
#include "tokenizer/jinja_text.h"

genai_status* jinja_step(jinja_machine* machine, uint64_t steps) {
  machine->steps += steps;
  if (machine->steps <= JINJA_MAX_STEPS) return NULL;
  return jinja_fail(
      machine, GENAI_ERROR_LIMIT,
      "still running after %d steps, the limit for one template; shorten the messages, or check the template for a runaway loop",
      JINJA_MAX_STEPS);
}

bool jinja_as_integer(jinja_value value, int64_t* out) {
  if (value.kind == JINJA_INTEGER) {
    *out = value.as.integer;
  } else if (value.kind == JINJA_BOOL) {
    *out = value.as.boolean;
  } else {
    return false;
  }
  return true;
}

double jinja_as_real(jinja_value value) {
  int64_t integer;
  return jinja_as_integer(value, &integer) ? (double)integer : value.as.real;
}

static genai_status* new_string(jinja_heap* heap, const char* data, size_t length, size_t count, bool safe, jinja_value* out) {
  jinja_string* string = jinja_alloc(heap, 1, sizeof *string);
  if (!string) return jinja_heap_status(heap);
  *string = (jinja_string){.data = data, .length = length, .count = count, .safe = safe};
  *out = jinja_of_string(string);
  return NULL;
}

genai_status* jinja_borrow_string(jinja_heap* heap, const char* data, size_t length, jinja_value* out) {
  return new_string(heap, data ? data : "", length, jinja_count_codepoints(data, length), false, out);
}

genai_status* jinja_copy_string(jinja_heap* heap, const char* data, size_t length, jinja_value* out) {
  char* copy = jinja_alloc(heap, length + 1, 1);
  if (!copy) return jinja_heap_status(heap);
  if (length) memcpy(copy, data, length);
  return jinja_borrow_string(heap, copy, length, out);
}

genai_status* jinja_static_string(jinja_heap* heap, const char* literal, jinja_value* out) {
  return jinja_borrow_string(heap, literal, strlen(literal), out);
}

genai_status* jinja_substring(jinja_heap* heap, const jinja_string* string, size_t begin, size_t end, jinja_value* out) {
  size_t count = string->count == string->length ? end - begin : jinja_count_codepoints(string->data + begin, end - begin);
  return new_string(heap, string->data + begin, end - begin, count, string->safe, out);
}

genai_status* jinja_mark_safe(jinja_heap* heap, jinja_value string, bool safe, jinja_value* out) {
  const jinja_string* from = string.as.string;
  if (from->safe == safe) {
    *out = string;
    return NULL;
  }
  return new_string(heap, from->data, from->length, from->count, safe, out);
}

genai_status* jinja_new_list(jinja_heap* heap, jinja_kind kind, size_t capacity, jinja_value* out) {
  jinja_list* list = jinja_alloc(heap, 1, sizeof *list);
  if (!list) return jinja_heap_status(heap);
  if (capacity) {
    list->items = jinja_alloc(heap, capacity, sizeof *list->items);
    if (!list->items) return jinja_heap_status(heap);
    list->capacity = capacity;
  }
  *out = (jinja_value){.kind = kind, .as.list = list};
  return NULL;
}

genai_status* jinja_append(jinja_heap* heap, jinja_list* list, jinja_value item) {
  GENAI_TRY(jinja_grow(heap, &list->items, list->count, &list->capacity, sizeof *list->items));
  list->items[list->count++] = item;
  return NULL;
}

genai_status* jinja_pair(jinja_heap* heap, jinja_value first, jinja_value second, jinja_value* out) {
  GENAI_TRY(jinja_new_list(heap, JINJA_TUPLE, 2, out));
  out->as.list->items[0] = first;
  out->as.list->items[1] = second;
  out->as.list->count = 2;
  return NULL;
}

enum { INDEX_FROM = 16 }; /* below that, a scan over hashes is as fast as an index */

genai_status* jinja_new_dict(jinja_heap* heap, jinja_kind kind, jinja_value* out) {
  jinja_dict* dict = jinja_alloc(heap, 1, sizeof *dict);
  if (!dict) return jinja_heap_status(heap);
  *out = (jinja_value){.kind = kind, .as.dict = dict};
  return NULL;
}

void jinja_dict_clear(jinja_dict* dict) {
  dict->count = 0;
  dict->index = NULL;
  dict->index_capacity = 0;
}

static void index_insert(jinja_dict* dict, size_t entry) {
  size_t mask = dict->index_capacity - 1, slot = dict->entries[entry].hash & mask;
  while (dict->index[slot]) slot = (slot + 1) & mask;
  dict->index[slot] = (uint32_t)entry + 1;
}

static genai_status* add_entry(jinja_heap* heap, jinja_dict* dict, uint64_t hash, jinja_value key, jinja_value value) {
  if (dict->count >= UINT32_MAX / 4) return genai_status_create(GENAI_ERROR_LIMIT, "chat template: a dict grows beyond 2^30 entries");
  GENAI_TRY(jinja_grow(heap, &dict->entries, dict->count, &dict->capacity, sizeof *dict->entries));
  dict->entries[dict->count++] = (jinja_dict_entry){.hash = hash, .key = key, .value = value};
  if (dict->count < INDEX_FROM) return NULL;
  if (dict->index_capacity < dict->count * 2) {
    size_t capacity = dict->index_capacity ? dict->index_capacity * 2 : INDEX_FROM * 4;
    uint32_t* index = jinja_alloc(heap, capacity, sizeof *index);
    if (!index) {
      dict->count--; /* the index must hold every entry or be absent */
      return jinja_heap_status(heap);
    }
    dict->index = index;
    dict->index_capacity = capacity;
    for (size_t i = 0; i < dict->count; i++) index_insert(dict, i);
  } else {
    index_insert(dict, dict->count - 1);
  }
  return NULL;
}

/* The entries that may hold a key of this hash, one per call; NULL at the end. Start with a zeroed cursor. */
typedef struct probe {
  size_t next;
  bool started;
} probe;

static jinja_dict_entry* next_candidate(const jinja_dict* dict, uint64_t hash, probe* cursor) {
  if (!dict->index) {
    while (cursor->next < dict->count) {
      jinja_dict_entry* entry = &dict->entries[cursor->next++];
      if (entry->hash == hash) return entry;
    }
    return NULL;
  }
  size_t mask = dict->index_capacity - 1;
  if (!cursor->started) {
    cursor->started = true;
    cursor->next = hash & mask;
  }
  while (dict->index[cursor->next]) {
    jinja_dict_entry* entry = &dict->entries[dict->index[cursor->next] - 1];
    cursor->next = (cursor->next + 1) & mask;
    if (entry->hash == hash) return entry;
  }
  return NULL;
}

static genai_status* find(jinja_machine* machine, const jinja_dict* dict, uint64_t hash, jinja_value key, jinja_dict_entry** out) {
  probe cursor = {0};
  jinja_dict_entry* entry;
  while ((entry = next_candidate(dict, hash, &cursor))) {
    bool equal;
    GENAI_TRY(jinja_equal(machine, entry->key, key, &equal));
    if (equal) break;
  }
  *out = entry;
  return NULL;
}

static jinja_dict_entry* find_string(const jinja_dict* dict, uint64_t hash, const jinja_string* key) {
  probe cursor = {0};
  jinja_dict_entry* entry;
  while ((entry = next_candidate(dict, hash, &cursor))) {
    if (jinja_is_string(entry->key) && jinja_string_equal(entry->key.as.string, key)) break;
  }
  return entry;
}

genai_status* jinja_dict_set(jinja_machine* machine, jinja_dict* dict, jinja_value key, jinja_value value) {
  uint64_t hash;
  jinja_dict_entry* entry;
  GENAI_TRY(jinja_hash(machine, key, &hash));
  GENAI_TRY(find(machine, dict, hash, key, &entry));
  if (!entry) return add_entry(&machine->heap, dict, hash, key, value);
  entry->value = value;
  return NULL;
}

genai_status* jinja_dict_get(jinja_machine* machine, const jinja_dict* dict, jinja_value key, const jinja_value** out) {
  uint64_t hash;
  jinja_dict_entry* entry;
  GENAI_TRY(jinja_hash(machine, key, &hash));
  GENAI_TRY(find(machine, dict, hash, key, &entry));
  *out = entry ? &entry->value : NULL;
  return NULL;
}

const jinja_value* jinja_dict_find(const jinja_dict* dict, const jinja_string* key) {
  jinja_dict_entry* entry = find_string(dict, jinja_hash_string(key), key);
  return entry ? &entry->value : NULL;
}

const jinja_value* jinja_dict_find_text(const jinja_dict* dict, const char* key) {
  jinja_string string = {.data = key, .length = strlen(key), .count = strlen(key)};
  return jinja_dict_find(dict, &string);
}

genai_status* jinja_dict_set_string(jinja_heap* heap, jinja_dict* dict, const jinja_string* key, jinja_value value) {
  uint64_t hash = jinja_hash_string(key);
  jinja_dict_entry* entry = find_string(dict, hash, key);
  if (!entry) return add_entry(heap, dict, hash, jinja_of_string(key), value);
  entry->value = value;
  return NULL;
}

genai_status* jinja_dict_copy(jinja_machine* machine, const jinja_dict* from, jinja_dict* to) {
  for (size_t i = 0; i < from->count; i++) GENAI_TRY(jinja_dict_set(machine, to, from->entries[i].key, from->entries[i].value));
  return NULL;
}

static genai_status* new_undefined(jinja_heap* heap, jinja_undefined value, jinja_value* out) {
  jinja_undefined* undefined = jinja_alloc(heap, 1, sizeof *undefined);
  if (!undefined) return jinja_heap_status(heap);
  *undefined = value;
  *out = (jinja_value){.kind = JINJA_UNDEFINED, .as.undefined = undefined};
  return NULL;
}

genai_status* jinja_undefined_hint(jinja_heap* heap, const char* hint, jinja_value* out) {
  return new_undefined(heap, (jinja_undefined){.hint = hint}, out);
}

genai_status* jinja_undefined_name(jinja_heap* heap, const jinja_string* name, jinja_value* out) {
  return new_undefined(heap, (jinja_undefined){.name = jinja_of_string(name)}, out);
}

genai_status* jinja_undefined_member(jinja_heap* heap, jinja_value object, jinja_value name, jinja_value* out) {
  return new_undefined(heap, (jinja_undefined){.object = jinja_type_name(object), .name = name}, out);
}

genai_status* jinja_fail_undefined(const jinja_machine* machine, jinja_value value) {
  const jinja_undefined* undefined = value.as.undefined;
  if (undefined->hint) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "%s", undefined->hint);
  if (!jinja_is_string(undefined->name)) {
    int64_t index = 0;
    jinja_as_integer(undefined->name, &index);
    return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "%s object has no element %lld", undefined->object ? undefined->object : "",
                      (long long)index);
  }
  const jinja_string* name = undefined->name.as.string;
  int shown = name->length > 200 ? 200 : (int)name->length;
  if (!undefined->object) return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "'%.*s' is undefined", shown, name->data);
  return jinja_fail(machine, GENAI_ERROR_TEMPLATE, "'%s object' has no attribute '%.*s'", undefined->object, shown, name->data);
}
