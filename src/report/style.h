/* The page's only style sheet: the reader's own fonts, light and dark as the reader has it, and paper. Contrast is 4.5:1 or more in both. */
#ifndef GENAI_REPORT_STYLE_H
#define GENAI_REPORT_STYLE_H

/* A rule a line. */
/* clang-format off */
#define REPORT_STYLE "\n" \
  ":root{color-scheme:light dark;--ink:#1b1b1f;--soft:#55555f;--page:#fff;--line:#d5d5dd;--band:#f4f4f8;--bar:#3b6fb5}\n" \
  "@media(prefers-color-scheme:dark){:root{--ink:#ececf1;--soft:#b3b3bf;--page:#17171b;--line:#3c3c46;--band:#212128;--bar:#7aa7e0}}\n" \
  "body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:62rem;margin:0 auto;padding:1rem}\n" \
  "h1{font-size:1.6rem;line-height:1.25;overflow-wrap:anywhere}\n" \
  "h2{font-size:1.25rem;margin-top:2.2rem;border-bottom:1px solid var(--line)}\n" \
  "h3{font-size:1.05rem}\n" \
  "a{color:inherit}\n" \
  "nav ul{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1rem}\n" \
  "p.note,footer{color:var(--soft)}\n" \
  ".scroll{overflow-x:auto;margin:1rem 0}\n" \
  "table{border-collapse:collapse;min-width:40%}\n" \
  "caption{text-align:left;font-weight:600;padding:.3rem 0}\n" \
  "th,td{text-align:left;vertical-align:top;padding:.25rem .7rem;border-bottom:1px solid var(--line);overflow-wrap:break-word}\n" \
  "td:nth-child(2):last-child{overflow-wrap:anywhere}\n" /* values of tables with two columns, such as hashes */ \
  "thead th{background:var(--band)}\n" \
  "tbody th{font-weight:500}\n" \
  "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\n" \
  "td.b{min-width:10rem}\n" \
  "td.b span{display:block;height:.8rem;margin-top:.35rem;background:var(--bar)}\n" \
  "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--band);padding:.7rem;border-left:3px solid var(--line)}\n" \
  "@media print{body{max-width:none}nav{display:none}h2{break-after:avoid}tr{break-inside:avoid}td.b span{print-color-adjust:exact}}\n"
/* clang-format on */

#endif
