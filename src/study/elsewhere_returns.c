#include "study/elsewhere.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/milestones.h"
#include "core/number.h"
#include "io/csv.h"

static int by_step(const void *a, const void *b)
{
    const struct ks_elsewhere_return *x = a, *y = b;

    return x->step != y->step ? (x->step > y->step) - (x->step < y->step)
                              : (x->line > y->line) - (x->line < y->line);
}

/* A table that is read, its columns env_step and return, and who is told what is wrong (NULL:
 * nobody).
 */
struct table {
    const struct ks_csv *csv;
    size_t step, value;
    struct ks_study *study;
    size_t left_out; /* rows */
};

static ks_status warn_of(struct table *t, const char *message)
{
    return t->study ? ks_warn_few(t->study, &t->left_out, message) : KS_OK;
}

/* Reads a row; *kept is false if its step is none. */
static ks_status read_row(struct table *t, size_t i, struct ks_elsewhere_return *row, bool *kept)
{
    const char *step = ks_csv_cell(t->csv, i, t->step);
    uint64_t number = 0;

    *row = (struct ks_elsewhere_return){0, i + 2, NAN};
    *kept = ks_parse_integer(step, 0, KS_MOST_STEPS, &number);
    if (!*kept) {
        ks_fail(KS_FORMAT,
                "%s:%zu: env_step: expected an environment step, found '%s': the row is left out",
                t->csv->path, row->line, step);
        return warn_of(t, ks_error_text());
    }
    row->step = (size_t)number;
    if (ks_csv_number(t->csv, i, t->value, &row->value) == KS_OK && isfinite(row->value))
        return KS_OK;
    row->value = NAN;
    ks_fail(KS_FORMAT, "%s:%zu: return: expected a finite number, found '%s': the row is left out",
            t->csv->path, row->line, ks_csv_cell(t->csv, i, t->value));
    return warn_of(t, ks_error_text());
}

/* Two rows of one step contradict each other, so it has no return. */
static ks_status merge_steps(struct table *t, size_t *n, struct ks_elsewhere_return *row)
{
    size_t kept = 0;

    qsort(row, *n, sizeof *row, by_step);
    for (size_t i = 0; i < *n; i++) {
        if (kept == 0 || row[kept - 1].step != row[i].step) {
            row[kept++] = row[i];
            continue;
        }
        row[kept - 1].value = NAN;
        ks_fail(KS_FORMAT,
                "%s:%zu: a second return at step %zu (the first one is in line %zu): both are left "
                "out",
                t->csv->path, row[i].line, row[i].step, row[kept - 1].line);
        KS_TRY(warn_of(t, ks_error_text()));
    }
    *n = kept;
    return KS_OK;
}

/* As ks_elsewhere_returns. */
static ks_status read_rows(const struct ks_csv *csv, struct ks_study *s, size_t *n,
                           struct ks_elsewhere_return **row)
{
    struct table table = {.csv = csv, .study = s};

    KS_TRY(ks_csv_column(csv, "env_step", &table.step));
    KS_TRY(ks_csv_column(csv, "return", &table.value));
    KS_TRY(ks_alloc(csv->rows, sizeof **row, row));
    for (size_t i = 0; i < csv->rows; i++) {
        bool kept;

        KS_TRY(read_row(&table, i, &(*row)[*n], &kept));
        *n += kept;
    }
    KS_TRY(merge_steps(&table, n, *row));
    if (s)
        KS_TRY(ks_warn_rest(s, csv->path, table.left_out, "row"));
    return s && csv->cut
               ? ks_list_add(&s->warnings,
                             "%s:%zu: left out: this last line has no newline, so it may be "
                             "incomplete",
                             csv->path, csv->rows + 2)
               : KS_OK;
}

ks_status ks_elsewhere_returns(const char *path, struct ks_study *s, size_t *n,
                               struct ks_elsewhere_return **row)
{
    KS_OWNED_BY(ks_csv_free) struct ks_csv *csv = NULL;

    *n = 0;
    *row = NULL;
    KS_TRY(ks_csv_read(path, true, &csv));
    return read_rows(csv, s, n, row);
}

ks_status ks_elsewhere_table(const char *path, struct ks_csv **out)
{
    KS_OWNED_BY(ks_csv_free) struct ks_csv *csv = NULL;
    KS_OWNED struct ks_elsewhere_return *row = NULL;
    KS_OWNED const char **cell = NULL;
    size_t n = 0, kept = 0;

    *out = NULL;
    KS_TRY(ks_csv_read(path, true, &csv));
    KS_TRY(read_rows(csv, NULL, &n, &row));
    KS_TRY(ks_alloc(n * csv->columns, sizeof *cell, &cell));
    for (size_t i = 0; i < n; i++)
        if (!isnan(row[i].value))
            memcpy(&cell[kept++ * csv->columns], &csv->cell[(row[i].line - 2) * csv->columns],
                   csv->columns * sizeof *cell);
    free(csv->cell);
    csv->cell = cell, cell = NULL;
    csv->rows = kept;
    *out = csv, csv = NULL;
    return KS_OK;
}
