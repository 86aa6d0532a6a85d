/* The page: head, summary, stages, files, generations. Graphs and quality are page_model.c, the artifact and the options page_artifact.c. */
#include <stdio.h>
#include <string.h>

#include "report/page_internal.h"
#include "report/style.h"

enum { MAX_NESTED = 8 };

/* ---- Helpers of all sections ---- */
void page_json_text(html* page, json_value value) {
  json_value item;
  text_view key;
  json_type type = json_type_of(value);
  text_view string = json_string(value);
  if (type == JSON_STRING) {
    html_bytes(page, string.data, string.length);
  } else if (type == JSON_BOOL) {
    html_raw(page, json_bool(value, false) ? "yes" : "no");
  } else if (type == JSON_INTEGER) {
    html_printf(page, "%lld", (long long)json_integer(value, 0));
  } else if (type == JSON_NUMBER) {
    html_printf(page, "%.9g", json_number(value, 0));
  } else if (type == JSON_ARRAY || type == JSON_OBJECT) {
    bool first = true;
    json_iterator look = json_iterate(value);
    if (type == JSON_ARRAY && json_count(value) > MAX_NESTED && json_next(&look, NULL, &item) && json_type_of(item) == JSON_ARRAY) {
      html_printf(page, "%zu entries", json_count(value)); /* such as the encodings of each layer's cache */
      return;
    }
    for (json_iterator it = json_iterate(value); json_next(&it, &key, &item); first = false) {
      if (!first) html_raw(page, ", ");
      if (type == JSON_OBJECT) {
        html_bytes(page, key.data, key.length);
        html_raw(page, " ");
      }
      bool nested = json_type_of(item) == JSON_ARRAY || json_type_of(item) == JSON_OBJECT;
      if (nested) html_raw(page, "(");
      page_json_text(page, item);
      if (nested) html_raw(page, ")");
    }
  }
}

void page_two_columns(html* page, const char* caption, const char* first, const char* second) {
  const char* heads[] = {first, second};
  html_table_begin(page, caption, heads, 2);
}

void page_row_json(html* page, const char* name, json_value value) {
  if (json_type_of(value) == JSON_ABSENT || json_type_of(value) == JSON_NULL) return;
  html_row_begin(page);
  html_head_cell(page, "%s", name);
  html_raw(page, "<td>");
  page_json_text(page, value);
  html_raw(page, "</td>");
  html_row_end(page);
}

void page_row_text(html* page, const char* name, const char* value) {
  html_row_begin(page);
  html_head_cell(page, "%s", name);
  html_raw(page, "<td>");
  html_text(page, value);
  html_raw(page, "</td>");
  html_row_end(page);
}

/* ---- Sections ---- */
/* The last part of the model's path. */
static text_view model_name(json_value run) {
  text_view path = json_string(json_get(run, "model"));
  size_t end = path.length;
  while (end > 1 && path.data[end - 1] == '/') end--;
  size_t begin = end;
  while (begin && path.data[begin - 1] != '/') begin--;
  return (text_view){path.data ? path.data + begin : "", end - begin};
}

static void head(html* page, json_value run) {
  text_view model = model_name(run);
  html_raw(page,
           "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n"
           "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
           "<link rel=\"icon\" href=\"data:,\">\n<title>");
  html_bytes(page, model.data, model.length);
  html_raw(page, " on ");
  page_json_text(page, json_get(run, "soc"));
  html_raw(page, ": genai report</title>\n<style>" REPORT_STYLE "</style>\n</head>\n<body>\n<header>\n<h1>");
  html_bytes(page, model.data, model.length);
  html_raw(page, " on ");
  page_json_text(page, json_get(run, "soc"));
  html_raw(page,
           "</h1>\n<nav aria-label=\"Sections\"><ul><li><a href=\"#summary\">Summary</a></li><li><a href=\"#stages\">Stages</a></li><li>"
           "<a href=\"#files\">Files</a></li><li><a href=\"#graphs\">Graphs</a></li><li><a href=\"#quality\">Quality</a></li><li>"
           "<a href=\"#text\">Generated text</a></li><li><a href=\"#artifact\">Artifact</a></li><li><a href=\"#options\">Options</a></li>"
           "</ul></nav>\n</header>\n<main>\n");
}

static void row_seconds(html* page, const char* name, json_value value) {
  char seconds[48];
  if (json_type_of(value) != JSON_NUMBER && json_type_of(value) != JSON_INTEGER) return;
  snprintf(seconds, sizeof seconds, "%.3f s", json_number(value, 0));
  page_row_text(page, name, seconds);
}

static void row_bytes(html* page, const char* name, json_value value) {
  char size[32], exact[32], line[80];
  if (json_type_of(value) != JSON_INTEGER) return;
  html_size((uint64_t)json_integer(value, 0), size);
  html_count((uint64_t)json_integer(value, 0), exact);
  snprintf(line, sizeof line, "%s (%s bytes)", size, exact);
  page_row_text(page, name, line);
}

static void summary(html* page, const report_input* input) {
  json_value run = input->run, chip = json_get(run, "chipset");
  html_raw(page, "<section id=\"summary\" aria-labelledby=\"h-summary\">\n<h2 id=\"h-summary\">Summary</h2>\n");
  page_two_columns(page, "What was run", "fact", "value");
  page_row_json(page, "model", json_get(run, "model"));
  page_row_json(page, "SoC", json_get(run, "soc"));
  page_row_json(page, "SoC's marketing name", json_get(chip, "marketing"));
  page_row_json(page, "QNN's SoC id", json_get(chip, "soc_id"));
  page_row_json(page, "HTP architecture", json_get(chip, "htp_arch"));
  page_row_json(page, "VTCM, MB", json_get(chip, "vtcm_mb"));
  page_row_json(page, "backend", json_get(run, "backend"));
  row_seconds(page, "total time", json_get(run, "seconds"));
  row_bytes(page, "peak memory", json_get(run, "peak_memory_bytes"));
  page_row_json(page, "genai", json_get(run, "genai"));
  page_row_json(page, "QNN libraries", json_get(json_get(input->artifact, "binary"), "build_id"));
  page_row_json(page, "finished", json_get(run, "finished"));
  html_table_end(page);
  html_raw(page, "</section>\n");
}

static void stages(html* page, json_value run) {
  static const char* const heads[] = {"stage", "state", ">seconds", "share of the time", ">peak memory of the process"};
  json_value stage, reused;
  double total = json_number(json_get(run, "seconds"), 0);
  html_raw(page, "<section id=\"stages\" aria-labelledby=\"h-stages\">\n<h2 id=\"h-stages\">Stages</h2>\n");
  html_table_begin(page, "Stages in the order they ran", heads, 5);
  for (json_iterator it = json_iterate(json_get(run, "stages")); json_next(&it, NULL, &stage);) {
    char size[32];
    text_view name = json_string(json_get(stage, "stage"));
    html_size((uint64_t)json_integer(json_get(stage, "peak_memory_bytes"), 0), size);
    html_row_begin(page);
    html_head_cell(page, "%.*s", (int)name.length, name.data ? name.data : "");
    html_raw(page, "<td>");
    page_json_text(page, json_get(stage, "state"));
    reused = json_get(stage, "reused_from");
    if (json_type_of(reused) == JSON_STRING) {
      html_raw(page, " from ");
      page_json_text(page, reused);
    }
    html_raw(page, "</td>");
    html_number(page, "%.3f", json_number(json_get(stage, "seconds"), 0));
    html_bar(page, json_number(json_get(stage, "seconds"), 0), total);
    html_number(page, "%s", json_integer(json_get(stage, "peak_memory_bytes"), 0) ? size : "-");
    html_row_end(page);
  }
  html_table_end(page);
  if (json_count(json_get(run, "statistics"))) {
    text_view key;
    json_value value;
    page_two_columns(page, "What compilation took", "measure", "value");
    for (json_iterator it = json_iterate(json_get(run, "statistics")); json_next(&it, &key, &value);) {
      char name[96];
      snprintf(name, sizeof name, "%.*s", (int)key.length, key.data);
      page_row_json(page, name, value);
    }
    html_table_end(page);
  }
  html_raw(page, "</section>\n");
}

static void file_row(html* page, json_value path, json_value bytes) {
  char size[32], exact[32];
  html_row_begin(page);
  html_raw(page, "<th scope=\"row\">");
  page_json_text(page, path);
  html_raw(page, "</th>");
  if (json_type_of(bytes) == JSON_INTEGER) {
    html_size((uint64_t)json_integer(bytes, 0), size);
    html_count((uint64_t)json_integer(bytes, 0), exact);
    html_number(page, "%s", size);
    html_number(page, "%s", exact);
  } else {
    html_number(page, "-");
    html_number(page, "-");
  }
  html_row_end(page);
}

static void files(html* page, json_value run) {
  static const char* const heads[] = {"file", ">size", ">bytes"};
  json_value item, none = json_get(run, "no such member");
  html_raw(page, "<section id=\"files\" aria-labelledby=\"h-files\">\n<h2 id=\"h-files\">Files</h2>\n");
  html_table_begin(page, "What the run wrote", heads, 3);
  for (json_iterator it = json_iterate(json_get(run, "artifacts")); json_next(&it, NULL, &item);)
    file_row(page, json_get(item, "path"), json_get(item, "bytes"));
  if (json_type_of(json_get(run, "etrecord")) == JSON_STRING) file_row(page, json_get(run, "etrecord"), none);
  if (json_type_of(json_get(run, "tokenizer")) == JSON_STRING) file_row(page, json_get(run, "tokenizer"), none);
  for (json_iterator it = json_iterate(json_get(run, "files")); json_next(&it, NULL, &item);) file_row(page, item, none);
  html_table_end(page);
  html_raw(page, "</section>\n");
}

static void metrics(html* page, json_value measured, const char* caption) {
  static const char* const seconds[][2] = {{"loading", "load_seconds"},
                                           {"to the first token", "ttft_seconds"},
                                           {"prefill", "prefill_seconds"},
                                           {"decode", "decode_seconds"},
                                           {"inside the graphs", "execute_seconds"}};
  page_two_columns(page, caption, "measure", "value");
  for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) row_seconds(page, seconds[i][0], json_get(measured, seconds[i][1]));
  page_row_json(page, "prompt tokens", json_get(measured, "prompt_tokens"));
  page_row_json(page, "new tokens", json_get(measured, "new_tokens"));
  html_table_end(page);
  if (json_bool(json_get(measured, "simulated"), false))
    html_raw(page, "<p class=\"note\">This ran on the x86-64 simulator: its speed says nothing about the speed of a device.</p>\n");
}

static void generation(html* page, json_value result, size_t number) {
  json_value words = json_get(result, "text");
  html_raw(page, "<h3>");
  html_printf(page, "Prompt %zu", number);
  html_raw(page, "</h3>\n");
  if (json_type_of(json_get(result, "prompt")) == JSON_STRING) {
    html_raw(page, "<pre>");
    page_json_text(page, json_get(result, "prompt"));
    html_raw(page, "</pre>\n");
  }
  html_raw(page, "<p>Answer (");
  page_json_text(page, json_get(result, "end"));
  html_raw(page, "):</p>\n<pre>");
  page_json_text(page, json_type_of(words) == JSON_STRING ? words : json_get(result, "ids"));
  html_raw(page, "</pre>\n");
  metrics(page, json_get(result, "metrics"), "What this answer took");
}

static void generations(html* page, json_value run) {
  json_value result;
  size_t number = 0;
  html_raw(page, "<section id=\"text\" aria-labelledby=\"h-text\">\n<h2 id=\"h-text\">Generated text</h2>\n");
  for (json_iterator it = json_iterate(json_get(run, "results")); json_next(&it, NULL, &result);) generation(page, result, ++number);
  if (!number) html_raw(page, "<p>The run ended before inference.</p>\n");
  html_raw(page, "</section>\n");
}

genai_status* report_write_page(const report_input* input, text* out) {
  html page = {.out = out};
  head(&page, input->run);
  summary(&page, input);
  stages(&page, input->run);
  files(&page, input->run);
  page_graphs(&page, input);
  page_quality(&page, input);
  generations(&page, input->run);
  page_artifact(&page, input);
  page_options(&page, input);
  html_raw(&page,
           "</main>\n<footer><p>Written by genai report. The page is one file and fetches nothing.</p></footer>\n</body>\n</html>\n");
  return html_finish(&page);
}
