/* What the runs of a study say about one claim by one statistic, before p-values are adjusted.
 * configs/claims.md has the rules. */
#ifndef KS_CLAIMS_CLAIM_FINDINGS_H
#define KS_CLAIMS_CLAIM_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "claims/claim_values.h"
#include "claims/paper_claims.h"
#include "core/error.h"
#include "results/results.h"

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

/* A claim by one statistic, and what it is judged by. */
struct ks_claim_question {
    const struct ks_paper_claim *claim;
    enum ks_claim_statistic statistic;
    const struct ks_results *results;
    size_t resamples;                     /* of the bootstrap of a correlation's interval */
    const struct ks_claim_values *values; /* of the claim's quantity, by the statistic    */
};

/* Whether at least six of the twelve have a last return (IQM over the seeds in which all of them
 * count) above twice their return at step 0: policies that have not learned say nothing about
 * returns. */
ks_status ks_claim_learned(const struct ks_claim_question *question, bool *learned);

/* Judges a claim by one statistic, as its kind asks. */
ks_status ks_claim_find(const struct ks_claim_question *question, struct ks_finding *finding);
/* The kind KS_CLAIM_CORRELATION, into a finding that has no seeds, no numbers and the claim's
 * theta.
 */
ks_status ks_find_correlation(const struct ks_claim_question *question, struct ks_finding *finding);

#endif
