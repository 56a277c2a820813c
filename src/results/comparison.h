/* Comparison of two architectures, the performance profile of one, and the runs of a study that are
 * compared. */
#ifndef KS_RESULTS_COMPARISON_H
#define KS_RESULTS_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "results/aggregate.h"
#include "results/results.h"

/* Scores of one architecture at one step. What is made of a NaN is NaN. */
struct ks_sample {
    size_t runs;         /* at least 1 */
    const double *value; /* [runs]     */
};

/* P(x > y) (Agarwal et al. 2021, section 4.3): the share of pairs of a run of x and a run of y in
 * which x is greater; a tie counts one half. Its 90% interval: each resample draws runs of x, then
 * runs of y. KS_MEMORY. */
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

/* For each threshold tau (Agarwal et al. 2021, section 4.2): the fraction of all runs with a score
 * above tau into fraction [n], with 90% intervals. KS_MEMORY. */
ks_status ks_profile(const struct ks_profile *profile, struct ks_estimate *fraction);

/* The architectures that are compared, and their runs. KS_OWNS_POOL. */
struct ks_comparison {
    struct ks_pool pool; /* of the lists `run` and `last`. Owned */
    const struct ks_results *results;
    size_t n, runs[KS_STUDY_ARCHITECTURES]; /* [n] of each architecture */
    const struct ks_result **run;           /* [runs of all] */
    double *last; /* [runs of all] returns at the last evaluation that all runs have */
    size_t resamples;
};
/* Makes a comparison of no architectures. KS_MEMORY. */
ks_status ks_comparison_begin(const struct ks_results *results, size_t resamples,
                              struct ks_comparison *comparison);
/* Adds an architecture: its n runs that are to be compared. */
void ks_comparison_add(struct ks_comparison *comparison, size_t n,
                       const struct ks_result *const *run);
/* The return of a run at that evaluation; the IQM of an architecture's returns at any evaluation.
 */
double ks_comparison_last(const struct ks_results *results, const struct ks_result *run);
double ks_comparison_return(const struct ks_results *results, size_t architecture,
                            size_t evaluation);
/* With all complete runs of all included architectures, in the order of ks_results_order. */
ks_status ks_comparison_new(const struct ks_results *results, size_t resamples,
                            struct ks_comparison *comparison);

/* The last returns of architecture `i`. Points into the comparison. */
struct ks_sample ks_comparison_sample(const struct ks_comparison *comparison, size_t i);

#endif
