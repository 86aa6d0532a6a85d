/* Elements of the page. Every string goes through html_text: no text of a file or a user can become markup. The first failure is kept, and
 * later calls do nothing; html_finish gives it. */
#ifndef GENAI_REPORT_HTML_H
#define GENAI_REPORT_HTML_H

#include "base/text.h"
#include "genai/status.h"

typedef struct html {
  text* out;
  genai_status* status;
} html;

void html_raw(html* page, const char* markup); /* markup of our own only: literals */
void html_text(html* page, const char* string);
void html_bytes(html* page, const char* data, size_t length);             /* invalid UTF-8 and control characters become U+FFFD */
void html_printf(html* page, const char* format, ...) GENAI_PRINTF(2, 3); /* escaped */
genai_status* html_finish(html* page) GENAI_MUST_USE;

/* A table: caption, then column heads (a leading '>' marks a column of numbers), then rows. */
void html_table_begin(html* page, const char* caption, const char* const* heads, size_t count);
void html_table_end(html* page);
void html_row_begin(html* page);
void html_row_end(html* page);
void html_head_cell(html* page, const char* format, ...) GENAI_PRINTF(2, 3); /* the row's head */
void html_cell(html* page, const char* format, ...) GENAI_PRINTF(2, 3);
void html_number(html* page, const char* format, ...) GENAI_PRINTF(2, 3); /* to the right */
/* A cell with a bar as long as `part` of `whole`; for the eye alone. */
void html_bar(html* page, double part, double whole);

/* "12.3 MB", "1.76 GB"; "83 bytes" below a kilobyte */
void html_size(uint64_t bytes, char buffer[32]);
/* "1,234,567" */
void html_count(uint64_t value, char buffer[32]);

#endif
