/* Templates: text with marks that a program replaces.
 *
 *   {{NAME}} or {{NAME ARGUMENT}}   is replaced by what the section of that name prints
 *   {{include FILE}}                is replaced by the text of that file, as it is; the file is in
 *                                   the folder of the template
 *   {{if NAME}} ... {{end}}         is kept if the section NAME is present; cannot be nested */
#ifndef KS_REPORT_TEMPLATE_H
#define KS_REPORT_TEMPLATE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/error.h"

struct ks_template_section {
    const char *name;
    ks_status (*print)(void *data, FILE *out);
    bool (*present)(const void *data); /* NULL: always */
    /* In place of `print`. `argument`: the text after the name, "" if there is none. */
    ks_status (*print_named)(void *data, const char *argument, FILE *out);
};

/* Prints the template in the file `path` with these sections, of which the last has a NULL name.
 * `data` is passed to their functions. Fails with KS_FORMAT and the line on an unknown section, an
 * unclosed mark, and an `if` without its `end`; with KS_IO; and as the sections do. */
ks_status ks_template_print(const char *path, const struct ks_template_section *sections,
                            void *data, FILE *out);
/* Prints the template into the file `to`, which appears complete or not at all. */
ks_status ks_template_write(const char *path, const struct ks_template_section *sections,
                            void *data, const char *to);

/* Prints text of any origin so that HTML shows it as it is, between tags and in quoted attributes:
 * & < > " ' become character references. Control characters other than tab and newline, which HTML
 * forbids, become U+FFFD. */
void ks_html_text(FILE *out, const char *text);
/* Prints such a text between two pieces of HTML. */
void ks_html_between(FILE *out, const char *before, const char *text, const char *after);
/* A cell of a table: `shown` in this format, with a key to sort by; "none" if the key is NaN. */
void ks_html_cell(FILE *out, double key, const char *format, double shown, const char *none);

/* Prints an SVG file from its <svg> on, as a page has no XML declaration in its middle. In front of
 * every name of an element, and every reference to one, stands `id`-, unless it is NULL. */
ks_status ks_html_svg(FILE *out, const char *path, const char *id);

#endif
