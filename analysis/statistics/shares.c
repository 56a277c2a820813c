/* The intervals for counts, sizes and shares of eigenvalues, from the bounds of share_bounds.h. */
#include "statistics/shares.h"

#include <math.h>

#include "statistics/probe.h"
#include "statistics/share_bounds.h"

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

/* The threshold lambda_abs_max / factor is only known to be in [low, high], from the bounds of
 * lambda_abs_max. The count is at least 1 unless the operator is zero: it includes the largest
 * |eigenvalue|. */
static ks_status directions(const struct ks_share_bounds *b, double factor,
                            struct ks_estimate *directions)
{
    double low = b->in->abs_max_lower / factor, high = b->in->abs_max_upper / factor;
    double others = (double)b->others, lower, upper;
    struct ks_interval inside;

    *directions = (struct ks_estimate){0, {0, 0}};
    if (!(b->in->abs_max_upper > 0))
        return KS_OK;
    KS_TRY(ks_share_bounds_count_within(b, low, high, &inside));
    lower = fmax(others - inside.upper, low > 0 ? 1 : 0);
    upper = fmax(others - inside.lower, lower);
    *directions = between(others * (1 - estimate(b, -low, low, true)), lower, upper);
    return KS_OK;
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
    ks_status status = KS_OK;
    struct ks_share_bounds *b = NULL;

    KS_GO(ks_share_bounds_new(in, &b));
    for (size_t i = 0; i < KS_DIRECTIONS; i++)
        KS_GO(directions(b, ks_direction_factor[i], &shares->directions[i]));
    for (size_t i = 0; i < KS_QUANTILES; i++)
        KS_GO(kappa(b, ks_quantile_percent[i], &shares->kappa_q[i]));
    KS_GO(masses(b, shares));
done:
    ks_share_bounds_free(b);
    return status;
}

ks_status ks_shares_band(const struct ks_shares_input *in, size_t count, const double *x,
                         double *lower, double *upper)
{
    ks_status status = KS_OK;
    struct ks_share_bounds *b = NULL;

    KS_GO(ks_share_bounds_new(in, &b));
    for (size_t i = 0; i < count; i++) {
        struct ks_interval below;

        KS_GO(ks_share_bounds_count_below(b, x[i], &below));
        lower[i] = below.lower / (double)in->n;
        upper[i] = below.upper / (double)in->n;
    }
done:
    ks_share_bounds_free(b);
    return status;
}

/* lambda_abs_max over the size below which the part `rest` of the squared norm lies. */
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
    const struct ks_share_probe alone = {.steps = probe->steps,
                                         .alpha = probe->alpha,
                                         .beta = probe->beta,
                                         .ended = probe->ended,
                                         .start_norm2 = 1};
    const struct ks_shares_input in = {.n = 1,
                                       .probes = 1,
                                       .probe = &alone,
                                       .h = h,
                                       .abs_max_lower = abs_max_lower,
                                       .abs_max_upper = abs_max_upper};
    ks_status status = KS_OK;
    struct ks_share_bounds *b = NULL;

    KS_GO(ks_share_bounds_new(&in, &b));
    KS_GO(energy_kappa(b, 0.1, &energy->kappa_90));
    KS_GO(energy_kappa(b, 0.5, &energy->kappa_50));
    energy->top_share = top_share(b->radau[0], h);
done:
    ks_share_bounds_free(b);
    return status;
}
