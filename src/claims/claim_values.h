/* What a claim of the paper is judged by: for each run of the twelve architectures and SimBa-V2 an
 * interval of logarithms, in decades (configs/claims.md, "What is measured"). */
#ifndef KS_CLAIMS_CLAIM_VALUES_H
#define KS_CLAIMS_CLAIM_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "claims/paper_claims.h"
#include "core/error.h"
#include "core/interval.h"
#include "results/results.h"

/* Level, range, growth or mean of n intervals, in the order of training; it contains the value if
 * these contain theirs. An end is NaN if it is undefined (infinity minus infinity). n >=
 * KS_CLAIM_VALUES; reorders the ends. */
struct ks_interval ks_claim_summarize(enum ks_claim_summary summary, size_t n, double *low,
                                      double *high);

/* An effect, each end limited to 10 decades, and to -10 or 10 where it is undefined. */
struct ks_interval ks_claim_limit(struct ks_interval effect);
/* The median of x [n], n >= 1, which is sorted here. */
double ks_claim_median(size_t n, double *x);

enum { KS_CLAIM_VALUES = 4 }; /* values over training with which a run counts */

/* One value per run of a study. */
struct ks_claim_values {
    const struct ks_results *results;
    size_t seeds;
    size_t architecture[KS_JUDGED]; /* index in the study; n_architectures: not in the study     */
    size_t most;               /* values over training of the run that has the most of them   */
    bool *counts;              /* [KS_JUDGED, seeds] whether the run has the value; owned   */
    struct ks_interval *value; /* [KS_JUDGED, seeds]; where it does not count, unset; owned */
};

/* A claim's quantity, by one of its statistics. */
struct ks_claim_source {
    enum ks_claim_quantity quantity;
    enum ks_claim_statistic statistic;
    enum ks_claim_summary summary;
};

/* Finds the values of all runs. A run counts if at least half of the checkpoints after the first
 * update, up to the last one that any run of the study has a spectrum of, have the statistic, and
 * at least four; likewise for the rows of progress.csv. The caller frees with ks_claim_values_free,
 * also after a failure. */
ks_status ks_claim_values_find(const struct ks_results *results,
                               const struct ks_claim_source *source,
                               struct ks_claim_values *values);
void ks_claim_values_free(struct ks_claim_values *values);

/* The seeds (indices in the study) in which all `needed` [KS_JUDGED] architectures count, into seed
 * [seeds]; returns how many there are. */
size_t ks_claim_values_seeds(const struct ks_claim_values *values, const bool *needed,
                             size_t *seed);
/* The value of architecture `number` of the KS_JUDGED in a seed. */
struct ks_interval ks_claim_value(const struct ks_claim_values *values, size_t number, size_t seed);

/* The analysis by which a statistic of spectra is judged: the standard one; for the paper's
 * statistic the published code's choices, [analyze xqc] with compat = xqc; for the control, where
 * it is used for batch normalization alone, one with batchnorm = loss. n_analyses if the study has
 * none.
 */
size_t ks_claim_analysis(const struct ks_study *study, enum ks_claim_statistic statistic);

/* The number of checkpoints that are used: those after the first update, up to the last one that
 * any run of the study has a spectrum of. */
size_t ks_claim_checkpoints(const struct ks_results *results);

#endif
