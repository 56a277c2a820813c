/* A document of sections, paragraphs, lists, tables and plots, which is printed on a terminal or as
 * the body of a page. Its texts may come from files: both printers escape them. */
#ifndef KS_AUDIT_DOCUMENT_H
#define KS_AUDIT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"

enum ks_block_kind {
    KS_BLOCK_SECTION, /* a title                                                  */
    KS_BLOCK_TEXT,    /* a paragraph                                              */
    KS_BLOCK_NOTE,    /* a paragraph in small print                               */
    KS_BLOCK_ITEM,    /* an entry of a list                                       */
    KS_BLOCK_TABLE,   /* starts a table; its text has the names of the columns    */
    KS_BLOCK_ROW,     /* a row of the table                                       */
    KS_BLOCK_SHADED,  /* a row that must not be compared with the others          */
    KS_BLOCK_PLOT     /* the path of an SVG file: on a page it is drawn           */
};

struct ks_block {
    enum ks_block_kind kind;
    char *text; /* cells of a table are separated by KS_CELL; owned */
};
#define KS_CELL "\x1f"

struct ks_document {
    size_t n, room;
    struct ks_block *block; /* [n]; owned                                            */
    ks_status status;       /* KS_MEMORY once adding has failed; nothing is added then */
};

/* Adds a block with this text, printed like printf. A text of more than 8 KiB is cut. */
void ks_document_add(struct ks_document *document, enum ks_block_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ks_document_clear(struct ks_document *document);

/* Prints it for a terminal, in lines of at most `width` bytes; rows of tables may be longer. */
void ks_document_print(const struct ks_document *document, size_t width, FILE *out);
/* Writes one self-contained HTML page with n documents, each section as a <section>. KS_MISSING
 * without the template; KS_IO or KS_FORMAT if a plot's file cannot be read or is not SVG; KS_IO,
 * KS_FULL if the page cannot be written. */
ks_status ks_document_page(const char *path, size_t n, const struct ks_document *documents);

#endif
