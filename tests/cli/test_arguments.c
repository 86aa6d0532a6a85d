/* Reading command lines, and the command tables themselves. */
#include "base/memory.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/pipeline_run.h"
#include "pipeline/executorch.h"
#include "support.h"

static const option_spec options[] = {
    {NULL, NULL, false, "a heading"},
    {"--soc", "NAME", false, "a chip"},
    {"--prompt", "TEXT", true,
     "a prompt with an explanation that is so long that it has to be wrapped when it is printed as help, twice even, because it goes on "
     "and on"},
    {"--json", NULL, false, "a switch"},
    {"--a-very-long-option-name-here", "VALUE", false, "long"},
};
static const command_spec command = {.name = "run",
                                     .positionals = "MODEL",
                                     .min_positionals = 1,
                                     .max_positionals = 1,
                                     .summary = "runs",
                                     .options = options,
                                     .n_options = 5};

static genai_status* parse(arguments* out, int argc, const char* const* argv) {
  return arguments_parse(&command, argc, (char* const*)(uintptr_t)argv, out);
}
#define PARSE(out, ...) parse((out), (int)(sizeof((const char*[]){__VA_ARGS__}) / sizeof(char*)), (const char*[]){__VA_ARGS__})

static void values_stand_after_a_space_or_an_equals_sign(void** state) {
  (void)state;
  arguments given;
  assert_ok(PARSE(&given, "--soc", "SM8650", "model", "--prompt=a=b", "--prompt", "--odd", "--json"));
  assert_string_equal(given.positionals[0], "model");
  assert_string_equal(argument_value(&given, "--soc"), "SM8650");
  assert_int_equal(argument_count(&given, "--prompt"), 2);
  assert_string_equal(argument_at(&given, "--prompt", 0), "a=b");
  assert_string_equal(argument_at(&given, "--prompt", 1), "--odd");
  assert_string_equal(argument_value(&given, "--prompt"), "--odd");
  assert_true(argument_given(&given, "--json"));
  assert_null(argument_at(&given, "--prompt", 2));
  arguments_deinit(&given);
}

static void a_double_dash_ends_the_options_and_a_single_one_is_a_word(void** state) {
  (void)state;
  arguments given;
  assert_ok(PARSE(&given, "--", "--json"));
  assert_string_equal(given.positionals[0], "--json");
  assert_false(argument_given(&given, "--json"));
  arguments_deinit(&given);
  assert_ok(PARSE(&given, "-"));
  assert_string_equal(given.positionals[0], "-");
  arguments_deinit(&given);
}

static void mistakes_are_named(void** state) {
  (void)state;
  arguments given;
  assert_fails(PARSE(&given, "m", "--sock", "x"), GENAI_ERROR_CONFIG_VALIDATION, "did you mean --soc?");
  assert_fails(PARSE(&given, "m", "--frobnicate"), GENAI_ERROR_CONFIG_VALIDATION, "unknown option --frobnicate");
  assert_fails(PARSE(&given, "m", "--soc"), GENAI_ERROR_CONFIG_VALIDATION, "--soc needs NAME");
  assert_fails(PARSE(&given, "m", "--json=1"), GENAI_ERROR_CONFIG_VALIDATION, "takes no value");
  assert_fails(PARSE(&given, "m", "--soc", "a", "--soc", "b"), GENAI_ERROR_CONFIG_VALIDATION, "given twice");
  assert_fails(PARSE(&given, "m", "n"), GENAI_ERROR_CONFIG_VALIDATION, "one argument more: \"n\"");
  assert_fails(PARSE(&given, "--json"), GENAI_ERROR_CONFIG_VALIDATION, "needs MODEL");
}

static void help_needs_nothing_else(void** state) {
  (void)state;
  arguments given;
  assert_ok(PARSE(&given, "--help"));
  assert_true(given.help);
  arguments_deinit(&given);
  assert_ok(PARSE(&given, "-h"));
  assert_true(given.help);
  arguments_deinit(&given);
}

static void help_lists_every_option_within_100_columns(void** state) {
  (void)state;
  text out = {0};
  assert_ok(arguments_help(&command, &out));
  for (size_t i = 1; i < 5; i++) assert_non_null(strstr(out.data, options[i].name));
  assert_non_null(strstr(out.data, "a heading"));
  for (const char* line = out.data; *line; line += strcspn(line, "\n") + 1) assert_true(strcspn(line, "\n") <= 100);
  text_deinit(&out);
}

static void numbers_are_checked(void** state) {
  (void)state;
  arguments given;
  int64_t value = 0;
  assert_ok(PARSE(&given, "m", "--soc", "12"));
  assert_ok(argument_integer(&given, "--soc", 1, 20, 7, &value));
  assert_int_equal(value, 12);
  assert_fails(argument_integer(&given, "--soc", 1, 11, 7, &value), GENAI_ERROR_CONFIG_VALIDATION, "from 1 to 11");
  assert_ok(argument_integer(&given, "--prompt", 1, 20, 7, &value));
  assert_int_equal(value, 7);
  arguments_deinit(&given);
  assert_ok(PARSE(&given, "m", "--soc", "12x"));
  assert_fails(argument_integer(&given, "--soc", 1, 20, 7, &value), GENAI_ERROR_CONFIG_VALIDATION, "\"12x\"");
  arguments_deinit(&given);
}

static void ids_are_read_and_checked(void** state) {
  (void)state;
  int32_t* ids;
  size_t count;
  assert_ok(parse_ids("--ids", "1, 22 ,333", &ids, &count));
  assert_int_equal(count, 3);
  assert_int_equal(ids[0], 1);
  assert_int_equal(ids[1], 22);
  assert_int_equal(ids[2], 333);
  mem_free(ids);
  const char* bad[] = {"", ",", "1,", "1,,2", "a", "1 2", "-1", "2147483648", "99999999999999999999"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_fails(parse_ids("--ids", bad[i], &ids, &count), GENAI_ERROR_CONFIG_VALIDATION, "separated by commas");
}

/* Tables: what a command looks up by name must be in its table, and no name twice. */
static const command_spec* const commands[] = {&command_run,    &command_generate, &command_inspect, &command_doctor,  &command_tokenize,
                                               &command_logits, &command_eval,     &command_soc,     &command_recipes, &command_models};

static void tables_hold_no_option_twice(void** state) {
  (void)state;
  for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
    for (size_t i = 0; i < commands[c]->n_options; i++) {
      const option_spec* option = &commands[c]->options[i];
      assert_non_null(option->help);
      for (size_t j = 0; option->name && j < i; j++) {
        if (commands[c]->options[j].name) assert_string_not_equal(option->name, commands[c]->options[j].name);
      }
    }
  }
}

static void the_engines_options_are_unique_and_described(void** state) {
  (void)state;
  for (size_t i = 0; i < EXECUTORCH_OPTION_COUNT; i++) {
    const genai_option_spec* spec = &executorch_option_table[i];
    assert_non_null(spec->name);
    assert_non_null(spec->help);
    assert_true(spec->stages && spec->stages < 1u << GENAI_STAGE_COUNT);
    for (size_t j = 0; j < i; j++) assert_string_not_equal(spec->name, executorch_option_table[j].name);
  }
}

static void exit_codes_follow_the_kind_of_error(void** state) {
  (void)state;
  assert_int_equal(cli_exit_code(NULL), 0);
  genai_status* status = genai_status_create(GENAI_ERROR_CONFIG_VALIDATION, "x");
  assert_int_equal(cli_exit_code(status), 2);
  status = genai_status_wrap_stage(status, "compilation", "y");
  assert_int_equal(cli_exit_code(status), 1);
  genai_status_free(status);
  status = genai_status_wrap_stage(genai_status_create(GENAI_ERROR_CANCELLED, "x"), "compilation", "y");
  assert_int_equal(cli_exit_code(status), 130);
  genai_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_stand_after_a_space_or_an_equals_sign),
      cmocka_unit_test(a_double_dash_ends_the_options_and_a_single_one_is_a_word),
      cmocka_unit_test(mistakes_are_named),
      cmocka_unit_test(help_needs_nothing_else),
      cmocka_unit_test(help_lists_every_option_within_100_columns),
      cmocka_unit_test(numbers_are_checked),
      cmocka_unit_test(ids_are_read_and_checked),
      cmocka_unit_test(tables_hold_no_option_twice),
      cmocka_unit_test(the_engines_options_are_unique_and_described),
      cmocka_unit_test(exit_codes_follow_the_kind_of_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
