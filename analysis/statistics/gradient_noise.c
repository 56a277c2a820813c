#include "statistics/gradient_noise.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include <cblas.h>

#include "core/memory.h"
#include "statistics/beta_distribution.h"
#include "statistics/catalogue.h"

/* The probability that an end misses. A scale has two such ends on each side: 1% in all. */
static const double TAIL = 0.0025;

/* With this probability, a chi^2 variable of one degree of freedom is above 9.141; this is how many
 * standard deviations that is above its mean. No other weighted sum of independent chi^2
 * variables reaches so far. */
static const double CHI_SQUARE_POINT = 5.757; /* (9.141 - 1) / sqrt(2) */

/* What the matrix of scalar products says, in units of its largest entry. */
struct moments {
    double n;
    double square, variance; /* as in gradient_noise.h                               */
    double along;            /* G'Sigma G + tr Sigma^2 / (n - 2)                     */
    double squares;          /* tr Sigma^2                                           */
    double largest;          /* about the largest eigenvalue of Sigma                */
    double scatter;          /* the variance of |g_i - G|^2                          */
};

/* The mean of n numbers, and their variance with divisor n - 1. */
static double find_mean(size_t n, const double *x, double *variance)
{
    double mean = 0;

    *variance = 0;
    for (size_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        *variance += (x[i] - mean) * (x[i] - mean) / ((double)n - 1);
    return mean;
}

/* gram [n, n] = (g_i - g)'(g_j - g) with the mean g. */
static void centre(size_t n, double *gram, double *row)
{
    double all = 0;

    for (size_t i = 0; i < n; i++) {
        row[i] = 0;
        for (size_t j = 0; j < n; j++)
            row[i] += gram[i * n + j] / (double)n;
        all += row[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            gram[i * n + j] += all - row[i] - row[j];
}

/* At most the largest absolute eigenvalue of a symmetric matrix [n, n], and close to it, by power
 * iterations from its longest row. v [2, n] is scratch. */
static double find_largest(size_t n, const double *matrix, double *v)
{
    enum { ITERATIONS = 30 };
    const int size = (int)n;
    double *image = v + n, length = 0;

    memset(v, 0, n * sizeof *v);
    for (size_t i = 0; i < n; i++) {
        const double norm = cblas_dnrm2(size, matrix + i * n, 1);

        if (norm > length) {
            length = norm;
            memcpy(v, matrix + i * n, n * sizeof *v);
        }
    }
    for (size_t k = 0; k < ITERATIONS && length > 0; k++) {
        cblas_dscal(size, 1 / length, v, 1);
        cblas_dgemv(CblasRowMajor, CblasNoTrans, size, size, 1, matrix, size, v, 1, 0, image, 1);
        length = cblas_dnrm2(size, image, 1);
        memcpy(v, image, n * sizeof *v);
    }
    return length;
}

/* work [2, n] is scratch. */
static struct moments find_moments(size_t n, double *gram, double *work)
{
    const double freedom = (double)n - 1;
    struct moments m = {.n = (double)n};
    double all = 0, squares = 0;

    for (size_t i = 0; i < n; i++) {
        work[i] = 0;
        for (size_t j = 0; j < n; j++)
            work[i] += j == i ? 0 : gram[i * n + j] / freedom;
    }
    /* E of the variance of these means is ((n-2)/(n-1))^2 (G'Sigma G + tr Sigma^2 / (n - 2)). */
    m.square = find_mean(n, work, &m.along);
    m.along *= pow(freedom / (freedom - 1), 2);
    centre(n, gram, work);
    for (size_t i = 0; i < n; i++) {
        work[i] = gram[i * n + i] * m.n / freedom;
        all += gram[i * n + i];
        for (size_t j = 0; j < n; j++)
            squares += gram[i * n + j] * gram[i * n + j];
        gram[i * n + i] = 0; /* which would add tr Sigma / (n - 1) to the largest eigenvalue */
    }
    m.variance = fmax(find_mean(n, work, &m.scatter), 0);
    m.squares = fmax((squares - all * all / freedom) / ((m.n + 1) * (m.n - 2)), 0);
    m.largest = find_largest(n, gram, work) / freedom;
    return m;
}

static struct ks_interval find_square(const struct moments *m)
{
    const double t = ks_student_point(m->n - 1, TAIL), wide = fmax(t, CHI_SQUARE_POINT);
    const double linear = 4 * m->along / m->n, rest = 2 * m->squares / (m->n * (m->n - 1));

    return (struct ks_interval){m->square - sqrt(t * t * linear + wide * wide * rest),
                                m->square + t * sqrt(linear + rest) + t * t * m->largest / m->n};
}

/* The point above which the quotient of two independent chi^2 variables, each divided by its
 * degrees of freedom, lies with probability TAIL: the F distribution, by the beta distribution. */
static double find_f_point(double above, double below)
{
    const double x = ks_beta_upper_point(above / 2, below / 2, TAIL);

    return below * x / (above * (1 - x));
}

static struct ks_interval find_variance(const struct moments *m)
{
    const double error = fmax(m->scatter / m->n, 2 * m->squares / (m->n - 1)); /* its variance */
    const double by = exp(ks_student_point(m->n - 1, TAIL) * sqrt(error) / m->variance);
    const double freedom = fmax(2 * m->variance * m->variance / error, 1);

    if (!(error > 0 && m->variance > 0))
        return (struct ks_interval){m->variance, m->variance};
    return (struct ks_interval){m->variance / by,
                                m->variance * fmax(by, find_f_point(4 * (m->n - 1), freedom))};
}

/* Of tr Sigma / |G|^2, and of the share, with both intervals. */
static void find_quotients(double n, struct ks_gradient_noise *x)
{
    const struct ks_interval square = x->square.in, variance = x->variance.in;
    const double signal = fmax(x->square.value, 0);

    x->scale.value = x->variance.value / signal; /* NaN if both are 0 */
    x->share.value = signal / (signal + x->variance.value / n);
    if (n < KS_GRADIENT_NOISE_LEAST || !(square.upper > 0))
        return;
    x->scale.in.lower = variance.lower / square.upper;
    x->scale.in.upper = square.lower > 0 ? variance.upper / square.lower : NAN;
    x->share.in.lower = isnan(x->scale.in.upper) ? 0 : 1 / (1 + x->scale.in.upper / n);
    x->share.in.upper = 1 / (1 + x->scale.in.lower / n);
}

/* The interval in the units of the gradients, widened by rounding, and without negative numbers. */
static struct ks_interval convert(struct ks_interval in, double unit, double rounding)
{
    const double lower = fmax(in.lower - rounding, 0), upper = fmax(in.upper + rounding, 0);

    return (struct ks_interval){unit * lower, unit * upper};
}

ks_status ks_gradient_noise_find(size_t n, double *gram, struct ks_gradient_noise *noise)
{
    static const struct ks_estimate unknown = {NAN, {NAN, NAN}};
    const double rounding = 4 * (double)n * DBL_EPSILON;
    struct moments m;
    KS_OWNED double *work = NULL;
    double unit = 0;

    *noise = (struct ks_gradient_noise){unknown, unknown, unknown, unknown};
    for (size_t i = 0; i < n; i++)
        unit = fmax(unit, gram[i * n + i]) + 0 * gram[i * n + i];
    if (n < 2 || !isfinite(unit))
        return KS_OK;
    KS_TRY(ks_alloc(2 * n, sizeof *work, &work));
    for (size_t i = 0; i < n * n && unit > 0; i++)
        gram[i] /= unit;
    m = find_moments(n, gram, work);
    noise->square.value = unit * m.square;
    noise->variance.value = unit * m.variance;
    if (n >= KS_GRADIENT_NOISE_LEAST) {
        noise->square.in = convert(find_square(&m), unit, rounding);
        noise->variance.in = convert(find_variance(&m), unit, rounding);
    }
    find_quotients(m.n, noise);
    return KS_OK;
}

static void add(enum ks_statistic_id id, const struct ks_estimate *x, struct ks_attributes *list)
{
    ks_attribute_add_number(list, ks_catalogue[id].name, x->value);
    ks_attribute_add_number(list, ks_catalogue[id].lower, x->in.lower);
    ks_attribute_add_number(list, ks_catalogue[id].upper, x->in.upper);
}

void ks_gradient_noise_add(const struct ks_gradient_noise *noise, struct ks_attributes *statistics)
{
    add(KS_STAT_GRADIENT_SQUARE, &noise->square, statistics);
    add(KS_STAT_GRADIENT_VARIANCE, &noise->variance, statistics);
    add(KS_STAT_NOISE_SCALE, &noise->scale, statistics);
    add(KS_STAT_SIGNAL_SHARE, &noise->share, statistics);
}
