#include "statistics/probe.h"

#include <float.h>
#include <math.h>

#include "statistics/beta_distribution.h"
#include "statistics/certificate.h"

/* The statistics of the ends of the spectrum: lambda_max, lambda_min, their bounds, kappa
 * (Palenicek et al., XQC, ICLR 2026) and kappa_lower_bound. */

static const double LOSS = 0.005; /* probability that an end of an interval for the loss fails */
static const double FAILURE = 0.0025; /* of an outer bound, for all probes together */

/* The certificate with the largest (sign 1) or the smallest (sign -1) Rayleigh quotient; NULL:
 * none. If rounding errors of the run are large, it need not be the Ritz vector of that end. */
static const struct ks_certificate *certificate(const struct ks_probe *p, double sign)
{
    const struct ks_certificate *of, *best = NULL;

    for (size_t i = 0; p->bounds->certified && i < KS_CERTIFICATES; i++) {
        of = &p->bounds->certificates->vector[i];
        if (of->formed && (!best || sign * of->quotient > sign * best->quotient))
            best = of;
    }
    return best;
}

double ks_probe_end(const struct ks_probe *p, int sign)
{
    const struct ks_certificate *y = certificate(p, sign);

    return y ? y->quotient : p->theta[sign > 0 ? p->steps - 1 : 0];
}

double ks_probe_end_residual(const struct ks_probe *p, int sign)
{
    const struct ks_certificate *y = certificate(p, sign);

    return y                  ? y->residual
           : p->bounds->exact ? p->bounds->h /* all eigenvalues, up to rounding */
                              : p->residual[sign > 0 ? p->steps - 1 : 0];
}

double ks_probe_end_data_se(const struct ks_probe *p, int sign)
{
    const struct ks_certificate *y = certificate(p, sign);

    return y ? y->data_se : NAN;
}

/* How far beyond `edge` an eigenvalue can lie. The combined bound is the weakest over the probes,
 * so it fails only if the bounds of all probes fail; as start vectors are independent, each may
 * fail with probability FAILURE^(1/probes). h is added for rounding. */
static double beyond(const struct ks_probe *p, double edge)
{
    const struct ks_bounds *bounds = p->bounds;
    double failure = pow(FAILURE, 1 / (double)(bounds->probes * bounds->pretend_probes));

    return bounds->h + ks_extreme_bound_excess(p->steps, p->theta, p->beta, edge,
                                               ks_extreme_bound_component(bounds->n, failure));
}

double ks_probe_end_bound(const struct ks_probe *p, int sign)
{
    double edge = p->theta[sign > 0 ? p->steps - 1 : 0];

    if (p->bounds->unresolved)
        return NAN;
    return edge + sign * (p->beta ? beyond(p, edge) : p->bounds->h);
}

/* The loss is the mean over all minibatches that could be drawn, A its operator, and A_N that of
 * the N analyzed ones. Since lambda_max is convex, it is larger on average for A_N than for A; and
 * y'Ay/y'y is at most lambda_max(A) for every y, so also for one that was found without the
 * held-out minibatches, which estimate that quotient without bias. (The same two bounds are known
 * for sample averages in stochastic programming: Mak, Morton, Wood, Oper. Res. Lett. 24, 1999.)
 * Each bound fails with a probability of about LOSS: quotients of minibatches are taken as normal.
 * For lambda_min the signs change. tests/statistics/test_loss_interval.c measures the coverage. */
double ks_probe_loss_inner(const struct ks_probe *p, int sign)
{
    const struct ks_certificate *y = certificate(p, sign);

    if (!y || isnan(y->held_out_se))
        return NAN;
    return y->held_out_quotient -
           sign * ks_student_point((double)p->bounds->certificates->held_out - 1, LOSS) *
               y->held_out_se;
}

double ks_probe_loss_outer(const struct ks_probe *p, int sign)
{
    const struct ks_certificate *y = certificate(p, sign);

    if (!y || isnan(y->data_se))
        return NAN;
    return ks_probe_end_bound(p, sign) +
           sign * ks_student_point(p->bounds->minibatches - 1, LOSS) * y->data_se;
}

double ks_probe_largest_size(const struct ks_probe *p)
{
    return fmax(fabs(p->theta[0]), fabs(p->theta[p->steps - 1]));
}

double ks_probe_smallest_size(const struct ks_probe *p)
{
    double size = INFINITY;

    for (size_t i = 0; i < p->steps; i++)
        size = fmin(size, fabs(p->theta[i]));
    return size;
}

/* max |theta| / min |theta|, as in the XQC paper. */
double ks_probe_kappa(const struct ks_probe *p)
{
    return ks_probe_largest_size(p) / ks_probe_smallest_size(p);
}

/* The Krylov space contains a unit vector x with |A x| = smallest, and |A| >= max |theta|, so the
 * condition number is at least max |theta| / smallest. Rounding changes |A x| by at most h. */
double ks_probe_kappa_lower_bound(const struct ks_probe *p)
{
    return ks_probe_largest_size(p) / (p->smallest + p->bounds->h);
}

/* The statistics that are moments of the spectrum: of the unweighted Ritz values (kurtosis), and of
 * all eigenvalues by Gauss quadrature (kurtosis_spectral, trace, trace_square, stable_rank; Golub
 * and Meurant, Matrices, Moments and Quadrature, 2010). */

static const double TRACE = 0.01; /* the probability that the interval of the trace misses it */

/* Converged outliers count as single eigenvalues where they may be single (statistics.h): they
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
    const struct ks_bounds *k = p->bounds;
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
    return (double)p->bounds->n * sum;
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
    double sum = 0, m1 = 0, m2 = 0, m4 = 0, probes = (double)p->bounds->probes;

    for (size_t i = w.low; i + w.high < p->steps; i++) {
        double distance = p->theta[i] / b->unit - centre, square = distance * distance;

        sum += p->weight[i];
        m1 += p->weight[i] * distance;
        m2 += p->weight[i] * square;
        m4 += p->weight[i] * square * square;
        b->far = fmax(b->far, fabs(distance));
    }
    b->count = (double)(p->bounds->n - w.low - w.high);
    if (!(sum > 0))
        return;
    b->mean += (centre + m1 / sum) / probes;
    b->m2 += m2 / sum / probes;
    b->m4 += m4 / sum / probes;
}

/* Whether all Krylov spaces have ended, up to rounding. */
static bool have_ended(const struct ks_bounds *bounds, const struct ks_probe *probe)
{
    bool ended = true;

    for (size_t i = 0; i < bounds->probes; i++)
        ended &= probe[i].ended || probe[i].beta[probe[i].steps - 1] <= bounds->h;
    return ended;
}

/* The trace of a bulk of b eigenvalues is b times the mean over P probes of x'Ax, where x is a
 * random unit vector in b dimensions. The variance of x'Ax is 2/(b + 2) V, if V is that of the
 * eigenvalues (Avron and Toledo, J. ACM 58, 2011). V follows from the weights, to which one more
 * eigenvalue at the far end of the bulk is added, since the weight of a single one may be much too
 * small. If few eigenvalues dominate V, it is uncertain: the interval is Student's, and its degrees
 * of freedom are the number of those eigenvalues, P (sum d^2)^2 / sum d^4 with d the distances from
 * the mean. Of an exact spectrum, rounding moves each eigenvalue by h at most. Measured coverage:
 * tests/statistics/test_coverage.c. */
double ks_trace_error(const struct ks_bounds *bounds, const struct ks_probe *probe)
{
    const double probes = (double)(bounds->probes * bounds->pretend_probes);
    struct bulk first = {.unit = bounds->abs_max}, b = {.unit = bounds->abs_max};
    double freedom;

    if (bounds->unresolved)
        return NAN;
    if (bounds->exact || !(bounds->abs_max > 0))
        return (double)bounds->n * bounds->h;
    for (size_t i = 0; i < bounds->probes; i++)
        add_bulk(&probe[i], 0, &first);
    for (size_t i = 0; i < bounds->probes; i++)
        add_bulk(&probe[i], first.mean, &b);
    if (b.count == 0 || b.far < DBL_EPSILON)
        return have_ended(bounds, probe) ? (double)bounds->n * bounds->h : NAN;
    b.m2 += b.far * b.far / b.count;
    b.m4 += b.far * b.far * b.far * b.far / b.count;
    freedom = probes * b.count * b.m2 * b.m2 / b.m4;
    return ks_student_point(freedom, TRACE / 2) * b.unit * b.count *
               sqrt(2 / (b.count + 2) * b.m2 / probes) +
           (double)(bounds->low + bounds->high) * bounds->h;
}

/* n sum w (theta / unit)^2; theta^2 alone can overflow or underflow. */
static double sum_of_squares(const struct ks_probe *p, double unit)
{
    struct weights w = spectral_weights(p);
    double sum = 0;

    for (size_t i = 0; i < p->steps; i++)
        sum += weight(p, &w, i) * (p->theta[i] / unit) * (p->theta[i] / unit);
    return (double)p->bounds->n * sum;
}

double ks_probe_trace_square(const struct ks_probe *p)
{
    return sum_of_squares(p, 1);
}

/* trace_square / lambda_abs_max^2, which is at least 1; an estimate below is raised to 1. */
double ks_probe_stable_rank(const struct ks_probe *p)
{
    double value = sum_of_squares(p, p->bounds->abs_max);

    return isnan(value) ? value : fmax(value, 1);
}

/* The outliers: the converged Ritz values at both ends of the spectrum. */

/* A Ritz value has converged if its residual bound is at most this fraction of the distance to the
 * next. */
static const double CONVERGED = 1e-3;

/* Counts the converged Ritz values from one end inward. Two Ritz values whose distance is within
 * the noise floor may be one eigenvalue split by rounding, and one within it of zero may be many
 * eigenvalues, so the count stops there. */
static size_t count_end(const struct ks_probe *p, size_t from, int step)
{
    double floor = p->bounds ? p->bounds->noise_floor : 0;
    size_t count = 0, i = from;

    while (count + 1 < p->steps) {
        size_t next = step > 0 ? i + 1 : i - 1;
        double distance = fabs(p->theta[next] - p->theta[i]);

        if (!(p->residual[i] <= CONVERGED * distance) ||
            (p->beta && !(fmin(distance, fabs(p->theta[i])) > floor)))
            break;
        count++;
        i = next;
    }
    return count;
}

/* Counts inward from each end, up to the first Ritz value that has not converged. If all have
 * converged (--exact), there is no bulk; the last Ritz value counted from below has no next one and
 * belongs to the upper end. */
struct ks_ends ks_probe_ends(const struct ks_probe *p)
{
    struct ks_ends ends = {.high = count_end(p, p->steps - 1, -1)};
    size_t low = count_end(p, 0, 1);

    ends.low = low < p->steps - ends.high ? low : p->steps - ends.high;
    return ends;
}

double ks_probe_outliers(const struct ks_probe *p)
{
    struct ks_ends ends = ks_probe_ends(p);

    return (double)(ends.low + ends.high);
}

/* lambda_1 / lambda_5, in descending order. */
double ks_probe_outlier_gap(const struct ks_probe *p)
{
    return p->steps < 5 ? NAN : p->theta[p->steps - 1] / p->theta[p->steps - 5];
}
