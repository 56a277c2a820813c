/* The returns of one run of a study, from its progress.csv. */
#ifndef KS_RESULTS_RETURNS_H
#define KS_RESULTS_RETURNS_H

#include <stdbool.h>

#include "core/error.h"
#include "study/study_file.h"

/* A run of a study: indices into study->architecture and study->seed; and the column of its
 * progress.csv that is read: "return_mean". */
struct ks_study_run {
    size_t architecture, seed;
    const char *column;
    bool is_over; /* as its run.json says: its table has all returns */
};

/* Reads the returns of a run from the progress.csv in `folder` into returns [n_evaluations of the
 * study]; missing returns leave their entries as they are. If the file cannot be read as a table,
 * *malformed is true, the message is in ks_error_text() and the status is KS_OK. Fails with
 * KS_FORMAT on two returns at one step, and on a NaN or infinite return unless the study says
 * missing = drop; if the run is over, also on a file that is missing or no table (KS_IO,
 * KS_FORMAT), and on a missing return unless the study says grid = common. */
ks_status ks_returns_read(const struct ks_study *study, struct ks_study_run run, const char *folder,
                          double *returns, bool *malformed);

#endif
