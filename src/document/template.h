/* Templates: text with marks that a program replaces.
 *
 *   {{NAME}} or {{NAME ARGUMENT}}   is replaced by the document of the section of that name
 *   {{include FILE}}                is replaced by the text of that file, as it is; the file is in
 *                                   the folder of the template
 *   {{if NAME}} ... {{end}}         is kept if the section NAME has blocks; cannot be nested */
#ifndef KS_DOCUMENT_TEMPLATE_H
#define KS_DOCUMENT_TEMPLATE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/error.h"
#include "document/document.h"

/* One of two functions adds blocks to a document, which is printed with the argument or the
 * section's name as id; or there are `n` documents already. */
struct ks_template_section {
    const char *name;
    void (*add)(void *data, struct ks_document *document);
    /* `argument`: the text after the name, "" if there is none. */
    void (*add_named)(void *data, const char *argument, struct ks_document *document);
    size_t n;
    const struct ks_document *documents; /* [n], printed as NAME-1, NAME-2, ... */
};

/* Prints the template in the file `path` with these sections, of which the last has a NULL name.
 * `data` is passed to their functions. Marks are closed, and each `if` has its `end`. Fails with
 * KS_FORMAT on an unknown section, with KS_IO, and as the sections do. */
ks_status ks_template_print(const char *path, const struct ks_template_section *sections,
                            void *data, FILE *out);
/* Prints the template into the file `to`, which appears complete or not at all. */
ks_status ks_template_write(const char *path, const struct ks_template_section *sections,
                            void *data, const char *to);

#endif
