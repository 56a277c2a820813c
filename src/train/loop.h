/* The training loop of a run that has been built. */
#ifndef KS_TRAIN_LOOP_H
#define KS_TRAIN_LOOP_H

#include "core/error.h"
#include "train/run.h"

/* Trains, from claiming the run's folder to the last checkpoint: ks_train (train.h) after
 * ks_run_new. */
ks_status ks_run_train(struct ks_run *run);

#endif
