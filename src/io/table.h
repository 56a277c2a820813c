/* Tables for other programs: filled cell by cell, then written as comma-separated values. */
#ifndef KS_IO_TABLE_H
#define KS_IO_TABLE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "core/memory.h"

/* A text; or, if that is NULL, a number, printed with ten digits, and "-" if it is NaN. */
struct ks_table_cell {
    const char *text;
    double number;
    bool whole; /* a whole number, printed in full */
};
#define KS_TEXT(string)       ((struct ks_table_cell){(string), NAN, false})
#define KS_NUMBER(value)      ((struct ks_table_cell){NULL, (value), false})
#define KS_COUNT(value)       ((struct ks_table_cell){NULL, (double)(value), true})
#define KS_INTERVAL(interval) KS_NUMBER((interval).lower), KS_NUMBER((interval).upper)
#define KS_ESTIMATE(estimate) KS_NUMBER((estimate).value), KS_INTERVAL((estimate).in)

/* Starts as {0}. */
struct ks_table {
    struct ks_list columns;
    size_t n, room;
    struct ks_table_cell *cell; /* [n] row by row; owned, with their texts                   */
    ks_status status;           /* KS_MEMORY once adding has failed; nothing is added then   */
};

/* Add a column, or several, before there are cells. `names` stand between commas. NAME~ stands for
 * NAME, NAME_low and NAME_high; NAME| for NAME, NAME_lower and NAME_upper; NAME% for NAME_lower,
 * NAME_upper, NAME_least and NAME_most; architecture* also for normalization, weight_normalization
 * and loss. "..." ends them: the caller adds further columns. */
void ks_table_column(struct ks_table *table, const char *name);
void ks_table_columns(struct ks_table *table, const char *names);
/* Adds cells: a row ends after as many as there are columns. Copies texts. */
void ks_table_add(struct ks_table *table, size_t n, const struct ks_table_cell *cells);
#define ks_table_cells(table, ...)                                                                 \
    ks_table_add(table,                                                                            \
                 sizeof((struct ks_table_cell[]){__VA_ARGS__}) / sizeof(struct ks_table_cell),     \
                 (struct ks_table_cell[]){__VA_ARGS__})
void ks_table_free(struct ks_table *table);

/* Whether any row has a finite number in a column, which exists. */
bool ks_table_has_number(const struct ks_table *table, const char *column);

void ks_table_print(const struct ks_table *table, FILE *out);
/* Writes dir/tables/NAME.csv. Fails with the table's status, and as ks_text_close does. */
ks_status ks_table_write(const struct ks_table *table, const char *dir, const char *name);

#endif
