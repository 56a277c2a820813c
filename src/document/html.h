/* Text and drawings in HTML. */
#ifndef KS_DOCUMENT_HTML_H
#define KS_DOCUMENT_HTML_H

#include <stdio.h>

#include "core/error.h"

/* Prints text of any origin so that HTML shows it as it is, between tags and in quoted attributes:
 * & < > " ' become character references. Control characters other than tab and newline, which HTML
 * forbids, become U+FFFD. */
void ks_html_text(FILE *out, const char *text);
/* Prints such a text between two pieces of HTML. */
void ks_html_between(FILE *out, const char *before, const char *text, const char *after);

/* Prints an SVG file from its <svg> on, as a page has no XML declaration in its middle. In front of
 * every name of an element, and every reference to one, stands `id`-, so that several drawings can
 * stand in one page. */
ks_status ks_html_svg(FILE *out, const char *path, const char *id);

#endif
