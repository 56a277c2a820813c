/* From a study's folder to its tables, plots and report. */
#ifndef KS_REPORT_REPORT_H
#define KS_REPORT_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "study/study_file.h"

/* Writes tables, plots and report from the results in a study's folder; then lists the plots and
 * prints the table on standard output. Warnings go to standard error. `study`: the study in the
 * folder, if the caller has read it; NULL: dir/study.study is read. */
ks_status ks_study_plot(const char *dir, const struct ks_study *study, size_t resamples,
                        bool quiet);

#endif
