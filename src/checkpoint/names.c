/* Names as they come out of files: the hashed table from name to index, bounded and printable forms for messages, and the numbered names of
 * shards. */
#include <stdio.h>
#include <string.h>

#include "checkpoint/checkpoint_internal.h"

/* FNV-1a, 64 bits. */
static uint64_t hash_name(const char* name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (; *name; ++name) hash = (hash ^ (unsigned char)*name) * 0x100000001B3u;
  return hash ^ hash >> 32;
}

static name_slot* slot_of(const name_table* table, const char* name) {
  size_t mask = table->capacity - 1;
  size_t at = (size_t)hash_name(name) & mask;
  while (table->slots[at].name && strcmp(table->slots[at].name, name)) at = (at + 1) & mask;
  return &table->slots[at];
}

static genai_status* grow(name_table* table) {
  name_table larger = {.capacity = table->capacity ? table->capacity * 2 : 64, .count = table->count};
  larger.slots = mem_calloc(larger.capacity, sizeof *larger.slots);
  if (!larger.slots) return genai_status_out_of_memory();
  for (size_t i = 0; i < table->capacity; ++i) {
    if (table->slots[i].name) *slot_of(&larger, table->slots[i].name) = table->slots[i];
  }
  mem_free(table->slots);
  *table = larger;
  return NULL;
}

genai_status* name_table_add(name_table* table, const char* name, size_t index, bool* added) {
  if (table->count * 2 >= table->capacity) GENAI_TRY(grow(table));
  name_slot* slot = slot_of(table, name);
  *added = !slot->name;
  if (*added) {
    *slot = (name_slot){name, index};
    ++table->count;
  }
  return NULL;
}

bool name_table_find(const name_table* table, const char* name, size_t* index) {
  if (!table->capacity) return false;
  const name_slot* slot = slot_of(table, name);
  if (!slot->name) return false;
  *index = slot->index;
  return true;
}

void name_table_deinit(name_table* table) {
  mem_free(table->slots);
  *table = (name_table){0};
}

quoted_name quote_name(const char* data, size_t length) {
  quoted_name out;
  size_t used = 0;
  size_t limit = sizeof out.text - 4; /* leaves room for "..." */
  for (size_t i = 0; i < length; ++i) {
    unsigned char c = (unsigned char)data[i];
    bool plain = c >= 0x20 && c < 0x7F;
    if (used + (plain ? 1 : 4) > limit) {
      memcpy(out.text + used, "...", 3);
      used += 3;
      break;
    }
    if (plain) {
      out.text[used++] = (char)c;
    } else {
      used += (size_t)snprintf(out.text + used, 5, "\\x%02X", c);
    }
  }
  out.text[used] = 0;
  return out;
}

quoted_name quote_cstr(const char* name) {
  return quote_name(name, strlen(name));
}

bool name_ends_with(const char* name, const char* suffix) {
  size_t length = strlen(name);
  size_t suffix_length = strlen(suffix);
  return length >= suffix_length && !strcmp(name + length - suffix_length, suffix);
}

static bool five_digits(const char* at, unsigned* value) {
  *value = 0;
  for (int i = 0; i < 5; ++i) {
    if (at[i] < '0' || at[i] > '9') return false;
    *value = *value * 10 + (unsigned)(at[i] - '0');
  }
  return true;
}

bool shard_name_parse(const char* path, const char* extension, unsigned* number, unsigned* total, size_t* digits_at) {
  size_t length = strlen(path);
  size_t suffix = strlen("-00000-of-00000") + strlen(extension);
  if (length < suffix || !name_ends_with(path, extension)) return false;
  const char* at = path + length - suffix;
  if (*at != '-' || memcmp(at + 6, "-of-", 4)) return false;
  if (!five_digits(at + 1, number) || !five_digits(at + 10, total)) return false;
  if (!*number || *number > *total) return false;
  *digits_at = (size_t)(at + 1 - path);
  return true;
}

char* shard_name_with(const char* path, size_t digits_at, unsigned number) {
  char* out = mem_strdup(path);
  for (size_t i = 5; out && i-- > 0; number /= 10) out[digits_at + i] = (char)('0' + number % 10);
  return out;
}

char* path_directory(const char* path) {
  const char* slash = strrchr(path, '/');
  if (!slash) return mem_strdup(".");
  return mem_strndup(path, slash == path ? 1 : (size_t)(slash - path));
}
