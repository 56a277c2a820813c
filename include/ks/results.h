/* What a study's folder holds: its runs' spectra and returns, and which of them can be aggregated.
 */
#ifndef KS_RESULTS_H
#define KS_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

#include "ks/error.h"
#include "ks/spectrum.h"
#include "ks/study.h"

struct ks_result {
    size_t architecture, seed;     /* indices in the study                                      */
    struct ks_spectrum **spectrum; /* [n_checkpoints] of the study; NULL: not there. Owned      */
    double *returns;               /* [n_evaluations] of the study; NaN: not there. Owned       */
    bool complete;                 /* nothing is missing                                        */
};

struct ks_results {
    char *dir;              /* owned */
    struct ks_study *study; /* owned */
    size_t n_runs;
    struct ks_result *run; /* [architectures, seeds]; owned */
    bool *included;        /* [architectures] can be aggregated; owned                  */
    bool *
        common_checkpoint; /* [n_checkpoints] used: all of them, or with grid = common those that */
    bool *common_evaluation;    /* [n_evaluations] all complete runs have; owned             */
    size_t n_warnings, dropped; /* runs that `missing = drop` left out                       */
    char **warning;             /* one line each; owned                                      */
};

/* Reads dir/study.study and what it asks for, as far as it is there. What is missing or malformed
 * becomes a warning, and its run incomplete: the architecture is left out, or with `missing = drop`
 * the run. Fails (KS_FORMAT) on a return that is NaN or infinite, unless it is dropped, and on two
 * returns of one step. The caller frees. */
ks_status ks_results_read(const char *dir, struct ks_results **results);
void ks_results_free(struct ks_results *results); /* NULL is fine */

/* The run of an architecture and a seed, by their indices. */
const struct ks_result *ks_results_run(const struct ks_results *results, size_t architecture,
                                       size_t seed);
/* The runs of an architecture that are aggregated: their number, and the runs into list [n_seeds].
 */
size_t ks_results_runs(const struct ks_results *results, size_t architecture,
                       const struct ks_result **list);

/* A figure of /summary, or a root attribute, as a number; NaN where there is none. */
double ks_spectrum_figure(const struct ks_spectrum *spectrum, const char *name);
double ks_spectrum_number(const struct ks_spectrum *spectrum, const char *name);

/* Included architectures in the order in which figures show them: by loss (ce, mse, other), then
 * normalization (bn, ln, dense, other), without weight normalization before with. Returns their
 * number. */
size_t ks_results_order(const struct ks_results *results, size_t *architecture);

#endif
