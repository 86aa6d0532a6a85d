/* The context and its builder (the contract's section "Context"). */
#include "base/memory.h"
#include "genai/context.h"
#include "stubs.h"

static genai_context_builder* new_builder(void) {
  genai_context_builder* builder;
  assert_ok(genai_context_builder_create(&builder));
  return builder;
}

static void building_reports_all_missing_fields_in_one_message_with_their_setters(void** state) {
  (void)state;
  genai_context_builder* builder = new_builder();
  genai_context* context;
  genai_status* status = genai_context_builder_build(builder, &context);
  assert_int_equal(genai_status_kind(status), GENAI_ERROR_CONFIG_VALIDATION);
  assert_contains(genai_status_message(status), "genai_context_builder_set_model");
  assert_contains(genai_status_message(status), "genai_context_builder_set_soc");
  assert_contains(genai_status_message(status), "genai_context_builder_set_prompt");
  genai_status_free(status);
  assert_ok(genai_context_builder_set_soc(builder, "SM8650"));
  status = genai_context_builder_build(builder, &context);
  assert_contains(genai_status_message(status), "set_model");
  assert_null(strstr(genai_status_message(status), "set_soc"));
  genai_status_free(status);
  genai_context_builder_destroy(builder);
}

static void fill_required(genai_context_builder* builder) {
  assert_ok(genai_context_builder_set_model(builder, "m"));
  assert_ok(genai_context_builder_set_soc(builder, "SM8650"));
}

static void a_single_blank_prompt_is_refused(void** state) {
  (void)state;
  genai_context_builder* builder = new_builder();
  genai_context* context;
  fill_required(builder);
  assert_ok(genai_context_builder_set_prompt(builder, " \t\n"));
  assert_fails(genai_context_builder_build(builder, &context), GENAI_ERROR_CONFIG_VALIDATION, "prompt is blank");
  genai_context_builder_destroy(builder);
}

static void blank_prompts_of_a_list_are_dropped(void** state) {
  (void)state;
  genai_context_builder* builder = new_builder();
  genai_context* context;
  const char* prompts[] = {"", "one", "  ", "two"};
  fill_required(builder);
  assert_ok(genai_context_builder_set_prompts(builder, prompts, 4));
  assert_ok(genai_context_builder_build(builder, &context));
  assert_int_equal(genai_context_prompt_count(context), 2);
  assert_string_equal(genai_context_prompt_text(context, 0), "one");
  assert_string_equal(genai_context_prompt_text(context, 1), "two");
  genai_context_destroy(context);
  genai_context_builder_destroy(builder);
}

static void an_empty_or_all_blank_list_is_refused(void** state) {
  (void)state;
  genai_context_builder* builder = new_builder();
  genai_context* context;
  const char* prompts[] = {"", " "};
  fill_required(builder);
  assert_ok(genai_context_builder_set_prompts(builder, prompts, 2));
  assert_fails(genai_context_builder_build(builder, &context), GENAI_ERROR_CONFIG_VALIDATION, "every prompt");
  assert_ok(genai_context_builder_set_prompts(builder, prompts, 0));
  assert_fails(genai_context_builder_build(builder, &context), GENAI_ERROR_CONFIG_VALIDATION, "prompt is missing");
  genai_context_builder_destroy(builder);
}

static void a_context_is_immutable_once_built(void** state) {
  (void)state;
  genai_context_builder* builder = new_builder();
  genai_context* context;
  fill_required(builder);
  assert_ok(genai_context_builder_set_prompt(builder, "first"));
  assert_ok(genai_context_builder_set_option(builder, "recipe", "16a8w"));
  assert_ok(genai_context_builder_build(builder, &context));
  assert_ok(genai_context_builder_set_prompt(builder, "second"));
  assert_ok(genai_context_builder_set_model(builder, "other"));
  assert_ok(genai_context_builder_set_option(builder, "recipe", "16a4w"));
  genai_context_builder_destroy(builder);
  assert_string_equal(genai_context_prompt_text(context, 0), "first");
  assert_string_equal(genai_context_model(context), "m");
  assert_string_equal(genai_options_get(genai_context_options(context), "recipe"), "16a8w");
  genai_context_destroy(context);
}

static void the_artifact_directory_has_a_default(void** state) {
  (void)state;
  genai_context_builder* builder = new_builder();
  genai_context* context;
  fill_required(builder);
  assert_ok(genai_context_builder_set_prompt(builder, "p"));
  assert_ok(genai_context_builder_build(builder, &context));
  assert_string_equal(genai_context_artifact_directory(context), "./genai_artifacts");
  genai_context_destroy(context);
  genai_context_builder_destroy(builder);
}

static void prompts_can_be_ids_and_a_run_without_inference_needs_none(void** state) {
  (void)state;
  genai_context_builder* builder = new_builder();
  genai_context* context;
  const int32_t ids[] = {5, 6};
  fill_required(builder);
  assert_ok(genai_context_builder_set_no_inference(builder));
  assert_ok(genai_context_builder_build(builder, &context));
  assert_int_equal(genai_context_prompt_count(context), 0);
  genai_context_destroy(context);
  assert_fails(genai_context_builder_add_prompt_ids(builder, ids, 0), GENAI_ERROR_CONFIG_VALIDATION, "at least one id");
  assert_ok(genai_context_builder_add_prompt_ids(builder, ids, 2));
  assert_ok(genai_context_builder_build(builder, &context));
  size_t count;
  const int32_t* stored = genai_context_prompt_ids(context, 0, &count);
  assert_int_equal(count, 2);
  assert_int_equal(stored[1], 6);
  assert_null(genai_context_prompt_text(context, 0));
  genai_context_destroy(context);
  genai_context_builder_destroy(builder);
}

/* ---- Options ---- */
static const genai_option_spec specs[] = {
    {"recipe", GENAI_OPTION_TEXT, 1u << 1, 0, 0, NULL, NULL, ""},
    {"context", GENAI_OPTION_INTEGER, 1u << 0, 2, 100, NULL, NULL, ""},
    {"temperature", GENAI_OPTION_NUMBER, 1u << 3, 0, 2, NULL, NULL, ""},
    {"raw", GENAI_OPTION_FLAG, 1u << 3, 0, 0, NULL, NULL, ""},
    {"mode", GENAI_OPTION_CHOICE, 1u << 0 | 1u << 2, 0, 0, "kv|hybrid", NULL, ""},
};

static genai_status* validate_one(const char* key, const char* value) {
  genai_options* options;
  const genai_option_spec* list = specs;
  size_t count = sizeof specs / sizeof specs[0];
  assert_ok(genai_options_create(&options));
  assert_ok(genai_options_set(options, key, value));
  genai_status* status = genai_options_validate(options, &list, &count, 1);
  genai_options_destroy(options);
  return status;
}

static void unknown_options_are_refused_with_the_nearest_known_name(void** state) {
  (void)state;
  assert_fails(validate_one("recepie", "x"), GENAI_ERROR_CONFIG_VALIDATION, "did you mean \"recipe\"");
  assert_fails(validate_one("zzzzzzzzzzzz", "x"), GENAI_ERROR_CONFIG_VALIDATION, "unknown option \"zzzzzzzzzzzz\"");
}

static void option_values_are_checked_against_what_is_allowed(void** state) {
  (void)state;
  assert_ok(validate_one("context", "2"));
  assert_ok(validate_one("context", "100"));
  const char* bad_integers[] = {"1", "101", "abc", "", "5x", "99999999999999999999", "5.5"};
  for (size_t i = 0; i < sizeof bad_integers / sizeof *bad_integers; i++)
    assert_fails(validate_one("context", bad_integers[i]), GENAI_ERROR_CONFIG_VALIDATION, "from 2 to 100");
  assert_ok(validate_one("temperature", "0.7"));
  const char* bad_numbers[] = {"nan", "inf", "-1", "2.1", "warm"};
  for (size_t i = 0; i < sizeof bad_numbers / sizeof *bad_numbers; i++)
    assert_fails(validate_one("temperature", bad_numbers[i]), GENAI_ERROR_CONFIG_VALIDATION, "temperature");
  assert_ok(validate_one("raw", "true"));
  assert_fails(validate_one("raw", "yes"), GENAI_ERROR_CONFIG_VALIDATION, "true or false");
  assert_ok(validate_one("mode", "kv"));
  assert_ok(validate_one("mode", "hybrid"));
  const char* bad_modes[] = {"", "k", "kv|hybrid", "hybri", "lookahead"};
  for (size_t i = 0; i < sizeof bad_modes / sizeof *bad_modes; i++)
    assert_fails(validate_one("mode", bad_modes[i]), GENAI_ERROR_CONFIG_VALIDATION, "kv|hybrid");
}

static void a_filter_keeps_only_what_belongs_to_the_stage(void** state) {
  (void)state;
  genai_options* options;
  genai_options* kept;
  assert_ok(genai_options_create(&options));
  assert_ok(genai_options_set(options, "recipe", "a"));
  assert_ok(genai_options_set(options, "mode", "kv"));
  assert_ok(genai_options_set(options, "stranger", "1"));
  assert_ok(genai_options_set(options, "mode", "hybrid"));
  assert_ok(genai_options_filter(options, specs, sizeof specs / sizeof specs[0], 2, &kept));
  assert_int_equal(genai_options_count(kept), 1);
  assert_string_equal(genai_options_key(kept, 0), "mode");
  assert_string_equal(genai_options_value(kept, 0), "hybrid");
  genai_options_destroy(kept);
  genai_options_destroy(options);
}

/* ---- Memory ---- */
static genai_status* build_everything(genai_context** out) {
  genai_context_builder* builder;
  const char* prompts[] = {"one", "two"};
  const int32_t ids[] = {1, 2, 3};
  const int32_t* sequences[] = {ids};
  const size_t lengths[] = {3};
  genai_sample_stream* data = NULL;
  GENAI_TRY(genai_context_builder_create(&builder));
  genai_status* status = genai_context_builder_set_model(builder, "m");
  if (!status) status = genai_context_builder_set_soc(builder, "SM8650");
  if (!status) status = genai_context_builder_set_prompts(builder, prompts, 2);
  if (!status) status = genai_context_builder_add_prompt_ids(builder, ids, 3);
  if (!status) status = genai_context_builder_set_option(builder, "recipe", "16a8w");
  if (!status) status = genai_context_builder_set_option(builder, "recipe", "16a4w");
  if (!status) status = genai_context_builder_add_artifact(builder, "a.pte");
  if (!status) status = genai_sample_stream_from_ids(sequences, lengths, 1, &data);
  if (!status) status = genai_context_builder_set_calibration_data(builder, data);
  if (!status) status = genai_context_builder_build(builder, out);
  genai_sample_stream_release(data);
  genai_context_builder_destroy(builder);
  return status;
}

static void every_failed_allocation_is_an_error_and_leaks_nothing(void** state) {
  (void)state;
  genai_context* context = NULL;
  uint64_t before = mem_allocation_count();
  assert_ok(build_everything(&context));
  uint64_t allocations = mem_allocation_count() - before;
  genai_context_destroy(context);
  assert_true(allocations > 10);
  for (uint64_t n = 1; n <= allocations; n++) {
    context = NULL;
    mem_inject_failure(n);
    genai_status* status = build_everything(&context);
    mem_inject_failure(0);
    if (!status) fail_msg("allocation %llu of %llu failed and nobody noticed", (unsigned long long)n, (unsigned long long)allocations);
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(building_reports_all_missing_fields_in_one_message_with_their_setters),
      cmocka_unit_test(a_single_blank_prompt_is_refused),
      cmocka_unit_test(blank_prompts_of_a_list_are_dropped),
      cmocka_unit_test(an_empty_or_all_blank_list_is_refused),
      cmocka_unit_test(a_context_is_immutable_once_built),
      cmocka_unit_test(the_artifact_directory_has_a_default),
      cmocka_unit_test(prompts_can_be_ids_and_a_run_without_inference_needs_none),
      cmocka_unit_test(unknown_options_are_refused_with_the_nearest_known_name),
      cmocka_unit_test(option_values_are_checked_against_what_is_allowed),
      cmocka_unit_test(a_filter_keeps_only_what_belongs_to_the_stage),
      cmocka_unit_test(every_failed_allocation_is_an_error_and_leaks_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
