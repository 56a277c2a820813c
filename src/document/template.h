/* Templates: text with marks that a program replaces.
 *
 *   {{NAME}} or {{NAME ARGUMENT}}   is replaced by what the section of that name prints
 *   {{include FILE}}                is replaced by the text of that file, as it is; the file is in
 *                                   the folder of the template
 *   {{if NAME}} ... {{end}}         is kept if the section NAME is present; cannot be nested */
#ifndef KS_DOCUMENT_TEMPLATE_H
#define KS_DOCUMENT_TEMPLATE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/error.h"
#include "document/document.h"

struct ks_template_section {
    const char *name;
    ks_status (*print)(void *data, FILE *out);
    bool (*present)(const void *data); /* NULL: always */
    /* In place of `print`. `argument`: the text after the name, "" if there is none. */
    ks_status (*print_named)(void *data, const char *argument, FILE *out);
    /* In place of `print`: adds blocks to a document, which is printed with the section's name. */
    void (*add)(void *data, struct ks_document *document);
};

/* Prints the template in the file `path` with these sections, of which the last has a NULL name.
 * `data` is passed to their functions. Fails with KS_FORMAT and the line on an unknown section, an
 * unclosed mark, and an `if` without its `end`; with KS_IO; and as the sections do. */
ks_status ks_template_print(const char *path, const struct ks_template_section *sections,
                            void *data, FILE *out);
/* Prints the template into the file `to`, which appears complete or not at all. */
ks_status ks_template_write(const char *path, const struct ks_template_section *sections,
                            void *data, const char *to);

#endif
