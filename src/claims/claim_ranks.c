/* Claims that are judged seed by seed: the rank of bn+wn+ce among the twelve architectures, its
 * distance to others, and what exists. */
#include <math.h>
#include <stdlib.h>

#include "claims/claim_findings.h"
#include "core/memory.h"
#include "results/p_values.h"

/* The seeds in which all runs that the claim needs count; the caller frees. */
static ks_status find_seeds(const struct ks_claim_question *q, size_t *n, size_t **seed)
{
    bool needed[KS_JUDGED];

    ks_paper_claim_needs(q->claim, needed);
    KS_TRY(ks_alloc(q->values->seeds, sizeof **seed, seed));
    *n = ks_claim_values_seeds(q->values, needed, *seed);
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
static struct ks_interval level_of(const struct ks_claim_values *values, size_t number, size_t seed)
{
    struct ks_interval span = ks_claim_value(values, number, seed);

    return (struct ks_interval){isnan(span.lower) ? -INFINITY : span.lower,
                                isnan(span.upper) ? INFINITY : span.upper};
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
    struct ks_interval best = level_of(values, KS_BEST, seed);
    struct rank rank = {1, 1};

    for (size_t k = 0; k < KS_TWELVE; k++) {
        struct ks_interval other = level_of(values, k, seed);

        if (k == KS_BEST)
            continue;
        rank.least += other.upper < best.lower;
        rank.most += other.lower <= best.upper;
        is_lower[k] = is_lower[k] && other.upper < best.lower - theta;
    }
    return rank;
}

ks_status ks_find_lowest(const struct ks_claim_question *q, struct ks_finding *f)
{
    bool is_lower[KS_TWELVE], any_lower = false;
    size_t *seed = NULL, sum = 0;

    KS_TRY(find_seeds(q, &f->seeds, &seed));
    for (size_t k = 0; k < KS_TWELVE; k++)
        is_lower[k] = k != KS_BEST;
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
    free(seed);
    if (f->seeds < KS_CLAIM_SEEDS)
        return KS_OK;
    f->p = ks_rank_sum_p(f->seeds, KS_TWELVE, sum);
    if (q->claim->quantity == KS_CLAIM_RETURN) {
        bool learned;

        KS_TRY(ks_claim_learned(q, &learned));
        f->in_favour = f->in_favour && learned;
        f->against = f->against && learned;
    }
    return KS_OK;
}

/* --- constancy --- */

/* |growth| of a number; NaN if it is undefined. */
static double size_of(const struct ks_claim_values *values, size_t number, size_t seed)
{
    return fabs(ks_claim_value(values, number, seed).lower);
}

/* Ties get the larger rank, and what is undefined the largest. */
static size_t rank_of_best(const struct ks_claim_values *values, size_t seed)
{
    double best = size_of(values, KS_BEST, seed);
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

    KS_TRY(find_seeds(q, &f->seeds, &seed));
    for (size_t i = 0; i < f->seeds; i++) {
        double size = size_of(q->values, KS_BEST, seed[i]);

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

/* --- the distance between two levels --- */

/* What one seed says: the effect, and the largest possible rank of the architecture that is said to
 * be low, among `of` architectures. */
struct distance {
    struct ks_interval d;
    size_t rank, of;
};

static struct ks_interval subtract(struct ks_interval x, struct ks_interval y)
{
    return ks_claim_limit((struct ks_interval){x.lower - y.upper, x.upper - y.lower});
}

/* The median of the architectures without BN minus bn+wn+ce; its rank among itself and these. */
static struct distance far_below(const struct ks_claim_values *values, size_t seed)
{
    struct ks_interval best = level_of(values, KS_BEST, seed);
    struct distance found = {.rank = 1, .of = 1};
    double low[KS_TWELVE], high[KS_TWELVE];
    size_t n = 0;

    for (size_t k = 0; k < KS_TWELVE; k++) {
        struct ks_interval other = level_of(values, k, seed);

        if (k / 4 == KS_BN)
            continue;
        low[n] = other.lower;
        high[n++] = other.upper;
        found.rank += other.lower <= best.upper;
    }
    found.of += n;
    found.d = subtract((struct ks_interval){ks_claim_median(n, low), ks_claim_median(n, high)},
                       best);
    return found;
}

/* SimBa-V2 minus bn+wn+ce; the rank of SimBa-V2 among itself and the other eleven. */
static struct distance near(const struct ks_claim_values *values, size_t seed)
{
    struct ks_interval simba = level_of(values, KS_SIMBA_V2, seed);
    struct distance found = {.rank = 1, .of = KS_TWELVE};

    for (size_t k = 0; k < KS_TWELVE; k++)
        found.rank += k != KS_BEST && level_of(values, k, seed).lower <= simba.upper;
    found.d = subtract(simba, level_of(values, KS_BEST, seed));
    return found;
}

/* Takes note of all seeds; f->effect_ are the smallest d.lower and the largest d.upper. */
static ks_status measure_distances(const struct ks_claim_question *q,
                                   struct distance (*find)(const struct ks_claim_values *, size_t),
                                   struct ks_finding *f)
{
    size_t *seed = NULL, sum = 0, of = 1;

    KS_TRY(find_seeds(q, &f->seeds, &seed));
    for (size_t i = 0; i < f->seeds; i++) {
        struct distance found = find(q->values, seed[i]);

        widen(f, found.d.lower, found.d.upper);
        sum += found.rank;
        of = found.of;
    }
    f->units = f->seeds;
    if (f->seeds >= KS_CLAIM_SEEDS)
        f->p = ks_rank_sum_p(f->seeds, of, sum);
    free(seed);
    return KS_OK;
}

ks_status ks_find_far_below(const struct ks_claim_question *q, struct ks_finding *f)
{
    KS_TRY(measure_distances(q, far_below, f));
    f->in_favour = f->seeds >= KS_CLAIM_SEEDS ? f->effect_low >= f->theta : f->effect_low > 0;
    f->against = f->effect_high < (f->seeds >= KS_CLAIM_SEEDS ? f->theta : 0);
    return KS_OK;
}

ks_status ks_find_near(const struct ks_claim_question *q, struct ks_finding *f)
{
    KS_TRY(measure_distances(q, near, f));
    f->in_favour = f->effect_high <= f->theta;
    f->against = f->effect_low > f->theta;
    return KS_OK;
}

/* --- what exists --- */

ks_status ks_find_existence(const struct ks_claim_question *q, struct ks_finding *f)
{
    size_t *seed = NULL;

    KS_TRY(find_seeds(q, &f->seeds, &seed));
    for (size_t i = 0; i < f->seeds; i++) {
        double share = 0;

        for (size_t k = 0; k < KS_TWELVE; k++)
            share += ks_claim_value(q->values, k, seed[i]).lower / KS_TWELVE;
        widen(f, share, share);
    }
    f->units = f->seeds;
    f->in_favour = f->effect_low > f->theta; /* false without seeds: NaN */
    f->proved = true;
    free(seed);
    return KS_OK;
}
