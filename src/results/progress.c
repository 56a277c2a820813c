#include "results/progress.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "io/csv.h"
#include "io/text.h"

/* The index of a step among those read so far; `steps` if it is new. */
static size_t find_step(const struct ks_run_log *p, double step)
{
    size_t i = 0;

    while (i < p->steps && p->step[i] != step)
        i++;
    return i;
}

/* The cell as a number; NaN if it is empty or no number. */
static double number_in(const struct ks_csv *csv, size_t row, size_t column)
{
    const char *cell = ks_csv_cell(csv, row, column);
    char *end;
    double value = strtod(cell, &end);

    return *cell && !*end ? value : NAN;
}

/* Rows are written in the order of their steps. */
static ks_status find_steps(const struct ks_csv *csv, size_t last, struct ks_run_log *p)
{
    size_t column;

    KS_TRY(ks_alloc(csv->rows, sizeof *p->step, &p->step));
    if (ks_csv_column(csv, "env_step", &column) != KS_OK)
        return KS_OK;
    for (size_t i = 0; i < csv->rows; i++) {
        double step = number_in(csv, i, column);

        if (step <= (double)last && find_step(p, step) == p->steps)
            p->step[p->steps++] = step;
    }
    return KS_OK;
}

static ks_status fill(const struct ks_csv *csv, const char *const *name, struct ks_run_log *p)
{
    size_t step_column, column;

    KS_TRY(ks_alloc(p->columns * p->steps, sizeof *p->value, &p->value));
    for (size_t i = 0; i < p->columns * p->steps; i++)
        p->value[i] = NAN;
    if (ks_csv_column(csv, "env_step", &step_column) != KS_OK)
        return KS_OK;
    for (size_t k = 0; k < p->columns; k++) {
        if (ks_csv_column(csv, name[k], &column) != KS_OK)
            continue;
        for (size_t i = 0; i < csv->rows; i++) {
            size_t at = find_step(p, number_in(csv, i, step_column));
            double *value = &p->value[k * p->steps + at];

            if (at < p->steps && !isfinite(*value))
                *value = number_in(csv, i, column);
        }
    }
    return KS_OK;
}

ks_status ks_run_log_read(const struct ks_results *r, const struct ks_result *run, size_t columns,
                          const char *const *name, struct ks_run_log *p)
{
    char *folder = NULL, *path = NULL;
    struct ks_csv *csv = NULL;
    ks_status status = KS_OK;

    *p = (struct ks_run_log){.columns = columns};
    KS_GO(ks_study_run_folder(r->study, run->architecture, run->seed, &folder));
    KS_GO(ks_print_string(&path, "%s/%s/progress.csv", r->dir, folder));
    if (ks_path_exists(path)) {
        status = ks_csv_read(path, true, &csv);
        if (status == KS_FORMAT || status == KS_IO) {
            status = KS_OK;
            goto done;
        }
        KS_GO(status);
        KS_GO(find_steps(csv, r->study->end, p));
        KS_GO(fill(csv, name, p));
    }
done:
    if (status != KS_OK)
        ks_run_log_free(p);
    ks_csv_free(csv);
    free(folder);
    free(path);
    return status;
}

void ks_run_log_free(struct ks_run_log *p)
{
    free(p->step);
    free(p->value);
    *p = (struct ks_run_log){.steps = 0};
}

double ks_run_log_at(const struct ks_run_log *p, size_t column, double step)
{
    size_t at = find_step(p, step);

    return at < p->steps ? p->value[column * p->steps + at] : NAN;
}
