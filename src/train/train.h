/* Training, from a seed to the last checkpoint. */
#ifndef KS_TRAIN_TRAIN_H
#define KS_TRAIN_TRAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "train/run.h"

struct ks_resume_points;

/* Trains, from claiming the run's folder to the last checkpoint: what ks_train does with a new run.
 */
ks_status ks_run_train(struct ks_run *run);

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

/* save_checkpoint.c. Writes the checkpoint of the run's current step: networks, moments, metrics,
 * and frozen minibatches for the analyzer. Fails with KS_NUMBER if a parameter or a moment
 * is not finite, KS_MEMORY, KS_IO, KS_FULL. */
ks_status ks_save_checkpoint(struct ks_run *run);

/* *all: the files of all checkpoints of the plan exist. Fails with KS_MEMORY. */
ks_status ks_checkpoint_files_exist(const struct ks_plan *plan, bool *all);

/* For a run that is about to train from env_step on: fails with KS_FORMAT if an earlier checkpoint
 * is missing that has no spectrum, and removes later ones, which an earlier start of the run has
 * left. `recorded`: the checkpoint at env_step itself, if any, counts as earlier. Also fails with
 * KS_IO. */
ks_status ks_checkpoint_files_check(const struct ks_plan *plan, size_t env_step, bool recorded);

/* announce.c. Fails with KS_MEMORY if the machine does not have the memory that replay will take
 * until the run stops. */
ks_status ks_check_memory(const struct ks_run *run);
/* Prints on standard error where the run starts, how much memory and disk it will take, and what
 * may surprise. `resumed`: the run continues from a resume point. */
void ks_announce(struct ks_run *run, const struct ks_resume_points *points, bool resumed);

#endif
