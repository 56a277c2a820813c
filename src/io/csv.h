/* Comma-separated values: a header line, then rows. Quotes are not supported; our files have none.
 */
#ifndef KS_IO_CSV_H
#define KS_IO_CSV_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/memory.h"

struct ks_csv {
    char *path, *text;    /* owned; the cells point into text */
    size_t columns, rows; /* without the header               */
    const char **name;    /* [columns]; owned                 */
    const char **cell;    /* [rows, columns]; owned           */
    bool cut;             /* a last line without a newline was ignored */
};

/* Reads a table. Fails with KS_IO, or with KS_FORMAT if a row has more or fewer cells than the
 * header. With `growing`, a last line without a newline is ignored: it is still being written. The
 * caller frees. */
ks_status ks_csv_read(const char *path, bool growing, struct ks_csv **csv);
void ks_csv_free(struct ks_csv *csv); /* NULL is fine */
KS_OWNER(ks_csv_free, struct ks_csv *)

/* The index of the column of that name; fails with KS_FORMAT if there is none, or more than one. */
ks_status ks_csv_column(const struct ks_csv *csv, const char *name, size_t *column);
const char *ks_csv_cell(const struct ks_csv *csv, size_t row, size_t column);
/* The cell as a number, which may be nan or inf; fails with KS_FORMAT and the line's number. */
ks_status ks_csv_number(const struct ks_csv *csv, size_t row, size_t column, double *value);

/* The text in a cell, "-" if there is no such column; and the number in it, NaN if it is none. */
const char *ks_csv_text(const struct ks_csv *csv, size_t row, const char *column);
double ks_csv_value(const struct ks_csv *csv, size_t row, const char *column);

#endif
