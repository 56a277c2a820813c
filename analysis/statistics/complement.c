/* What two runs say together: inertia of a partitioned matrix. */
#include "statistics/share_bounds.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

void ks_complement_free(struct ks_complement *k)
{
    if (k)
        ks_share_bounds_free(k->c);
    free(k);
}

ks_status ks_complement_new(const struct ks_share_bounds *b, struct ks_complement **complement)
{
    KS_OWNED_BY(ks_complement_free) struct ks_complement *k = NULL;

    *complement = NULL;
    if (!b->in->complement)
        return KS_OK;
    KS_TRY(ks_alloc(1, sizeof *k, &k));
    k->first = b;
    k->t = b->radau[0];
    k->in = (struct ks_shares_input){.n = b->in->n - k->t->m,
                                     .n_null = b->in->n_null_beside,
                                     .probes = 1,
                                     .probe = b->in->complement,
                                     .h = b->in->h,
                                     .null_image = b->in->null_last * k->t->beta[k->t->m - 1]};
    KS_TRY(ks_share_bounds_new(&k->in, &k->c));
    *complement = k, k = NULL;
    return KS_OK;
}

static size_t beyond(const struct ks_radau *t, double x, int sign)
{
    size_t count = 0;

    for (size_t i = 0; i < t->m; i++)
        count += sign * t->theta[i] > x;
    return count;
}

/* What the second run's weights say of C, beside the Ritz values of the first run. */
static double estimate(const struct ks_complement *k, double x)
{
    const struct ks_radau *c = k->c->radau[0];
    const double others = 1 - k->in.probe->null_weight;
    double weight = 0;

    for (size_t i = 0; i < c->m; i++)
        weight += fabs(c->theta[i]) > x ? c->weight[i] : 0;
    weight = others > 0 ? fmin(weight / others, 1) : 0;
    return (double)(beyond(k->t, x, 1) + beyond(k->t, x, -1)) + weight * (double)k->c->others;
}

/* A term of rank one that is smaller than this share of x costs a shift of x, else one eigenvalue.
 */
static const double SHIFTED = 0.03;

/* What the term of rank one costs a bound at x, of sign * A: *shift of x in N(C, x), or 1 of
 * *count. beta_m^2 s is the sum of r_i^2 / (theta_i - x) with the residual bounds r_i, each of
 * which rounding may have moved by h. */
static void charge(const struct ks_complement *k, double x, int sign, bool lower, double *shift,
                   double *count)
{
    const double h = k->in.h;
    double sum = 0, doubt = 0;

    for (size_t i = 0; i < k->t->m; i++) {
        const double r = k->t->residual[i], gap = sign * k->t->theta[i] - x;

        sum += r * r / gap;
        doubt += h * (2 * r + h) / fabs(gap);
    }
    if (lower ? sum < -doubt : sum > doubt) /* nothing: d is not on this side */
        return;
    if (fabs(sum) + doubt <= SHIFTED * x)
        *shift = fmax(*shift, fabs(sum) + doubt);
    else /* also if a Ritz value is x, where s is infinite */
        *count += lower ? -1 : 1;
}

/* The bounds by both runs; what is certain of the first one is not in them. */
static ks_status bound(const struct ks_complement *k, double low, double high,
                       struct ks_interval *count)
{
    const double n = (double)k->c->others, inner = low - k->in.h, outer = high + k->in.h;
    double lower = 0, upper = 0, in = 0, out = 0;
    struct ks_interval inside;

    for (int sign = -1; sign <= 1; sign += 2) {
        lower += (double)beyond(k->t, outer, sign);
        upper += (double)beyond(k->t, inner, sign);
        charge(k, outer, sign, true, &out, &lower);
        charge(k, inner, sign, false, &in, &upper);
    }
    KS_TRY(ks_share_bounds_count_within(k->c, low - in, high + out, &inside));
    *count = (struct ks_interval){lower + n - inside.upper, upper + n - inside.lower};
    return KS_OK;
}

ks_status ks_complement_count(const struct ks_complement *k, double low, double high, double least,
                              struct ks_estimate *count)
{
    const double others = (double)k->first->others;
    const struct ks_interval inside = ks_share_bounds_certain_within(k->first, low, high);
    struct ks_interval in;

    assert(low > 2 * k->in.h);
    KS_TRY(bound(k, low, high, &in));
    in.lower = fmax(fmax(in.lower, others - inside.upper), least);
    in.upper = fmin(in.upper, others - inside.lower);
    if (in.lower <= in.upper)
        *count = (struct ks_estimate){fmin(fmax(estimate(k, low), in.lower), in.upper), in};
    return KS_OK;
}
