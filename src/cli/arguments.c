/* Reading command lines after a table, and printing the table as help. What options mean is the commands' business. */
#include "cli/arguments.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static size_t find_option(const command_spec* command, const char* name, size_t length) {
  for (size_t i = 0; i < command->n_options; i++) {
    const char* candidate = command->options[i].name;
    if (candidate && strlen(candidate) == length && !memcmp(candidate, name, length)) return i;
  }
  return command->n_options;
}

static genai_status* unknown_option(const command_spec* command, const char* name, size_t length) {
  char* given = mem_strndup(name, length);
  const char** names = mem_calloc(command->n_options + 1, sizeof *names);
  genai_status* status = NULL;
  if (!given || !names) {
    status = genai_status_out_of_memory();
  } else {
    size_t n = 0;
    for (size_t i = 0; i < command->n_options; i++) {
      if (command->options[i].name) names[n++] = command->options[i].name;
    }
    const char* nearest = text_nearest(given, names, n);
    status =
        nearest ? genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "unknown option %s; did you mean %s?", given, nearest)
                : genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "unknown option %s; genai %s --help lists them", given, command->name);
  }
  mem_free(given);
  mem_free(names);
  return status;
}

/* Reads the option at argv[*index], which moves past its value. */
static genai_status* read_option(arguments* out, int argc, char* const* argv, int* index) {
  const char* word = argv[*index];
  size_t length = strcspn(word, "=");
  const char* value = word[length] ? word + length + 1 : NULL;
  if ((length == 2 && !memcmp(word, "-h", 2)) || (length == 6 && !memcmp(word, "--help", 6))) {
    out->help = true;
    return NULL;
  }
  size_t option = find_option(out->command, word, length);
  if (option == out->command->n_options) return unknown_option(out->command, word, length);
  const option_spec* spec = &out->command->options[option];
  if (!spec->value && value)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "option %s is a switch and takes no value, found \"%s\"", spec->name, value);
  if (spec->value && !value) {
    if (*index + 1 >= argc)
      return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "option %s needs %s after it", spec->name, spec->value);
    value = argv[++*index];
  }
  for (size_t i = 0; i < out->count; i++) {
    if (out->given[i].option == option && !spec->repeats)
      return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "option %s was given twice", spec->name);
  }
  out->given[out->count].option = option;
  out->given[out->count++].value = value;
  return NULL;
}

static genai_status* read_words(arguments* out, int argc, char* const* argv) {
  bool options_ended = false;
  for (int i = 0; i < argc; i++) {
    const char* word = argv[i];
    if (!options_ended && !strcmp(word, "--")) {
      options_ended = true;
    } else if (!options_ended && word[0] == '-' && word[1]) {
      GENAI_TRY(read_option(out, argc, argv, &i));
    } else {
      if (out->n_positionals == out->command->max_positionals)
        return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "genai %s takes %s, found one argument more: \"%s\"", out->command->name,
                                   out->command->max_positionals ? out->command->positionals : "no arguments but options", word);
      out->positionals[out->n_positionals++] = word;
    }
  }
  if (!out->help && out->n_positionals < out->command->min_positionals)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "genai %s needs %s; genai %s --help explains", out->command->name,
                               out->command->positionals, out->command->name);
  return NULL;
}

genai_status* arguments_parse(const command_spec* command, int argc, char* const* argv, arguments* out) {
  arguments parsed = {.command = command};
  parsed.positionals = mem_calloc((size_t)argc + 1, sizeof *parsed.positionals);
  parsed.given = mem_calloc((size_t)argc + 1, sizeof *parsed.given);
  genai_status* status = parsed.positionals && parsed.given ? read_words(&parsed, argc, argv) : genai_status_out_of_memory();
  if (status) {
    arguments_deinit(&parsed);
    return status;
  }
  *out = parsed;
  return NULL;
}

void arguments_deinit(arguments* self) {
  mem_free(self->positionals);
  mem_free(self->given);
  *self = (arguments){0};
}

static bool is_given(const arguments* self, size_t index, const char* name) {
  return !strcmp(self->command->options[self->given[index].option].name, name);
}

size_t argument_count(const arguments* self, const char* name) {
  size_t count = 0;
  for (size_t i = 0; i < self->count; i++) count += is_given(self, i, name);
  return count;
}

bool argument_given(const arguments* self, const char* name) {
  return argument_count(self, name) > 0;
}

const char* argument_at(const arguments* self, const char* name, size_t index) {
  for (size_t i = 0; i < self->count; i++) {
    if (is_given(self, i, name) && !index--) return self->given[i].value;
  }
  return NULL;
}

const char* argument_value(const arguments* self, const char* name) {
  size_t count = argument_count(self, name);
  return count ? argument_at(self, name, count - 1) : NULL;
}

genai_status* argument_integer(const arguments* self, const char* name, int64_t minimum, int64_t maximum, int64_t fallback, int64_t* out) {
  const char* value = argument_value(self, name);
  if (!value) {
    *out = fallback;
    return NULL;
  }
  char* end;
  errno = 0;
  long long parsed = strtoll(value, &end, 10);
  if (errno || end == value || *end || parsed < minimum || parsed > maximum)
    return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "option %s is \"%s\", expected a whole number from %lld to %lld", name, value,
                               (long long)minimum, (long long)maximum);
  *out = parsed;
  return NULL;
}

genai_status* parse_ids(const char* name, const char* list, int32_t** ids, size_t* count) {
  size_t capacity = 1;
  for (const char* p = list; *p; p++) capacity += *p == ',';
  int32_t* parsed = mem_calloc(capacity, sizeof *parsed);
  if (!parsed) return genai_status_out_of_memory();
  size_t n = 0;
  for (const char* p = list;; p++) {
    char* end;
    errno = 0;
    long long id = strtoll(p, &end, 10);
    bool number = end != p && !errno && id >= 0 && id <= INT32_MAX;
    p = end + strspn(end, " \t\n");
    if (!number || (*p && *p != ',')) {
      mem_free(parsed);
      return genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "%s is \"%.60s\", expected token ids separated by commas, such as 1,22,333",
                                 name, list);
    }
    parsed[n++] = (int32_t)id;
    if (!*p) break;
  }
  *ids = parsed;
  *count = n;
  return NULL;
}

/* Appends `words` wrapped to 100 columns, lines after the first indented. */
static genai_status* append_wrapped(text* out, const char* words, size_t indent) {
  size_t column = indent;
  for (bool first = true; *words; first = false) {
    size_t length = strcspn(words, " ");
    bool wrap = !first && column + 1 + length > 100;
    if (wrap) {
      GENAI_TRY(text_printf(out, "\n%*s", (int)indent, ""));
      column = indent;
    } else if (!first) {
      GENAI_TRY(text_append_char(out, ' '));
      column++;
    }
    GENAI_TRY(text_append(out, words, length));
    column += length;
    words += length;
    words += strspn(words, " ");
  }
  return text_append_char(out, '\n');
}

genai_status* arguments_help(const command_spec* command, text* out) {
  enum { COLUMN = 30 };
  GENAI_TRY(text_printf(out, "usage: genai %s%s%s [options]\n\n%s\n", command->name, *command->positionals ? " " : "", command->positionals,
                        command->summary));
  if (command->details) GENAI_TRY(text_printf(out, "\n%s\n", command->details));
  bool heading = false;
  for (size_t i = 0; i < command->n_options; i++) {
    const option_spec* option = &command->options[i];
    if (!option->name) {
      GENAI_TRY(text_printf(out, "\n%s\n", option->help));
      heading = true;
      continue;
    }
    if (!heading) GENAI_TRY(text_append_cstr(out, "\noptions\n"));
    heading = true;
    size_t before = out->length;
    GENAI_TRY(text_printf(out, "  %s%s%s", option->name, option->value ? " " : "", option->value ? option->value : ""));
    size_t width = out->length - before;
    if (width + 1 >= COLUMN) {
      GENAI_TRY(text_printf(out, "\n%*s", (int)COLUMN, ""));
    } else {
      GENAI_TRY(text_printf(out, "%*s", (int)(COLUMN - width), ""));
    }
    GENAI_TRY(append_wrapped(out, option->help, COLUMN));
  }
  return NULL;
}
