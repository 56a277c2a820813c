/* The plots of a study, drawn by gnuplot from the tables. */
#ifndef KS_REPORT_PLOTS_H
#define KS_REPORT_PLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "report/summary_table.h"
#include "results/results.h"
#include "study/study_file.h"

/* A plot, and the data without which it is not drawn. */
struct ks_plot {
    const char *name; /* of the script plots/NAME.gp and of figures/NAME.png, .pdf and .svg */
    const char *title, *caption;
    const char *table;      /* tables/TABLE.csv: drawn if a row of it ...       */
    const char *columns[5]; /* ... has a finite number in one of these columns */
    const char *missing;    /* why a study may have none: "no analysis of ..." */
};
extern const struct ks_plot ks_plots[KS_PLOTS];

/* " (of 1,000)" for words beside returns of dm_control's tasks, which give a reward of at most 1 in
 * each of 1,000 steps; "" for other tasks. */
const char *ks_plots_most_return(const struct ks_study *study);

/* Where the panels of architectures stand in plots with a panel per architecture. */
struct ks_panels {
    size_t columns, rows;
    size_t x[KS_STUDY_ARCHITECTURES], y[KS_STUDY_ARCHITECTURES]; /* of each architecture, from 0 */
};

/* Places n >= 1 architectures, in the order of ks_results_order, in the full grid of the twelve
 * named ones, so that panels to compare stand side by side: a column per normalization and a row
 * per loss with or without weight normalization; if it is `wide`, a column for these and a row per
 * loss. True only if every one of them is a different one of the twelve and at least two thirds of
 * the rows and columns that they use are filled. In the wide grid, up to two others may stand in
 * columns of their own after these, in the row of their loss, or in the first row if that is
 * unknown. */
bool ks_panels_fill(bool wide, size_t n, const struct ks_study_architecture *const *architecture,
                    struct ks_panels *panels);

/* Places them in the full grid that is not wide if that can be; else in rows of three, or if there
 * are four, of two. */
void ks_panels_place(size_t n, const struct ks_study_architecture *const *architecture,
                     struct ks_panels *panels);

/* Draws dir/figures/NAME.png, .pdf and .svg with plots/NAME.gp from dir/tables; each file appears
 * complete or not at all. Plots without data are left out, as are formats that gnuplot cannot draw
 * (without cairo all but SVG), and their old files are removed. Fails with KS_MISSING if gnuplot or
 * a script is missing, KS_RUN if gnuplot fails. The SVG stands alone, its text is text, and its
 * marks have tooltips (see below). Unless `quiet`, shows which plot is drawn. */
ks_status ks_plots_draw(const struct ks_results *results, const struct ks_summary_table *table,
                        bool quiet);

/* --- gnuplot, run with a script of plots/ on the tables in a folder --- */

struct ks_gnuplot {
    const char *dir;       /* has tables/ and figures/                                      */
    char *program, *plots; /* gnuplot, and the folder of the scripts; owned                 */
    char *panels;          /* statements that describe the panels (plots/style.gp); owned   */
    size_t steps;          /* where runs end                                                */
};

/* What plots/style.gp says of an architecture: words, and the base of a variant ("-": it is none).
 */
struct ks_gnuplot_look {
    const char *name; /* NULL: its number, from 1 */
    const char *normalization, *loss, *base;
    bool weight_normalization;
};
/* Prints "archs='bn+ce ln+ce'; norms='bn ln'; ...": a word per architecture. */
void ks_gnuplot_print_looks(size_t n, const struct ks_gnuplot_look *look, FILE *out);

/* Finds gnuplot and the scripts. KS_MISSING. The caller ends with ks_gnuplot_clear in any case. */
ks_status ks_gnuplot_find(struct ks_gnuplot *gnuplot);
void ks_gnuplot_clear(struct ks_gnuplot *gnuplot);

/* Runs plots/NAME.gp, which writes dir/figures/NAME.FORMAT (png, pdf, svg); the file appears
 * complete or not at all. If this gnuplot cannot draw the format, an old file is removed.
 * KS_MISSING if the script is missing, KS_RUN if gnuplot fails. */
ks_status ks_gnuplot_draw(const struct ks_gnuplot *gnuplot, const char *name, const char *format);
/* Draws it in all three formats or, without `draw`, removes what an earlier call drew from data
 * that have gone. */
ks_status ks_gnuplot_update(const struct ks_gnuplot *gnuplot, const char *name, bool draw);

/* Copies the text of gnuplot's SVG terminal into *clean, which the caller frees, with these
 * changes:
 *
 * - Marks with hypertext get a <title>, which browsers show as a tooltip, in place of handlers that
 *   need gnuplot's own script. gnuplot's titles of files and curves go, as they would be tooltips.
 * - Fonts fall back to sans-serif on devices that do not have gnuplot's font.
 * - Empty groups, unused filters and long colours are removed or shortened.
 *
 * Text stays text. Lines that it does not know stay as they are. KS_MEMORY. */
ks_status ks_svg_clean(const char *text, char **clean);

#endif
