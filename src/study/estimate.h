/* How long the remaining work of a study takes, from what its finished work took: an estimate.
 *
 * A run records how many environment steps it makes in a second (progress.csv), a job of make when
 * it started and ended (its log). Times are divided by amounts only after both have been summed. */
#ifndef KS_STUDY_ESTIMATE_H
#define KS_STUDY_ESTIMATE_H

#include <stddef.h>

#include "core/error.h"
#include "study/graph.h"

/* How long an amount of work took. */
struct ks_pace {
    double seconds, amount; /* amount 0: nothing was measured */
};

/* The paces of one architecture or variant. */
struct ks_paces {
    struct ks_pace acting;                      /* environment steps without updates */
    struct ks_pace training;                    /* environment steps with updates    */
    struct ks_pace spectrum[KS_STUDY_ANALYSES]; /* [n_analyses] spectra              */
    /* [n_analyses] the fewest seconds of a spectrum whose pace is that of its limits, since how
     * much its tolerances need is not known before; 0: its pace is no limit */
    double least[KS_STUDY_ANALYSES];
};

struct ks_forecast {
    const struct ks_graph *graph;
    bool *done;               /* [n_jobs] as by ks_graph_done; owned */
    size_t *step;             /* [n_runs] the step from which a training goes on; owned */
    struct ks_paces *own;     /* [n_architectures]; owned */
    struct ks_paces all;      /* sums over the architectures, for those without a pace */
    size_t n_runs, n_spectra; /* from how many runs and spectra the paces come */
};

/* Reads the paces from the study's folder. Files that are missing, damaged or still being written
 * are left out. Fails with KS_MEMORY. The caller clears, also after a failure. */
ks_status ks_estimate_read(const struct ks_graph *graph, const char *dir, struct ks_forecast *e);
void ks_estimate_clear(struct ks_forecast *e);

/* Seconds that one job at a time needs for the rest of a run's training, with its evaluations;
 * seconds for its missing spectra. 0 if nothing is left, NaN if a pace is not known. */
double ks_estimate_training(const struct ks_forecast *e, size_t run);
double ks_estimate_spectra(const struct ks_forecast *e, size_t run);

/* The sums of both over all runs, what spectra need if all tolerances are reached at the first
 * look, and the seconds for all of it with `jobs` jobs at a time: at
 * least the sum divided by `jobs`, and at least the longest training. */
struct ks_time_left {
    double training, spectra, least_spectra, all;
};
struct ks_time_left ks_estimate_all(const struct ks_forecast *e, size_t jobs);

#endif
