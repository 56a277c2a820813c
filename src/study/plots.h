/* The plots of a study, drawn by gnuplot from the tables. */
#ifndef KS_STUDY_PLOTS_H
#define KS_STUDY_PLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "study/results.h"
#include "study/tables.h"

struct ks_plot {
    const char *name; /* of the script plots/NAME.gp and of figures/NAME.png and .pdf */
    const char *title, *caption;
};
/* All plots; a NULL name ends the list. */
extern const struct ks_plot ks_plots[];

/* Draws dir/figures/NAME.png and NAME.pdf with plots/NAME.gp from dir/tables; each file appears
 * complete or not at all. Fails with KS_MISSING if gnuplot or a script is missing, KS_RUN if
 * gnuplot fails. */
ks_status ks_plots_draw(const struct ks_results *results, const struct ks_summary_table *table);

/* Writes tables, plots and report from the results in a study's folder; then lists the plots and
 * prints the table on standard output. Warnings go to standard error. `study`: the study in the
 * folder, if the caller has read it; NULL: dir/study.study is read. */
ks_status ks_study_plot(const char *dir, const struct ks_study *study, size_t resamples,
                        bool quiet);

#endif
