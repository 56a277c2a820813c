/* The intervals for counts, sizes and shares of eigenvalues, from the bounds of share_bounds.h. */
#include "statistics/shares.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/number.h"
#include "statistics/catalogue.h"
#include "statistics/certificate.h"

const double ks_direction_factor[KS_DIRECTIONS] = {10, 100, 1000, 10000};
const unsigned ks_quantile_percent[KS_QUANTILES] = {99, 90, 50};

/* The estimate, from the weights, of the share of [low, high] among the eigenvalues off the known
 * null space. `null`: [low, high] contains zero, so the weight of the null space is subtracted. */
static double estimate(const struct ks_share_bounds *b, double low, double high, bool null)
{
    double share = 0;

    for (size_t p = 0; p < b->in->probes; p++) {
        const struct ks_radau *r = b->radau[p];
        double w0 = b->in->probe[p].null_weight, sum = null ? -w0 : 0;

        for (size_t i = 0; i < r->m; i++)
            sum += r->theta[i] >= low && r->theta[i] <= high ? r->weight[i] : 0;
        if (b->fraction[p] > 0)
            share += b->fraction[p] * fmax(sum / (1 - w0), 0);
    }
    return fmin(share, 1);
}

static struct ks_estimate between(double value, double lower, double upper)
{
    return (struct ks_estimate){fmin(fmax(value, lower), upper), {lower, upper}};
}

/* The bounds of the probes, and what a run in a complement adds. */
struct counts {
    struct ks_share_bounds *b;
    struct ks_complement *complement; /* NULL: nothing */
};

static void counts_clear(struct counts *c)
{
    ks_complement_free(c->complement);
    ks_share_bounds_free(c->b);
}

/* The number of eigenvalues of a size above x, where x is only known to be in [low, high]; it is at
 * least `least`. */
static ks_status count_larger(const struct counts *c, double low, double high, double least,
                              struct ks_estimate *count)
{
    const struct ks_share_bounds *b = c->b;
    const double others = (double)b->others;
    struct ks_interval inside;
    double lower;

    KS_TRY(ks_share_bounds_count_within(b, low, high, &inside));
    lower = fmax(others - inside.upper, least);
    *count = between(others * (1 - estimate(b, -low, low, true)), lower,
                     fmax(others - inside.lower, lower));
    if (c->complement && low > 2 * b->in->h)
        return ks_complement_count(c->complement, low, high, least, count);
    return KS_OK;
}

/* The threshold lambda_abs_max / factor follows from the bounds of lambda_abs_max. The count is at
 * least 1 unless the operator is zero: it includes the largest |eigenvalue|. */
static ks_status directions(const struct counts *c, double factor, struct ks_estimate *directions)
{
    const struct ks_shares_input *in = c->b->in;
    const double low = in->abs_max_lower / factor, high = in->abs_max_upper / factor;

    *directions = (struct ks_estimate){0, {0, 0}};
    return in->abs_max_upper > 0 ? count_larger(c, low, high, low > 0, directions) : KS_OK;
}

/* The threshold itself is exact; that no eigenvalue, or at least one, is above it may follow from
 * the bounds of lambda_abs_max. */
static ks_status directions_above(const struct counts *c, double x, struct ks_estimate *above)
{
    *above = (struct ks_estimate){0, {0, 0}};
    if (!(x > 0) || c->b->in->abs_max_upper <= x)
        return KS_OK;
    return count_larger(c, x, x, c->b->in->abs_max_lower > x, above);
}

/* A count as a share of all n eigenvalues. */
static double share_of_all(const struct ks_share_bounds *b, double k)
{
    return k / (double)b->in->n;
}

static ks_status masses(const struct ks_share_bounds *b, struct ks_shares *shares)
{
    double h = b->in->h, null = (double)b->in->n_null, others = (double)b->others;
    double below = nextafter(-2 * h, -INFINITY); /* excludes zero also if h = 0 */
    struct ks_interval inside, negative;

    KS_TRY(ks_share_bounds_count_within(b, 2 * h, 2 * h, &inside));
    KS_TRY(ks_share_bounds_count_below(b, below, &negative));
    shares->zero_mass = between(share_of_all(b, null + others * estimate(b, -2 * h, 2 * h, true)),
                                share_of_all(b, null + inside.lower),
                                share_of_all(b, null + inside.upper));
    shares->negative_mass = between(share_of_all(b, others * estimate(b, -INFINITY, below, false)),
                                    share_of_all(b, negative.lower),
                                    share_of_all(b, negative.upper));
    return KS_OK;
}

/* The interval of lambda_abs_max / size, which is at least 1. */
static struct ks_interval ratio(double abs_max_lower, double abs_max_upper, struct ks_interval size)
{
    return (struct ks_interval){fmax(abs_max_lower / size.upper, 1),
                                size.lower > 0 ? fmax(abs_max_upper / size.lower, 1) : INFINITY};
}

static ks_status kappa(const struct ks_share_bounds *b, unsigned percent, struct ks_interval *kappa)
{
    const struct ks_shares_input *in = b->in;
    size_t at = in->n / 100 * percent + (in->n % 100 * percent + 99) / 100; /* ceil(q n) */
    struct ks_interval size;

    *kappa = (struct ks_interval){NAN, NAN};
    if (!(in->abs_max_upper > 0))
        return KS_OK;
    *kappa = (struct ks_interval){INFINITY, INFINITY};
    if (at <= in->n_null + b->zeros)
        return KS_OK;
    *kappa = (struct ks_interval){1, 1};
    if (at == in->n) /* n < 100: the 99% quantile is the largest size itself */
        return KS_OK;
    KS_TRY(ks_share_bounds_size(b, at - in->n_null, in->abs_max_upper, &size));
    *kappa = ratio(in->abs_max_lower, in->abs_max_upper, size);
    return KS_OK;
}

ks_status ks_shares(const struct ks_shares_input *in, struct ks_shares *shares)
{
    KS_CLEARED_BY(counts_clear) struct counts c = {.b = NULL};

    KS_TRY(ks_share_bounds_new(in, &c.b));
    KS_TRY(ks_complement_new(c.b, &c.complement));
    for (size_t i = 0; i < KS_DIRECTIONS; i++)
        KS_TRY(directions(&c, ks_direction_factor[i], &shares->directions[i]));
    KS_TRY(directions_above(&c, in->count_above, &shares->above));
    for (size_t i = 0; i < KS_QUANTILES; i++)
        KS_TRY(kappa(c.b, ks_quantile_percent[i], &shares->kappa_q[i]));
    KS_TRY(masses(c.b, shares));
    return KS_OK;
}

ks_status ks_shares_band(const struct ks_shares_input *in, size_t count, const double *x,
                         double *lower, double *upper)
{
    KS_OWNED_BY(ks_share_bounds_free) struct ks_share_bounds *b = NULL;

    KS_TRY(ks_share_bounds_new(in, &b));
    for (size_t i = 0; i < count; i++) {
        struct ks_interval below;

        KS_TRY(ks_share_bounds_count_below(b, x[i], &below));
        lower[i] = below.lower / (double)in->n;
        upper[i] = below.upper / (double)in->n;
    }
    return KS_OK;
}

/* lambda_abs_max over the size below which the fraction `rest` of the squared norm lies. */
static ks_status energy_kappa(const struct ks_share_bounds *b, double rest,
                              struct ks_interval *kappa)
{
    const struct ks_shares_input *in = b->in;
    struct ks_interval size;

    *kappa = (struct ks_interval){NAN, NAN};
    if (!(in->abs_max_upper > 0))
        return KS_OK;
    KS_TRY(ks_share_bounds_reach(b, rest, rest, in->abs_max_upper, &size));
    *kappa = ratio(in->abs_max_lower, in->abs_max_upper, size);
    return KS_OK;
}

static double top_share(const struct ks_radau *r, double h)
{
    const struct ks_bounds bounds = {.noise_floor = 2 * h};
    const struct ks_probe probe = {.bounds = &bounds,
                                   .steps = r->m,
                                   .theta = r->theta,
                                   .weight = r->weight,
                                   .residual = r->residual,
                                   .beta = r->beta};
    struct ks_ends ends = ks_probe_ends(&probe);
    double sum = 0;

    for (size_t i = 0; i < r->m; i++)
        sum += i < ends.low || i >= r->m - ends.high ? r->weight[i] : 0;
    return sum;
}

ks_status ks_energy(const struct ks_share_probe *probe, double h, double abs_max_lower,
                    double abs_max_upper, struct ks_energy *energy)
{
    /* With one probe and no null space, the means are the probe's own bounds for every n. */
    const struct ks_shares_input in = {.n = 1,
                                       .probes = 1,
                                       .probe = probe,
                                       .h = h,
                                       .abs_max_lower = abs_max_lower,
                                       .abs_max_upper = abs_max_upper};
    KS_OWNED_BY(ks_share_bounds_free) struct ks_share_bounds *b = NULL;

    KS_TRY(ks_share_bounds_new(&in, &b));
    KS_TRY(energy_kappa(b, 0.1, &energy->kappa_90));
    KS_TRY(energy_kappa(b, 0.5, &energy->kappa_50));
    energy->top_share = top_share(b->radau[0], h);
    return KS_OK;
}

/* --- of a spectrum --- */

static void add_estimate(struct ks_spectrum *s, enum ks_statistic_id id, const char *suffix,
                         const struct ks_estimate *estimate)
{
    ks_statistic_add(s, id, suffix, estimate->value);
    ks_statistic_add_interval(s, id, suffix, estimate->in);
}

/* In the file, an upper end that is not resolved is NaN, and one that is certain to be infinite is
 * infinity. */
static void add_ratio(struct ks_spectrum *s, enum ks_statistic_id id, const char *suffix,
                      struct ks_interval ratio)
{
    if (isinf(ratio.upper) && !isinf(ratio.lower))
        ratio.upper = NAN;
    ks_statistic_add_interval(s, id, suffix, ratio);
}

static void add_shares(struct ks_spectrum *s, const struct ks_bounds *k, const char *suffix,
                       const struct ks_shares *shares)
{
    for (size_t i = 0; i < KS_DIRECTIONS; i++)
        add_estimate(s, KS_STAT_DIRECTIONS_1E1 + i, suffix, &shares->directions[i]);
    if (k->count_above > 0)
        add_estimate(s, KS_STAT_DIRECTIONS_ABOVE, suffix, &shares->above);
    for (size_t i = 0; i < KS_QUANTILES; i++)
        add_ratio(s, KS_STAT_KAPPA_Q99 + i, suffix, shares->kappa_q[i]);
    add_estimate(s, KS_STAT_ZERO_MASS, suffix, &shares->zero_mass);
    add_estimate(s, KS_STAT_NEGATIVE_MASS, suffix, &shares->negative_mass);
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

/* The number of eigenvalues above the size x, which together with an eigenvalue may be wrong by
 * `slack`. */
static struct ks_estimate exact_count(const struct ks_probe *p, double x, double slack)
{
    size_t most = x < slack ? p->steps : count_above(p, x - slack);

    return (struct ks_estimate){(double)count_above(p, x),
                                {(double)count_above(p, x + slack), (double)most}};
}

/* All intervals from all eigenvalues, each of which rounding may have moved by h. */
static ks_status find_exact(const struct ks_bounds *k, const struct ks_probe *p,
                            struct ks_shares *shares)
{
    KS_OWNED double *size = NULL;
    const double n = (double)k->n;

    KS_TRY(ks_alloc(p->steps, sizeof *size, &size));
    for (size_t i = 0; i < p->steps; i++)
        size[i] = fabs(p->theta[i]);
    qsort(size, p->steps, sizeof *size, ks_ascending);
    for (size_t i = 0; i < KS_DIRECTIONS; i++)
        shares->directions[i] = exact_count(p, k->abs_max / ks_direction_factor[i], 2 * k->h);
    shares->above = exact_count(p, k->count_above, k->h);
    for (size_t i = 0; i < KS_QUANTILES; i++)
        shares->kappa_q[i] = exact_quantile(k, size,
                                            (p->steps * ks_quantile_percent[i] + 99) / 100);
    shares->zero_mass = (struct ks_estimate){
        1 - (double)count_above(p, 2 * k->h) / n,
        {1 - (double)count_above(p, k->h) / n, 1 - (double)count_above(p, 3 * k->h) / n}};
    shares->negative_mass = (struct ks_estimate){
        (double)count_below(p, -2 * k->h) / n,
        {(double)count_below(p, -3 * k->h) / n, (double)count_below(p, -k->h) / n}};
    return KS_OK;
}

/* The trivial intervals, which hold for every nonzero operator. */
static struct ks_shares find_nothing(const struct ks_bounds *k)
{
    const struct ks_estimate share = {NAN, {0, 1}}, count = {NAN, {1, (double)k->n}};
    struct ks_shares shares = {
        .above = {NAN, {0, (double)k->n}}, .zero_mass = share, .negative_mass = share};

    for (size_t i = 0; i < KS_DIRECTIONS; i++)
        shares.directions[i] = count;
    for (size_t i = 0; i < KS_QUANTILES; i++)
        shares.kappa_q[i] = (struct ks_interval){1, INFINITY};
    return shares;
}

/* The row of a probe in the spectrum, of which `steps` are taken. */
static struct ks_share_probe share_probe(const struct ks_spectrum *s, const struct ks_bounds *k,
                                         size_t row, size_t steps, bool ended)
{
    return (struct ks_share_probe){.steps = steps,
                                   .alpha = s->alpha + row * s->order,
                                   .beta = s->beta + row * s->order,
                                   .ended = ended,
                                   .start_norm2 = s->start_norm2 ? s->start_norm2[row] : 1,
                                   .null_weight = k->null_known ? k->certificates->null_weight[row]
                                                                : 0};
}

/* Fills the input, which points into `s` and to *probes, which the caller frees. */
static ks_status share_input(const struct ks_spectrum *s, const struct ks_bounds *k,
                             const struct ks_probe *probe, struct ks_share_probe **probes,
                             struct ks_shares_input *in)
{
    const struct ks_certificates *c = k->certificates;
    const size_t row = k->probes; /* of the complement */
    struct ks_share_probe *list;
    size_t steps;

    /* `ended` only if the Krylov space is all of R^n. If it ended earlier, its last beta is at the
     * level of rounding: the weights are exact for a slightly different operator, which depends on
     * the start vector, and eigenvectors outside the space remain possible. The Gauss-Radau rule
     * accounts for them. */
    KS_TRY(ks_alloc(k->probes + 1, sizeof *list, probes));
    list = *probes;
    for (size_t i = 0; i < k->probes; i++)
        list[i] = share_probe(s, k, i, probe[i].steps, probe[i].steps == k->n);
    *in = (struct ks_shares_input){.n = k->n,
                                   .n_null = k->null_known ? k->null : 0,
                                   .least_nullity = k->least_nullity,
                                   .probes = k->probes,
                                   .probe = list,
                                   .pretend_probes = k->pretend_probes,
                                   .h = k->h,
                                   .abs_max_lower = k->abs_max,
                                   .abs_max_upper = k->outer,
                                   .count_above = k->count_above};
    if (!s->complement || probe[0].steps != ks_spectrum_steps(s, 0)) /* that of all steps */
        return KS_OK;
    steps = ks_spectrum_steps(s, row);
    list[row] = share_probe(s, k, row, steps, probe[0].steps + steps == k->n);
    in->complement = &list[row];
    in->n_null_beside = k->null_known ? in->n_null - c->null_touched : 0;
    in->null_last = k->null_known ? c->null_last : 0;
    return KS_OK;
}

static ks_status find_shares(const struct ks_spectrum *s, const struct ks_bounds *k,
                             const struct ks_probe *probe, struct ks_shares *shares)
{
    KS_OWNED struct ks_share_probe *list = NULL;
    struct ks_shares_input in;

    KS_TRY(share_input(s, k, probe, &list, &in));
    return ks_shares(&in, shares);
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

ks_status ks_band_add(struct ks_spectrum *s, const struct ks_bounds *k,
                      const struct ks_probe *probe)
{
    KS_OWNED struct ks_share_probe *list = NULL;
    size_t side = BAND_DECADES * BAND_PER_DECADE + 1;
    struct ks_shares_input in;

    free(s->band_at), free(s->band_lower), free(s->band_upper); /* of an earlier call */
    s->band_at = s->band_lower = s->band_upper = NULL;
    s->n_band = 0;
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
    KS_TRY(share_input(s, k, probe, &list, &in));
    return ks_shares_band(&in, s->n_band, s->band_at, s->band_lower, s->band_upper);
}

ks_status ks_intervals_add(struct ks_spectrum *s, const struct ks_bounds *bounds,
                           const struct ks_probe *probe, const char *suffix)
{
    struct ks_shares shares = find_nothing(bounds);

    if (!bounds->unresolved)
        KS_TRY(bounds->exact ? find_exact(bounds, probe, &shares)
                             : find_shares(s, bounds, probe, &shares));
    add_shares(s, bounds, suffix, &shares);
    return s->statistics.status;
}

static ks_status add_gradient(struct ks_spectrum *s, const struct ks_energy *energy,
                              double curvature, double norm)
{
    add_ratio(s, KS_STAT_KAPPA_GRADIENT_90, "", energy->kappa_90);
    add_ratio(s, KS_STAT_KAPPA_GRADIENT_50, "", energy->kappa_50);
    ks_statistic_add(s, KS_STAT_GRADIENT_TOP_SHARE, "", energy->top_share);
    ks_statistic_add(s, KS_STAT_GRADIENT_CURVATURE, "", curvature);
    ks_statistic_add(s, KS_STAT_GRADIENT_NORM, "", norm);
    return s->statistics.status;
}

ks_status ks_intervals_add_gradient(struct ks_spectrum *s, const struct ks_bounds *bounds,
                                    bool asked)
{
    /* a zero gradient has a norm but no distribution */
    static const struct ks_energy none = {{NAN, NAN}, {NAN, NAN}, NAN};
    size_t last = s->probes - 1, row = last * s->order;
    struct ks_share_probe probe;
    struct ks_energy energy;
    const struct ks_certificates *c = bounds->certificates;
    bool certified = bounds->certified && c->gradient;

    if (!s->gradient)
        return asked ? add_gradient(s, &none, NAN, 0) : KS_OK;
    probe = (struct ks_share_probe){.steps = (size_t)s->steps[last],
                                    .alpha = s->alpha + row,
                                    .beta = s->beta + row,
                                    .ended = (size_t)s->steps[last] == bounds->n,
                                    .start_norm2 = 1};
    KS_TRY(ks_energy(&probe, bounds->h, bounds->abs_max, bounds->outer, &energy));
    if (bounds->unresolved) {
        energy.kappa_90 = energy.kappa_50 = (struct ks_interval){1, INFINITY};
        energy.top_share = NAN;
    }
    return add_gradient(s, &energy, certified ? c->gradient_curvature : s->alpha[row],
                        sqrt(s->start_norm2[last]));
}
