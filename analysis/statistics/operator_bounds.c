/* The noise floor, the null space and the outliers of an operator, and the bound of its condition
 * number off the null space. The constants are measured by the tests named beside them. */
#include "statistics/statistics.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "operators/null_space.h"
#include "statistics/beta_distribution.h"
#include "statistics/certificate.h"

/* The noise floor in units of the largest product with a null direction. That product is a typical
 * size of rounding errors, not a bound: eigenvalues of dense matrices that are known to be zero
 * reach 3.4 units, over all operators, both precisions, ten seeds, small trained and untrained
 * critics (test_noise.c: 2.9). */
static const double MARGIN = 4;

/* The noise floor is at least NOISE eps lambda_abs_max, eps being the machine epsilon of the
 * products or of the basis, whichever is larger. Measurements on null directions do not replace
 * this: their products can be exact by the architecture while products of other vectors have
 * rounding errors. Rounding moves an eigenvalue by at most the norm of the operator's error: up to
 * 7 units for critics of dog-trot in float32, 1 for the golden critics; Lanczos in float64 moves a
 * zero eigenvalue by at most 4 (test_zeros_stay_below_the_noise_floor,
 * test_noise_floor_of_float32). */
static const double NOISE = 16;

/* Rounding of a float64 product, |error| / (lambda_abs_max |y|), in units of eps: known products of
 * small critics err by up to 20 (test_certificate.c). */
static const double PRODUCT = 100;

/* Factors from the measured error of the products, which is a lower bound of its norm, to an upper
 * bound: for an exact spectrum the measurement is a power iteration, accurate to about ten percent;
 * otherwise it is the error on the three certificate vectors. */
static const double ERROR = 1.5, VECTOR_ERROR = 3;

/* If the error on the vectors exceeds this fraction of lambda_abs_max, it does not bound the
 * operator's error: only the certificates themselves are claimed. */
static const double UNRESOLVED = 0.01;

static const double OUTLIERS = 0.01; /* level of the test that every outlier may be single */

/* The noise floor, the largest of these: the multiple of eps; what was measured on null directions,
 * that is the size of their products and the leak of a product of the largest size into the null
 * space; the errors of the products; twice the last beta of a Krylov space that ended, as that
 * space is exactly invariant only for an operator that differs by beta. Half of the floor is h. */
static double find_floor(const struct ks_statistics_inputs *t, size_t n_probes,
                         const struct ks_probe *probe, double abs_max)
{
    const struct ks_null *null = t->null;
    double floor = NOISE * fmax(t->epsilon, t->basis_epsilon) * abs_max;

    if (null && null->dimension > 0)
        floor = fmax(floor, MARGIN * fmax(null->product, null->leak * abs_max));
    if (t->certificates)
        floor = fmax(floor, 2 * VECTOR_ERROR * t->certificates->error);
    floor = fmax(floor, 2 * ERROR * t->exact_error);
    for (size_t i = 0; i < n_probes; i++)
        if (probe[i].ended)
            floor = fmax(floor, 2 * probe[i].beta[probe[i].steps - 1]);
    return floor;
}

static void find_null(const struct ks_statistics_inputs *t, struct ks_bounds *k)
{
    const struct ks_null *null = t->null;
    const struct ks_nullity nullity = ks_nullity_find(t);
    const struct ks_certificates *c = t->certificates;

    k->null_dimension = k->null_residual = k->dead_dimension = NAN;
    k->least_nullity = nullity.least_nullity;
    if (!null)
        return;
    k->null_residual = k->abs_max > 0 ? null->product / k->abs_max : NAN;
    k->null = c && c->refuted ? 0 : nullity.directions;
    k->null_known = k->null > 0 && c && c->basis;
    k->null_dimension = fmax((double)null->dimension, (double)k->least_nullity);
    /* The nullity from the rank of the operator includes dead coordinates: only those beyond it are
     * counted in addition. */
    k->dead_dimension = c && c->refuted ? 0 : (double)null->dead;
    k->dead_dimension -= fmin(k->null_dimension - (double)null->dimension, k->dead_dimension);
}

/* At each end, the number of outliers is the smallest number that has converged over the probes. An
 * outlier is consistent with a single eigenvalue if the mean of its weights is not too large: the
 * mean squared component of P random unit vectors along one direction has the distribution
 * Beta(P/2, P (n-1)/2). */
static void find_outliers(struct ks_bounds *k, const struct ks_probe *probe)
{
    double p = (double)k->probes, outliers, most;

    k->low = k->high = SIZE_MAX;
    for (size_t i = 0; i < k->probes; i++) {
        struct ks_ends ends = ks_probe_ends(&probe[i]);

        k->low = ends.low < k->low ? ends.low : k->low;
        k->high = ends.high < k->high ? ends.high : k->high;
    }
    outliers = (double)(k->low + k->high);
    k->outliers_isolated = true;
    if (k->exact || outliers == 0 || k->published)
        return;
    most = ks_beta_upper_point(p / 2, p * ((double)k->n - 1) / 2, OUTLIERS / outliers);
    for (size_t j = 0; j < k->low + k->high; j++) {
        double mean = 0;

        for (size_t i = 0; i < k->probes; i++) {
            size_t at = j < k->low ? j : probe[i].steps - 1 - (j - k->low);

            mean += probe[i].weight[at] / p;
        }
        k->outliers_isolated &= mean <= most;
    }
}

static double certified_size(const struct ks_certificates *c)
{
    double size = 0;

    for (size_t i = 0; i < KS_CERTIFICATES; i++)
        if (c->vector[i].formed)
            size = fmax(size, c->vector[i].size);
    return size;
}

struct ks_bounds ks_bounds_find(const struct ks_statistics_inputs *t, bool exact, size_t n_probes,
                                struct ks_probe *probe, size_t prefix)
{
    const struct ks_certificates *c = t->certificates;
    struct ks_bounds k = {.n = t->n,
                          .minibatches = t->minibatches,
                          .probes = n_probes,
                          .pretend_probes = t->pretend_probes > 0 ? t->pretend_probes : 1,
                          .exact = exact,
                          .count_above = t->count_above,
                          .published = t->published && !exact,
                          .certificates = c};

    k.certified = c && c->certified && prefix == SIZE_MAX;
    k.prefix = c && prefix == SIZE_MAX ? c->prefixes : prefix;
    for (size_t i = 0; i < n_probes; i++)
        k.abs_max = fmax(k.abs_max, ks_probe_largest_size(&probe[i]));
    k.noise_floor = find_floor(t, n_probes, probe, k.abs_max);
    k.h = k.noise_floor / 2;
    if (k.certified)
        k.abs_max = certified_size(c);
    k.unresolved = c && c->certified && c->error > UNRESOLVED * certified_size(c);
    k.error = exact ? t->exact_error : k.certified ? c->error : NAN;
    find_null(t, &k);
    for (size_t i = 0; i < n_probes; i++) {
        probe[i].bounds = &k;
        k.outer = fmax(k.outer,
                       fmax(ks_probe_end_bound(&probe[i], 1), -ks_probe_end_bound(&probe[i], -1)));
    }
    k.outer = fmax(k.outer, k.abs_max);
    find_outliers(&k, probe);
    return k;
}

/* For an exact spectrum: the smallest |eigenvalue| after the zeros of the null space, which are the
 * smallest. */
static double next_smallest(const struct ks_bounds *k, const struct ks_probe *p)
{
    size_t low = 0, high;
    double size = 0;

    while (low < p->steps && p->theta[low] < 0)
        low++;
    high = low;
    for (size_t i = 0; i <= k->null && (low > 0 || high < p->steps); i++) {
        bool up = low == 0 || (high < p->steps && p->theta[high] <= -p->theta[low - 1]);

        size = fabs(p->theta[up ? high++ : --low]);
    }
    return size;
}

/* An upper bound of the smallest |A y|/|y| over vectors y off the null space, in exact arithmetic:
 * the smallest sigma of the probes plus the rounding errors of the run. */
static double least_sigma(const struct ks_bounds *k, const struct ks_probe *probe)
{
    const struct ks_certificates *c = k->certificates;
    double least = NAN;

    for (size_t i = 0; i < k->probes; i++) {
        size_t at = c ? i * (c->prefixes + 1) + k->prefix : 0;

        if (c && !c->refuted)
            least = fmin(least, c->sigma[at] + k->h * fmax(c->length[at], 1));
        else if (k->null == 0)
            least = fmin(least, probe[i].smallest + k->h);
    }
    return least;
}

double ks_effective_bound(const struct ks_bounds *k, const struct ks_probe *probe)
{
    double size;

    if (!(k->abs_max > 0) || k->null >= k->n || (k->published && !k->exact))
        return NAN;
    if (k->certified && k->certificates->vector[KS_Y_FLAT].formed) {
        size = k->certificates->vector[KS_Y_FLAT].size + PRODUCT * DBL_EPSILON * k->abs_max;
    } else {
        size = k->exact ? next_smallest(k, probe) + k->h : least_sigma(k, probe);
    }
    return isnan(size) ? NAN : fmax(k->abs_max / size, 1);
}

/* The test that no eigenvalue is missing from the Ritz values, and the condition number from them.
 */

/* A Ritz value above this many noise floors is certainly not a rounding error. */
static const double CLEAR = 10;

/* The probability that an eigenvalue has too little weight in the start vector to be noticed. */
static const double MISSED = 0.0025;

struct ks_nullity ks_nullity_find(const struct ks_statistics_inputs *t)
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
static double bound_of_probe(const struct ks_spectrum *s, const struct ks_statistics_inputs *t,
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

bool ks_spectrum_is_complete(const struct ks_spectrum *s, const struct ks_statistics_inputs *t,
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
