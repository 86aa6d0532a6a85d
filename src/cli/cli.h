/* What the commands share: output, progress, cancellation, and the command table. */
#ifndef GENAI_CLI_CLI_H
#define GENAI_CLI_CLI_H

#include <pthread.h>

#include "base/json.h"
#include "cli/arguments.h"
#include "genai/genai.h"

enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_CANCELLED = 130 };

typedef struct cli {
  genai_cancel* cancel; /* set by SIGINT and SIGTERM */
  bool json;            /* machine-readable facts on stdout; human lines on stderr */
  bool verbose;
  bool terminal; /* stderr is one: progress is a bar there */
  /* What follows belongs to output.c. */
  pthread_mutex_t lock; /* lines come from the running command, repeated progress from a thread of output.c */
  pthread_cond_t wake;
  pthread_t ticker;
  bool ticking;
  struct {
    bool active; /* a step is under way */
    char step[64], unit[32];
    uint64_t done, total;
    double started;   /* on the monotonic clock */
    double last_line; /* seconds of the step when a line was last printed, not on a terminal */
    bool open;        /* a bar stands on the current line */
  } progress;
  bool text_open;   /* streamed text stands on the current line of stdout */
  bool output_lost; /* standard output did not take the text, which ended the run */
} cli;

/* Runs the program: finds the command, parses, runs, reports a failure. Gives the exit code. */
int cli_main(int argc, char* const* argv);

extern const command_spec command_run, command_generate, command_inspect, command_doctor, command_tokenize, command_logits, command_eval,
    command_soc, command_recipes, command_models, command_report;

/* ---- Output ---- */
genai_status* cli_output_begin(cli* app) GENAI_MUST_USE; /* before any other output */
void cli_output_end(cli* app);
void cli_line(cli* app, const char* format, ...) GENAI_PRINTF(2, 3);                        /* a human line, to stderr */
void cli_print(const text* out);                                                            /* to stdout */
genai_status* cli_print_json(json_writer* writer, text* out) GENAI_MUST_USE;                /* finishes the writer and prints one line */
void cli_log(void* user, genai_log_level level, const char* message);                       /* genai_log_sink */
void cli_progress(void* user, const genai_progress* event);                                 /* genai_progress_callback */
void cli_text(void* user, size_t prompt, const char* string, size_t length, bool finished); /* genai_text_callback */
bool cli_output_failed(void);     /* something that was printed to stdout did not get there */
void cli_report_output(cli* app); /* says so, unless it is because the reader left */
void cli_report_error(cli* app, const genai_status* status);
int cli_exit_code(const genai_status* status);
/* "12.3 MB" */
void format_bytes(uint64_t bytes, char buffer[32]);

/* ---- Options that several commands take ---- */
#define OPTIONS_OUTPUT                                                                                                     \
  {NULL, NULL, false, "output"}, {"--json", NULL, false, "machine-readable facts on stdout, everything else on stderr"}, { \
    "--verbose", NULL, false, "more lines about what goes on"                                                              \
  }

/* An option of the command line that sets one of the pipeline's. */
typedef struct option_mapping {
  const char* argument; /* "--prefill-ar" */
  const char* option;   /* "prefill_ar" */
} option_mapping;
/* Sets every mapped option that was given; switches set "true". */
genai_status* cli_map_options(const arguments* given, const option_mapping* mappings, size_t count,
                              genai_context_builder* builder) GENAI_MUST_USE;

#endif
