/* Chat templates against recorded outcomes of transformers (tests/tools/make_template_cases.py says how they were made). Every case of
 * tests/data/templates/cases.json, or of the file that GENAI_TEMPLATE_CASES names, is parsed and rendered; all differences are printed. */
#include "base/json.h"
#include "base/text.h"
#include "support.h"
#include "tokenizer/chat_template.h"

static const char* case_file(void) {
  const char* named = test_environment("GENAI_TEMPLATE_CASES");
  return named ? named : test_data("templates/cases.json");
}

static char* string_of(json_value value) { /* NULL when it is no string */
  text_view view = json_string(value);
  if (!view.data) return NULL;
  char* copy = malloc(view.length + 1);
  assert_non_null(copy);
  memcpy(copy, view.data, view.length);
  copy[view.length] = 0;
  return copy;
}

/* The status of parsing and rendering a case, and what came out. */
static genai_status* run_case(text_view source, json_value context, int64_t now, text* out) {
  char *bos = string_of(json_get(context, "bos_token")), *eos = string_of(json_get(context, "eos_token"));
  chat_render_options options = {
      .add_generation_prompt = json_bool(json_get(context, "add_generation_prompt"), false),
      .bos_token = bos,
      .eos_token = eos,
      .tools = json_get(context, "tools"),
      .extra = json_get(context, "extra"),
      .now = now,
  };
  chat_template* template = NULL;
  genai_status* status = chat_template_parse(source.data, source.length, &template);
  if (!status) status = chat_template_render_json(template, json_get(context, "messages"), &options, out);
  chat_template_free(template);
  free(bos);
  free(eos);
  return status;
}

static void print_difference(text_view name, text_view source, const char* expected, const char* got) {
  bool brief = source.length > 200;
  print_message("case %.*s: %.*s%s\n  expected %s\n  got      %s\n", (int)name.length, name.data, brief ? 200 : (int)source.length,
                source.data, brief ? "..." : "", expected, got);
}

/* From a little before the first difference. */
static void print_text_difference(text_view name, text_view source, text_view expected, text_view got) {
  size_t same = 0;
  while (same < expected.length && same < got.length && expected.data[same] == got.data[same]) same++;
  size_t from = same > 60 ? same - 60 : 0;
  char want[300], have[300];
  snprintf(want, sizeof want, "text, at byte %zu of %zu: [%.*s]", same, expected.length,
           (int)(expected.length - from > 160 ? 160 : expected.length - from), expected.data + from);
  snprintf(have, sizeof have, "[%.*s]", (int)(got.length - from > 160 ? 160 : got.length - from), got.data + from);
  print_difference(name, source, want, have);
}

/* True when the outcome is the reference's. */
static bool check_case(json_value one, text_view name, text_view source, json_value context, int64_t now) {
  text out = {0};
  char message[8192] = "";
  genai_status* status = run_case(source, context, now, &out);
  genai_error_kind kind = genai_status_kind(status);
  genai_status_format(status, message, sizeof message);
  genai_status_free(status);
  text_view expected = json_string(json_get(one, "expected")), got = {.data = out.data ? out.data : "", .length = out.length};
  bool same;
  if (expected.data) {
    same = !kind && text_view_equal(got, expected);
    if (kind) print_difference(name, source, "text", message);
    if (!kind && !same) print_text_difference(name, source, expected, got);
  } else {
    char *raises = string_of(json_get(one, "raises")), *fails = string_of(json_get(one, "fails"));
    same = raises ? kind == GENAI_ERROR_TEMPLATE && strstr(message, raises) : kind && kind != GENAI_ERROR_INTERNAL;
    if (!same)
      print_difference(name, source, raises ? raises : fails ? fails : "(nothing recorded)", kind ? message : out.data ? out.data : "");
    same = same && (raises || fails);
    free(raises);
    free(fails);
  }
  text_deinit(&out);
  return same;
}

static void every_case_renders_as_the_reference(void** state) {
  (void)state;
  json_document* document;
  assert_ok(json_parse_file(case_file(), (size_t)256 << 20, &document));
  json_value root = json_root(document), cases = json_get(root, "cases"), one;
  int64_t now = json_integer(json_get(root, "now"), 0);
  size_t count = 0, wrong = 0;
  json_iterator iterator = json_iterate(cases);
  while (json_next(&iterator, NULL, &one)) {
    char *template_name = string_of(json_get(one, "template")), *context_name = string_of(json_get(one, "context"));
    text_view source = json_string(json_get(one, "source")), name = json_string(json_get(one, "template"));
    if (!source.data) source = json_string(json_get(json_get(root, "templates"), template_name ? template_name : ""));
    json_value context = json_get(json_get(root, "contexts"), context_name ? context_name : "");
    if (!source.data || json_type_of(context) != JSON_OBJECT) fail_msg("case %zu has no template or no context", count);
    char label[256];
    snprintf(label, sizeof label, "%zu (%.*s, %s)", count, (int)name.length, name.data ? name.data : "", context_name);
    wrong += !check_case(one, text_view_of(label), source, context, now);
    count++;
    free(template_name);
    free(context_name);
  }
  json_free(document);
  print_message("%zu cases, %zu differ\n", count, wrong);
  assert_true(count > 0);
  assert_int_equal(wrong, 0);
}

int main(void) {
  setenv("TZ", "UTC", 1);
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_case_renders_as_the_reference)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
