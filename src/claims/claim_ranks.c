/* Claims on the rank of bn+wn+ce among the twelve architectures. */
#include <math.h>
#include <stdlib.h>

#include "claims/claim_findings.h"
#include "core/memory.h"
#include "results/p_values.h"

enum { BEST = KS_TWELVE_OF(KS_BN, 1, KS_CE) };

/* The seeds in which all twelve runs count; the caller frees. */
static ks_status find_seeds(const struct ks_claim_values *values, size_t *n, size_t **seed)
{
    bool all[KS_TWELVE];

    for (size_t k = 0; k < KS_TWELVE; k++)
        all[k] = true;
    KS_TRY(ks_alloc(values->seeds, sizeof **seed, seed));
    *n = ks_claim_values_seeds(values, all, *seed);
    return KS_OK;
}

/* Takes note of a value of one seed. */
static void widen(struct ks_finding *f, double low, double high)
{
    f->effect_low = isnan(f->effect_low) ? low : fmin(f->effect_low, low);
    f->effect_high = isnan(f->effect_high) ? high : fmax(f->effect_high, high);
}

/* --- the lowest of the twelve --- */

/* An end that is undefined says nothing. */
static struct ks_span level_of(const struct ks_claim_values *values, size_t number, size_t seed)
{
    struct ks_span span = ks_claim_value(values, number, seed);

    return (struct ks_span){isnan(span.low) ? -INFINITY : span.low,
                            isnan(span.high) ? INFINITY : span.high};
}

/* The smallest and the largest rank that an architecture can have. */
struct rank {
    size_t least, most;
};

/* The rank of bn+wn+ce in a seed; is_lower [KS_TWELVE]: stays true for architectures that are below
 * it by more than theta. */
static struct rank find_rank(const struct ks_claim_values *values, size_t seed, double theta,
                             bool *is_lower)
{
    struct ks_span best = level_of(values, BEST, seed);
    struct rank rank = {1, 1};

    for (size_t k = 0; k < KS_TWELVE; k++) {
        struct ks_span other = level_of(values, k, seed);

        if (k == BEST)
            continue;
        rank.least += other.high < best.low;
        rank.most += other.low <= best.high;
        is_lower[k] = is_lower[k] && other.high < best.low - theta;
    }
    return rank;
}

ks_status ks_find_lowest(const struct ks_claim_question *q, struct ks_finding *f)
{
    bool is_lower[KS_TWELVE], any_lower = false;
    size_t *seed = NULL, sum = 0;

    KS_TRY(find_seeds(q->values, &f->seeds, &seed));
    for (size_t k = 0; k < KS_TWELVE; k++)
        is_lower[k] = k != BEST;
    for (size_t i = 0; i < f->seeds; i++) {
        struct rank rank = find_rank(q->values, seed[i], f->theta, is_lower);

        widen(f, (double)rank.least, (double)rank.most);
        sum += rank.most;
    }
    for (size_t k = 0; k < KS_TWELVE; k++)
        any_lower = any_lower || is_lower[k];
    f->units = f->seeds;
    f->in_favour = f->effect_high == 1; /* false without seeds: NaN */
    f->against = f->seeds >= KS_CLAIM_SEEDS ? any_lower : f->effect_low > 1;
    if (f->seeds >= KS_CLAIM_SEEDS)
        f->p = ks_rank_sum_p(f->seeds, KS_TWELVE, sum);
    free(seed);
    return KS_OK;
}

/* --- constancy --- */

/* |growth| of a number; NaN if it is undefined. */
static double size_of(const struct ks_claim_values *values, size_t number, size_t seed)
{
    return fabs(ks_claim_value(values, number, seed).low);
}

/* Ties get the larger rank, and what is undefined the largest. */
static size_t rank_of_best(const struct ks_claim_values *values, size_t seed)
{
    double best = size_of(values, BEST, seed);
    size_t rank = 0;

    for (size_t k = 0; k < KS_TWELVE; k++) {
        double size = size_of(values, k, seed);

        rank += isnan(best) || size <= best;
    }
    return rank;
}

ks_status ks_find_constancy(const struct ks_claim_question *q, struct ks_finding *f)
{
    size_t *seed = NULL, sum = 0;
    bool undefined = false;

    KS_TRY(find_seeds(q->values, &f->seeds, &seed));
    for (size_t i = 0; i < f->seeds; i++) {
        double size = size_of(q->values, BEST, seed[i]);

        undefined = undefined || isnan(size);
        widen(f, size, size);
        sum += rank_of_best(q->values, seed[i]);
    }
    f->units = f->seeds;
    f->in_favour = !undefined && f->effect_high <= f->theta;
    f->against = !undefined && f->effect_low > f->theta;
    if (undefined)
        f->effect_low = f->effect_high = NAN;
    if (f->seeds >= KS_CLAIM_SEEDS)
        f->p = ks_rank_sum_p(f->seeds, KS_TWELVE, sum);
    free(seed);
    return KS_OK;
}
