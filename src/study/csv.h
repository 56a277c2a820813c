/* Comma-separated values: a header line, then rows. No quoting: our files need none. */
#ifndef KS_STUDY_CSV_H
#define KS_STUDY_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

struct ks_csv {
    char *path, *text;    /* owned; the cells point into text */
    size_t columns, rows; /* without the header               */
    const char **name;    /* [columns]; owned                 */
    const char **cell;    /* [rows, columns]; owned           */
};

/* Fails with KS_IO, or KS_FORMAT on a row whose number of cells is not the header's. A last line
 * without a newline is left out where `growing`: its writer is not done with it. The caller frees.
 */
ks_status ks_csv_read(const char *path, bool growing, struct ks_csv **csv);
void ks_csv_free(struct ks_csv *csv); /* NULL is fine */

/* The column of that name; fails with KS_FORMAT where there is none. */
ks_status ks_csv_column(const struct ks_csv *csv, const char *name, size_t *column);
const char *ks_csv_cell(const struct ks_csv *csv, size_t row, size_t column);
/* The cell as a number (nan and inf are such); fails with KS_FORMAT and the line's number. */
ks_status ks_csv_number(const struct ks_csv *csv, size_t row, size_t column, double *value);

#endif
