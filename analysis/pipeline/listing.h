/* What `analyze` prints: the statistics of spectra as a table, as JSON lines or as CSV. */
#ifndef KS_PIPELINE_LISTING_H
#define KS_PIPELINE_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "document/document.h"
#include "io/attribute.h"
#include "io/spectrum.h"

struct ks_listing {
    enum { KS_LISTING_TABLE, KS_LISTING_JSON, KS_LISTING_CSV } form;
    FILE *out;
    size_t width; /* characters in the table's first column: the length of the longest path */
    size_t rows;  /* the number of rows printed so far; 0 at first                      */
    struct ks_document table, statements; /* the latter stand below the table; owned     */
    struct ks_attributes
        columns; /* their names in CSV, from the first spectrum; owned until the end */
    bool failed; /* writing to `out` has failed, and that was reported                 */
};

/* Prints a row, or in JSON an object on one line: the checkpoint, the settings, the statistics, and
 * in JSON the statement ("claim"). A number that is not finite is an empty cell in CSV. In JSON it
 * is null, with NAME_state "infinite" or "unresolved" beside it; a finite ratio has NAME_state
 * "finite". CSV has the columns of the first checkpoint; a statistic that only a later one has is
 * named on standard error. KS_FULL when writing fails for the first time, KS_MEMORY. */
ks_status ks_listing_add(struct ks_listing *listing, const char *checkpoint,
                         const struct ks_spectrum *spectrum);
/* Prints the statements below a table and frees what the report owns. KS_FULL. */
ks_status ks_listing_end(struct ks_listing *listing);

/* The fewest Lanczos steps of a probe. */
size_t ks_listing_steps(const struct ks_spectrum *spectrum);
/* Adds the headings of a table, of which the first is "checkpoint", unless it has rows. */
void ks_listing_headings(struct ks_listing *listing, size_t n, const struct ks_cell *headings);
/* Prints what was added to the table, and flushes `out`. KS_FULL when that fails for the first
 * time, KS_MEMORY. */
ks_status ks_listing_flush(struct ks_listing *listing);

/* Rows of cells, which all belong to one checkpoint and its settings. In JSON they are one object,
 * with a list of the name `list`, "layers", of an object for each row. */
struct ks_listing_rows {
    const char *path, *list;
    struct ks_attributes settings, cells; /* cells [n, columns] */
    size_t n;
    const char
        *group; /* in JSON, a row's cells from number `ungrouped` on are members of an object */
    size_t ungrouped; /* of this name; NULL: none are */
};
/* Prints the rows as CSV or JSON, unless filling them has failed, and frees their attributes.
 * Numbers that are not finite are printed as by ks_listing_add. KS_FULL, KS_MEMORY. */
ks_status ks_listing_print_rows(struct ks_listing *listing, struct ks_listing_rows *rows);
/* "infinite", "unresolved" or "finite": NAME_state in JSON. */
const char *ks_listing_state(double value);

#endif
