/* Command lines: one table per command says what it takes, reads them, and prints the help. */
#ifndef GENAI_CLI_ARGUMENTS_H
#define GENAI_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "genai/status.h"

typedef struct option_spec {
  const char* name;  /* "--soc"; NULL: `help` is a heading in the help text */
  const char* value; /* what follows, in capitals: "NAME"; NULL: a switch */
  bool repeats;      /* may be given several times */
  const char* help;
} option_spec;

typedef struct arguments arguments;
struct cli;

typedef struct command_spec {
  const char* name;
  const char* positionals; /* "MODEL"; "" when there are none */
  size_t min_positionals, max_positionals;
  const char* summary; /* one line */
  const char* details; /* more lines for the command's own help; NULL: none */
  const option_spec* options;
  size_t n_options;
  genai_status* (*run)(struct cli* app, const arguments* given);
} command_spec;

struct arguments {
  const command_spec* command;
  bool help;
  size_t n_positionals;
  const char** positionals; /* into argv */
  size_t count;
  struct {
    size_t option; /* index into the table */
    const char* value;
  } * given;
};

/* Reads argv[0..argc), which begins after the command's name. `--name value` and `--name=value` are the same; `--` ends the options; `-h` is
 * --help. Mistakes are GENAI_ERROR_CONFIG_VALIDATION and name the nearest option. */
genai_status* arguments_parse(const command_spec* command, int argc, char* const* argv, arguments* out) GENAI_MUST_USE;
void arguments_deinit(arguments* self);

bool argument_given(const arguments* self, const char* name);
const char* argument_value(const arguments* self, const char* name); /* the last one; NULL when it was not given */
size_t argument_count(const arguments* self, const char* name);
const char* argument_at(const arguments* self, const char* name, size_t index);
/* A whole number; `fallback` when it was not given. */
genai_status* argument_integer(const arguments* self, const char* name, int64_t minimum, int64_t maximum, int64_t fallback,
                               int64_t* out) GENAI_MUST_USE;

/* "1,2,3" (spaces allowed) into ids[0..*count), which the caller frees with mem_free. */
genai_status* parse_ids(const char* name, const char* list, int32_t** ids, size_t* count) GENAI_MUST_USE;

/* The help of one command. */
genai_status* arguments_help(const command_spec* command, text* out) GENAI_MUST_USE;

#endif
