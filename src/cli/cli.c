/* The program: its command table, global options, and the exit code. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/signals.h"

static const command_spec* const commands[] = {
    &command_run,    &command_generate, &command_inspect, &command_tokenize, &command_logits, &command_eval,
    &command_report, &command_doctor,   &command_soc,     &command_recipes,  &command_models,
};
enum { COMMAND_COUNT = sizeof commands / sizeof commands[0] };

static genai_status* print_overview(void) {
  text out = {0};
  genai_status* status =
      text_printf(&out,
                  "genai %s: from a language model's checkpoint to an artifact for Qualcomm's HTP and the text it generates\n\n"
                  "usage: genai COMMAND [arguments]\n\n",
                  genai_version());
  for (size_t i = 0; !status && i < COMMAND_COUNT; i++) status = text_printf(&out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
  if (!status)
    status = text_append_cstr(&out,
                              "\ngenai COMMAND --help explains one command; genai --version says the version.\n"
                              "exit codes: 0 done, 1 failed, 2 wrong usage or options, 130 cancelled\n");
  if (!status) cli_print(&out);
  text_deinit(&out);
  return status;
}

static genai_status* find_command(const char* name, const command_spec** out) {
  const char* names[COMMAND_COUNT];
  for (size_t i = 0; i < COMMAND_COUNT; i++) {
    names[i] = commands[i]->name;
    if (strcmp(names[i], name)) continue;
    *out = commands[i];
    return NULL;
  }
  const char* nearest = text_nearest(name, names, COMMAND_COUNT);
  return nearest ? genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "unknown command \"%s\"; did you mean %s?", name, nearest)
                 : genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "unknown command \"%s\"; genai --help lists them", name);
}

static genai_status* print_help(const command_spec* command) {
  text out = {0};
  genai_status* status = arguments_help(command, &out);
  if (!status) cli_print(&out);
  text_deinit(&out);
  return status;
}

static bool has_option(const command_spec* command, const char* name) {
  for (size_t i = 0; i < command->n_options; i++) {
    if (command->options[i].name && !strcmp(command->options[i].name, name)) return true;
  }
  return false;
}

/* Also where the command line has a mistake, which is then a fact for a program too. */
static bool wants_json(const command_spec* command, int argc, char* const* argv) {
  for (int i = 0; has_option(command, "--json") && i < argc && strcmp(argv[i], "--"); i++) {
    if (!strcmp(argv[i], "--json")) return true;
  }
  return false;
}

static genai_status* run_command(cli* app, const command_spec* command, int argc, char* const* argv) {
  arguments given;
  app->json = wants_json(command, argc, argv);
  GENAI_TRY(arguments_parse(command, argc, argv, &given));
  genai_status* status;
  if (given.help) {
    status = print_help(command);
  } else {
    app->json = has_option(command, "--json") && argument_given(&given, "--json");
    app->verbose = has_option(command, "--verbose") && argument_given(&given, "--verbose");
    genai_log_set_sink(cli_log, app, app->verbose ? GENAI_LOG_DEBUG : GENAI_LOG_INFO);
    status = command->run(app, &given);
  }
  arguments_deinit(&given);
  return status;
}

static genai_status* dispatch(cli* app, int argc, char* const* argv) {
  const char* first = argc > 1 ? argv[1] : NULL;
  if (!first || !strcmp(first, "--help") || !strcmp(first, "-h") || !strcmp(first, "help")) {
    if (argc > 2) { /* genai help COMMAND */
      const command_spec* command = NULL;
      GENAI_TRY(find_command(argv[2], &command));
      return print_help(command);
    }
    GENAI_TRY(print_overview());
    return first ? NULL : genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "a command is missing");
  }
  if (!strcmp(first, "--version")) {
    printf("genai %s\n", genai_version());
    return NULL;
  }
  const command_spec* command = NULL;
  GENAI_TRY(find_command(first, &command));
  return run_command(app, command, argc - 2, argv + 2);
}

int cli_main(int argc, char* const* argv) {
  cli app = {.terminal = isatty(STDERR_FILENO) != 0};
  genai_status* status = cli_output_begin(&app);
  if (!status) status = genai_cancel_create(&app.cancel);
  if (!status) status = signals_begin(app.cancel);
  if (!status) status = dispatch(&app, argc, argv);
  signals_end();
  if (status && !app.output_lost) cli_report_error(&app, status);
  int code = app.output_lost ? EXIT_FAILED : cli_exit_code(status);
  genai_status_free(status);
  if (cli_output_failed()) {
    cli_report_output(&app);
    if (!code) code = EXIT_FAILED;
  }
  genai_log_set_sink(NULL, NULL, GENAI_LOG_ERROR);
  cli_output_end(&app);
  genai_cancel_destroy(app.cancel);
  return code;
}

genai_status* cli_map_options(const arguments* given, const option_mapping* mappings, size_t count, genai_context_builder* builder) {
  for (size_t i = 0; i < count; i++) {
    if (!has_option(given->command, mappings[i].argument) || !argument_given(given, mappings[i].argument)) continue;
    const char* value = argument_value(given, mappings[i].argument);
    GENAI_TRY(genai_context_builder_set_option(builder, mappings[i].option, value ? value : "true"));
  }
  return NULL;
}
