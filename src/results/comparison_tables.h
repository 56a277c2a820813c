/* Tables that compare a study's architectures, as CSV. */
#ifndef KS_RESULTS_COMPARISON_TABLES_H
#define KS_RESULTS_COMPARISON_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "results/aggregate.h"
#include "results/results.h"

/* The architectures that are compared, and their runs. */
struct ks_comparison {
    const struct ks_results *results;
    size_t n;
    size_t *architecture;         /* [n]; owned */
    size_t *runs;                 /* [n]; owned */
    const struct ks_result **run; /* [runs of all]; the list is owned */
    double *last; /* [runs of all] returns at the last evaluation that all runs have; owned */
    size_t resamples;
};
/* Makes a comparison of no architectures. The caller frees it, also after a failure. KS_MEMORY. */
ks_status ks_comparison_begin(const struct ks_results *results, size_t resamples,
                              struct ks_comparison *comparison);
/* Adds an architecture, with its n runs that are to be compared. */
void ks_comparison_add(struct ks_comparison *comparison, size_t architecture, size_t n,
                       const struct ks_result *const *run);
/* The return of a run at that evaluation. */
double ks_comparison_last(const struct ks_results *results, const struct ks_result *run);
/* With all complete runs of all included architectures, in the order of ks_results_order. */
ks_status ks_comparison_new(const struct ks_results *results, size_t resamples,
                            struct ks_comparison *comparison);
void ks_comparison_free(struct ks_comparison *comparison);

/* improvement.csv: for every ordered pair of architectures the probability that a run of the first
 * has a higher last return than a run of the second. */
ks_status ks_comparison_write_improvement(const struct ks_comparison *c, FILE *out);

/* profile.csv: for every architecture and threshold tau the fraction of runs whose normalized last
 * return is above tau. Only the header if the task has no random and target return, see
 * score_ranges.h.
 */
ks_status ks_comparison_write_profile(const struct ks_comparison *c, FILE *out);

/* A statistic of the spectra against the last return: a point per architecture, the IQM over its
 * runs and their checkpoints after the first update, and the IQM of its runs' last returns. */
struct ks_correlation {
    bool logarithm; /* whether the statistic is pooled as its log10     */
    size_t n;       /* architectures that have both coordinates         */
    double *x, *y;  /* [architectures] NaN where there is no value; owned */
    struct ks_estimate spearman;
    double p; /* of the two-sided permutation test */
};
/* `statistic`: the name of a column of statistics in correlation.csv. The caller frees with
 * ks_correlation_free, also after a failure. */
ks_status ks_comparison_correlate(const struct ks_comparison *c, size_t analysis,
                                  const char *statistic, struct ks_correlation *correlation);
void ks_correlation_free(struct ks_correlation *correlation);

/* correlation.csv: Spearman's correlation of statistics of the spectra with the last return over
 * the architectures, with the p-value of its permutation test; a row per analysis and statistic. */
ks_status ks_comparison_write_correlation(const struct ks_comparison *c, FILE *out);

#endif
