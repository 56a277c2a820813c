/* What a run says before its first step. */
#ifndef KS_TRAIN_ANNOUNCE_H
#define KS_TRAIN_ANNOUNCE_H

#include <stdbool.h>

#include "train/resume_point.h"
#include "train/run.h"

/* Prints on standard error where the run starts, how much memory and disk it will take, and what
 * may surprise. `resumed`: the run continues from a resume point. */
void ks_announce(struct ks_run *run, const struct ks_resume_points *points, bool resumed);

#endif
