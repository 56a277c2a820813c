/* What kappascope-study --status and --dry-run say about a study: its progress, its remaining work,
 * the time and the disk space for it.
 *
 * How long the remaining work takes is estimated from what the finished work took (estimate.c). A
 * run records how many environment steps it makes in a second (progress.csv), a job of make when it
 * started and ended (its log). Times are divided by amounts only after both have been summed. */
#ifndef KS_STUDY_STATUS_H
#define KS_STUDY_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "study/graph.h"

struct ks_study_view {
    struct ks_graph *graph;
    const char *dir; /* the study's folder, which may not exist */
    size_t jobs;     /* at a time; 0: not known */
    bool held;       /* the folder's study.study has the same text, so runs have the same numbers
                      * as in Slurm's queue */
};

/* Prints a line per run, with its task in Slurm's queue if it has one, the sums, and the time left:
 * an estimate from the paces that the folder's files recorded, or "not known". If squeue fails, a
 * line on standard error says so. */
ks_status ks_study_print_status(const struct ks_study_view *view);

/* Prints the remaining work, the time and the disk space for it as comments of a shell script.
 * Paces that the folder's files do not have are measured first. `observations` and
 * `actions`: the widths of the task. */
ks_status ks_study_print_forecast(const struct ks_study_view *view, size_t observations,
                                  size_t actions, FILE *out);

/* --- the estimate (estimate.c) --- */

/* How long an amount of work took. */
struct ks_pace {
    double seconds, amount; /* amount 0: no work was timed    */
};

/* The paces of one architecture or variant. */
struct ks_paces {
    struct ks_pace acting;                      /* environment steps without updates */
    struct ks_pace training;                    /* environment steps with updates    */
    struct ks_pace spectrum[KS_STUDY_ANALYSES]; /* [n_analyses] spectra              */
    /* [n_analyses] With tolerances and nothing recorded, `spectrum` is the worst case, in which
     * only the limits end the search; this is the best case, in seconds. 0 otherwise. */
    double best[KS_STUDY_ANALYSES];
};

struct ks_forecast {
    const struct ks_graph *graph;
    struct ks_paces *own;     /* [n_architectures]; owned */
    struct ks_paces all;      /* sums over the architectures, used where one has no pace */
    size_t n_runs, n_spectra; /* from how many runs and spectra the paces come */
};

/* Reads the paces from the study's folder. Files that are missing, damaged or still being written
 * are left out. Fails with KS_MEMORY. The caller clears, also after a failure. */
ks_status ks_forecast_read(struct ks_graph *graph, const char *dir, struct ks_forecast *f);
void ks_forecast_clear(struct ks_forecast *f);
/* Measures on this machine the paces of those architectures that have work left whose time is not
 * known; *measured is their number. A spectrum is counted as its Lanczos products; certificates,
 * reading and writing come on top. Fails as a run of kappascope-train would. */
ks_status ks_forecast_measure(struct ks_forecast *f, size_t *measured);

/* Seconds that one job at a time needs: for the rest of a run's training with its evaluations, for
 * a run's missing spectra. For all runs, also with `jobs` jobs at a time: at least the sum divided
 * by `jobs`, and at least the longest training. 0 if nothing is left, NaN if a pace is not known.
 */
struct ks_time_left {
    double training, spectra;
    double best_spectra; /* the spectra in the best case */
    double all;
};
struct ks_time_left ks_forecast_run(const struct ks_forecast *f, size_t run);
struct ks_time_left ks_forecast_all(const struct ks_forecast *f, size_t jobs);

#endif
