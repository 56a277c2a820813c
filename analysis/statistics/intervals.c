/* Prepares the input of shares.h from a spectrum, and names its results as statistics. */
#include "statistics/intervals.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/memory.h"
#include "statistics/catalogue.h"
#include "statistics/certificate.h"
#include "statistics/shares.h"

static ks_status add_estimate(struct ks_spectrum *s, size_t id, const char *suffix,
                              const struct ks_estimate *estimate)
{
    KS_TRY(ks_statistic_add(s, ks_catalogue[id].name, suffix, estimate->value));
    return ks_statistic_add_interval(s, (enum ks_statistic_id)id, suffix, estimate->in);
}

/* In the file, an upper end that is not resolved is NaN, and one that is certain to be infinite is
 * infinity. */
static ks_status add_ratio(struct ks_spectrum *s, size_t id, const char *suffix,
                           struct ks_interval ratio)
{
    if (isinf(ratio.upper) && !isinf(ratio.lower))
        ratio.upper = NAN;
    return ks_statistic_add_interval(s, (enum ks_statistic_id)id, suffix, ratio);
}

static ks_status add_shares(struct ks_spectrum *s, const char *suffix,
                            const struct ks_shares *shares)
{
    for (size_t i = 0; i < KS_DIRECTIONS; i++)
        KS_TRY(add_estimate(s, KS_STAT_DIRECTIONS_1E1 + i, suffix, &shares->directions[i]));
    for (size_t i = 0; i < KS_QUANTILES; i++)
        KS_TRY(add_ratio(s, KS_STAT_KAPPA_Q99 + i, suffix, shares->kappa_q[i]));
    KS_TRY(add_estimate(s, KS_STAT_ZERO_MASS, suffix, &shares->zero_mass));
    return add_estimate(s, KS_STAT_NEGATIVE_MASS, suffix, &shares->negative_mass);
}

static size_t count_above(const struct ks_probe *p, double size)
{
    size_t n = 0;

    for (size_t i = 0; i < p->steps; i++)
        n += fabs(p->theta[i]) > size;
    return n;
}

static size_t count_below(const struct ks_probe *p, double x)
{
    size_t n = 0;

    while (n < p->steps && p->theta[n] < x)
        n++;
    return n;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* lambda_abs_max over the at-th smallest |eigenvalue|, each +- h; the first k->null of them are
 * exactly zero. */
static struct ks_interval exact_quantile(const struct ks_bounds *k, const double *size, size_t at)
{
    double x = size[at - 1], low = fmax(k->abs_max - k->h, 0);

    if (k->abs_max == 0)
        return (struct ks_interval){NAN, NAN};
    if (at <= k->null || at <= k->least_nullity)
        return (struct ks_interval){INFINITY, INFINITY};
    return (struct ks_interval){fmax(low / (x + k->h), 1),
                                x > k->h ? (k->abs_max + k->h) / (x - k->h) : INFINITY};
}

/* All intervals from all eigenvalues, each of which rounding may have moved by h. */
static ks_status find_exact(const struct ks_bounds *k, const struct ks_probe *p,
                            struct ks_shares *shares)
{
    double *size = NULL, n = (double)k->n;

    KS_TRY(ks_alloc(p->steps, sizeof *size, &size));
    for (size_t i = 0; i < p->steps; i++)
        size[i] = fabs(p->theta[i]);
    qsort(size, p->steps, sizeof *size, compare);
    for (size_t i = 0; i < KS_DIRECTIONS; i++) {
        double x = k->abs_max / ks_direction_factor[i], slack = 2 * k->h;
        size_t most = x < slack ? p->steps : count_above(p, x - slack);

        shares->directions[i] = (struct ks_estimate){
            (double)count_above(p, x), {(double)count_above(p, x + slack), (double)most}};
    }
    for (size_t i = 0; i < KS_QUANTILES; i++)
        shares->kappa_q[i] = exact_quantile(k, size,
                                            (p->steps * ks_quantile_percent[i] + 99) / 100);
    shares->zero_mass = (struct ks_estimate){
        1 - (double)count_above(p, 2 * k->h) / n,
        {1 - (double)count_above(p, k->h) / n, 1 - (double)count_above(p, 3 * k->h) / n}};
    shares->negative_mass = (struct ks_estimate){
        (double)count_below(p, -2 * k->h) / n,
        {(double)count_below(p, -3 * k->h) / n, (double)count_below(p, -k->h) / n}};
    free(size);
    return KS_OK;
}

/* The trivial intervals, which hold for every nonzero operator. */
static struct ks_shares find_nothing(const struct ks_bounds *k)
{
    const struct ks_estimate share = {NAN, {0, 1}}, count = {NAN, {1, (double)k->n}};
    struct ks_shares shares = {.zero_mass = share, .negative_mass = share};

    for (size_t i = 0; i < KS_DIRECTIONS; i++)
        shares.directions[i] = count;
    for (size_t i = 0; i < KS_QUANTILES; i++)
        shares.kappa_q[i] = (struct ks_interval){1, INFINITY};
    return shares;
}

/* Fills the input of shares.h, which points into `s`; the caller frees in->probe. */
static ks_status share_input(const struct ks_spectrum *s, const struct ks_bounds *k,
                             const struct ks_probe *probe, struct ks_shares_input *in)
{
    const struct ks_certificates *c = k->certificates;
    struct ks_share_probe *list = NULL;

    /* `ended` only if the Krylov space is all of R^n. If it ended earlier, its last beta is at the
     * level of rounding: the weights are exact for a slightly different operator, which depends on
     * the start vector, and eigenvectors outside the space remain possible. The Gauss-Radau rule
     * accounts for them. */
    KS_TRY(ks_alloc(k->probes, sizeof *list, &list));
    for (size_t i = 0; i < k->probes; i++)
        list[i] = (struct ks_share_probe){.steps = probe[i].steps,
                                          .alpha = s->alpha + i * s->order,
                                          .beta = s->beta + i * s->order,
                                          .ended = probe[i].steps == k->n,
                                          .start_norm2 = s->start_norm2 ? s->start_norm2[i] : 1,
                                          .null_weight = k->null_known ? c->null_weight[i] : 0};
    *in = (struct ks_shares_input){.n = k->n,
                                   .n_null = k->null_known ? k->null : 0,
                                   .least_nullity = k->least_nullity,
                                   .probes = k->probes,
                                   .probe = list,
                                   .pretend_probes = k->pretend_probes,
                                   .h = k->h,
                                   .abs_max_lower = k->abs_max,
                                   .abs_max_upper = k->outer};
    return KS_OK;
}

static void free_input(struct ks_shares_input *in)
{
    free((void *)(uintptr_t)in->probe);
}

static ks_status find_shares(const struct ks_spectrum *s, const struct ks_bounds *k,
                             const struct ks_probe *probe, struct ks_shares *shares)
{
    struct ks_shares_input in;
    ks_status status;

    KS_TRY(share_input(s, k, probe, &in));
    status = ks_shares(&in, shares);
    free_input(&in);
    return status;
}

/* From all eigenvalues: rounding may have moved each by h. */
static void exact_band(struct ks_spectrum *s, const struct ks_bounds *k, const struct ks_probe *p)
{
    for (size_t i = 0; i < s->n_band; i++) {
        double x = s->band_at[i];

        s->band_lower[i] = (double)count_below(p, nextafter(x - k->h, INFINITY)) / (double)k->n;
        s->band_upper[i] = (double)count_below(p, nextafter(x + k->h, INFINITY)) / (double)k->n;
    }
}

enum { BAND_DECADES = 6, BAND_PER_DECADE = 16 };

/* Frees the band of an earlier call. */
static void drop_band(struct ks_spectrum *s)
{
    free(s->band_at);
    free(s->band_lower);
    free(s->band_upper);
    s->band_at = s->band_lower = s->band_upper = NULL;
    s->n_band = 0;
}

ks_status ks_band_add(struct ks_spectrum *s, const struct ks_bounds *k,
                      const struct ks_probe *probe)
{
    size_t side = BAND_DECADES * BAND_PER_DECADE + 1;
    struct ks_shares_input in;
    ks_status status;

    drop_band(s);
    if (k->unresolved || !(k->outer > 0))
        return KS_OK;
    KS_TRY(ks_alloc(2 * side, sizeof *s->band_at, &s->band_at));
    KS_TRY(ks_alloc(2 * side, sizeof *s->band_lower, &s->band_lower));
    KS_TRY(ks_alloc(2 * side, sizeof *s->band_upper, &s->band_upper));
    s->n_band = 2 * side;
    for (size_t i = 0; i < side; i++) {
        double x = k->outer * pow(10, -(double)i / BAND_PER_DECADE);

        s->band_at[i] = -x;
        s->band_at[2 * side - 1 - i] = x;
    }
    if (k->exact) {
        exact_band(s, k, probe);
        return KS_OK;
    }
    KS_TRY(share_input(s, k, probe, &in));
    status = ks_shares_band(&in, s->n_band, s->band_at, s->band_lower, s->band_upper);
    free_input(&in);
    return status;
}

ks_status ks_intervals_add(struct ks_spectrum *s, const struct ks_bounds *bounds,
                           const struct ks_probe *probe, const char *suffix)
{
    struct ks_shares shares = find_nothing(bounds);

    if (bounds->unresolved)
        return add_shares(s, suffix, &shares);
    KS_TRY(bounds->exact ? find_exact(bounds, probe, &shares)
                         : find_shares(s, bounds, probe, &shares));
    return add_shares(s, suffix, &shares);
}

static ks_status add_gradient(struct ks_spectrum *s, const struct ks_energy *energy,
                              double curvature, double norm)
{
    KS_TRY(add_ratio(s, KS_STAT_KAPPA_GRADIENT_90, "", energy->kappa_90));
    KS_TRY(add_ratio(s, KS_STAT_KAPPA_GRADIENT_50, "", energy->kappa_50));
    KS_TRY(
        ks_statistic_add(s, ks_catalogue[KS_STAT_GRADIENT_TOP_SHARE].name, "", energy->top_share));
    KS_TRY(ks_statistic_add(s, ks_catalogue[KS_STAT_GRADIENT_CURVATURE].name, "", curvature));
    return ks_statistic_add(s, ks_catalogue[KS_STAT_GRADIENT_NORM].name, "", norm);
}

/* A zero gradient has a norm but no distribution. */
static ks_status add_zero_gradient(struct ks_spectrum *s)
{
    const struct ks_energy none = {{NAN, NAN}, {NAN, NAN}, NAN};

    return add_gradient(s, &none, NAN, 0);
}

ks_status ks_intervals_add_gradient(struct ks_spectrum *s, const struct ks_bounds *bounds,
                                    bool asked)
{
    size_t last = s->probes - 1, row = last * s->order;
    struct ks_share_probe probe;
    struct ks_energy energy;
    const struct ks_certificates *c = bounds->certificates;
    bool certified = bounds->certified && c->gradient;

    if (!s->gradient)
        return asked ? add_zero_gradient(s) : KS_OK;
    probe = (struct ks_share_probe){.steps = (size_t)s->steps[last],
                                    .alpha = s->alpha + row,
                                    .beta = s->beta + row,
                                    .ended = (size_t)s->steps[last] == bounds->n};
    KS_TRY(ks_energy(&probe, bounds->h, bounds->abs_max, bounds->outer, &energy));
    if (bounds->unresolved) {
        energy.kappa_90 = energy.kappa_50 = (struct ks_interval){1, INFINITY};
        energy.top_share = NAN;
    }
    return add_gradient(s, &energy, certified ? c->gradient_curvature : s->alpha[row],
                        sqrt(s->start_norm2[last]));
}
