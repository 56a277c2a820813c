#include "study/elsewhere.h"

#include <math.h>
#include <stdlib.h>

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

static ks_status warn_of(struct ks_study *s, const char *message)
{
    return s ? ks_study_warn(s, "%s: the row is left out", message) : KS_OK;
}

/* A table that is read, its columns env_step and return, and who is told what is wrong (NULL:
 * nobody).
 */
struct table {
    const struct ks_csv *csv;
    size_t step, value;
    struct ks_study *study;
};

/* Reads a row; *kept is false if its step is none. */
static ks_status read_row(const struct table *t, size_t i, struct ks_elsewhere_return *row,
                          bool *kept)
{
    const char *step = ks_csv_cell(t->csv, i, t->step);
    uint64_t number = 0;

    *row = (struct ks_elsewhere_return){0, i + 2, NAN};
    *kept = ks_parse_integer(step, 0, KS_MOST_STEPS, &number);
    if (!*kept) {
        ks_fail(KS_FORMAT, "%s:%zu: env_step: expected an environment step, found '%s'",
                t->csv->path, row->line, step);
        return warn_of(t->study, ks_error_text());
    }
    row->step = (size_t)number;
    if (ks_csv_number(t->csv, i, t->value, &row->value) == KS_OK && isfinite(row->value))
        return KS_OK;
    row->value = NAN;
    ks_fail(KS_FORMAT, "%s:%zu: return: expected a finite number, found '%s'", t->csv->path,
            row->line, ks_csv_cell(t->csv, i, t->value));
    return warn_of(t->study, ks_error_text());
}

/* Two rows of one step contradict each other, so it has no return. */
static ks_status merge_steps(const char *path, struct ks_study *s, size_t *n,
                             struct ks_elsewhere_return *row)
{
    size_t kept = 0;

    qsort(row, *n, sizeof *row, by_step);
    for (size_t i = 0; i < *n; i++) {
        if (kept == 0 || row[kept - 1].step != row[i].step) {
            row[kept++] = row[i];
            continue;
        }
        row[kept - 1].value = NAN;
        if (s)
            KS_TRY(ks_study_warn(s,
                                 "%s:%zu: a second return at step %zu (the first one is in line "
                                 "%zu): both are left out",
                                 path, row[i].line, row[i].step, row[kept - 1].line));
    }
    *n = kept;
    return KS_OK;
}

ks_status ks_elsewhere_returns(const char *path, struct ks_study *s, size_t *n,
                               struct ks_elsewhere_return **row)
{
    struct ks_csv *csv = NULL;
    struct table table = {.study = s};
    ks_status status = KS_OK;

    *n = 0;
    *row = NULL;
    KS_GO(ks_csv_read(path, true, &csv));
    table.csv = csv;
    KS_GO(ks_csv_column(csv, "env_step", &table.step));
    KS_GO(ks_csv_column(csv, "return", &table.value));
    KS_GO(ks_alloc(csv->rows, sizeof **row, row));
    for (size_t i = 0; i < csv->rows; i++) {
        bool kept;

        KS_GO(read_row(&table, i, &(*row)[*n], &kept));
        *n += kept;
    }
    status = merge_steps(path, s, n, *row);
done:
    ks_csv_free(csv);
    return status;
}
