/* What the recorded cases cannot show: the C interface, kinds and places of errors, failing allocations, and rendering from
 * several threads. Expected texts of the few renderings here follow from the templates by hand. */
#include <stdatomic.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/pool.h"
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

static void renders(const char* source, const char* expected) {
  text out = {0};
  assert_ok(render_text(source, strlen(source), &out));
  assert_string_equal(out.data ? out.data : "", expected);
  text_deinit(&out);
}

static void fails(const char* source, genai_error_kind kind, const char* needle) {
  text out = {0};
  assert_fails(render_text(source, strlen(source), &out), kind, needle);
  assert_null(out.data); /* nothing of a failed rendering gets out */
}

static void messages_from_c(void** state) {
  (void)state;
  static const char SOURCE[] =
      "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}\n{% endfor %}"
      "{% if add_generation_prompt %}<assistant>{% endif %}{{ tools is none }}";
  chat_template* template;
  text out = {0};
  const chat_message messages[] = {{"system", "Be kind."}, {"user", "Grüezi 🦊"}};
  chat_render_options options = {.add_generation_prompt = true, .bos_token = "^", .eos_token = "$"};
  assert_ok(chat_template_parse(SOURCE, strlen(SOURCE), &template));
  assert_ok(text_append_cstr(&out, "before "));
  assert_ok(chat_template_render(template, messages, 2, &options, &out));
  assert_string_equal(out.data, "before ^<system>Be kind.$\n<user>Grüezi 🦊$\n<assistant>True");
  text_clear(&out);
  assert_ok(chat_template_render(template, messages, 1, NULL, &out)); /* no options: no tokens, no prompt */
  assert_string_equal(out.data, "<system>Be kind.\nTrue");
  assert_fails(chat_template_render(template, messages, 0, NULL, &out), GENAI_ERROR_INVALID_ARGUMENT, "no messages");
  assert_fails(chat_template_render(template, NULL, 0, NULL, &out), GENAI_ERROR_INVALID_ARGUMENT, "no messages");
  const chat_message broken[] = {{"user", "\xff"}};
  assert_fails(chat_template_render(template, broken, 1, NULL, &out), GENAI_ERROR_INVALID_ARGUMENT, "content of message 0");
  options.bos_token = "\xc3";
  assert_fails(chat_template_render(template, messages, 1, &options, &out), GENAI_ERROR_INVALID_ARGUMENT, "bos_token");
  text_deinit(&out);
  chat_template_free(template);
  chat_template_free(NULL);
}

static genai_status* render_json(const char* source, const char* messages, const char* extra, text* out) {
  json_document *document = NULL, *variables = NULL;
  chat_template* template = NULL;
  chat_render_options options = {0};
  genai_status* status = json_parse(messages, strlen(messages), "messages", &document);
  if (!status && extra) status = json_parse(extra, strlen(extra), "extra", &variables);
  if (variables) options.extra = json_root(variables);
  if (!status) status = chat_template_parse(source, strlen(source), &template);
  if (!status) status = chat_template_render_json(template, json_root(document), &options, out);
  chat_template_free(template);
  json_free(variables);
  json_free(document);
  return status;
}

static void messages_from_json(void** state) {
  (void)state;
  text out = {0};
  /* As transformers: null members are dropped, reasoning goes by every name. */
  assert_ok(render_json("{{ messages[0] }}|{{ x + 1 }}",
                        "[{\"role\": \"assistant\", \"content\": null, \"reasoning\": \"hm\", \"n\": [1, 2.5, true, null]}]", "{\"x\": 41}",
                        &out));
  assert_string_equal(
      out.data, "{'thinking': 'hm', 'role': 'assistant', 'reasoning': 'hm', 'n': [1, 2.5, True, None], 'reasoning_content': 'hm'}|42");
  text_clear(&out);
  assert_fails(render_json("x", "[]", NULL, &out), GENAI_ERROR_INVALID_ARGUMENT, "no messages");
  assert_fails(render_json("x", "{}", NULL, &out), GENAI_ERROR_INVALID_ARGUMENT, "JSON array");
  assert_fails(render_json("x", "[{\"role\": \"user\"}, \"b\"]", NULL, &out), GENAI_ERROR_INVALID_ARGUMENT, "message 1");
  assert_fails(render_json("x", "[{}]", "[]", &out), GENAI_ERROR_INVALID_ARGUMENT, "JSON object");
  assert_fails(render_json("x", "[{}]", "{\"messages\": 1}", &out), GENAI_ERROR_INVALID_ARGUMENT, "'messages'");
  text_deinit(&out);
}

static void nested_json_is_bounded(void** state) {
  (void)state;
  text messages = {0}, out = {0};
  assert_ok(text_append_cstr(&messages, "[{\"content\": "));
  for (int i = 0; i < 400; i++) assert_ok(text_append_cstr(&messages, "["));
  for (int i = 0; i < 400; i++) assert_ok(text_append_cstr(&messages, "]"));
  assert_ok(text_append_cstr(&messages, "}]"));
  assert_fails(render_json("x", messages.data, NULL, &out), GENAI_ERROR_LIMIT, "300 deep");
  text_deinit(&messages);
}

static void errors_name_their_place(void** state) {
  (void)state;
  fails("a\n{% if x %}\nb", GENAI_ERROR_BAD_FILE, "expected elif else endif, found the end of the template (line 3, column 2)");
  fails("{{ a b }}", GENAI_ERROR_BAD_FILE, "expected '}}', found 'b' (line 1, column 6)");
  fails("ä{{ \xf0\x9f\xa6\x8a }}", GENAI_ERROR_BAD_FILE, "U+1F98A (line 1, column 5)");
  fails("{{ 'abc }}", GENAI_ERROR_BAD_FILE, "never ends; expected ' (line 1, column 4)");
  fails("{{ (1] }}", GENAI_ERROR_BAD_FILE, "unexpected ']'; expected ')'");
  fails("{# x", GENAI_ERROR_BAD_FILE, "comment never ends");
  fails("{% raw %}x", GENAI_ERROR_BAD_FILE, "raw block never ends");
  fails("{% for x in y %}{% endif %}", GENAI_ERROR_BAD_FILE, "unknown tag 'endif'; the innermost open block ends with 'endfor else'");
  fails("{{ 1|nosuch }}", GENAI_ERROR_BAD_FILE, "no filter named 'nosuch' (line 1, column 6)");
  fails("{{ 1 is nosuch }}", GENAI_ERROR_BAD_FILE, "no test named 'nosuch'");
  fails("{{ 99999999999999999999 }}", GENAI_ERROR_BAD_FILE, "too large");
  fails("{% break %}", GENAI_ERROR_BAD_FILE, "outside of any loop");
  fails("{% for loop in x %}{% endfor %}", GENAI_ERROR_BAD_FILE, "'loop'");
  fails("\xff", GENAI_ERROR_BAD_FILE, "UTF-8");
  fails("{{ x.y }}", GENAI_ERROR_TEMPLATE, "'x' is undefined (line 1, column 5)");
  fails("\n {{ messages[0].nosuch.y }}", GENAI_ERROR_TEMPLATE, "'dict object' has no attribute 'nosuch' (line 2, column 23)");
  fails("{{ messages[7].x }}", GENAI_ERROR_TEMPLATE, "list object has no element 7");
  fails("{{ 1 + 'a' }}", GENAI_ERROR_TEMPLATE, "operator + does not go with values of types 'int' and 'str' (line 1, column 6)");
  fails("{{ messages.append(1) }}", GENAI_ERROR_TEMPLATE, "refused");
  fails("{{ range(200000) }}", GENAI_ERROR_TEMPLATE, "100000");
  fails("{{ 'a'|replace }}", GENAI_ERROR_TEMPLATE, "'replace' needs the argument 'old'");
  fails("{{ 'a'|trim(1, 2) }}", GENAI_ERROR_TEMPLATE, "at most 1");
  fails("{{ 'a'|trim(nosuch=1) }}", GENAI_ERROR_TEMPLATE, "no keyword argument 'nosuch'");
}

static void the_templates_own_errors(void** state) {
  (void)state;
  fails("a\n{{ raise_exception('Roles must alternate: ' ~ messages[0].role) }}", GENAI_ERROR_TEMPLATE,
        "refuses these messages: Roles must alternate: user (line 2, column 19)");
}

static void what_is_not_supported_says_so(void** state) {
  (void)state;
  fails("{% extends 'a' %}", GENAI_ERROR_UNSUPPORTED, "'extends'");
  fails("{% include 'a' %}", GENAI_ERROR_UNSUPPORTED, "'include'");
  fails("{% block a %}{% endblock %}", GENAI_ERROR_UNSUPPORTED, "'block'");
  fails("{% for x in y recursive %}{% endfor %}", GENAI_ERROR_UNSUPPORTED, "recursive loops");
  fails("{{ messages|pprint }}", GENAI_ERROR_UNSUPPORTED, "'pprint'");
  fails("{{ 'a'.encode() }}", GENAI_ERROR_UNSUPPORTED, "'encode'");
}

static const char WIDE[] = /* something of everything */
    "{% macro m(a, b=2) %}{{ caller() if caller is defined }}{{ a ~ b }}{{ varargs }}{{ kwargs }}{% endmacro %}"
    "{% set ns = namespace(l=[], d={'a': 1}) %}{% for x in range(30) if x is odd %}{% set ns.l = ns.l + [x] %}{{ loop.last }}{% endfor %}"
    "{{ ns.l|map('string')|select('in', ['1', '3'])|join('-') }}{{ ns.l|sort(reverse=true)|first }}{{ {'b': [1, {'c': "
    "none}]}|tojson(indent=2) }}"
    "{% set t %}{% filter upper|replace('A', 'b') %}abc{% endfilter %}{% endset %}{{ t[::-1] }}{{ '%s %05.1f' % ('x', 2) }}"
    "{{ '{:>8}{!r}'.format('a', 'b') }}{% call m(1, 2, 3, z=4) %}body{% endcall %}{{ ns.l|batch(2)|list|length }}{{ ns }}{{ x }}"
    "{% for k, v in ns.d|dictsort %}{{ k }}{{ v }}{% endfor %}{{ messages[0].content.split('l')|unique|list }}{{ "
    "'a\\u00e9'|title|e|wordcount }}";

static void allocation_failures_are_reported(void** state) {
  (void)state;
  text whole = {0};
  assert_ok(render_text(WIDE, strlen(WIDE), &whole));
  assert_true(whole.length > 100);
  unsigned failed = 0;
  for (uint64_t nth = 1;; nth++) {
    text out = {0};
    mem_inject_failure(nth);
    genai_status* status = render_text(WIDE, strlen(WIDE), &out);
    mem_inject_failure(0);
    if (!status) {
      assert_string_equal(out.data, whole.data);
      text_deinit(&out);
      break;
    }
    assert_int_equal(genai_status_kind(status), GENAI_ERROR_OUT_OF_MEMORY);
    genai_status_free(status);
    text_deinit(&out);
    failed++;
  }
  assert_true(failed >= 4); /* the template, its tree, the values, the output */
  text_deinit(&whole);
}

typedef struct shared {
  const chat_template* template;
  const char* expected;
  atomic_int wrong;
} shared;

static void render_shared(void* user, size_t begin, size_t end) {
  shared* self = user;
  for (size_t i = begin; i < end; i++) {
    text out = {0};
    genai_status* status = chat_template_render(self->template, HELLO, 1, NULL, &out);
    if (status || strcmp(out.data, self->expected)) atomic_fetch_add(&self->wrong, 1);
    genai_status_free(status);
    text_deinit(&out);
  }
}

static void several_threads_share_a_template(void** state) {
  (void)state;
  chat_template* template;
  thread_pool* pool;
  text expected = {0};
  assert_ok(chat_template_parse(WIDE, strlen(WIDE), &template));
  assert_ok(chat_template_render(template, HELLO, 1, NULL, &expected));
  assert_ok(thread_pool_create(4, &pool));
  shared user = {.template = template, .expected = expected.data};
  thread_pool_for(pool, 64, 1, render_shared, &user);
  assert_int_equal(user.wrong, 0);
  thread_pool_destroy(pool);
  text_deinit(&expected);
  chat_template_free(template);
}

static void the_clock(void** state) {
  (void)state;
  renders("{{ strftime_now('%Y') | length }}{{ strftime_now('%Y')|int >= 2024 }}", "4True");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(messages_from_c),
      cmocka_unit_test(messages_from_json),
      cmocka_unit_test(nested_json_is_bounded),
      cmocka_unit_test(errors_name_their_place),
      cmocka_unit_test(the_templates_own_errors),
      cmocka_unit_test(what_is_not_supported_says_so),
      cmocka_unit_test(allocation_failures_are_reported),
      cmocka_unit_test(several_threads_share_a_template),
      cmocka_unit_test(the_clock),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
