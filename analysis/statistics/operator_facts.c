#include "statistics/operator_facts.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "operators/null_space.h"
#include "statistics/beta_distribution.h"
#include "statistics/certificate.h"
#include "statistics/probe.h"
#include "statistics/statistics.h"

/* The noise floor where null directions were measured, in units of what was measured. What was
 * measured is typical of rounding and no bound: known zeros of dense matrices come out at up to 3.4
 * units, with all operators, both precisions, ten seeds, small critics as training leaves them and
 * others (test_noise.c: 2.9). */
static const double MARGIN = 4;

/* The noise floor is at least that many units of eps lambda_abs_max, eps being the products' or the
 * basis', whichever is larger. Measurements on null directions do not replace it: where the
 * architecture makes their products exact, other vectors still have rounding errors. Rounding moves
 * eigenvalues by at most the norm of the error of the operator: up to 7 units for critics of
 * dog-trot in float32, 1 for the golden ones; Lanczos in float64 leaves a zero eigenvalue within 4
 * (test_zeros_stay_below_the_noise_floor, test_noise_floor_of_float32). */
static const double NOISE = 16;

/* Rounding of a float64 product, |error| / (lambda_abs_max |y|), in units of eps: known products of
 * small critics err by up to 20 (test_certificate.c). */
static const double PRODUCT = 100;

/* The norm of the error of the products is known from below: for an exact spectrum by a power
 * iteration, to some ten percent; else from the three vectors of the certificates. */
static const double ERROR = 1.5, VECTOR_ERROR = 3;

/* Beyond this part of lambda_abs_max the vectors' error no longer says how large that of the
 * operator may be: nothing but the certificates themselves is claimed. */
static const double UNRESOLVED = 0.01;

static const double OUTLIERS = 0.01; /* level of the test that every outlier may be single */

static double largest_size(const struct ks_facts *k, const struct ks_probe *probe)
{
    double size = 0;

    for (size_t i = 0; i < k->probes; i++)
        size = fmax(size, ks_probe_largest_size(&probe[i]));
    return size;
}

/* Half of the floor is h: so far may rounding have moved an eigenvalue. Where a Krylov space ended,
 * it is invariant under an operator that differs by the last beta from the one that was computed.
 *
 * Measured on null directions are the size of their products, and what a product of the largest
 * size would put into their space. */
static double find_floor(const struct ks_statistics_terms *t, size_t n_probes,
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

static void find_null(const struct ks_statistics_terms *t, struct ks_facts *k)
{
    const struct ks_null *null = t->null;

    k->null_dimension = k->null_residual = k->dead_dimension = NAN;
    k->rank_null = t->rank > 0 && t->rank < t->n ? t->n - t->rank : 0;
    if (!null)
        return;
    k->null_residual = k->abs_max > 0 ? null->product / k->abs_max : NAN;
    if (t->shift == 0 && !(t->certificates && t->certificates->refuted))
        k->null = null->dimension + null->dead;
    if (k->null > 0 && t->certificates && t->certificates->basis) {
        k->null = t->certificates->basis->dimension;
        k->null_known = true;
    }
    k->null_dimension = fmax((double)null->dimension, (double)k->rank_null);
    /* The rank bound counts what is dead, too: only what goes beyond it is counted apart. */
    k->dead_dimension = t->certificates && t->certificates->refuted ? 0 : (double)null->dead;
    k->dead_dimension -= fmin(k->null_dimension - (double)null->dimension, k->dead_dimension);
}

/* As many outliers count at each end as have converged for every probe. Each may be a single
 * eigenvalue if the mean of its weights is not too large: the mean of the squared components of P
 * random unit vectors along one direction has the distribution Beta(P/2, P (n-1)/2). */
static void find_outliers(struct ks_facts *k, const struct ks_probe *probe)
{
    double p = (double)k->probes, outliers, most;

    k->low = k->high = SIZE_MAX;
    for (size_t i = 0; i < k->probes; i++) {
        struct ks_ends ends = ks_probe_ends(&probe[i]);

        k->low = ends.low < k->low ? ends.low : k->low;
        k->high = ends.high < k->high ? ends.high : k->high;
    }
    outliers = (double)(k->low + k->high);
    k->single = true;
    if (k->exact || outliers == 0 || k->unweighted)
        return;
    most = ks_beta_upper_point(p / 2, p * ((double)k->n - 1) / 2, OUTLIERS / outliers);
    for (size_t j = 0; j < k->low + k->high; j++) {
        double mean = 0;

        for (size_t i = 0; i < k->probes; i++) {
            size_t at = j < k->low ? j : probe[i].steps - 1 - (j - k->low);

            mean += probe[i].weight[at] / p;
        }
        k->single &= mean <= most;
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

struct ks_facts ks_facts_find(const struct ks_statistics_terms *t, bool exact, size_t n_probes,
                              struct ks_probe *probe, size_t part)
{
    const struct ks_certificates *c = t->certificates;
    struct ks_facts k = {.n = t->n,
                         .probes = n_probes,
                         .exact = exact,
                         .unweighted = t->unweighted && !exact,
                         .certificates = c};

    k.certified = c && c->certified && part == SIZE_MAX;
    k.part = c && part == SIZE_MAX ? c->parts : part;
    k.abs_max = largest_size(&k, probe);
    k.noise_floor = find_floor(t, n_probes, probe, k.abs_max);
    k.h = k.noise_floor / 2;
    if (k.certified)
        k.abs_max = certified_size(c);
    k.unresolved = c && c->certified && c->error > UNRESOLVED * certified_size(c);
    k.error = exact ? t->exact_error : k.certified ? c->error : NAN;
    find_null(t, &k);
    for (size_t i = 0; i < n_probes; i++) {
        probe[i].facts = &k;
        k.outer = fmax(k.outer, fmax(ks_probe_lambda_max_upper(&probe[i]),
                                     -ks_probe_lambda_min_lower(&probe[i])));
    }
    k.outer = fmax(k.outer, k.abs_max);
    find_outliers(&k, probe);
    return k;
}

/* All eigenvalues are known, and the null space has the smallest of them: the next one's size. */
static double next_smallest(const struct ks_facts *k, const struct ks_probe *p)
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

/* The smallest |A y|/|y| off the null space that the probes' Krylov spaces hold, of A as it is: the
 * run's rounding is added. */
static double least_sigma(const struct ks_facts *k, const struct ks_probe *probe)
{
    const struct ks_certificates *c = k->certificates;
    double least = NAN;

    for (size_t i = 0; i < k->probes; i++) {
        size_t at = c ? i * (c->parts + 1) + k->part : 0;

        if (c && !c->refuted)
            least = fmin(least, c->sigma[at] + k->h * fmax(c->length[at], 1));
        else if (k->null == 0)
            least = fmin(least, probe[i].smallest + k->h);
    }
    return least;
}

double ks_effective_bound(const struct ks_facts *k, const struct ks_probe *probe)
{
    double size;

    if (!(k->abs_max > 0) || k->null >= k->n || (k->unweighted && !k->exact))
        return NAN;
    if (k->certified && k->certificates->vector[KS_Y_FLAT].formed) {
        size = k->certificates->vector[KS_Y_FLAT].size + PRODUCT * DBL_EPSILON * k->abs_max;
    } else {
        size = k->exact ? next_smallest(k, probe) + k->h : least_sigma(k, probe);
    }
    return isnan(size) ? NAN : fmax(k->abs_max / size, 1);
}
