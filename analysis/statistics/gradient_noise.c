#include "statistics/gradient_noise.h"

#include <math.h>

#include <lapacke.h>

#include "core/memory.h"
#include "statistics/beta_distribution.h"
#include "statistics/catalogue.h"

/* The probability that an end misses. A scale has two such ends on each side: 1% in all. */
static const double TAIL = 0.0025;

/* With this probability, a chi^2 variable of one degree of freedom is above 9.141; this is how many
 * standard deviations that is above its mean. No other weighted sum of independent chi^2
 * variables reaches so far. */
static const double CHI_SQUARE_POINT = 5.757; /* (9.141 - 1) / sqrt(2) */

/* What the matrix of scalar products says. */
struct moments {
    double n;
    double square, variance; /* as in noise.h                                        */
    double along;            /* G'Sigma G + tr Sigma^2 / (n - 1)                     */
    double squares;          /* tr Sigma^2                                           */
    double largest;          /* the largest eigenvalue of Sigma, or a little more    */
    double scatter;          /* the variance of |g_i - G|^2                          */
};

/* The mean of the first n entries of a row of doubles, and their variance with divisor n - 1. */
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

/* row [n] is scratch. */
static ks_status find_moments(size_t n, double *gram, double *row, struct moments *m)
{
    const double count = (double)n, freedom = count - 1;
    double all = 0, squares = 0;
    lapack_int info;

    m->n = count;
    for (size_t i = 0; i < n; i++) {
        row[i] = 0;
        for (size_t j = 0; j < n; j++)
            row[i] += j == i ? 0 : gram[i * n + j] / freedom;
    }
    m->square = find_mean(n, row, &m->along);
    centre(n, gram, row);
    for (size_t i = 0; i < n; i++) {
        row[i] = gram[i * n + i] * count / freedom;
        all += gram[i * n + i];
        for (size_t j = 0; j < n; j++)
            squares += gram[i * n + j] * gram[i * n + j];
        gram[i * n + i] = 0;
    }
    m->variance = find_mean(n, row, &m->scatter);
    m->squares = (squares - all * all / freedom) / ((count + 1) * (count - 2));
    m->squares = fmax(m->squares, 0);
    info = LAPACKE_dsyevd(LAPACK_ROW_MAJOR, 'N', 'U', (lapack_int)n, gram, (lapack_int)n, row);
    if (info != 0)
        return ks_fail(KS_NUMBER, "LAPACK's dsyevd returned %d for the gradients' covariance",
                       (int)info);
    m->largest = fmax(row[n - 1], 0) / freedom;
    return KS_OK;
}

static struct ks_interval find_square(const struct moments *m)
{
    const double t = ks_student_point(m->n - 1, TAIL), wide = fmax(t, CHI_SQUARE_POINT);
    const double linear = 4 * m->along / m->n, rest = 2 * m->squares / (m->n * (m->n - 1));
    const double lower = m->square - sqrt(t * t * linear + wide * wide * rest);
    const double upper = m->square + t * sqrt(linear + rest) + t * t * m->largest / m->n;

    return (struct ks_interval){fmax(lower, 0), fmax(upper, 0)};
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

    if (!(error > 0))
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
    if (n < KS_GRADIENT_NOISE_LEAST)
        return;
    x->scale.in.lower = variance.lower / square.upper;
    x->scale.in.upper = square.lower > 0 ? variance.upper / square.lower : NAN;
    x->share.in.lower = isnan(x->scale.in.upper) ? 0 : 1 / (1 + x->scale.in.upper / n);
    x->share.in.upper = 1 / (1 + x->scale.in.lower / n);
}

ks_status ks_gradient_noise_find(size_t n, double *gram, struct ks_gradient_noise *noise)
{
    static const struct ks_estimate unknown = {NAN, {NAN, NAN}};
    struct moments m = {0};
    KS_OWNED double *row = NULL;
    double sum = 0;

    *noise = (struct ks_gradient_noise){unknown, unknown, unknown, unknown};
    for (size_t i = 0; i < n; i++)
        sum += gram[i * n + i];
    if (n < 2 || !isfinite(sum * sum))
        return KS_OK;
    KS_TRY(ks_alloc(n, sizeof *row, &row));
    KS_TRY(find_moments(n, gram, row, &m));
    noise->square.value = m.square;
    noise->variance.value = m.variance;
    if (n >= KS_GRADIENT_NOISE_LEAST) {
        noise->square.in = find_square(&m);
        noise->variance.in = find_variance(&m);
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
