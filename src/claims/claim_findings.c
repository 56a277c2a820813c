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
    return ks_sign_flip_test(n, shifted);
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

static ks_status find_pairs(const struct ks_claim_values *v, const size_t *seed,
                            struct ks_finding *f)
{
    size_t larger[KS_CLAIM_CELLS], smaller[KS_CLAIM_CELLS];
    const double *lone = NULL;
    struct pairs p = {.cells = ks_paper_claim_cells(v->source.claim, larger, smaller),
                      .seeds = f->seeds};

    f->units = p.cells * p.seeds;
    if (f->seeds == 0)
        return KS_OK;
    for (size_t c = 0; c < p.cells; c++) {
        if (v->source.claim->has_cell && larger[c] == v->source.claim->cell)
            lone = p.low + c * p.seeds;
        for (size_t i = 0; i < p.seeds; i++) {
            struct ks_interval d = find_effect(v->source.claim, v->value[larger[c]][seed[i]],
                                               v->value[smaller[c]][seed[i]]);

            p.low[c * p.seeds + i] = d.lower;
            p.high[c * p.seeds + i] = d.upper;
        }
    }
    f->effect_low = mean_without(p.cells, p.seeds, p.low, p.seeds);
    f->effect_high = mean_without(p.cells, p.seeds, p.high, p.seeds);
    if (f->seeds < KS_CLAIM_SEEDS)
        decide_direction(v->source.claim->effect, f);
    else
        decide(&p, lone, f);
    return KS_OK;
}

/* --- claims that are judged seed by seed --- */

enum { WITHOUT_BN = KS_TWELVE - KS_TWELVE / 3 };

/* What one seed says: the effect, and the rank, of which the larger the worse for the claim. */
struct seen {
    struct ks_interval d;
    size_t rank;
};

/* An end that is undefined says nothing. */
static struct ks_interval level_of(const struct ks_claim_values *values, size_t number, size_t seed)
{
    struct ks_interval span = values->value[number][seed];

    return (struct ks_interval){isnan(span.lower) ? -INFINITY : span.lower,
                                isnan(span.upper) ? INFINITY : span.upper};
}

static struct ks_interval subtract(struct ks_interval x, struct ks_interval y)
{
    return ks_claim_limit((struct ks_interval){x.lower - y.upper, x.upper - y.lower});
}

/* The smallest and the largest rank that bn+wn+ce can have among the twelve. */
static struct seen see_lowest(const struct ks_claim_values *values, size_t seed)
{
    struct ks_interval best = level_of(values, KS_BEST, seed);
    size_t least = 1, most = 1;

    for (size_t k = 0; k < KS_TWELVE; k++) {
        struct ks_interval other = level_of(values, k, seed);

        if (k == KS_BEST)
            continue;
        least += other.upper < best.lower;
        most += other.lower <= best.upper;
    }
    return (struct seen){{(double)least, (double)most}, most};
}

/* |growth| of a number; NaN if it is undefined. */
static double size_of(const struct ks_claim_values *values, size_t number, size_t seed)
{
    return fabs(values->value[number][seed].lower);
}

/* The |growth| of bn+wn+ce. Ties get the larger rank, and what is undefined the largest. */
static struct seen see_constant(const struct ks_claim_values *values, size_t seed)
{
    const double best = size_of(values, KS_BEST, seed);
    struct seen seen = {.d = {best, best}};

    for (size_t k = 0; k < KS_TWELVE; k++)
        seen.rank += isnan(best) || size_of(values, k, seed) <= best;
    return seen;
}

/* The median of the architectures without BN minus bn+wn+ce; its rank among itself and these. */
static struct seen see_far_below(const struct ks_claim_values *values, size_t seed)
{
    struct ks_interval best = level_of(values, KS_BEST, seed), median;
    double low[WITHOUT_BN], high[WITHOUT_BN];
    size_t n = 0, rank = 1;

    for (size_t k = 0; k < KS_TWELVE; k++) {
        struct ks_interval other = level_of(values, k, seed);

        if (k / 4 == KS_BN)
            continue;
        low[n] = other.lower;
        high[n++] = other.upper;
        rank += other.lower <= best.upper;
    }
    median = (struct ks_interval){ks_claim_median(n, low), ks_claim_median(n, high)};
    return (struct seen){subtract(median, best), rank};
}

/* SimBa-V2 minus bn+wn+ce; the rank of SimBa-V2 among itself and the other eleven. */
static struct seen see_near(const struct ks_claim_values *values, size_t seed)
{
    struct ks_interval simba = level_of(values, KS_SIMBA_V2, seed);
    struct seen seen = {subtract(simba, level_of(values, KS_BEST, seed)), 1};

    for (size_t k = 0; k < KS_TWELVE; k++)
        seen.rank += k != KS_BEST && level_of(values, k, seed).lower <= simba.upper;
    return seen;
}

/* The share of the twelve in which the quantity is above 0. */
static struct seen see_existence(const struct ks_claim_values *values, size_t seed)
{
    double share = 0;

    for (size_t k = 0; k < KS_TWELVE; k++)
        share += values->value[k][seed].lower / KS_TWELVE;
    return (struct seen){{share, share}, 0};
}

/* Takes note of all seeds: of the smallest d.lower and the largest d.upper, which are NaN if one is
 * undefined, and of the ranks, each among `of` architectures (0: without a test). */
static void look(const struct ks_claim_values *v, const size_t *seed,
                 struct seen (*see)(const struct ks_claim_values *, size_t), size_t of,
                 struct ks_finding *f)
{
    bool undefined = false;
    size_t sum = 0;

    for (size_t i = 0; i < f->seeds; i++) {
        const struct seen seen = see(v, seed[i]);

        undefined = undefined || isnan(seen.d.lower);
        f->effect_low = i == 0 ? seen.d.lower : fmin(f->effect_low, seen.d.lower);
        f->effect_high = i == 0 ? seen.d.upper : fmax(f->effect_high, seen.d.upper);
        sum += seen.rank;
    }
    if (undefined)
        f->effect_low = f->effect_high = NAN;
    if (of > 0 && f->seeds >= KS_CLAIM_SEEDS)
        f->p = ks_rank_sum_p(f->seeds, of, sum);
}

/* Whether one architecture is below bn+wn+ce by more than theta in every seed. */
static bool is_any_lower(const struct ks_claim_values *v, const size_t *seed,
                         const struct ks_finding *f)
{
    bool any = false;

    for (size_t k = 0; k < KS_TWELVE; k++) {
        bool lower = k != KS_BEST;

        for (size_t i = 0; i < f->seeds; i++)
            lower = lower &&
                    level_of(v, k, seed[i]).upper < level_of(v, KS_BEST, seed[i]).lower - f->theta;
        any = any || lower;
    }
    return any;
}

static ks_status find_lowest(const struct ks_claim_values *v, const size_t *seed,
                             struct ks_finding *f)
{
    const bool enough = f->seeds >= KS_CLAIM_SEEDS;
    bool learned = true;

    look(v, seed, see_lowest, KS_TWELVE, f);
    if (enough && v->source.claim->quantity == KS_CLAIM_RETURN)
        KS_TRY(ks_claim_learned(v, f->seeds, seed, &learned));
    f->in_favour = learned && f->effect_high == 1; /* false without seeds: NaN */
    f->against = learned && (enough ? is_any_lower(v, seed, f) : f->effect_low > 1);
    return KS_OK;
}

static ks_status find_far_below(const struct ks_claim_values *v, const size_t *seed,
                                struct ks_finding *f)
{
    const bool enough = f->seeds >= KS_CLAIM_SEEDS;

    look(v, seed, see_far_below, 1 + WITHOUT_BN, f);
    f->in_favour = enough ? f->effect_low >= f->theta : f->effect_low > 0;
    f->against = f->effect_high < (enough ? f->theta : 0);
    return KS_OK;
}

/* Constancy, and nearness: the effect is at most theta. */
static ks_status find_small(const struct ks_claim_values *v, const size_t *seed,
                            struct ks_finding *f)
{
    look(v, seed, v->source.claim->kind == KS_CLAIM_NEAR ? see_near : see_constant, KS_TWELVE, f);
    f->in_favour = f->effect_high <= f->theta;
    f->against = f->effect_low > f->theta;
    return KS_OK;
}

static ks_status find_existence(const struct ks_claim_values *v, const size_t *seed,
                                struct ks_finding *f)
{
    look(v, seed, see_existence, 0, f);
    f->in_favour = f->effect_low > f->theta; /* false without seeds: NaN */
    f->proved = true;
    return KS_OK;
}

/* --- any claim --- */

/* The seeds (indices in the study) in which all `needed` [KS_JUDGED] architectures count, into seed
 * [seeds]; returns how many there are. */
static size_t find_seeds(const struct ks_claim_values *v, const bool *needed, size_t *seed)
{
    size_t n = 0;

    for (size_t i = 0; i < v->seeds; i++) {
        bool all = true;

        for (size_t k = 0; k < KS_JUDGED; k++)
            all = all && (!needed[k] || v->counts[k][i]);
        if (all)
            seed[n++] = i;
    }
    return n;
}

ks_status ks_claim_find(const struct ks_claim_values *v, struct ks_finding *f)
{
    static ks_status (*const find_by[])(const struct ks_claim_values *, const size_t *,
                                        struct ks_finding *) = {
        [KS_CLAIM_PAIRS] = find_pairs,
        [KS_CLAIM_LOWEST] = find_lowest,
        [KS_CLAIM_CORRELATION] = ks_find_correlation,
        [KS_CLAIM_CONSTANT] = find_small,
        [KS_CLAIM_FAR_BELOW] = find_far_below,
        [KS_CLAIM_NEAR] = find_small,
        [KS_CLAIM_EXISTS] = find_existence,
    };
    bool needed[KS_JUDGED];
    size_t seed[KS_STUDY_SEEDS], n;

    ks_paper_claim_needs(v->source.claim, needed);
    n = find_seeds(v, needed, seed);
    *f = (struct ks_finding){
        .seeds = n,
        .units = n,
        .effect_low = NAN,
        .effect_high = NAN,
        .theta = v->source.claim->theta[ks_claim_statistic_base(v->source.statistic)],
        .p = NAN,
        .within = NAN};
    return find_by[v->source.claim->kind](v, seed, f);
}
