/* The statistics that are moments of the spectrum: of the unweighted Ritz values (kurtosis), and of
 * all eigenvalues by Gauss quadrature (kurtosis_spectral, trace, trace_square, stable_rank; Golub
 * and Meurant, Matrices, Moments and Quadrature, 2010). */
#include "statistics/probe.h"

#include <float.h>
#include <math.h>

#include "statistics/beta_distribution.h"

static const double TRACE = 0.01; /* the probability that the interval of the trace misses it */

/* Converged outliers count as single eigenvalues where they may be single (operator_facts.h): they
 * weigh 1/n each, and the weights of the bulk are scaled so that the sum is 1. Most of
 * an estimate's scatter over start vectors comes from the outliers' weights; this removes it.
 * Otherwise, or if there is no bulk and there are fewer Ritz values than eigenvalues, all Ritz
 * values keep their weights. */
struct weights {
    size_t low, high; /* the numbers of outliers at both ends    */
    double one;       /* the weight of an outlier                */
    double scale;     /* a factor for the weights of the others  */
};

static struct weights spectral_weights(const struct ks_probe *p)
{
    const struct ks_facts *k = p->facts;
    const struct weights plain = {.scale = 1};
    struct weights w = {.low = k->low, .high = k->high, .one = 1 / (double)k->n, .scale = 1};
    size_t outliers = k->low + k->high;
    double bulk = 0;

    if (!k->outliers_isolated || outliers == k->n)
        return k->outliers_isolated ? w : plain;
    for (size_t i = w.low; i + w.high < p->steps; i++)
        bulk += p->weight[i];
    w.scale = (1 - (double)outliers * w.one) / bulk;
    return bulk > 0 && w.scale > 0 && isfinite(w.scale) ? w : plain;
}

static double weight(const struct ks_probe *p, const struct weights *w, size_t i)
{
    return i < w->low || i + w->high >= p->steps ? w->one : w->scale * p->weight[i];
}

/* m4 / m2^2 from the central moments of the Ritz values with weights w, or with uniform weights (w
 * NULL); NaN if all Ritz values are equal. In units of the largest |theta|, so that no power
 * underflows. */
static double kurtosis(const struct ks_probe *p, const struct weights *w)
{
    double alike = 1 / (double)p->steps, unit = ks_probe_largest_size(p), centre = 0, m2 = 0,
           m4 = 0;

    for (size_t i = 0; i < p->steps; i++)
        centre += (w ? weight(p, w, i) : alike) * (p->theta[i] / unit);
    for (size_t i = 0; i < p->steps; i++) {
        double square = (p->theta[i] / unit - centre) * (p->theta[i] / unit - centre);
        double share = w ? weight(p, w, i) : alike;

        m2 += share * square;
        m4 += share * square * square;
    }
    return m4 / (m2 * m2);
}

double ks_probe_kurtosis(const struct ks_probe *p)
{
    return kurtosis(p, NULL);
}

double ks_probe_kurtosis_excess(const struct ks_probe *p)
{
    return ks_probe_kurtosis(p) - 3;
}

double ks_probe_kurtosis_spectral(const struct ks_probe *p)
{
    struct weights w = spectral_weights(p);

    return kurtosis(p, &w);
}

double ks_probe_trace(const struct ks_probe *p)
{
    struct weights w = spectral_weights(p);
    double sum = 0;

    for (size_t i = 0; i < p->steps; i++)
        sum += weight(p, &w, i) * p->theta[i];
    return (double)p->facts->n * sum;
}

/* The bulk of all probes, that is the Ritz values that do not count as single eigenvalues, in units
 * of the largest |theta|, and their moments about their mean with weights of sum 1. */
struct bulk {
    double unit, count; /* the unit; the number of eigenvalues in the bulk            */
    double mean;        /* the mean over the probes                                   */
    double far;         /* the largest distance of one of its Ritz values from `mean` */
    double m2, m4;      /* the means over the probes of the second and fourth moment  */
};

/* The moments about `centre` of one probe's bulk, divided by the number of probes, are added. */
static void add_bulk(const struct ks_probe *p, double centre, struct bulk *b)
{
    const struct weights w = spectral_weights(p);
    double sum = 0, m1 = 0, m2 = 0, m4 = 0, probes = (double)p->facts->probes;

    for (size_t i = w.low; i + w.high < p->steps; i++) {
        double distance = p->theta[i] / b->unit - centre, square = distance * distance;

        sum += p->weight[i];
        m1 += p->weight[i] * distance;
        m2 += p->weight[i] * square;
        m4 += p->weight[i] * square * square;
        b->far = fmax(b->far, fabs(distance));
    }
    b->count = (double)(p->facts->n - w.low - w.high);
    if (!(sum > 0))
        return;
    b->mean += (centre + m1 / sum) / probes;
    b->m2 += m2 / sum / probes;
    b->m4 += m4 / sum / probes;
}

/* The trace of a bulk of b eigenvalues is b times the mean over P probes of x'Ax, where x is a
 * random unit vector in b dimensions. The variance of x'Ax is 2/(b + 2) V, if V is that of the
 * eigenvalues (Avron and Toledo, J. ACM 58, 2011). V follows from the weights, to which one more
 * eigenvalue at the far end of the bulk is added, since the weight of a single one may be much too
 * small. If few eigenvalues dominate V, it is uncertain: the interval is Student's, and its degrees
 * of freedom are the number of those eigenvalues, P (sum d^2)^2 / sum d^4 with d the distances from
 * the mean. Measured coverage: tests/statistics/test_coverage.c. */
double ks_trace_error(const struct ks_facts *facts, const struct ks_probe *probe)
{
    const double probes = (double)(facts->probes * facts->pretend_probes);
    struct bulk first = {.unit = facts->abs_max}, b = {.unit = facts->abs_max};
    double freedom;

    if (facts->exact || !(facts->abs_max > 0))
        return 0;
    for (size_t i = 0; i < facts->probes; i++)
        add_bulk(&probe[i], 0, &first);
    for (size_t i = 0; i < facts->probes; i++)
        add_bulk(&probe[i], first.mean, &b);
    if (b.count == 0 || b.far < DBL_EPSILON)
        return 0;
    b.m2 += b.far * b.far / b.count;
    b.m4 += b.far * b.far * b.far * b.far / b.count;
    freedom = probes * b.count * b.m2 * b.m2 / b.m4;
    return ks_student_point(freedom, TRACE / 2) * b.unit * b.count *
           sqrt(2 / (b.count + 2) * b.m2 / probes);
}

/* n sum w (theta / unit)^2; theta^2 alone can overflow or underflow. */
static double sum_of_squares(const struct ks_probe *p, double unit)
{
    struct weights w = spectral_weights(p);
    double sum = 0;

    for (size_t i = 0; i < p->steps; i++)
        sum += weight(p, &w, i) * (p->theta[i] / unit) * (p->theta[i] / unit);
    return (double)p->facts->n * sum;
}

double ks_probe_trace_square(const struct ks_probe *p)
{
    return sum_of_squares(p, 1);
}

/* trace_square / lambda_abs_max^2, which is at least 1; an estimate below is raised to 1. */
double ks_probe_stable_rank(const struct ks_probe *p)
{
    double value = sum_of_squares(p, p->facts->abs_max);

    return isnan(value) ? value : fmax(value, 1);
}
