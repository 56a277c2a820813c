/* The test that no eigenvalue is missing from the Ritz values, and the condition number from them.
 */
#include "statistics/completeness.h"

#include <math.h>

#include "operators/null_space.h"
#include "statistics/beta_distribution.h"
#include "statistics/certificate.h"

/* A Ritz value above this many noise floors is certainly not a rounding error. */
static const double CLEAR = 10;

/* The probability that an eigenvalue has too little weight in the start vector to be noticed. */
static const double MISSED = 0.0025;

struct ks_nullity ks_nullity_find(const struct ks_statistics_terms *t)
{
    const struct ks_certificates *c = t->certificates;
    struct ks_nullity k = {.least_nullity = t->operator_rank > 0 && t->operator_rank < t->n
                                                ? t->n - t->operator_rank
                                                : 0};

    if (!t->null || t->shift != 0)
        return k;
    k.directions = t->null->dimension + t->null->dead;
    k.architecture = t->null->dimension;
    if (c && c->refuted) /* a coordinate counted as dead is not, or its product underflows */
        k.directions = k.architecture;
    else if (c && c->basis)
        k.directions = c->basis->dimension;
    return k;
}

/* The Ritz values of a probe: the number and weight of those at zero, and the range of |theta| of
 * the others. */
struct sizes {
    double zero_weight, least, most;
    size_t zeros;
    bool clear;
};

static struct sizes measure(size_t m, const double *theta, const double *weight, double floor)
{
    struct sizes s = {.least = INFINITY, .clear = true};

    for (size_t i = 0; i < m; i++) {
        double size = fabs(theta[i]);

        if (size <= floor) {
            s.zero_weight += weight[i];
            s.zeros++;
            continue;
        }
        s.clear &= size > CLEAR * floor;
        s.least = fmin(s.least, size);
        s.most = fmax(s.most, size);
    }
    return s;
}

/* A lower bound of the nonzero |eigenvalues|: the smallest |theta| minus the uncertainty from
 * rounding and from the last beta. An eigenvalue at distance g from all Ritz values has a component
 * of at most beta/g in the start vector; a random vector has so small a component with probability
 * MISSED only. */
static double nearest(const struct sizes *s, double h, double beta, size_t others)
{
    double component = sqrt(ks_beta_lower_point(0.5, ((double)others - 1) / 2, MISSED));

    return s->least - fmax(h, others > 1 ? beta / component : 0);
}

/* An exact spectrum is complete if it has as many zeros as there are known null directions. */
static bool complete_exact(const struct ks_spectrum *s, size_t directions, double floor,
                           double *upper)
{
    struct sizes z = measure(s->order, s->ritz, s->weight, floor);

    *upper = (z.most + floor / 2) / (z.least - floor / 2);
    return z.clear && z.zeros == directions && z.zeros < s->order;
}

/* An upper bound of the condition number off the null directions, from the Ritz values of one
 * probe; NaN if these may lack an eigenvalue. */
static double bound_of_probe(const struct ks_spectrum *s, const struct ks_statistics_terms *t,
                             size_t directions, size_t probe, double floor)
{
    const struct ks_certificates *c = t->certificates;
    size_t row = probe * s->order, m = (size_t)s->steps[probe], others = t->n - directions;
    struct sizes z = measure(m, s->ritz + row, s->weight + row, floor);
    double known = directions > 0 && c ? c->null_weight[probe] : 0;
    double hidden = others > 1 ? ks_beta_lower_point(0.5, ((double)others - 1) / 2, MISSED) : 1;
    double low = nearest(&z, floor / 2, s->beta[row + m - 1], others);

    if ((m == s->order && m < t->n) || !z.clear || z.zeros == m || !(low > 0))
        return NAN;
    if (z.zeros > 0 && !(directions > 0 && fabs(z.zero_weight - known) < (1 - known) * hidden))
        return NAN;
    return (z.most + floor / 2) / low;
}

bool ks_spectrum_is_complete(const struct ks_spectrum *s, const struct ks_statistics_terms *t,
                             double *upper)
{
    struct ks_nullity null = ks_nullity_find(t);
    double floor = ks_statistic_value(s, KS_STAT_NOISE_FLOOR);

    *upper = 0;
    if (null.directions >= t->n || !(floor >= 0) ||
        isnan(ks_statistic_value(s, KS_STAT_DIRECTIONS_1E2))) /* the products are too inaccurate */
        return false;
    if (!s->alpha)
        return complete_exact(s, null.directions, floor, upper);
    for (size_t i = 0; i < ks_spectrum_random(s); i++) {
        double bound = bound_of_probe(s, t, null.directions, i, floor);

        if (isnan(bound))
            return false;
        *upper = fmax(*upper, bound);
    }
    return !t->published;
}
