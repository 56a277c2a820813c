/* The rules by which a run may use a folder. */
#ifndef KS_TRAIN_RUN_FOLDER_H
#define KS_TRAIN_RUN_FOLDER_H

#include <stdbool.h>

#include "core/error.h"
#include "train/run.h"

/* Makes the run's folder, locks it against other processes that train (run->lock), and reads its
 * run.json. Fails with KS_IO; KS_FORMAT; KS_USAGE if the folder holds a different run (a run that
 * differs only in `threads` or --stop-at is the same); with --resume also KS_RUN if this run has
 * failed permanently.
 * *finished: the folder holds this run, finished, with all its checkpoints. */
ks_status ks_run_claim_folder(struct ks_run *run, bool *finished);

#endif
