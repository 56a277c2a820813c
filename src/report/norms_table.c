/* norms.csv: metrics of the critics over training, from the runs' progress.csv (Figure 8 of the XQC
 * paper). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/text.h"
#include "report/plot_tables.h"
#include "results/progress.h"

enum { PARAM_NORM, GRAD_NORM, EFFECTIVE_LR, DEFINITION_1_LR, NORMS };
static const char *const columns[NORMS] = {"critic_param_norm", "critic_grad_norm",
                                           "critic_effective_lr", "critic_definition_1_lr"};

/* Fills the series of all norms with one run; the first run decides about the steps. */
static ks_status add_run(const struct ks_tables *t, const struct ks_result *run, size_t at,
                         size_t runs, struct ks_series series[NORMS])
{
    struct ks_run_log progress = {0};
    ks_status status = KS_OK;

    KS_GO(ks_run_log_read(t->r, run, NORMS, columns, &progress));
    for (size_t k = 0; k < NORMS; k++) {
        if (at == 0) {
            KS_GO(ks_series_new(runs, progress.steps, &series[k]));
            if (progress.steps > 0)
                memcpy(series[k].step, progress.step, progress.steps * sizeof *progress.step);
        }
        for (size_t j = 0; j < series[k].steps; j++)
            series[k].value[at * series[k].steps + j] = ks_run_log_at(&progress, k,
                                                                      series[k].step[j]);
    }
done:
    ks_run_log_free(&progress);
    return status;
}

static ks_status write_architecture(const struct ks_tables *t, size_t row, FILE *out)
{
    const struct ks_result *run[KS_STUDY_SEEDS];
    size_t n = ks_results_runs(t->r, t->table->row[row].architecture, run);
    struct ks_series series[NORMS] = {{0}};
    ks_status status = KS_OK;

    for (size_t i = 0; i < n; i++)
        KS_GO(add_run(t, run[i], i, n, series));
    for (size_t k = 0; k < NORMS; k++)
        KS_GO(ks_series_aggregate(&series[k], t->resamples));
    for (size_t j = 0; j < series[0].steps; j++) {
        ks_table_look(t, row, out);
        fprintf(out, ",%.0f", series[0].step[j]);
        for (size_t k = 0; k < NORMS; k++)
            ks_table_estimate(out, &series[k].curve[j]);
        putc('\n', out);
    }
done:
    for (size_t k = 0; k < NORMS; k++)
        ks_series_free(&series[k]);
    return status;
}

ks_status ks_norms_write(const struct ks_tables *t, FILE *out)
{
    for (size_t i = 0; i < t->table->n_rows; i++)
        KS_TRY(write_architecture(t, i, out));
    return KS_OK;
}
