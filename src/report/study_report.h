/* From a study's folder to its tables, plots and report. */
#ifndef KS_REPORT_STUDY_REPORT_H
#define KS_REPORT_STUDY_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "results/scores.h"
#include "study/study_file.h"

/* Writes tables, plots and report from the results in a study's folder; then lists the plots and
 * prints the table on standard output. Warnings go to standard error. `study`: the study in the
 * folder, if the caller has read it; NULL: dir/study.study is read. */
ks_status ks_study_plot(const char *dir, struct ks_study *study, size_t resamples, bool quiet);

/* Removes temporary files of killed programs from dir, dir/tables and dir/figures. */
void ks_report_sweep(const char *dir);

/* --- scores over tasks: printed and drawn --- */

/* A line per system and suite, on standard output: in aligned columns or as CSV. KS_MEMORY. */
ks_status ks_scores_print(const struct ks_score_summary *summary, bool csv);

/* On standard error: runs and tasks that are left out, intervals that are too narrow, systems that
 * do not compare; and systems with other settings on other tasks. */
ks_status ks_scores_warn(const struct ks_score_summary *summary, const struct ks_score_rows *rows);

/* Writes dir/tables/scores.csv and score_curves.csv, and with `draw` the areas as bars:
 * dir/figures/scores.png, .pdf and .svg (plots/scores.gp); without, these are removed. Each file
 * appears complete or not at all. Fails with KS_MISSING before it writes if gnuplot is needed and
 * missing. */
ks_status ks_scores_write(const struct ks_score_summary *summary, const char *dir, bool draw);

#endif
