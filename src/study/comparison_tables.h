/* Tables that compare a study's architectures, as CSV. */
#ifndef KS_STUDY_COMPARISON_TABLES_H
#define KS_STUDY_COMPARISON_TABLES_H

#include <stddef.h>
#include <stdio.h>

#include "core/error.h"
#include "study/results.h"

/* The architectures that are compared, in the order of ks_results_order. */
struct ks_comparison {
    const struct ks_results *results;
    size_t n;
    size_t *architecture; /* [n]; owned */
    size_t *runs;         /* [n]; owned */
    double *last; /* [runs of all] returns at the last evaluation that all runs have; owned */
    size_t resamples;
};
ks_status ks_comparison_new(const struct ks_results *results, size_t resamples,
                            struct ks_comparison *comparison);
void ks_comparison_free(struct ks_comparison *comparison);

/* improvement.csv: for every ordered pair of architectures the probability that a run of the first
 * has a higher last return than a run of the second. */
ks_status ks_comparison_write_improvement(const struct ks_comparison *c, FILE *out);

/* profile.csv: for every architecture and threshold tau the fraction of runs whose normalized last
 * return is above tau. Only the header if the task has no random and target score (score_ranges.h).
 */
ks_status ks_comparison_write_profile(const struct ks_comparison *c, FILE *out);

/* correlation.csv: Spearman's correlation of statistics of the spectra with the last return over
 * the architectures, with the p-value of its permutation test; a row per analysis and statistic. */
ks_status ks_comparison_write_correlation(const struct ks_comparison *c, FILE *out);

#endif
