/* Summaries on standard output or elsewhere: a table, JSON lines or CSV. */
#ifndef KS_PROGRAM_REPORT_H
#define KS_PROGRAM_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "io/spectrum.h"

struct ks_report {
    enum { KS_REPORT_TABLE, KS_REPORT_JSON, KS_REPORT_CSV } form;
    FILE *out;
    int width;    /* of the table's first column: the longest checkpoint's name */
    size_t rows;  /* printed so far; begins with 0 */
    char *claims; /* one line each, below the table; begins with NULL; freed at the end */
    bool failed;  /* it could not be written, which was reported */
};

/* Adds a row, or an object on a line: the checkpoint, what was computed, the figures, in JSON the
 * claim too. A number that is not finite is empty in CSV and null in JSON, where NAME_state beside
 * it says "infinite" or "unresolved" (of a ratio that is finite, "finite"). Fails with KS_FULL the
 * first time that it cannot be written. */
ks_status ks_report_add(struct ks_report *report, const char *checkpoint,
                        const struct ks_spectrum *spectrum);
/* Below a table, what can be claimed of each checkpoint. */
ks_status ks_report_end(struct ks_report *report);

#endif
