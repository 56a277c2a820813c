/* A run's checkpoint: networks, moments, metrics, and frozen minibatches for the analyzer. */
#ifndef KS_TRAIN_SAVE_CHECKPOINT_H
#define KS_TRAIN_SAVE_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "train/run.h"

/* Writes the checkpoint of the run's current step. Fails with KS_NUMBER if a parameter or a moment
 * is not finite, KS_MEMORY, KS_IO, KS_FULL. */
ks_status ks_save_checkpoint(struct ks_run *run);

/* *all: the files of all checkpoints of the plan exist. Fails with KS_MEMORY. */
ks_status ks_checkpoint_files_exist(const struct ks_plan *plan, bool *all);

/* For a run that is about to train from env_step on: fails with KS_FORMAT if an earlier checkpoint
 * is missing that has no spectrum, and removes later ones, which an earlier start of the run has
 * left. `recorded`: the checkpoint at env_step itself, if any, counts as earlier. Also fails with
 * KS_IO. */
ks_status ks_checkpoint_files_check(const struct ks_plan *plan, size_t env_step, bool recorded);

#endif
