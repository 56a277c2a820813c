/* A run's checkpoint: networks, moments, metrics, and frozen minibatches for the analyzer. */
#ifndef KS_TRAIN_SAVE_CHECKPOINT_H
#define KS_TRAIN_SAVE_CHECKPOINT_H

#include "core/error.h"
#include "train/run.h"

/* Writes the checkpoint of the run's current step. Fails with KS_NUMBER if a parameter or a moment
 * is not finite, KS_MEMORY, KS_IO, KS_FULL. */
ks_status ks_save_checkpoint(struct ks_run *run);

#endif
