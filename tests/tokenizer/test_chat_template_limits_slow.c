/* Templates that would run for ever, fill the memory or the stack: each ends soon, with an error that says which limit it met. The limits
 * are this library's own; the reference has none but Python's. */
#include "base/text.h"
#include "support.h"
#include "tokenizer/chat_template.h"

static const chat_message HELLO[] = {{.role = "user", .content = "Hello"}};

static genai_status* render_text(const char* source, size_t length, text* out) {
  chat_template* template = NULL;
  genai_status* status = chat_template_parse(source, length, &template);
  if (!status) status = chat_template_render(template, HELLO, 1, NULL, out);
  chat_template_free(template);
  return status;
}

static void fails(const char* source, genai_error_kind kind, const char* needle) {
  text out = {0};
  assert_fails(render_text(source, strlen(source), &out), kind, needle);
  assert_null(out.data);
}

static void hostile_templates_end(void** state) {
  (void)state;
  fails("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", GENAI_ERROR_LIMIT, "steps");
  fails("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", GENAI_ERROR_LIMIT, "nested more than");
  fails(
      "{% macro m(x) %}{% for i in [1] %}{% set y %}{% filter trim %}{{ [{'a': (m(x)|upper ~ 1)}] if x else 2 }}{% endfilter %}{% endset %}"
      "{% endfor %}{% endmacro %}{{ m(1) }}",
      GENAI_ERROR_LIMIT, "nested more than");
  fails("{% set n = namespace(s='0123456789abcdef') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}", GENAI_ERROR_LIMIT,
        "MiB");
  fails("{% set n = namespace(l=[1, 2, 3, 4]) %}{% for i in range(99) %}{% set n.l = n.l + n.l %}{% endfor %}", GENAI_ERROR_LIMIT, "MiB");
  fails("{% for i in range(99999) %}{{ 'x' * 9999 }}{% endfor %}", GENAI_ERROR_LIMIT, "64 MiB");
  fails("{{ 'x' * 99999999999 }}", GENAI_ERROR_LIMIT, "64 MiB");
  fails("{{ [1] * 99999999999 }}", GENAI_ERROR_LIMIT, "");
  fails("{{ '%999999999d' % 1 }}", GENAI_ERROR_TEMPLATE, "width");
  fails("{{ ''.ljust(99999999999) }}", GENAI_ERROR_LIMIT, "64 MiB");
  fails("{{ [1]|batch(999999999999, 0)|list }}", GENAI_ERROR_LIMIT, "");
  fails("{{ 9 ** 9 ** 9 }}", GENAI_ERROR_LIMIT, "64 bits");
  fails("{{ 9223372036854775807 + 1 }}", GENAI_ERROR_LIMIT, "64 bits");
  fails("{% set n = namespace(l=[]) %}{% for i in range(9999) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l }}", GENAI_ERROR_LIMIT, "300 deep");
  fails("{% set n = namespace(l=[]) %}{% for i in range(9999) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l|tojson }}", GENAI_ERROR_LIMIT,
        "300 deep");
  fails(
      "{% set n = namespace(l=[], m=[]) %}{% for i in range(9999) %}{% set n.l = [n.l] %}{% set n.m = [n.m] %}{% endfor %}{{ n.l == n.m }}",
      GENAI_ERROR_LIMIT, "300 deep");
  fails("{% set n = namespace(l=()) %}{% for i in range(9999) %}{% set n.l = (n.l,) %}{% endfor %}{{ {n.l: 1} }}", GENAI_ERROR_LIMIT,
        "300 deep");
  fails("{% set n = namespace() %}{% set n.n = n %}{{ n }}", GENAI_ERROR_LIMIT, "300 deep");
  fails("{% set n = namespace(g=[1]) %}{% for i in range(9999) %}{% set n.g = n.g|map('string') %}{% endfor %}{{ n.g|list }}",
        GENAI_ERROR_LIMIT, "nested more than");
}

/* `open` a thousand times around `middle`. */
static void deep_source_fails(const char* open, const char* middle, const char* close, const char* needle) {
  text source = {0}, out = {0};
  assert_ok(text_append_cstr(&source, "{{ "));
  for (int i = 0; i < 5000; i++) assert_ok(text_append_cstr(&source, open));
  assert_ok(text_append_cstr(&source, middle));
  for (int i = 0; i < 5000; i++) assert_ok(text_append_cstr(&source, close));
  assert_ok(text_append_cstr(&source, " }}"));
  assert_fails(render_text(source.data, source.length, &out), *needle ? GENAI_ERROR_LIMIT : GENAI_ERROR_BAD_FILE, needle);
  text_deinit(&source);
}

static void deep_sources_end(void** state) {
  (void)state;
  deep_source_fails("1 + ", "1", "", "nested more than 800");
  deep_source_fails("not ", "1", "", "nested more than 200");
  deep_source_fails("- ", "1", "", "nested more than 200");
  deep_source_fails("", "x", "|upper", "nested more than 800");
  deep_source_fails("", "x", ".a", "nested more than 800");
  deep_source_fails("1 if 2 else ", "3", "", "nested more than 200");
  deep_source_fails("{% if 1 %}", "", "", ""); /* a tag inside {{ }} */
  deep_source_fails("(", "1", ")", "");        /* the lexer counts brackets first */
  text source = {0}, out = {0};
  for (int i = 0; i < 5000; i++) assert_ok(text_append_cstr(&source, "{% if 1 %}"));
  assert_fails(render_text(source.data, source.length, &out), GENAI_ERROR_LIMIT, "nested more than 200");
  text_clear(&source);
  assert_ok(text_append_cstr(&source, "{% if 0 %}"));
  for (int i = 0; i < 5000; i++) assert_ok(text_append_cstr(&source, "{% elif 0 %}"));
  assert_ok(text_append_cstr(&source, "{% endif %}"));
  assert_fails(render_text(source.data, source.length, &out), GENAI_ERROR_LIMIT, "nested more than 800");
  text_deinit(&source);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(hostile_templates_end), cmocka_unit_test(deep_sources_end)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
