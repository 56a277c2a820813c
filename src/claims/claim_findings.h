/* What the runs of a study say about one claim by one statistic, before p-values are adjusted.
 * configs/claims.md has the rules. */
#ifndef KS_CLAIMS_CLAIM_FINDINGS_H
#define KS_CLAIMS_CLAIM_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "claims/paper_claims.h"
#include "core/error.h"
#include "core/interval.h"
#include "results/results.h"
#include "statistics/catalogue.h"

/* --- what a claim is judged by: for each run of the twelve architectures and SimBa-V2 an interval
 * of logarithms, in decades (configs/claims.md, "What is measured") --- */

/* Level, range, growth or mean of n intervals, in the order of training; it contains the value if
 * these contain theirs. An end is NaN if it is undefined (infinity minus infinity). n >=
 * KS_CLAIM_VALUES; reorders the ends. */
struct ks_interval ks_claim_summarize(enum ks_claim_summary summary, size_t n, double *low,
                                      double *high);

/* The statistics by which a quantity is judged, or their intervals. `more_is_better`: more
 * directions are better conditioned, so the interval is turned round. */
struct ks_claim_criterion {
    enum ks_statistic_id statistic;
    bool interval, more_is_better;
};
extern const struct ks_claim_criterion ks_claim_criteria[KS_CLAIM_NEGATIVE][KS_CLAIM_CONTROL];

/* An effect, each end limited to 10 decades, and to -10 or 10 where it is undefined. */
struct ks_interval ks_claim_limit(struct ks_interval effect);
/* The median of x [n], n >= 1, which is sorted here. */
double ks_claim_median(size_t n, double *x);

enum { KS_CLAIM_VALUES = 4 }; /* values over training with which a run counts */

/* What a claim is judged by: its quantity, by one of its statistics. */
struct ks_claim_source {
    const struct ks_paper_claim *claim;
    enum ks_claim_statistic statistic;
    size_t resamples; /* of the bootstrap of a correlation's interval */
    /* Of spectra: the analysis whose statistic it is, one of the start vectors of the paper's; of
     * the revised statistic all start vectors. `n` is 0 if the study has none. */
    struct ks_study_analyses analyses;
    bool unseen; /* only runs that began at ks_claim_revised_from or later count */
};

/* One value per run of a study. */
struct ks_claim_values {
    const struct ks_results *results;
    struct ks_claim_source source;
    size_t seeds;
    size_t architecture[KS_JUDGED]; /* index in the study; n_architectures: not in the study     */
    size_t most; /* values over training of the run that has the most of them   */
    bool counts[KS_JUDGED][KS_STUDY_SEEDS];              /* whether the run has the value */
    struct ks_interval value[KS_JUDGED][KS_STUDY_SEEDS]; /* unset where it does not count */
};

/* Finds the values of all runs. A run counts if at least half of the checkpoints after the first
 * update, up to the last one that any run of the study has a spectrum of, have the statistic, and
 * at least four; likewise for the rows of progress.csv. */
ks_status ks_claim_values_find(const struct ks_results *results,
                               const struct ks_claim_source *source,
                               struct ks_claim_values *values);

/* The analysis by which a statistic of spectra is judged: the standard one; for the paper's
 * statistic the published code's choices, [analyze xqc] with compat = xqc, and for the revised one
 * this with its other start vectors; for the control, where it is used for batch normalization
 * alone, one with batchnorm = loss. None if the study has none. */
struct ks_study_analyses ks_claim_analyses(const struct ks_study *study,
                                           enum ks_claim_statistic statistic);

/* The number of checkpoints that are used: those after the first update, up to the last one that
 * any run of the study has a spectrum of. */
size_t ks_claim_checkpoints(const struct ks_results *results);

/* --- findings --- */

enum { KS_CLAIM_SEEDS = 3 }; /* seeds with which there is a verdict */

struct ks_finding {
    size_t seeds; /* seeds that have all runs that the claim needs */
    size_t units; /* matched pairs, seeds, or architectures        */
    /* Of pairs: the ends of the mean effect. Of a correlation: the smaller and the larger of its
     * values. Of everything else the smallest and the largest over the seeds: of the possible
     * ranks, of |growth|, of the ends of the effect. NaN: none, or undefined. */
    double effect_low, effect_high;
    double theta;  /* the claim's threshold; NaN: none                                         */
    double p;      /* before adjustment; NaN with fewer than KS_CLAIM_SEEDS seeds              */
    double within; /* of a correlation: its mean within BN, LN and none; else NaN              */
    /* From KS_CLAIM_SEEDS seeds on: whether all conditions of "supported", of "not supported" hold
     * except for the adjusted p. With fewer: of "same direction", of "opposite direction".
     */
    bool in_favour, against;
    bool against_needs_p; /* whether "not supported" needs an adjusted p of at most 0.05 */
    bool proved;          /* "supported" needs no p: one case proves the claim            */
};

/* Whether at least six of the twelve have a last return (IQM over the seeds, of the n, in which all
 * twelve have one) above twice their return at step 0: policies that have not learned say nothing
 * about returns. */
ks_status ks_claim_learned(const struct ks_claim_values *values, size_t n, const size_t *seed,
                           bool *learned);

/* Judges a claim by the values of one statistic, as its kind asks. */
ks_status ks_claim_find(const struct ks_claim_values *values, struct ks_finding *finding);
/* The kind KS_CLAIM_CORRELATION, into a finding that has no numbers but the claim's theta and the
 * number of seeds in which all runs that it needs count. */
ks_status ks_find_correlation(const struct ks_claim_values *values, const size_t *seed,
                              struct ks_finding *finding);

#endif
