/* The training engine: one run, from a seed to its checkpoints. */
#ifndef KS_TRAIN_TRAIN_H
#define KS_TRAIN_TRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "train/settings.h"

/* Whether a run goes on from its newest resume point (point.h): not at all, only under the
 * conditions under which it was computed, or also under others: on another processor, with another
 * BLAS kernel, number of threads or version of the program or of a library. */
enum ks_resume { KS_RESUME_NOT, KS_RESUME_EXACT, KS_RESUME_ANY };

struct ks_train_options {
    const char *env, *architecture, *out; /* task; name or .arch file; folder */
    uint64_t seed;
    size_t steps;   /* environment steps of the whole run          */
    size_t stop_at; /* stop there: the schedules are those of steps */
    struct ks_settings settings;
    enum ks_resume resume;
    double save_every; /* seconds between these; < 0: 60, and at most 1% of the time */
    bool quiet;
    int argc; /* the command line, for run.json */
    char *const *argv;
};

/* Writes checkpoints, progress.csv and run.json into the folder. The same options give the same
 * checkpoints, whatever `threads` is, but for two rates in /metrics, which the clock gives
 * (steps_per_second, updates_per_second), and library_versions, which names the machine's
 * libraries; other libraries or processors may round differently.
 *
 * A folder that holds this run, finished, with all its checkpoints, is left as it is: KS_OK. A run
 * that is not finished goes on with `resume`, and its files become those of a run that was never
 * stopped, unless conditions have changed, which run.json then says; without `resume` it is started
 * over and its old checkpoints are removed. Fails with KS_USAGE,
 * KS_FORMAT, KS_IO or KS_MISSING before anything is written; KS_NUMBER where a loss or a parameter
 * is not finite; KS_FULL; KS_RUN on SIGINT, SIGTERM and SIGHUP, and where a run that failed is to
 * be resumed. */
ks_status ks_train(const struct ks_train_options *options);

#endif
