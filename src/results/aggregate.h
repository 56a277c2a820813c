/* Aggregates over runs: interquartile means, stratified bootstrap intervals, areas under curves,
 * rank correlations. The statistics of a single spectrum are in statistics/statistics.h.
 *
 * Agarwal, Schwarzer, Castro, Courville, Bellemare, "Deep reinforcement learning at the edge of the
 * statistical precipice", NeurIPS 2021. All in float64. A resample depends only on the seed
 * and its draw numbers, so results are the same on every machine and for any number of threads. */
#ifndef KS_RESULTS_AGGREGATE_H
#define KS_RESULTS_AGGREGATE_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/interval.h"

/* Interquartile mean: sorts `values`, drops floor(n/4) from each end and returns the mean of the
 * rest. Infinite values sort to the ends; a NaN or n = 0 gives NaN. */
double ks_iqm(size_t n, double *values);
/* Whether a return is above twice that at the start: the policy has learned. For a return below 0
 * at the start: whether it has risen by more than its size. */
static inline bool ks_has_doubled(double start, double value)
{
    return value - start > fabs(start);
}
/* The interquartile mean without the NaNs. */
double ks_iqm_drop(size_t n, double *values);

/* Quantile q of ascending values, with linear interpolation: h = (n - 1) q. */
double ks_quantile(size_t n, const double *sorted, double q);

/* The mean height of a curve: trapezoidal rule over t[0] < ... < t[n-1], divided by t[n-1] - t[0].
 * n >= 2. */
double ks_curve_area(size_t n, const double *t, const double *y);

/* Output number k of the generator SplitMix64 with that seed (Steele, Lea, Flood, OOPSLA 2014), and
 * the index below n derived from it. */
uint64_t ks_splitmix(uint64_t seed, uint64_t k);
size_t ks_splitmix_index(uint64_t seed, uint64_t k, size_t n);

/* A stratified bootstrap. Runs are numbered consecutively: all of stratum 0, all of stratum 1, ...
 */
struct ks_bootstrap {
    size_t resamples; /* 0: no intervals */
    uint64_t seed;
    size_t strata;
    const size_t *runs; /* [strata] runs of each */
};

#define KS_BOOTSTRAP_RESAMPLES 50000
#define KS_BOOTSTRAP_LEVEL     0.90 /* the coverage of its intervals */

/* A function of a resample: from the runs that were drawn to `outputs` numbers. */
struct ks_estimator {
    size_t outputs, work; /* numbers that it computes; doubles of scratch that it needs */
    const void *data;
    /* index [runs of all strata]: the runs that were drawn. Called from several threads at once. */
    void (*evaluate)(const void *data, const size_t *index, double *work, double *out);
};

/* The number of runs in all strata. */
size_t ks_bootstrap_runs(const struct ks_bootstrap *bootstrap);
/* Draws resample number `resample` into index [runs of all strata]: runs of each stratum, with
 * replacement. */
void ks_bootstrap_draw(const struct ks_bootstrap *bootstrap, size_t resample, size_t *index);
/* Values and percentile intervals into estimates [outputs]. An interval is undefined if every
 * stratum has one run, without resamples, and if the output is NaN in any resample. */
ks_status ks_bootstrap_run(const struct ks_bootstrap *bootstrap,
                           const struct ks_estimator *estimator, struct ks_estimate *estimates);

/* A score of every run at every step: returns at evaluations, kappa at checkpoints. */
struct ks_scores {
    size_t strata;      /* tasks                                       */
    const size_t *runs; /* [strata]                          */
    size_t steps;
    const double *step;  /* [steps], ascending               */
    const double *value; /* [runs of all strata, steps]; NaNs are dropped */
};

/* The IQM over all runs at each step into curve [steps], and the area under that curve into *area
 * (may be NULL; NaN for one step). All steps and the area use the same resamples. */
ks_status ks_iqm_curve(const struct ks_scores *scores, size_t resamples, uint64_t seed,
                       struct ks_estimate *curve, struct ks_estimate *area);

#endif
