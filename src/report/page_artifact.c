/* The page's sections about the artifact: what inspecting it told, its provenance, and the options of the run. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "report/page_internal.h"

#define PROVENANCE "get_genai_provenance"

static void methods(html* page, json_value artifact) {
  static const char* const heads[] = {"method", "delegate", ">inputs", ">outputs", ">spill-fill bytes"};
  json_value method;
  html_table_begin(page, "Methods of the program that run on the HTP", heads, 5);
  for (json_iterator it = json_iterate(json_get(artifact, "methods")); json_next(&it, NULL, &method);) {
    if (json_type_of(json_get(method, "delegate")) != JSON_STRING) continue;
    html_row_begin(page);
    html_raw(page, "<th scope=\"row\">");
    page_json_text(page, json_get(method, "name"));
    html_raw(page, "</th><td>");
    page_json_text(page, json_get(method, "delegate"));
    html_raw(page, "</td>");
    html_number(page, "%zu", json_count(json_get(method, "inputs")));
    html_number(page, "%zu", json_count(json_get(method, "outputs")));
    html_raw(page, "<td class=\"n\">");
    page_json_text(page, json_get(json_get(method, "graph"), "spill_fill_bytes"));
    html_raw(page, "</td>");
    html_row_end(page);
  }
  html_table_end(page);
}

static void delegate(html* page, json_value artifact) {
  json_value method, binary = json_get(artifact, "binary"), options = json_get(artifact, "no such member");
  text_view key;
  json_value value;
  for (json_iterator it = json_iterate(json_get(artifact, "methods")); json_next(&it, NULL, &method);) {
    if (json_type_of(json_get(method, "options")) == JSON_OBJECT) options = json_get(method, "options");
  }
  page_two_columns(page, "Context binary and delegate", "fact", "value");
  page_row_json(page, "binary, bytes", json_get(artifact, "context_binary_bytes"));
  page_row_json(page, "written by", json_get(binary, "build_id"));
  page_row_json(page, "SoC it records", json_get(binary, "soc_id"));
  page_row_json(page, "HTP architecture it records", json_get(binary, "htp_arch"));
  page_row_json(page, "could not be read because", json_get(artifact, "binary_problem"));
  for (json_iterator it = json_iterate(options); json_next(&it, &key, &value);) {
    char name[96];
    snprintf(name, sizeof name, "option %.*s", (int)key.length, key.data);
    page_row_json(page, name, value);
  }
  html_table_end(page);
}

static void record(html* page, json_value artifact) {
  json_value method, value = json_get(artifact, "no such member");
  for (json_iterator it = json_iterate(json_get(artifact, "methods")); json_next(&it, NULL, &method);) {
    if (text_view_equal_cstr(json_string(json_get(method, "name")), PROVENANCE)) {
      json_iterator values = json_iterate(json_get(method, "values"));
      if (!json_next(&values, NULL, &value)) return;
    }
  }
  text_view source = json_string(value), key;
  json_document* document;
  if (!source.data) return;
  genai_status* status = json_parse(source.data, source.length, PROVENANCE, &document);
  if (status) { /* of a file from elsewhere: what it says is shown as it is */
    genai_status_free(status);
    page_two_columns(page, "Provenance", "member", "value");
    page_row_json(page, "text", value);
    html_table_end(page);
    return;
  }
  page_two_columns(page, "Provenance: what the artifact says it was made from and for", "member", "value");
  for (json_iterator it = json_iterate(json_root(document)); json_next(&it, &key, &value);) {
    char name[96];
    snprintf(name, sizeof name, "%.*s", (int)key.length, key.data);
    page_row_json(page, name, value);
  }
  html_table_end(page);
  json_free(document);
}

void page_artifact(html* page, const report_input* input) {
  html_raw(page, "<section id=\"artifact\" aria-labelledby=\"h-artifact\">\n<h2 id=\"h-artifact\">Artifact</h2>\n");
  if (input->no_artifact) {
    html_raw(page, "<p class=\"note\">");
    html_text(page, input->no_artifact);
    html_raw(page, "</p>\n");
  } else {
    methods(page, input->artifact);
    delegate(page, input->artifact);
    record(page, input->artifact);
  }
  html_raw(page, "</section>\n");
}

void page_options(html* page, const report_input* input) {
  text_view key;
  json_value value;
  html_raw(page, "<section id=\"options\" aria-labelledby=\"h-options\">\n<h2 id=\"h-options\">Options</h2>\n");
  page_two_columns(page, "Options that were given; others had their defaults", "option", "value");
  for (json_iterator it = json_iterate(json_get(input->run, "options")); json_next(&it, &key, &value);) {
    char name[96];
    snprintf(name, sizeof name, "%.*s", (int)key.length, key.data);
    page_row_json(page, name, value);
  }
  html_table_end(page);
  html_raw(page, "</section>\n");
}
