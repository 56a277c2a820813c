/* Aggregates over runs: interquartile means, stratified bootstrap intervals, areas under curves.
 *
 * Agarwal, Schwarzer, Castro, Courville, Bellemare, "Deep reinforcement learning at the edge of the
 * statistical precipice", NeurIPS 2021. All in float64. Resamples depend on (seed, draw number)
 * alone, so results are the same everywhere and for any number of threads. */
#ifndef KS_STUDY_AGGREGATE_H
#define KS_STUDY_AGGREGATE_H

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* A value and its interval; low and high are NaN where the interval is undefined. */
struct ks_estimate {
    double value, low, high;
};

/* Interquartile mean: sorts `values`, drops floor(n/4) from each end, means the rest. Infinite
 * values sort to the ends; NaNs and n = 0 give NaN. */
double ks_iqm(size_t n, double *values);
/* The same without the NaNs; *dropped (may be NULL) is raised by how many there were. */
double ks_iqm_drop(size_t n, double *values, size_t *dropped);

/* Quantile q of ascending values, with linear interpolation: h = (n - 1) q. */
double ks_quantile(size_t n, const double *sorted, double q);

/* Trapezoids over t[0] < ... < t[n-1], divided by t[n-1] - t[0]: the mean height. n >= 2. */
double ks_curve_area(size_t n, const double *t, const double *y);

/* Spearman's rank correlation, average ranks on ties; NaN for n < 2 or a constant list. */
ks_status ks_spearman(size_t n, const double *x, const double *y, double *correlation);

/* Draw number k of the generator with that seed (SplitMix64: Steele, Lea, Flood, OOPSLA 2014), and
 * the index below n made of it. */
uint64_t ks_splitmix(uint64_t seed, uint64_t k);
size_t ks_splitmix_index(uint64_t seed, uint64_t k, size_t n);

/* A stratified bootstrap. Runs are numbered through all strata: those of stratum 0, of stratum 1,
 * ... */
struct ks_bootstrap {
    size_t resamples; /* 0: point values only */
    uint64_t seed;
    double level; /* of the interval, 0.90 */
    size_t strata;
    const size_t *runs; /* [strata] */
};

enum { KS_BOOTSTRAP_RESAMPLES = 50000 };
#define KS_BOOTSTRAP_LEVEL 0.90

/* What is estimated: `outputs` numbers of a draw of runs. */
struct ks_estimator {
    size_t outputs, work; /* numbers it gives; doubles of scratch it needs */
    const void *data;
    /* index [runs of all strata]: the run in each slot. Called from several threads at once. */
    void (*evaluate)(const void *data, const size_t *index, double *work, double *out);
};

/* Runs of all strata together. */
size_t ks_bootstrap_runs(const struct ks_bootstrap *bootstrap);
/* Resample number `resample`: index [runs of all strata]; a run is drawn whole, strata stay apart.
 */
void ks_bootstrap_draw(const struct ks_bootstrap *bootstrap, size_t resample, size_t *index);
/* Point values and percentile intervals into estimates [outputs]. Intervals are undefined where
 * every stratum has one run, without resamples, and for outputs that are NaN in a resample. */
ks_status ks_bootstrap_run(const struct ks_bootstrap *bootstrap,
                           const struct ks_estimator *statistic, struct ks_estimate *estimates);

/* Values of runs over steps: returns at evaluations, kappa at checkpoints. */
struct ks_scores {
    size_t strata;      /* tasks                             */
    const size_t *runs; /* [strata]                          */
    size_t steps;
    const double *step;  /* [steps], ascending               */
    const double *value; /* [runs of all strata, steps]; NaN: dropped */
};

/* The IQM over all runs at each step into curve [steps], and the area under that curve into *area
 * (may be NULL; NaN for one step). One bootstrap serves all steps and the area. */
ks_status ks_iqm_curve(const struct ks_scores *scores, size_t resamples, uint64_t seed,
                       struct ks_estimate *curve, struct ks_estimate *area);

#endif
