/* A training run: its parts. */
#ifndef KS_TRAIN_RUN_H
#define KS_TRAIN_RUN_H

#include <stdbool.h>

#include "core/error.h"
#include "train/conditions.h"
#include "train/evaluation.h"
#include "train/learner.h"
#include "train/metrics.h"
#include "train/plan.h"

struct ks_run {
    struct ks_plan plan;             /* what is to be done           */
    struct ks_learner learner;       /* what computes                */
    struct ks_evaluation evaluation; /* how good the policy is       */
    struct ks_conditions conditions; /* what rounding depends on     */
    struct ks_metrics *metrics;      /* progress.csv; NULL until it is opened; owned */
    bool recorded; /* the evaluation, row and checkpoint due at the current step are done */
    int lock;      /* descriptor of the locked folder; -1: not locked             */
    char started[32], resumed[32]; /* UTC, ISO 8601; "": it was not resumed               */
    double *env_state;             /* [ks_env_state_size]: work space of state.c; owned           */
};

/* Builds all parts but the metrics; nothing is written. Fails with KS_USAGE, KS_FORMAT, KS_IO,
 * KS_MISSING, KS_MEMORY. */
ks_status ks_run_new(const struct ks_train_options *options, struct ks_run **run);
void ks_run_free(struct ks_run *run);

#endif
