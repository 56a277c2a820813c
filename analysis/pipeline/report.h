/* The statistics of spectra as a table, as JSON lines or as CSV. */
#ifndef KS_PIPELINE_REPORT_H
#define KS_PIPELINE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <jansson.h>

#include "core/error.h"
#include "io/attribute.h"
#include "io/spectrum.h"

struct ks_report {
    enum { KS_REPORT_TABLE, KS_REPORT_JSON, KS_REPORT_CSV } form;
    FILE *out;
    int width;    /* characters in the table's first column: the length of the longest path */
    size_t rows;  /* the number of rows printed so far; 0 at first                      */
    char *claims; /* one line each, printed below the table; NULL at first; owned until the end */
    struct ks_attributes
        columns; /* their names in CSV, from the first spectrum; owned until the end */
    bool failed; /* writing to `out` has failed, and that was reported                 */
};

/* Prints a row, or in JSON an object on one line: the checkpoint, the settings, the statistics, and
 * in JSON the statement ("claim"). A number that is not finite is an empty cell in CSV. In JSON it
 * is null, with NAME_state "infinite" or "unresolved" beside it; a finite ratio has NAME_state
 * "finite". CSV has the columns of the first checkpoint; a statistic that only a later one has is
 * named on standard error. KS_FULL when writing fails for the first time, KS_MEMORY. */
ks_status ks_report_add(struct ks_report *report, const char *checkpoint,
                        const struct ks_spectrum *spectrum);
/* Prints the statements below a table and frees what the report owns. KS_FULL. */
ks_status ks_report_end(struct ks_report *report);

/* For other reports of this form (layers.c, eigenvectors.c). Flushes `out`; KS_FULL when that fails
 * for the first time. */
ks_status ks_report_flush(struct ks_report *report);
/* A CSV cell by RFC 4180: quoted where needed, quotes doubled. */
void ks_report_csv_text(FILE *out, const char *text);
/* JSON strings are UTF-8: in a text that is not, every byte beyond ASCII becomes '?'. NULL if there
 * is no memory. */
json_t *ks_report_json_text(const char *text);

#endif
