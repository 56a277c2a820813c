/* Claims on the rank correlation of a statistic with the return, over the twelve architectures. */
#include <math.h>

#include "claims/claim_findings.h"
#include "core/interval.h"
#include "results/aggregate.h"
#include "results/comparison.h"
#include "results/correlation.h"
#include "statistics/catalogue.h"

enum {
    LEAST_LEARNED = 6, /* architectures that must have learned         */
    GROUPS = 3,        /* normalizations, with four architectures each    */
    GROUP = KS_TWELVE / GROUPS
};

/* Of all rows: the smallest and the largest correlation, lower end, upper end and so on; a NaN in
 * any row stays. */
struct extremes {
    double least, most;          /* of the correlations                      */
    double least_low, most_high; /* of the lower and the upper ends          */
    double p, within;            /* the largest                              */
};

/* The architectures are in the order of correlation.csv, on which its random permutations depend:
 * by loss, then normalization, then weight normalization. */
static size_t number_at(size_t place)
{
    return KS_TWELVE_OF(place / 2 % GROUPS, place % 2, place / 2 / GROUPS);
}

/* The mean of the correlations within each normalization; NaN if one of them is undefined. */
static ks_status correlate_within(const struct ks_correlation *c, double *mean)
{
    double sum = 0;

    for (size_t g = 0; g < GROUPS; g++) {
        double x[GROUP], y[GROUP], rho;
        size_t n = 0;

        for (size_t i = 0; i < KS_TWELVE; i++)
            if (i / 2 % GROUPS == g) {
                x[n] = c->x[i];
                y[n++] = c->y[i];
            }
        KS_TRY(ks_spearman(GROUP, x, y, &rho));
        sum += rho;
    }
    *mean = sum / GROUPS;
    return KS_OK;
}

static ks_status add_row(const struct ks_comparison *c, const struct ks_study_analyses *analyses,
                         struct ks_statistic_column statistic, double sign, struct extremes *e)
{
    struct ks_correlation found;
    double within = NAN, low, high;

    KS_TRY(ks_comparison_correlate(c, analyses, statistic, &found));
    if (found.n == KS_TWELVE)
        KS_TRY(correlate_within(&found, &within));
    else
        found.spearman.value = NAN;
    low = sign > 0 ? found.spearman.in.lower : -found.spearman.in.upper;
    high = sign > 0 ? found.spearman.in.upper : -found.spearman.in.lower;
    e->least = ks_min_known(e->least, sign * found.spearman.value);
    e->most = ks_max_known(e->most, sign * found.spearman.value);
    e->least_low = ks_min_known(e->least_low, low);
    e->most_high = ks_max_known(e->most_high, high);
    e->p = ks_max_known(e->p, found.p);
    e->within = ks_max_known(e->within, sign * within);
    return KS_OK;
}

/* --- the runs --- */

/* Adds the runs of the twelve architectures in those of the n seeds in which all of them have a
 * last return; returns how many seeds those are. */
static size_t add_runs(const struct ks_claim_values *v, size_t n, const size_t *seed,
                       struct ks_comparison *c)
{
    const struct ks_result *run[KS_TWELVE][KS_STUDY_SEEDS];
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        bool all = true;

        for (size_t k = 0; k < KS_TWELVE; k++) {
            run[k][kept] = &v->results->run[v->architecture[number_at(k)] * v->seeds + seed[i]];
            all = all && !isnan(ks_comparison_last(v->results, run[k][kept]));
        }
        kept += all;
    }
    for (size_t k = 0; k < KS_TWELVE; k++)
        ks_comparison_add(c, kept, run[k]);
    return kept;
}

/* Whether enough architectures have a last return (IQM over seeds) above twice that at step 0
 * (ks_has_doubled). */
static bool have_learned(const struct ks_comparison *c)
{
    const struct ks_study *s = c->results->study;
    double first[KS_STUDY_SEEDS], last[KS_STUDY_SEEDS];
    size_t learned = 0, at = 0;

    if (s->evaluation[0] != 0)
        return false;
    for (size_t k = 0; k < c->n; k++) {
        for (size_t i = 0; i < c->runs[k]; i++, at++) {
            first[i] = c->run[at]->returns[0];
            last[i] = c->last[at];
        }
        learned += ks_has_doubled(ks_iqm(c->runs[k], first), ks_iqm(c->runs[k], last));
    }
    return learned >= LEAST_LEARNED;
}

ks_status ks_claim_learned(const struct ks_claim_values *v, size_t n, const size_t *seed,
                           bool *learned)
{
    KS_OWNS_POOL struct ks_comparison c = {0};

    KS_TRY(ks_comparison_begin(v->results, 0, &c));
    *learned = add_runs(v, n, seed, &c) > 0 && have_learned(&c);
    return KS_OK;
}

static void decide(const struct extremes *e, bool learned, struct ks_finding *f)
{
    f->effect_low = e->least;
    f->effect_high = e->most;
    f->within = e->within;
    if (f->seeds < KS_CLAIM_SEEDS) {
        f->in_favour = e->most < 0;
        f->against = e->least > 0;
        return;
    }
    f->p = e->p;
    f->in_favour = learned && e->most <= f->theta && e->most_high < 0;
    f->against = learned && e->least_low > f->theta;
}

ks_status ks_find_correlation(const struct ks_claim_values *v, const size_t *seed,
                              struct ks_finding *f)
{
    /* The rows of correlation.csv by which the claim is judged: lambda_max has no intervals there.
     */
    const struct ks_claim_criterion *m =
        &ks_claim_criteria[v->source.claim->quantity]
                          [v->source.claim->quantity == KS_CLAIM_KAPPA
                               ? ks_claim_statistic_base(v->source.statistic)
                               : KS_CLAIM_PAPER];
    struct ks_statistic_column column = {m->statistic, m->interval ? KS_LOWER_END : KS_ITSELF};
    const double sign = m->more_is_better ? -1 : 1;
    const struct ks_study_analyses *analyses = &v->source.analyses;
    struct extremes e = {INFINITY, -INFINITY, INFINITY, -INFINITY, 0, -INFINITY};
    KS_OWNS_POOL struct ks_comparison c = {0};

    KS_TRY(ks_comparison_begin(v->results, v->source.resamples, &c));
    f->seeds = f->units = add_runs(v, f->seeds, seed, &c);
    if (f->seeds == 0)
        return KS_OK;
    f->units = KS_TWELVE;
    KS_TRY(add_row(&c, analyses, column, sign, &e));
    column.part = KS_UPPER_END;
    if (m->interval)
        KS_TRY(add_row(&c, analyses, column, sign, &e));
    decide(&e, have_learned(&c), f);
    return KS_OK;
}
