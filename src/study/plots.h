/* Figures of a study, drawn by gnuplot from the tables, and the page that holds them. */
#ifndef KS_STUDY_PLOTS_H
#define KS_STUDY_PLOTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "study/results.h"
#include "study/tables.h"

struct ks_plot {
    const char *name; /* of plots/NAME.gp and figures/NAME.png, .pdf */
    const char *title, *caption;
};
/* All figures, ends in a name of NULL. */
extern const struct ks_plot ks_plots[];

/* Draws dir/figures/NAME.png and NAME.pdf by plots/NAME.gp from dir/tables; each appears whole or
 * not at all. Fails with KS_MISSING where gnuplot or a script is not there, KS_RUN where it fails.
 */
ks_status ks_plots_draw(const struct ks_results *results, const struct ks_summary_table *table);

/* dir/report.html: the table, the figures, how to read them. */
ks_status ks_page_write(const struct ks_results *results, const struct ks_summary_table *table);

/* All of it, from what is in a study's folder: tables, figures, page; then names the figures on
 * standard output and prints the table there. Warnings go to standard error. */
ks_status ks_study_plot(const char *dir, const struct ks_study *study, size_t resamples,
                        bool quiet);

#endif
