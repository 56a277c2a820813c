#include "claims/claim_findings.h"

#include <math.h>

#include "results/correlation.h"

/* --- matched pairs: two runs of one seed that differ in one factor --- */

/* The effects of all pairs, [cells, seeds]. */
struct pairs {
    size_t cells, seeds;
    double low[KS_CLAIM_CELLS * KS_STUDY_SEEDS], high[KS_CLAIM_CELLS * KS_STUDY_SEEDS];
};

static struct ks_interval find_effect(const struct ks_paper_claim *claim, struct ks_interval larger,
                                      struct ks_interval smaller)
{
    struct ks_interval d = {larger.lower - smaller.upper, larger.upper - smaller.lower};

    if (claim->effect == KS_AND_LARGER)
        d = (struct ks_interval){ks_min_known(larger.lower, d.lower),
                                 ks_min_known(larger.upper, d.upper)};
    else if (claim->effect == KS_AND_FALL)
        d = (struct ks_interval){ks_min_known(-smaller.upper, d.lower),
                                 ks_min_known(-smaller.lower, d.upper)};
    else if (claim->effect == KS_MINUS_ABSOLUTE) /* of a number: both ends are the same */
        d = (struct ks_interval){-fabs(larger.lower), -fabs(larger.upper)};
    return ks_claim_limit(d);
}

/* The mean of d [cells, seeds] without seed `left_out` (seeds: with all). All cells have the same
 * seeds, so it is the mean over the cells of their means. */
static double mean_without(size_t cells, size_t seeds, const double *d, size_t left_out)
{
    double sum = 0;
    size_t n = 0;

    for (size_t c = 0; c < cells; c++)
        for (size_t i = 0; i < seeds; i++)
            if (i != left_out) {
                sum += d[c * seeds + i];
                n++;
            }
    return sum / (double)n;
}

/* Whether the mean is at least theta, or with `below` below it, with all seeds and without any one
 * of them. */
static bool stays(const struct pairs *p, const double *d, double theta, bool below)
{
    for (size_t i = 0; i <= p->seeds; i++)
        if ((mean_without(p->cells, p->seeds, d, i) < theta) != below)
            return false;
    return true;
}

/* The one-sided p of the numbers sign * (d - theta). */
static double test(const struct pairs *p, const double *d, double theta, double sign)
{
    double shifted[KS_CLAIM_CELLS * KS_STUDY_SEEDS];
    size_t n = p->cells * p->seeds;

    for (size_t i = 0; i < n; i++)
        shifted[i] = sign * (d[i] - theta);
    return ks_sign_flip_test(n, shifted, KS_PERMUTATIONS, 0).p;
}

/* With one or two seeds: the sign of a difference, or on which side of theta a size is. */
static void decide_direction(enum ks_claim_effect effect, struct ks_finding *f)
{
    bool is_size = effect == KS_MINUS_ABSOLUTE;

    f->in_favour = is_size ? f->effect_low >= f->theta : f->effect_low > 0;
    f->against = f->effect_high < (is_size ? f->theta : 0);
}

/* lone [seeds]: the effects in the cell that must show it by itself; NULL: none. */
static void decide(const struct pairs *p, const double *lone, struct ks_finding *f)
{
    const double theta = f->theta, p_for = test(p, p->low, theta, 1),
                 p_against = test(p, p->high, theta, -1);

    f->p = fmin(1, 2 * fmin(p_for, p_against));
    f->in_favour = stays(p, p->low, theta, false) && p_for < p_against &&
                   (!lone || mean_without(1, p->seeds, lone, p->seeds) >= theta);
    f->against = stays(p, p->high, theta, true) && p_against < p_for;
    f->against_needs_p = true;
}

static ks_status find_pairs(const struct ks_claim_question *q, const size_t *seed,
                            struct ks_finding *f)
{
    size_t larger[KS_CLAIM_CELLS], smaller[KS_CLAIM_CELLS];
    const double *lone = NULL;
    struct pairs p = {.cells = ks_paper_claim_cells(q->claim, larger, smaller), .seeds = f->seeds};

    f->units = p.cells * p.seeds;
    if (f->seeds == 0)
        return KS_OK;
    for (size_t c = 0; c < p.cells; c++) {
        if (q->claim->has_cell && larger[c] == q->claim->cell)
            lone = p.low + c * p.seeds;
        for (size_t i = 0; i < p.seeds; i++) {
            struct ks_interval d = find_effect(q->claim, q->values->value[larger[c]][seed[i]],
                                               q->values->value[smaller[c]][seed[i]]);

            p.low[c * p.seeds + i] = d.lower;
            p.high[c * p.seeds + i] = d.upper;
        }
    }
    f->effect_low = mean_without(p.cells, p.seeds, p.low, p.seeds);
    f->effect_high = mean_without(p.cells, p.seeds, p.high, p.seeds);
    if (f->seeds < KS_CLAIM_SEEDS)
        decide_direction(q->claim->effect, f);
    else
        decide(&p, lone, f);
    return KS_OK;
}

/* --- claims that are judged seed by seed --- */

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
    struct ks_interval span = values->value[number][seed];

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

static ks_status find_lowest(const struct ks_claim_question *q, const size_t *seed,
                             struct ks_finding *f)
{
    bool is_lower[KS_TWELVE], any_lower = false;
    size_t sum = 0;

    for (size_t k = 0; k < KS_TWELVE; k++)
        is_lower[k] = k != KS_BEST;
    for (size_t i = 0; i < f->seeds; i++) {
        struct rank rank = find_rank(q->values, seed[i], f->theta, is_lower);

        widen(f, (double)rank.least, (double)rank.most);
        sum += rank.most;
    }
    for (size_t k = 0; k < KS_TWELVE; k++)
        any_lower = any_lower || is_lower[k];
    f->in_favour = f->effect_high == 1; /* false without seeds: NaN */
    f->against = f->seeds >= KS_CLAIM_SEEDS ? any_lower : f->effect_low > 1;
    if (f->seeds < KS_CLAIM_SEEDS)
        return KS_OK;
    f->p = ks_rank_sum_p(f->seeds, KS_TWELVE, sum);
    if (q->claim->quantity == KS_CLAIM_RETURN) {
        bool learned;

        KS_TRY(ks_claim_learned(q, f->seeds, seed, &learned));
        f->in_favour = f->in_favour && learned;
        f->against = f->against && learned;
    }
    return KS_OK;
}

/* --- constancy --- */

/* |growth| of a number; NaN if it is undefined. */
static double size_of(const struct ks_claim_values *values, size_t number, size_t seed)
{
    return fabs(values->value[number][seed].lower);
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

static ks_status find_constancy(const struct ks_claim_question *q, const size_t *seed,
                                struct ks_finding *f)
{
    size_t sum = 0;
    bool undefined = false;

    for (size_t i = 0; i < f->seeds; i++) {
        double size = size_of(q->values, KS_BEST, seed[i]);

        undefined = undefined || isnan(size);
        widen(f, size, size);
        sum += rank_of_best(q->values, seed[i]);
    }
    f->in_favour = !undefined && f->effect_high <= f->theta;
    f->against = !undefined && f->effect_low > f->theta;
    if (undefined)
        f->effect_low = f->effect_high = NAN;
    if (f->seeds >= KS_CLAIM_SEEDS)
        f->p = ks_rank_sum_p(f->seeds, KS_TWELVE, sum);
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
static void measure_distances(const struct ks_claim_question *q, const size_t *seed,
                              struct distance (*find)(const struct ks_claim_values *, size_t),
                              struct ks_finding *f)
{
    size_t sum = 0, of = 1;

    for (size_t i = 0; i < f->seeds; i++) {
        struct distance found = find(q->values, seed[i]);

        widen(f, found.d.lower, found.d.upper);
        sum += found.rank;
        of = found.of;
    }
    if (f->seeds >= KS_CLAIM_SEEDS)
        f->p = ks_rank_sum_p(f->seeds, of, sum);
}

static ks_status find_far_below(const struct ks_claim_question *q, const size_t *seed,
                                struct ks_finding *f)
{
    measure_distances(q, seed, far_below, f);
    f->in_favour = f->seeds >= KS_CLAIM_SEEDS ? f->effect_low >= f->theta : f->effect_low > 0;
    f->against = f->effect_high < (f->seeds >= KS_CLAIM_SEEDS ? f->theta : 0);
    return KS_OK;
}

static ks_status find_near(const struct ks_claim_question *q, const size_t *seed,
                           struct ks_finding *f)
{
    measure_distances(q, seed, near, f);
    f->in_favour = f->effect_high <= f->theta;
    f->against = f->effect_low > f->theta;
    return KS_OK;
}

/* --- what exists --- */

static ks_status find_existence(const struct ks_claim_question *q, const size_t *seed,
                                struct ks_finding *f)
{
    for (size_t i = 0; i < f->seeds; i++) {
        double share = 0;

        for (size_t k = 0; k < KS_TWELVE; k++)
            share += q->values->value[k][seed[i]].lower / KS_TWELVE;
        widen(f, share, share);
    }
    f->in_favour = f->effect_low > f->theta; /* false without seeds: NaN */
    f->proved = true;
    return KS_OK;
}

/* --- any claim --- */

ks_status ks_claim_find(const struct ks_claim_question *q, struct ks_finding *f)
{
    static ks_status (*const find_by[])(const struct ks_claim_question *, const size_t *,
                                        struct ks_finding *) = {
        [KS_CLAIM_PAIRS] = find_pairs,
        [KS_CLAIM_LOWEST] = find_lowest,
        [KS_CLAIM_CORRELATION] = ks_find_correlation,
        [KS_CLAIM_CONSTANT] = find_constancy,
        [KS_CLAIM_FAR_BELOW] = find_far_below,
        [KS_CLAIM_NEAR] = find_near,
        [KS_CLAIM_EXISTS] = find_existence,
    };
    bool needed[KS_JUDGED];
    size_t seed[KS_STUDY_SEEDS], n;

    ks_paper_claim_needs(q->claim, needed);
    n = ks_claim_values_seeds(q->values, needed, seed);
    *f = (struct ks_finding){.seeds = n,
                             .units = n,
                             .effect_low = NAN,
                             .effect_high = NAN,
                             .theta = ks_paper_claim_theta(q->claim, q->statistic),
                             .p = NAN,
                             .within = NAN};
    return find_by[q->claim->kind](q, seed, f);
}
