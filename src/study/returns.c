/* The returns of one run of a study, from its progress.csv. */
#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "io/text.h"
#include "study/csv.h"
#include "study/results.h"

/* A return that is no number, at an evaluation: an error, or with missing = drop none at all. */
static ks_status refuse_return(const struct ks_results *r, const struct ks_result *run,
                               const char *path, size_t evaluation, double value)
{
    const struct ks_study *s = r->study;

    if (s->drop_missing)
        return KS_OK;
    return ks_fail(KS_FORMAT,
                   "%s: %s, %s, seed %zu, step %zu: the return is %g (missing = drop in [study] "
                   "leaves such runs out)",
                   path, s->env, s->architecture[run->architecture].name, s->seed[run->seed],
                   s->evaluation[evaluation], value);
}

/* The return at one evaluation. Rows of a checkpoint without an evaluation have an empty cell or
 * nan there, also beside a row with one. */
static ks_status take_return(struct ks_results *r, struct ks_result *run, const struct ks_csv *csv,
                             const size_t column[2], size_t evaluation)
{
    size_t target = r->study->evaluation[evaluation], found = 0;
    double step = 0, value = 0, seen = 0;

    for (size_t i = 0; i < csv->rows; i++) {
        KS_TRY(ks_csv_number(csv, i, column[0], &step));
        if (step != (double)target || *ks_csv_cell(csv, i, column[1]) == '\0')
            continue;
        KS_TRY(ks_csv_number(csv, i, column[1], &value));
        if (isnan(value)) {
            seen = found > 0 ? seen : NAN;
            continue;
        }
        if (found++ > 0)
            return ks_fail(KS_FORMAT, "%s:%zu: a second return at step %zu", csv->path, i + 2,
                           target);
        seen = value;
    }
    if (found > 0 && isfinite(seen))
        run->returns[evaluation] = seen;
    else if (found > 0 || isnan(seen))
        return refuse_return(r, run, csv->path, evaluation, seen);
    return KS_OK;
}

/* A table with these columns, all numbers. */
static ks_status read_table(const char *path, struct ks_csv **csv, size_t column[2])
{
    double value;

    KS_TRY(ks_csv_read(path, true, csv));
    KS_TRY(ks_csv_column(*csv, "env_step", &column[0]));
    KS_TRY(ks_csv_column(*csv, "return_mean", &column[1]));
    for (size_t i = 0; i < (*csv)->rows; i++) {
        KS_TRY(ks_csv_number(*csv, i, column[0], &value));
        if (*ks_csv_cell(*csv, i, column[1]) != '\0')
            KS_TRY(ks_csv_number(*csv, i, column[1], &value));
    }
    return KS_OK;
}

ks_status ks_result_read_returns(struct ks_results *r, struct ks_result *run, const char *folder)
{
    struct ks_csv *csv = NULL;
    size_t column[2] = {0, 0};
    char *path = NULL;
    ks_status status = KS_OK;

    KS_TRY(ks_print_string(&path, "%s/progress.csv", folder));
    if (!ks_path_exists(path))
        goto done;
    status = read_table(path, &csv, column);
    if (status == KS_FORMAT || status == KS_IO) { /* a damaged file: none of its returns */
        status = ks_results_warn(r, "%s", ks_error_text());
        goto done;
    }
    for (size_t k = 0; status == KS_OK && k < r->study->n_evaluations; k++)
        status = take_return(r, run, csv, column, k);
done:
    ks_csv_free(csv);
    free(path);
    return status;
}
