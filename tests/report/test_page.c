/* The page: what it says of given facts, and that no text becomes markup. Expected lines are written by hand. How browsers see it is
 * tests/interop/test_report.py. */
#include <math.h>

#include "base/memory.h"
#include "report/html.h"
#include "report/report.h"
#include "support.h"

static const char record[] =
    "{\"model\": \"/models/<script>alert(1)</script>\", \"soc\": \"SM8650\", \"genai\": \"9.9\", \"seconds\": 10.5, \"peak_memory_bytes\": "
    "1760000000,"
    "\"chipset\": {\"marketing\": \"Snapdragon 8 Gen 3\", \"soc_id\": 57, \"htp_arch\": 75, \"vtcm_mb\": 8},"
    "\"stages\": [{\"stage\": \"compilation\", \"state\": \"completed\", \"seconds\": 2.625, \"peak_memory_bytes\": 5000},"
    "{\"stage\": \"inference\", \"state\": \"skipped\", \"seconds\": 0, \"peak_memory_bytes\": 0}],"
    "\"statistics\": {\"device.binary_bytes\": 123456}, \"artifacts\": [{\"path\": \"a\\\"><img src=x>.pte\", \"bytes\": 1234567}],"
    "\"options\": {\"recipe\": \"16a8w & more\"}, \"results\": [{\"prompt\": \"1 < 2 & 3\", \"text\": \"it's </pre> \\u0007\", \"end\": "
    "\"stop token\", "
    "\"metrics\": {\"ttft_seconds\": 0.25, \"new_tokens\": 7, \"simulated\": true}}]}";

static char* write_page(report_input* input, const char* json) {
  json_document* document;
  text out = {0};
  assert_ok(json_parse(json, strlen(json), "record", &document));
  input->run = json_root(document);
  input->artifact = json_get(json_root(document), "none");
  assert_ok(report_write_page(input, &out));
  json_free(document);
  char* page = text_detach(&out);
  assert_non_null(page);
  return page;
}

#define assert_has(page, needle)                                                  \
  do {                                                                            \
    if (!strstr((page), (needle))) fail_msg("\"%s\" is not on the page", needle); \
  } while (0)

static void numbers_are_on_the_page(void** state) {
  (void)state;
  report_layer layers[2] = {{41.236, NAN, 38.5}, {INFINITY, 20.004, -1.25}};
  report_quality quality = {.n_layers = 2, .layers = layers, .logits = 37.5, .tokens = 8, .same_choice = 6};
  report_graph graph = {.name = "kv_forward", .ar_length = 1, .context_length = 512, .operators = 12345, .n_weights = 1};
  graph.by_kind[IR_CONV2D] = 211;
  graph.tensors[IR_STATIC] = 99;
  graph.weights[0] =
      (report_storage){.encoding = IR_ENCODING_BLOCK_EXPANSION, .bits = 4, .tensors = 30, .elements = 2000000, .bytes = 1000000};
  graph.weight_elements = 2000000;
  graph.weight_bytes = 1000000;
  report_input input = {.no_artifact = "gone", .n_graphs = 1, .graphs = &graph, .quality = &quality, .text = "a < b"};
  char* page = write_page(&input, record);
  assert_has(page, "<html lang=\"en\">");
  assert_has(page, "<th scope=\"row\">compilation</th><td>completed</td><td class=\"n\">2.625</td>");
  assert_has(page, "width:25.0%"); /* 2.625 of 10.5 s */
  assert_has(page, "<th scope=\"row\">total time</th><td>10.500 s</td>");
  assert_has(page, "1.76 GB (1,760,000,000 bytes)");
  assert_has(page, "<td class=\"n\">1.23 MB</td><td class=\"n\">1,234,567</td>");
  assert_has(page, "<th scope=\"row\">device.binary_bytes</th><td>123456</td>");
  assert_has(page, "<th scope=\"row\">Conv2d</th><td class=\"n\">211</td>");
  assert_has(
      page,
      "<th scope=\"row\">4 bits, scales per block</th><td class=\"n\">30</td><td class=\"n\">2,000,000</td><td class=\"n\">1.00 MB</td><td "
      "class=\"n\">4.00</td>");
  assert_has(page, "<th scope=\"row\">0</th><td class=\"n\">41.24</td><td class=\"n\">-</td><td class=\"n\">38.50</td>");
  assert_has(page, "<th scope=\"row\">1</th><td class=\"n\">equal</td><td class=\"n\">20.00</td><td class=\"n\">-1.25</td>");
  assert_has(page, "Of 8 tokens, both put the same next token first after 6 (75.0 %).");
  assert_has(page, "<th scope=\"row\">to the first token</th><td>0.250 s</td>");
  assert_has(page, "its speed says nothing");
  assert_has(page, "gone");
  mem_free(page);
}

static void no_text_becomes_markup(void** state) {
  (void)state;
  report_input input = {.no_artifact = "<b>&", .not_measured = "<i>\"x\"</i>"};
  char* page = write_page(&input, record);
  assert_null(strstr(page, "<script"));
  assert_null(strstr(page, "<img"));
  assert_null(strstr(page, "<b>"));
  assert_null(strstr(page, "<i>"));
  assert_has(page, "/models/&lt;script&gt;alert(1)&lt;/script&gt;");
  assert_has(page, "<title>script&gt; on SM8650"); /* the last part of the path */
  assert_has(page, "a&quot;&gt;&lt;img src=x&gt;.pte");
  assert_has(page, "16a8w &amp; more");
  assert_has(page, "it&#39;s &lt;/pre&gt; \xef\xbf\xbd");
  assert_has(page, "&lt;i&gt;&quot;x&quot;&lt;/i&gt;");
  mem_free(page);
}

static void an_empty_record_gives_a_page(void** state) {
  (void)state;
  report_input input = {.no_artifact = "-", .not_measured = "-"};
  char* page = write_page(&input, "{}");
  assert_has(page, "The run ended before inference.");
  assert_has(page, "</html>");
  mem_free(page);
}

static void invalid_utf8_is_replaced(void** state) {
  (void)state;
  text out = {0};
  html page = {.out = &out};
  html_text(&page, "a\xff\xc3(\xed\xa0\x80z\t\n");
  html_printf(&page, "%s", "<\x01>");
  assert_ok(html_finish(&page));
  assert_string_equal(out.data, "a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\t\n&lt;\xef\xbf\xbd&gt;");
  text_deinit(&out);
}

static void sizes_and_counts(void** state) {
  (void)state;
  static const struct {
    uint64_t bytes;
    const char* size;
    const char* count;
  } cases[] = {{0, "0 bytes", "0"},
               {999, "999 bytes", "999"},
               {1000, "1.00 kB", "1,000"},
               {12345, "12.3 kB", "12,345"},
               {999999, "1.00 MB", "999,999"},
               {170300000, "170.3 MB", "170,300,000"},
               {1760000000, "1.76 GB", "1,760,000,000"}};
  char buffer[32];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    html_size(cases[i].bytes, buffer);
    assert_string_equal(buffer, cases[i].size);
    html_count(cases[i].bytes, buffer);
    assert_string_equal(buffer, cases[i].count);
  }
}

static void every_failed_allocation_is_a_status(void** state) {
  (void)state;
  json_document* document;
  report_input input = {.no_artifact = "-", .not_measured = "-"};
  assert_ok(json_parse(record, strlen(record), "record", &document));
  input.run = json_root(document);
  input.artifact = json_get(input.run, "none");
  uint64_t n = 1;
  for (; n < 1000; n++) {
    text out = {0};
    mem_inject_failure(n);
    genai_status* status = report_write_page(&input, &out);
    mem_inject_failure(0);
    text_deinit(&out);
    if (!status) break;
    genai_status_free(status);
  }
  assert_in_range(n, 3, 999);
  json_free(document);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_are_on_the_page),
      cmocka_unit_test(no_text_becomes_markup),
      cmocka_unit_test(an_empty_record_gives_a_page),
      cmocka_unit_test(invalid_utf8_is_replaced),
      cmocka_unit_test(sizes_and_counts),
      cmocka_unit_test(every_failed_allocation_is_a_status),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
