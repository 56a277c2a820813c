/* One agent step of training. */
#ifndef KS_TRAIN_STEP_H
#define KS_TRAIN_STEP_H

#include "core/error.h"
#include "train/learner.h"
#include "train/metrics.h"

/* Starts the next training episode. */
ks_status ks_learner_start_episode(struct ks_learner *learner);
/* One agent step: acts, stores the transition and, after the random steps, makes the updates, which
 * are added to `metrics`. Starts the next episode if this one has ended. Fails with KS_NUMBER,
 * KS_RUN, KS_MEMORY; the learner is then in an inconsistent state and may only be described and
 * freed. */
ks_status ks_learner_step(struct ks_learner *learner, struct ks_metrics *metrics);

#endif
