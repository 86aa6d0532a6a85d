/* Elements and escaping. Which elements a page has is page.c. */
#include "report/html.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

static void keep(html* page, genai_status* status) {
  if (!page->status) {
    page->status = status;
  } else {
    genai_status_free(status);
  }
}

void html_raw(html* page, const char* markup) {
  if (!page->status) keep(page, text_append_cstr(page->out, markup));
}

static genai_status* append_escaped(text* out, const char* data, size_t length) {
  for (size_t i = 0; i < length;) {
    uint32_t codepoint;
    size_t bytes = utf8_decode(data + i, length - i, &codepoint);
    bool control = bytes && ((codepoint < 0x20 && codepoint != '\n' && codepoint != '\t') || (codepoint >= 0x7f && codepoint < 0xa0) ||
                             codepoint == 0xfffe || codepoint == 0xffff);
    const char* entity = !bytes || control   ? "\xef\xbf\xbd"
                         : codepoint == '&'  ? "&amp;"
                         : codepoint == '<'  ? "&lt;"
                         : codepoint == '>'  ? "&gt;"
                         : codepoint == '"'  ? "&quot;"
                         : codepoint == '\'' ? "&#39;"
                                             : NULL;
    GENAI_TRY(entity ? text_append_cstr(out, entity) : text_append(out, data + i, bytes));
    i += bytes ? bytes : 1;
  }
  return NULL;
}

void html_bytes(html* page, const char* data, size_t length) {
  if (!page->status) keep(page, append_escaped(page->out, data, length));
}

void html_text(html* page, const char* string) {
  if (string) html_bytes(page, string, strlen(string));
}

static void print(html* page, const char* format, va_list values) {
  char line[1024]; /* what is longer goes through html_text */
  int length = vsnprintf(line, sizeof line, format, values);
  if (length > 0) html_bytes(page, line, (size_t)length < sizeof line ? (size_t)length : utf8_complete_prefix(line, sizeof line - 1));
}

#define PRINT(page, format)      \
  do {                           \
    va_list values;              \
    va_start(values, format);    \
    print(page, format, values); \
    va_end(values);              \
  } while (0)

void html_printf(html* page, const char* format, ...) {
  PRINT(page, format);
}

genai_status* html_finish(html* page) {
  genai_status* status = page->status;
  page->status = NULL;
  return status;
}

void html_table_begin(html* page, const char* caption, const char* const* heads, size_t count) {
  html_raw(page, "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"");
  html_text(page, caption);
  html_raw(page, "\"><table>\n<caption>");
  html_text(page, caption);
  html_raw(page, "</caption>\n<thead><tr>");
  for (size_t i = 0; i < count; i++) {
    bool number = *heads[i] == '>';
    html_raw(page, number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
    html_text(page, heads[i] + number);
    html_raw(page, "</th>");
  }
  html_raw(page, "</tr></thead>\n<tbody>\n");
}

void html_table_end(html* page) {
  html_raw(page, "</tbody></table></div>\n");
}

void html_row_begin(html* page) {
  html_raw(page, "<tr>");
}

void html_row_end(html* page) {
  html_raw(page, "</tr>\n");
}

void html_head_cell(html* page, const char* format, ...) {
  html_raw(page, "<th scope=\"row\">");
  PRINT(page, format);
  html_raw(page, "</th>");
}

void html_cell(html* page, const char* format, ...) {
  html_raw(page, "<td>");
  PRINT(page, format);
  html_raw(page, "</td>");
}

void html_number(html* page, const char* format, ...) {
  html_raw(page, "<td class=\"n\">");
  PRINT(page, format);
  html_raw(page, "</td>");
}

void html_bar(html* page, double part, double whole) {
  double percent = whole > 0 && isfinite(part) && part > 0 ? 100 * part / whole : 0;
  if (percent > 100) percent = 100;
  html_raw(page, "<td class=\"b\" aria-hidden=\"true\"><span style=\"width:");
  html_printf(page, "%.1f", percent);
  html_raw(page, "%\"></span></td>");
}

void html_size(uint64_t bytes, char buffer[32]) {
  static const char* const units[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) {
    snprintf(buffer, 32, "%u bytes", (unsigned)bytes);
    return;
  }
  double value = (double)bytes / 1e3;
  size_t unit = 0;
  for (; value >= 999.95 && unit < 3; unit++) value /= 1e3;
  snprintf(buffer, 32, value < 9.995 ? "%.2f %s" : "%.1f %s", value, units[unit]);
}

void html_count(uint64_t value, char buffer[32]) {
  char digits[24];
  int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value), at = 0;
  for (int i = 0; i < length; i++) {
    if (i && (length - i) % 3 == 0) buffer[at++] = ',';
    buffer[at++] = digits[i];
  }
  buffer[at] = 0;
}
