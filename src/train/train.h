/* The training engine: one run, from a seed to its checkpoints. */
#ifndef KS_TRAIN_TRAIN_H
#define KS_TRAIN_TRAIN_H

#include "core/error.h"
#include "train/settings.h"

/* Trains, and writes checkpoints, progress.csv and run.json into the folder options->out.
 *
 * Equal options give equal checkpoints for any number of threads, except for two metrics that
 * depend on the clock (steps_per_second, updates_per_second) and library_versions, which names the
 * libraries of this machine. Other libraries or processors may round differently.
 *
 * If the folder holds this run, finished and with all its checkpoints, nothing is done: KS_OK. An
 * unfinished run continues if options->resume says so; its files then equal the files of a run
 * that was never stopped, unless the conditions have changed, which run.json records. Otherwise the
 * run starts over and its old checkpoints are removed.
 *
 * Errors: KS_USAGE, KS_FORMAT or KS_MISSING before training begins; KS_IO; KS_MEMORY; KS_NUMBER if
 * a loss or a parameter is not finite; KS_FULL; KS_RUN on SIGINT, SIGTERM and SIGHUP, and on an
 * attempt to resume a run that failed permanently. */
ks_status ks_train(const struct ks_train_options *options);

#endif
