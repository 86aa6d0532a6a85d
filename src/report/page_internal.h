/* What the page's files share. */
#ifndef GENAI_REPORT_PAGE_INTERNAL_H
#define GENAI_REPORT_PAGE_INTERNAL_H

#include "report/html.h"
#include "report/report.h"

void page_json_text(
    html* page,
    json_value value); /* strings, numbers and booleans as they are; lists and objects in one line, long lists of lists as their count */
void page_two_columns(html* page, const char* caption, const char* first, const char* second);
void page_row_json(html* page, const char* name, json_value value); /* nothing when it is absent or null */
void page_row_text(html* page, const char* name, const char* value);

void page_graphs(html* page, const report_input* input);
void page_quality(html* page, const report_input* input);
void page_artifact(html* page, const report_input* input);
void page_options(html* page, const report_input* input);

#endif
