/* A training run: its plan and its state. */
#ifndef KS_TRAIN_RUN_H
#define KS_TRAIN_RUN_H

#include <stdbool.h>

#include "core/error.h"
#include "train/conditions.h"
#include "train/learner.h"
#include "train/metrics.h"
#include "train/plan.h"
#include "train/player.h"

struct ks_run {
    struct ks_plan plan;             /* fixed before the first step                        */
    struct ks_learner learner;       /* agent, environment, replay, counters               */
    struct ks_evaluation evaluation; /* its environment and the last returns               */
    struct ks_conditions conditions; /* threads, versions, ... and their changes           */
    struct ks_metrics *metrics;      /* progress.csv; NULL until it is opened; owned       */
    int lock;                        /* descriptor of the locked folder; -1: not locked    */
    bool recorded;                   /* the record due at the current step is written      */
    char started[32], resumed[32];   /* UTC, ISO 8601; resumed "": the run was not resumed */
    double *env_state;               /* [ks_env_state_size]: work space of state.c; owned  */
};

/* Builds everything but the metrics; nothing is written. Fails with KS_USAGE, KS_FORMAT, KS_IO,
 * KS_MISSING, KS_MEMORY. */
ks_status ks_run_new(const struct ks_train_options *options, struct ks_run **run);
void ks_run_free(struct ks_run *run);
KS_OWNER(ks_run_free, struct ks_run *)

#endif
