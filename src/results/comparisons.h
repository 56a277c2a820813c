/* Comparison of two architectures on the same tasks, and the performance profile of one. */
#ifndef KS_RESULTS_COMPARISONS_H
#define KS_RESULTS_COMPARISONS_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "results/aggregate.h"

/* Scores of one architecture at one step: of the runs of task 0, of task 1, ... */
struct ks_sample {
    size_t tasks;
    const size_t *runs;  /* [tasks]             */
    const double *value; /* [runs of all tasks] */
};

/* P(x > y) (Agarwal et al. 2021, section 4.3): the mean over tasks of the share of pairs of a run
 * of x and a run of y in which x is greater; a tie counts one half. Its 90% interval: each resample
 * draws runs of all of x's tasks, then runs of all of y's tasks. x and y have the same tasks. Fails
 * with KS_FORMAT if there is no task, if a task has no run, or if a value is NaN. */
ks_status ks_improvement(const struct ks_sample *x, const struct ks_sample *y, size_t resamples,
                         uint64_t seed, struct ks_estimate *probability);

enum { KS_PROFILE_RESAMPLES = 2000 };

struct ks_profile {
    struct ks_sample scores;
    size_t n;
    const double *tau; /* [n] thresholds */
    size_t resamples;
    uint64_t seed; /* of the resamples */
};

/* For each threshold tau (Agarwal et al. 2021, section 4.2): the fraction of all runs of all tasks
 * with a score above tau into runs [n], and the fraction of tasks whose mean score is above tau
 * into means [n] (may be NULL), with 90% intervals. Fails as ks_improvement does. */
ks_status ks_profile(const struct ks_profile *profile, struct ks_estimate *runs,
                     struct ks_estimate *means);

#endif
