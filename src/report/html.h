/* Text in HTML. */
#ifndef KS_REPORT_HTML_H
#define KS_REPORT_HTML_H

#include <stdio.h>

/* Prints text of any origin so that HTML shows it as it is, between tags and in quoted attributes:
 * & < > " ' become character references. Control characters other than tab and newline, which HTML
 * forbids, become U+FFFD. */
void ks_html_text(FILE *out, const char *text);

#endif
