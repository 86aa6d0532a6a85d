/* Option lists: key/value pairs, their validation against what strategies say they take, and the filter before an adapter. What options
 * exist is not here: each engine has its own table. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/internal.h"

genai_status* genai_options_create(genai_options** out) {
  genai_options* self = mem_calloc(1, sizeof *self);
  if (!self) return genai_status_out_of_memory();
  *out = self;
  return NULL;
}

void genai_options_destroy(genai_options* self) {
  if (!self) return;
  for (size_t i = 0; i < self->count; i++) {
    mem_free(self->pairs[i].key);
    mem_free(self->pairs[i].value);
  }
  mem_free(self->pairs);
  mem_free(self);
}

genai_status* genai_options_set(genai_options* self, const char* key, const char* value) {
  if (!key || !*key || !value) return genai_status_create(GENAI_ERROR_INVALID_ARGUMENT, "an option needs a key and a value");
  char* value_copy = mem_strdup(value);
  if (!value_copy) return genai_status_out_of_memory();
  for (size_t i = 0; i < self->count; i++) {
    if (strcmp(self->pairs[i].key, key)) continue;
    mem_free(self->pairs[i].value);
    self->pairs[i].value = value_copy;
    return NULL;
  }
  char* key_copy = mem_strdup(key);
  if (key_copy && self->count == self->capacity) {
    size_t capacity = self->capacity ? self->capacity * 2 : 8;
    void* grown = mem_realloc_array(self->pairs, capacity, sizeof self->pairs[0]);
    if (grown) {
      self->pairs = grown;
      self->capacity = capacity;
    }
  }
  if (!key_copy || self->count == self->capacity) {
    mem_free(key_copy);
    mem_free(value_copy);
    return genai_status_out_of_memory();
  }
  self->pairs[self->count].key = key_copy;
  self->pairs[self->count].value = value_copy;
  self->count++;
  return NULL;
}

size_t genai_options_count(const genai_options* self) {
  return self ? self->count : 0;
}

const char* genai_options_key(const genai_options* self, size_t index) {
  return index < genai_options_count(self) ? self->pairs[index].key : NULL;
}

const char* genai_options_value(const genai_options* self, size_t index) {
  return index < genai_options_count(self) ? self->pairs[index].value : NULL;
}

const char* genai_options_get(const genai_options* self, const char* key) {
  for (size_t i = 0; i < genai_options_count(self); i++) {
    if (!strcmp(self->pairs[i].key, key)) return self->pairs[i].value;
  }
  return NULL;
}

static bool parse_integer(const char* value, int64_t* out) {
  char* end;
  errno = 0;
  long long parsed = strtoll(value, &end, 10);
  if (errno || end == value || *end) return false;
  *out = parsed;
  return true;
}

static bool parse_number(const char* value, double* out) {
  char* end;
  double parsed = strtod(value, &end);
  if (end == value || *end || !isfinite(parsed)) return false;
  *out = parsed;
  return true;
}

static bool parse_flag(const char* value, bool* out) {
  if (!strcmp(value, "true") || !strcmp(value, "1")) {
    *out = true;
  } else if (!strcmp(value, "false") || !strcmp(value, "0")) {
    *out = false;
  } else {
    return false;
  }
  return true;
}

int64_t genai_options_integer(const genai_options* self, const char* key, int64_t fallback) {
  const char* value = genai_options_get(self, key);
  int64_t parsed;
  return value && parse_integer(value, &parsed) ? parsed : fallback;
}

double genai_options_number(const genai_options* self, const char* key, double fallback) {
  const char* value = genai_options_get(self, key);
  double parsed;
  return value && parse_number(value, &parsed) ? parsed : fallback;
}

bool genai_options_flag(const genai_options* self, const char* key, bool fallback) {
  const char* value = genai_options_get(self, key);
  bool parsed;
  return value && parse_flag(value, &parsed) ? parsed : fallback;
}

const char* genai_options_text(const genai_options* self, const char* key, const char* fallback) {
  const char* value = genai_options_get(self, key);
  return value ? value : fallback;
}

genai_status* options_copy(const genai_options* source, genai_options** out) {
  genai_options* copy;
  GENAI_TRY(genai_options_create(&copy));
  for (size_t i = 0; i < genai_options_count(source); i++) {
    genai_status* status = genai_options_set(copy, source->pairs[i].key, source->pairs[i].value);
    if (status) {
      genai_options_destroy(copy);
      return status;
    }
  }
  *out = copy;
  return NULL;
}

static const genai_option_spec* find_spec(const char* key, const genai_option_spec* const* lists, const size_t* counts, size_t n_lists) {
  for (size_t list = 0; list < n_lists; list++) {
    for (size_t i = 0; i < counts[list]; i++) {
      if (!strcmp(lists[list][i].name, key)) return &lists[list][i];
    }
  }
  return NULL;
}

static genai_status* unknown_option(const char* key, const genai_option_spec* const* lists, const size_t* counts, size_t n_lists) {
  size_t total = 0;
  for (size_t list = 0; list < n_lists; list++) total += counts[list];
  const char** names = mem_calloc(total + 1, sizeof *names);
  if (!names) return genai_status_out_of_memory();
  size_t n = 0;
  for (size_t list = 0; list < n_lists; list++) {
    for (size_t i = 0; i < counts[list]; i++) names[n++] = lists[list][i].name;
  }
  const char* nearest = text_nearest(key, names, n);
  genai_status* status =
      nearest
          ? genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "unknown option \"%s\"; did you mean \"%s\"?", key, nearest)
          : genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "unknown option \"%s\": no option of this pipeline has a similar name", key);
  mem_free(names);
  return status;
}

static bool is_choice(const char* choices, const char* value) {
  size_t length = strlen(value);
  for (const char* p = choices; *p;) {
    size_t part = strcspn(p, "|");
    if (part == length && !memcmp(p, value, length)) return true;
    p += part + (p[part] == '|');
  }
  return false;
}

static genai_status* validate_value(const genai_option_spec* spec, const char* value) {
  switch (spec->kind) {
    case GENAI_OPTION_TEXT:
      return NULL;
    case GENAI_OPTION_INTEGER: {
      int64_t parsed;
      if (parse_integer(value, &parsed) && (double)parsed >= spec->minimum && (double)parsed <= spec->maximum) return NULL;
      return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "option %s is \"%s\", expected a whole number from %.0f to %.0f",
                                 spec->name, value, spec->minimum, spec->maximum);
    }
    case GENAI_OPTION_NUMBER: {
      double parsed;
      if (parse_number(value, &parsed) && parsed >= spec->minimum && parsed <= spec->maximum) return NULL;
      return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "option %s is \"%s\", expected a number from %g to %g", spec->name, value,
                                 spec->minimum, spec->maximum);
    }
    case GENAI_OPTION_FLAG: {
      bool parsed;
      if (parse_flag(value, &parsed)) return NULL;
      return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "option %s is \"%s\", expected true or false", spec->name, value);
    }
    case GENAI_OPTION_CHOICE:
      if (is_choice(spec->choices, value)) return NULL;
      return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "option %s is \"%s\", expected one of %s", spec->name, value,
                                 spec->choices);
  }
  return genai_status_create(GENAI_ERROR_INTERNAL, "option %s has an unknown kind %d", spec->name, (int)spec->kind);
}

genai_status* genai_options_validate(const genai_options* options, const genai_option_spec* const* lists, const size_t* counts,
                                     size_t n_lists) {
  for (size_t i = 0; i < genai_options_count(options); i++) {
    const genai_option_spec* spec = find_spec(options->pairs[i].key, lists, counts, n_lists);
    if (!spec) return unknown_option(options->pairs[i].key, lists, counts, n_lists);
    GENAI_TRY(validate_value(spec, options->pairs[i].value));
  }
  return NULL;
}

genai_status* genai_options_filter(const genai_options* options, const genai_option_spec* specs, size_t count, unsigned stage,
                                   genai_options** out) {
  genai_options* kept;
  GENAI_TRY(genai_options_create(&kept));
  for (size_t i = 0; i < genai_options_count(options); i++) {
    const genai_option_spec* spec = find_spec(options->pairs[i].key, &specs, &count, 1);
    if (!spec || !(spec->stages & 1u << stage)) continue;
    genai_status* status = genai_options_set(kept, options->pairs[i].key, options->pairs[i].value);
    if (status) {
      genai_options_destroy(kept);
      return status;
    }
  }
  *out = kept;
  return NULL;
}
