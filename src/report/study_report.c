/* From a study's folder to its tables, plots and report. */
#include "report/study_report.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "io/file.h"
#include "report/page.h"
#include "report/plots.h"
#include "report/tables.h"

static ks_status announce(const struct ks_results *r, const struct ks_summary_table *table)
{
    for (size_t i = 0; i < KS_PLOTS; i++)
        if (table->drawn[i])
            printf("%s/figures/%s.svg: %s\n", r->dir, ks_plots[i].name, ks_plots[i].title);
        else
            printf("%s: not drawn: %s\n", ks_plots[i].name, ks_plots[i].missing);
    printf("%s/report.html: all plots and the table\n\n", r->dir);
    KS_TRY(ks_summary_print(r, table, stdout));
    if (!isnan(table->spearman))
        printf("\nSpearman's rank correlation of 10^IQM(log10 kappa) with the return, over %zu "
               "architectures: %.2f\n",
               table->ranked, table->spearman);
    for (size_t k = 1; k < table->n_analyses; k++)
        printf("%s%s%s",
               k > 1 ? ", " : "\nFurther analyses, in tables/summary.csv and report.html: ",
               r->study->analysis[k].name, k + 1 < table->n_analyses ? "" : "\n");
    return KS_OK;
}

static ks_status plot(const struct ks_results *r, size_t resamples, struct ks_summary_table *table,
                      bool quiet)
{
    KS_TRY(ks_summary_table(r, resamples, table));
    KS_TRY(ks_claims_judge(r, resamples, &table->claims));
    KS_TRY(ks_tables_write(r, table, resamples));
    if (table->n_rows == 0)
        return ks_fail(KS_FORMAT,
                       "%s: nothing to draw: no run has all its spectra and returns; the "
                       "tables contain the existing results",
                       r->dir);
    KS_TRY(ks_plots_draw(r, table, quiet));
    KS_TRY(ks_page_write(r, table));
    KS_TRY(announce(r, table));
    ks_claims_print(&table->claims, stdout);
    ks_theorems_print(r->study, &table->theorems, stdout);
    return fflush(stdout) == 0 && !ferror(stdout)
               ? KS_OK
               : ks_fail(KS_FULL, "standard output: %s", strerror(errno));
}

void ks_report_sweep(const char *dir)
{
    static const char *const folders[] = {".", "tables", "figures"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[KS_PATH];

        snprintf(path, sizeof path, "%s/%s", dir, folders[i]);
        if (ks_path_exists(path))
            ks_folder_sweep(path); /* a failure does no harm */
    }
}

ks_status ks_study_plot(const char *dir, struct ks_study *study, size_t resamples, bool quiet)
{
    KS_CLEARED_BY(ks_summary_clear) struct ks_summary_table table = {0};
    KS_OWNED_BY(ks_results_free) struct ks_results *results = NULL;

    KS_TRY(ks_results_read(dir, study, &results));
    ks_report_sweep(dir);
    if (resamples > 0)
        KS_TRY(ks_results_warn_intervals(results));
    for (size_t i = 0; i < results->warnings.n; i++)
        ks_say("warning: %s", results->warnings.text[i]);
    if (!quiet)
        ks_say("drawing the plots of %s", dir);
    return plot(results, resamples, &table, quiet);
}
