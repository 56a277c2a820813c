/* What kappascope-study --status and --dry-run say about a study: its progress, its remaining work,
 * the time and the disk space for it.
 *
 * How long the remaining work takes is estimated from what the finished work took (estimate.c). A
 * run records how many environment steps it makes in a second (progress.csv), a job of make when it
 * started and ended (its log). Runs without a log were trained on another machine. Times are
 * divided by amounts only after both have been summed. */
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
 * an estimate from the paces that the folder's files recorded and, if `jobs` is known, from trials
 * of this machine, or "not known". If squeue or a trial fails, a line on standard error says so. */
ks_status ks_study_print_status(const struct ks_study_view *view);

/* Prints the remaining work, the time and the disk space for it as comments of a shell script.
 * Trials measure the paces that the folder's files do not have. `observations` and `actions`: the
 * widths of the task. */
ks_status ks_study_print_forecast(const struct ks_study_view *view, size_t observations,
                                  size_t actions, FILE *out);

/* --- the estimate (estimate.c) --- */

/* How long an amount of work took. */
struct ks_pace {
    double seconds, amount; /* amount 0: no work was timed */
};

/* The kinds of work: environment steps without and with updates, spectra of each analysis. */
enum { KS_PACE_ACTING, KS_PACE_TRAINING, KS_PACE_SPECTRUM, KS_PACES = 2 + KS_STUDY_ANALYSES };

/* The paces of one architecture or variant. */
struct ks_paces {
    struct ks_pace of[KS_PACES]; /* analysis k: [KS_PACE_SPECTRUM + k] */
    /* [n_analyses] Of a trial with tolerances: a spectrum's pace is the worst case, in which only
     * the limits end the search; this is the best case, in seconds. 0 otherwise. */
    double best[KS_STUDY_ANALYSES];
    bool tried; /* of a trial: it was made */
};

/* The time for work is taken from the architecture's own records; without them from its trial on
 * this machine, times the ratio of records to trials of all architectures that have both; without a
 * trial from the mean of all records. */
struct ks_forecast {
    const struct ks_graph *graph;
    struct ks_paces *own;     /* [n_architectures] recorded in the study's folder; owned */
    struct ks_paces *trial;   /* [n_architectures] measured on this machine; owned       */
    struct ks_paces all;      /* sums of `own` over the architectures                    */
    double ratio[KS_PACES];   /* of records to trials; 1 if no architecture has both     */
    size_t n_runs, n_spectra; /* from how many runs and spectra the records come         */
};

/* Looks which jobs are done, and reads the paces from the study's folder. Files that are missing,
 * damaged or still being written are left out. Fails with KS_MEMORY. The caller clears, also after
 * a failure. */
ks_status ks_forecast_read(struct ks_graph *graph, const char *dir, struct ks_forecast *f);
/* Reads the paces again; which jobs are done is as the graph has it. */
ks_status ks_forecast_update(struct ks_forecast *f, const char *dir);
void ks_forecast_clear(struct ks_forecast *f);
/* Makes a trial of one architecture that has work left whose time is not known: trains some steps
 * and makes some products, in one thread, without writing a file. *made: whether there was one. A
 * spectrum is counted as its Lanczos products; certificates, reading and writing come on top. Fails
 * as a run of kappascope-train would. */
ks_status ks_forecast_try(struct ks_forecast *f, bool *made);

/* Seconds that one job at a time needs: for the rest of a run's training with its evaluations, for
 * a run's missing spectra; of a job that runs under ks_graph_run, less what it has taken. For all
 * runs, also with `jobs` jobs at a time: at least the sum divided by `jobs`, and at least the
 * longest training. 0 if nothing is left, NaN if a pace is not known. */
struct ks_time_left {
    double training, spectra;
    double best_spectra; /* the spectra in the best case */
    double all;
};
struct ks_time_left ks_forecast_run(const struct ks_forecast *f, size_t run);
struct ks_time_left ks_forecast_all(const struct ks_forecast *f, size_t jobs);

#endif
