/* What a study's folder holds: its runs' spectra and returns, and which of them can be aggregated.
 */
#ifndef KS_STUDY_RESULTS_H
#define KS_STUDY_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "study/study_file.h"

struct ks_result {
    size_t architecture, seed; /* indices in the study                                      */
    /* [n_analyses, n_checkpoints] of the study, the standard analysis first; NULL: not there. Owned
     */
    struct ks_spectrum **spectrum;
    double *returns; /* [n_evaluations] of the study; NaN: not there. Owned       */
    bool is_over;    /* trained to the end or to `stop`, as its run.json says     */
    bool complete;   /* can be aggregated                                         */
};

struct ks_results {
    char *dir; /* owned */
    const struct ks_study *study;
    struct ks_study *own_study; /* what `study` points to if it was read from the folder; owned */
    size_t n_runs;
    struct ks_result *run; /* [architectures, seeds]; owned */
    bool *included;        /* [architectures] can be aggregated; owned */
    /* Which are used: all, or with grid = common those that all runs have that came to their end.
     * [n_checkpoints], [n_evaluations]; owned. */
    bool *common_checkpoint, *common_evaluation;
    size_t dropped; /* runs that `missing = drop` left out */
    size_t n_warnings, warning_room;
    char **warning; /* [n_warnings] one line each; owned */
};

/* Reads dir/study.study and what it asks for, as far as it is there. What is missing, or a
 * malformed progress.csv, becomes a warning, and its run incomplete: the architecture is left out,
 * or with `missing = drop` the run. In a run that is over, though, a missing spectrum is that of an
 * analysis that failed: such a run is complete, and the spectrum's figures are NaN, which the
 * tables drop and count. Missing spectra of further analyses never make a run incomplete, and count
 * likewise. Fails (KS_FORMAT, KS_IO) on a spectrum that cannot be read or is that of another
 * checkpoint, on a return that is NaN or infinite, unless it is dropped, and on two returns of one
 * step. The caller frees. */
ks_status ks_results_read(const char *dir, const struct ks_study *study,
                          struct ks_results **results);
void ks_results_free(struct ks_results *results); /* NULL is fine */

/* Keeps a line for the reader of the figures. */
ks_status ks_results_warn(struct ks_results *results, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The runs of an architecture that are aggregated: their number, and the runs into list [n_seeds].
 */
size_t ks_results_runs(const struct ks_results *results, size_t architecture,
                       const struct ks_result **list);

/* A further warning where bootstrap intervals of what is there are too narrow. */
ks_status ks_results_warn_intervals(struct ks_results *results);

/* The spectrum of an analysis at a checkpoint; NULL where there is none. */
const struct ks_spectrum *ks_results_spectrum(const struct ks_results *results,
                                              const struct ks_result *run, size_t analysis,
                                              size_t checkpoint);
/* A figure of it; NaN where there is none. */
double ks_results_statistic(const struct ks_results *results, const struct ks_result *run,
                            size_t analysis, size_t checkpoint, const char *name);

/* Included architectures in the order in which figures show them: by loss (ce, mse, other), then
 * normalization (bn, ln, dense, other), without weight normalization before with. Returns their
 * number. */
size_t ks_results_order(const struct ks_results *results, size_t *architecture);

#endif
