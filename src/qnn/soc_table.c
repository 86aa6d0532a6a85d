/* A user's own SoCs beside genai's: reading their file and checking every member of every entry. Finding a SoC is soc.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "qnn/soc.h"
#include "qnn/soc_internal.h"

enum { MAX_FILE_BYTES = 1 << 20, MAX_ENTRIES = 1024, MAX_NAME = 32, MAX_MARKETING = 96 };

struct qnn_soc_table {
  qnn_soc_list list;
  arena memory;
};

typedef struct reader {
  arena* memory;
  const char* path;
  size_t index;       /* of the entry, from 1 */
  const char* called; /* its name, or "" before it is known */
} reader;

static genai_status* wrong(const reader* self, const char* member, const char* found, const char* expected) {
  return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "\"%s\": entry %zu%s%s%s: member \"%s\" %s, expected %s", self->path,
                             self->index, *self->called ? " (" : "", self->called, *self->called ? ")" : "", member, found, expected);
}

static const char* type_name(json_value value) {
  static const char* const names[] = {"is null",     "is a boolean", "is a whole number", "is a fraction",
                                      "is a string", "is a list",    "is an object",      "is missing"};
  return names[json_type_of(value)];
}

static genai_status* read_number(const reader* self, json_value entry, const char* member, bool required, uint32_t minimum,
                                 uint32_t maximum, uint32_t* out) {
  json_value value = json_get(entry, member);
  if (json_type_of(value) == JSON_ABSENT && !required) return NULL;
  char expected[64], found[48];
  snprintf(expected, sizeof expected, "a whole number from %u to %u", minimum, maximum);
  if (json_type_of(value) != JSON_INTEGER) return wrong(self, member, type_name(value), expected);
  int64_t number = json_integer(value, -1);
  if (number < minimum || number > maximum) {
    snprintf(found, sizeof found, "is %lld", (long long)number);
    return wrong(self, member, found, expected);
  }
  *out = (uint32_t)number;
  return NULL;
}

static genai_status* read_string(const reader* self, json_value entry, const char* member, size_t most, const char** out) {
  json_value value = json_get(entry, member);
  text_view given = json_string(value);
  char expected[64];
  snprintf(expected, sizeof expected, "a string of 1 to %zu bytes", most);
  if (!given.data) return wrong(self, member, type_name(value), expected);
  if (!given.length || given.length > most || memchr(given.data, 0, given.length)) {
    char found[48];
    snprintf(found, sizeof found, "has %zu bytes", given.length);
    return wrong(self, member, memchr(given.data, 0, given.length) ? "has a NUL byte" : found, expected);
  }
  char* copy = arena_calloc(self->memory, given.length + 1, 1);
  if (!copy) return genai_status_out_of_memory();
  memcpy(copy, given.data, given.length);
  *out = copy;
  return NULL;
}

/* Names become parts of file names and are told from ids by their first character. */
static genai_status* check_name(const reader* self, const char* name) {
  bool safe = (name[0] >= 'A' && name[0] <= 'Z') || (name[0] >= 'a' && name[0] <= 'z');
  for (const char* p = name; *p; ++p) {
    safe = safe && ((*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '-' || *p == '_');
  }
  if (safe) return NULL;
  text found = {0};
  genai_status* status = text_printf(&found, "is \"%s\"", name);
  if (!status) status = wrong(self, "name", found.data, "a letter, then letters, digits, - and _");
  text_deinit(&found);
  return status;
}

static genai_status* check_members(const reader* self, json_value entry) {
  /* "user" is what `genai soc --json` adds: its output can be edited and read back. */
  static const char* const known[] = {"name",         "marketing", "soc_id",     "htp_arch", "vtcm_mb",
                                      "lpai_version", "float16",   "device_ids", "features", "user"};
  enum { KNOWN = sizeof known / sizeof *known };
  text_view key;
  for (json_iterator it = json_iterate(entry); json_next(&it, &key, NULL);) {
    bool found = false;
    for (size_t i = 0; i < KNOWN; ++i) found = found || text_view_equal_cstr(key, known[i]);
    if (found) continue;
    char* name = arena_printf(self->memory, "%.*s", (int)(key.length < 64 ? key.length : 64), key.data);
    if (!name) return genai_status_out_of_memory();
    const char* nearest = text_nearest(name, known, KNOWN - 2);
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "\"%s\": entry %zu%s%s%s: unknown member \"%s\"%s%s%s", self->path,
                               self->index, *self->called ? " (" : "", self->called, *self->called ? ")" : "", name,
                               nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
  }
  return NULL;
}

static genai_status* read_device_ids(const reader* self, json_value entry, qnn_soc_entry* out) {
  json_value list = json_get(entry, "device_ids"), value;
  if (json_type_of(list) == JSON_ABSENT) return NULL;
  static const char expected[] = "a list of at most 16 whole numbers from 1 to 1000000";
  if (json_type_of(list) != JSON_ARRAY) return wrong(self, "device_ids", type_name(list), expected);
  for (json_iterator it = json_iterate(list); json_next(&it, NULL, &value);) {
    int64_t id = json_integer(value, 0);
    if (out->n_device_ids == QNN_SOC_MAX_DEVICE_IDS) return wrong(self, "device_ids", "has more entries", expected);
    if (json_type_of(value) != JSON_INTEGER || id < 1 || id > 1000000) return wrong(self, "device_ids", "holds something else", expected);
    out->device_ids[out->n_device_ids++] = (uint32_t)id;
  }
  return NULL;
}

static genai_status* read_entry(reader* self, json_value entry, qnn_soc_entry* out) {
  self->called = "";
  if (json_type_of(entry) != JSON_OBJECT)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "\"%s\": entry %zu %s, expected an object such as {\"name\": \"SM8650\", "
                               "\"soc_id\": 57, \"htp_arch\": 75, \"vtcm_mb\": 8}",
                               self->path, self->index, type_name(entry));
  qnn_soc* soc = &out->soc;
  soc->float16 = true;
  GENAI_TRY(read_string(self, entry, "name", MAX_NAME, &soc->name));
  GENAI_TRY(check_name(self, soc->name));
  self->called = soc->name;
  GENAI_TRY(check_members(self, entry));
  soc->marketing = soc->name;
  if (json_type_of(json_get(entry, "marketing")) != JSON_ABSENT)
    GENAI_TRY(read_string(self, entry, "marketing", MAX_MARKETING, &soc->marketing));
  GENAI_TRY(read_number(self, entry, "soc_id", true, 1, 65535, &soc->model));
  GENAI_TRY(read_number(self, entry, "htp_arch", true, qnn_feature_arch(QNN_FEATURE_BINARY), 200, &soc->htp_arch));
  GENAI_TRY(read_number(self, entry, "vtcm_mb", true, 1, 64, &soc->vtcm_mb));
  GENAI_TRY(read_number(self, entry, "lpai_version", false, 0, 100, &soc->lpai_version));
  json_value half = json_get(entry, "float16");
  if (json_type_of(half) != JSON_ABSENT && json_type_of(half) != JSON_BOOL) return wrong(self, "float16", type_name(half), "true or false");
  soc->float16 = json_bool(half, true);
  return read_device_ids(self, entry, out);
}

static genai_status* check_unique(const reader* self, const qnn_soc_entry* entries, size_t count) {
  const qnn_soc* last = &entries[count].soc;
  for (size_t i = 0; i < count; ++i) {
    if (strcasecmp(entries[i].soc.name, last->name)) continue;
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION,
                               "\"%s\": entry %zu has the name \"%s\" of entry %zu; expected names that differ", self->path, count + 1,
                               last->name, i + 1);
  }
  return NULL;
}

static genai_status* read_entries(qnn_soc_table* self, const char* path, json_value root) {
  json_value list = json_type_of(root) == JSON_OBJECT ? json_get(root, "socs") : root, value;
  if (json_type_of(list) != JSON_ARRAY)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "\"%s\": expected a list of SoCs, or {\"socs\": [...]}; the top %s", path,
                               json_type_of(root) == JSON_OBJECT ? "has no list \"socs\"" : type_name(root));
  size_t count = json_count(list);
  if (count > MAX_ENTRIES)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "\"%s\" has %zu entries, expected at most %d", path, count, (int)MAX_ENTRIES);
  qnn_soc_entry* entries = arena_calloc(&self->memory, count + 1, sizeof *entries);
  if (!entries) return genai_status_out_of_memory();
  reader reading = {.memory = &self->memory, .path = path, .called = ""};
  for (json_iterator it = json_iterate(list); json_next(&it, NULL, &value);) {
    reading.index = ++self->list.n_users;
    GENAI_TRY(read_entry(&reading, value, &entries[self->list.n_users - 1]));
    GENAI_TRY(check_unique(&reading, entries, self->list.n_users - 1));
  }
  self->list.users = entries;
  return NULL;
}

static genai_status* keep_rest(qnn_soc_table* self) {
  size_t* kept = arena_calloc(&self->memory, qnn_soc_count() + 1, sizeof *kept);
  if (!kept) return genai_status_out_of_memory();
  for (size_t i = 0; i < qnn_soc_count(); ++i) {
    bool replaced = false;
    for (size_t j = 0; j < self->list.n_users; ++j) replaced = replaced || !strcasecmp(self->list.users[j].soc.name, qnn_soc_at(i)->name);
    if (!replaced) kept[self->list.n_kept++] = i;
  }
  self->list.kept = kept;
  return NULL;
}

/* NULL when there is none. */
static genai_status* default_path(arena* memory, const char** out) {
  const char* folder = getenv("XDG_CONFIG_HOME");
  const char* home = getenv("HOME");
  *out = NULL;
  if (!(folder && *folder) && !(home && *home)) return NULL;
  char* path =
      folder && *folder ? arena_printf(memory, "%s/genai/socs.json", folder) : arena_printf(memory, "%s/.config/genai/socs.json", home);
  if (!path) return genai_status_out_of_memory();
  if (file_exists(path)) *out = path;
  return NULL;
}

static genai_status* fill(qnn_soc_table* self, const char* path) {
  if (!path) GENAI_TRY(default_path(&self->memory, &path));
  if (path) {
    json_document* document;
    genai_status* status = json_parse_file(path, MAX_FILE_BYTES, &document);
    if (status)
      return genai_status_wrap(status, GENAI_ERROR_CONFIG_VALIDATION,
                               "the SoC file \"%s\" cannot be read (its format: docs/formats/socs.md)", path);
    status = read_entries(self, path, json_root(document));
    json_free(document);
    if (status) return status;
  }
  return keep_rest(self);
}

genai_status* qnn_soc_table_open(const char* path, qnn_soc_table** out) {
  qnn_soc_table* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  genai_status* status = fill(self, path);
  if (status) {
    qnn_soc_table_close(self);
    return status;
  }
  *out = self;
  return NULL;
}

void qnn_soc_table_close(qnn_soc_table* self) {
  if (!self) return;
  arena_deinit(&self->memory);
  mem_free(self);
}

size_t qnn_soc_table_count(const qnn_soc_table* self) {
  return self->list.n_users + self->list.n_kept;
}

const qnn_soc* qnn_soc_table_at(const qnn_soc_table* self, size_t index) {
  if (index < self->list.n_users) return &self->list.users[index].soc;
  return index < qnn_soc_table_count(self) ? qnn_soc_at(self->list.kept[index - self->list.n_users]) : NULL;
}

bool qnn_soc_table_is_users(const qnn_soc_table* self, size_t index) {
  return index < self->list.n_users;
}

genai_status* qnn_soc_table_find(const qnn_soc_table* self, const char* wanted, const qnn_soc** out) {
  return qnn_soc_list_find(&self->list, wanted, out);
}
