#include "results/results.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "io/csv.h"
#include "io/file.h"
#include "study/elsewhere.h"

enum { STEP, RETURN, COLUMNS };

/* Finds the return at `step`. *found: how many rows have one, at most 1. *value is NaN if none has
 * one but a row says nan. Rows of a checkpoint without an evaluation have an empty cell or nan, and
 * may stand beside a row of the same step with a return. */
static ks_status find_return(const struct ks_csv *csv, const size_t column[COLUMNS], size_t step,
                             size_t *found, double *value)
{
    double row_step = 0, row_value = 0;

    *found = 0;
    *value = 0;
    for (size_t i = 0; i < csv->rows; i++) {
        KS_TRY(ks_csv_number(csv, i, column[STEP], &row_step));
        if (row_step != (double)step || *ks_csv_cell(csv, i, column[RETURN]) == '\0')
            continue;
        KS_TRY(ks_csv_number(csv, i, column[RETURN], &row_value));
        if (isnan(row_value)) {
            *value = *found > 0 ? *value : NAN;
            continue;
        }
        if ((*found)++ > 0)
            return ks_fail(KS_FORMAT, "%s:%zu: a second return at step %zu", csv->path, i + 2,
                           step);
        *value = row_value;
    }
    return KS_OK;
}

/* Opens the table, and checks that both columns hold numbers. */
static ks_status read_table(const char *path, const char *name, struct ks_csv **csv,
                            size_t column[COLUMNS])
{
    double value;

    KS_TRY(ks_csv_read(path, true, csv));
    KS_TRY(ks_csv_column(*csv, "env_step", &column[STEP]));
    KS_TRY(ks_csv_column(*csv, name, &column[RETURN]));
    for (size_t i = 0; i < (*csv)->rows; i++) {
        KS_TRY(ks_csv_number(*csv, i, column[STEP], &value));
        if (*ks_csv_cell(*csv, i, column[RETURN]) != '\0')
            KS_TRY(ks_csv_number(*csv, i, column[RETURN], &value));
    }
    return KS_OK;
}

/* What is wrong with the table or single rows has been warned about. A run whose last return is not
 * a number has not ended with the one before it. */
static ks_status read_elsewhere(const struct ks_study *s, const char *folder, double *returns,
                                bool *malformed)
{
    KS_OWNED struct ks_elsewhere_return *row = NULL;
    KS_OWNED char *path = NULL;
    size_t n = 0;
    ks_status status;

    KS_TRY(ks_print_string(&path, "%s/" KS_ELSEWHERE_RETURNS, folder));
    status = ks_path_exists(path) ? ks_elsewhere_returns(path, NULL, &n, &row) : KS_OK;
    if (status == KS_FORMAT || status == KS_IO) /* has been warned about, too */
        status = KS_OK;
    while (n > 0 && row[n - 1].step > s->end)
        n--;
    if (status == KS_OK && n > 0 && isnan(row[n - 1].value))
        status = ks_fail(KS_FORMAT, "%s:%zu: the last return of the run is not usable", path,
                         row[n - 1].line);
    *malformed = status == KS_FORMAT;
    for (size_t i = 0, k = 0; status == KS_OK && i < n; i++) {
        while (k < s->n_evaluations && s->evaluation[k] < row[i].step)
            k++;
        if (k < s->n_evaluations && s->evaluation[k] == row[i].step)
            returns[k] = row[i].value;
    }
    return *malformed ? KS_OK : status;
}

ks_status ks_returns_read(const struct ks_study *s, struct ks_study_run run, const char *folder,
                          double *returns, bool *malformed)
{
    KS_OWNED_BY(ks_csv_free) struct ks_csv *csv = NULL;
    size_t column[COLUMNS] = {0, 0};
    KS_OWNED char *path = NULL;
    ks_status status;

    *malformed = false;
    if (s->architecture[run.architecture].elsewhere)
        return read_elsewhere(s, folder, returns, malformed);
    KS_TRY(ks_print_string(&path, "%s/progress.csv", folder));
    if (!run.is_over && !ks_path_exists(path))
        return KS_OK;
    status = read_table(path, run.column, &csv, column);
    *malformed = !run.is_over && (status == KS_FORMAT || status == KS_IO);
    if (*malformed)
        return KS_OK;
    for (size_t k = 0; status == KS_OK && k < s->n_evaluations; k++) {
        size_t found;
        double value;

        if (!ks_study_has_return(s, (struct ks_study_place){run.architecture, run.seed, k}))
            continue; /* a step of other runs */
        KS_TRY(find_return(csv, column, s->evaluation[k], &found, &value));
        if (found > 0 && isfinite(value))
            returns[k] = value;
        else if (found > 0 || isnan(value))
            status = s->drop_missing
                         ? KS_OK
                         : ks_fail(
                               KS_FORMAT,
                               "%s: %s, %s, seed %zu, step %zu: the return is %g (missing = drop "
                               "in [study] leaves such runs out)",
                               csv->path, s->env, s->architecture[run.architecture].name,
                               s->seed[run.seed], s->evaluation[k], value);
        else if (run.is_over && !s->common_grid)
            status = ks_fail(KS_FORMAT,
                             "%s: expected a return at step %zu, as run.json says that the run is "
                             "over, found none",
                             csv->path, s->evaluation[k]);
    }
    return status;
}
