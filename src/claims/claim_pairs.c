/* Claims on matched pairs: two runs of the same seed that differ in one factor. */
#include <math.h>
#include <stdlib.h>

#include "claims/claim_findings.h"
#include "core/memory.h"
#include "results/correlation.h"

/* The effects of all pairs. */
struct pairs {
    size_t cells, seeds;
    double *low, *high; /* [cells, seeds]; owned */
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

/* The mean over the cells of the means over the seeds, without seed `left_out` (p->seeds: with
 * all). All cells have the same seeds, so it is the mean over the pairs. */
static double mean_without(const struct pairs *p, const double *d, size_t left_out)
{
    double sum = 0;
    size_t n = 0;

    for (size_t c = 0; c < p->cells; c++)
        for (size_t i = 0; i < p->seeds; i++)
            if (i != left_out) {
                sum += d[c * p->seeds + i];
                n++;
            }
    return sum / (double)n;
}

/* Whether the smallest (largest) effect is at least (below) theta, with all seeds and without any
 * one of them. */
static bool is_above(const struct pairs *p, double theta)
{
    for (size_t i = 0; i <= p->seeds; i++)
        if (!(mean_without(p, p->low, i) >= theta))
            return false;
    return true;
}

static bool is_below(const struct pairs *p, double theta)
{
    for (size_t i = 0; i <= p->seeds; i++)
        if (!(mean_without(p, p->high, i) < theta))
            return false;
    return true;
}

/* The one-sided p of the numbers sign * (d - theta). */
static ks_status test(const struct pairs *p, const double *d, double theta, double sign,
                      double *p_value)
{
    size_t n = p->cells * p->seeds;
    double *shifted = NULL;

    KS_TRY(ks_alloc(n, sizeof *shifted, &shifted));
    for (size_t i = 0; i < n; i++)
        shifted[i] = sign * (d[i] - theta);
    *p_value = ks_sign_flip_test(n, shifted, KS_PERMUTATIONS, 0).p;
    free(shifted);
    return KS_OK;
}

/* The mean smallest effect over the seeds in one cell. */
static double mean_of_cell(const struct pairs *p, size_t cell)
{
    const struct pairs one = {1, p->seeds, NULL, NULL};

    return mean_without(&one, p->low + cell * p->seeds, p->seeds);
}

/* With one or two seeds: the sign of a difference, or on which side of theta a size is. */
static void decide_direction(enum ks_claim_effect effect, struct ks_finding *f)
{
    bool is_size = effect == KS_MINUS_ABSOLUTE;

    f->in_favour = is_size ? f->effect_low >= f->theta : f->effect_low > 0;
    f->against = f->effect_high < (is_size ? f->theta : 0);
}

static ks_status decide(const struct pairs *p, size_t lone_cell, struct ks_finding *f)
{
    double p_for, p_against, theta = f->theta;

    KS_TRY(test(p, p->low, theta, 1, &p_for));
    KS_TRY(test(p, p->high, theta, -1, &p_against));
    f->p = fmin(1, 2 * fmin(p_for, p_against));
    f->in_favour = is_above(p, theta) && p_for < p_against &&
                   (lone_cell == p->cells || mean_of_cell(p, lone_cell) >= theta);
    f->against = is_below(p, theta) && p_against < p_for;
    f->against_needs_p = true;
    return KS_OK;
}

ks_status ks_find_pairs(const struct ks_claim_question *q, struct ks_finding *f)
{
    size_t larger[KS_CLAIM_CELLS], smaller[KS_CLAIM_CELLS], lone_cell, *seed = NULL;
    bool needed[KS_JUDGED];
    struct pairs p = {.cells = ks_paper_claim_cells(q->claim, larger, smaller)};
    ks_status status = KS_OK;

    ks_paper_claim_needs(q->claim, needed);
    KS_GO(ks_alloc(q->values->seeds, sizeof *seed, &seed));
    f->seeds = p.seeds = ks_claim_values_seeds(q->values, needed, seed);
    f->units = p.cells * p.seeds;
    if (f->seeds == 0)
        goto done;
    KS_GO(ks_alloc(f->units, sizeof *p.low, &p.low));
    KS_GO(ks_alloc(f->units, sizeof *p.high, &p.high));
    lone_cell = p.cells;
    for (size_t c = 0; c < p.cells; c++) {
        if (q->claim->has_cell && larger[c] == q->claim->cell)
            lone_cell = c;
        for (size_t i = 0; i < p.seeds; i++) {
            struct ks_interval d = find_effect(q->claim,
                                               ks_claim_value(q->values, larger[c], seed[i]),
                                               ks_claim_value(q->values, smaller[c], seed[i]));

            p.low[c * p.seeds + i] = d.lower;
            p.high[c * p.seeds + i] = d.upper;
        }
    }
    f->effect_low = mean_without(&p, p.low, p.seeds);
    f->effect_high = mean_without(&p, p.high, p.seeds);
    if (f->seeds < KS_CLAIM_SEEDS)
        decide_direction(q->claim->effect, f);
    else
        KS_GO(decide(&p, lone_cell, f));
done:
    free(seed);
    free(p.low);
    free(p.high);
    return status;
}
