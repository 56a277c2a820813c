/* The incomplete beta function by its continued fraction,
 *
 *   I_x(a, b) = x^a (1-x)^b / (a B(a, b)) / (1 + d_1 / (1 + d_2 / (1 + ...)))     (DLMF 8.17.22)
 *
 *   d_{2j}   =  j (b - j) x / ((a + 2j - 1) (a + 2j))
 *   d_{2j+1} = -(a + j) (a + b + j) x / ((a + 2j) (a + 2j + 1)),
 *
 * which converges fast for x < (a + 1) / (a + b + 2); beyond, I_x(a, b) = 1 - I_{1-x}(b, a). */
#include "statistics/beta_distribution.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

static const double LOG_2PI = 1.83787706640934548356;

/* The error of Stirling's formula: lgamma(a) - ((a - 1/2) log(a) - a + log(2 pi) / 2). */
static double stirling_error(double a)
{
    double s = 1 / (a * a);

    if (a < 16)
        return lgamma(a) - ((a - 0.5) * log(a) - a + LOG_2PI / 2);
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - s / 1680) * s) * s) / a;
}

/* a log(a / m) + m - a, without cancellation if m is close to a. */
static double deviance(double a, double m)
{
    double ratio = m / a, excess = (m - a) / a;

    return a * (ratio < 0.5 ? excess - log(ratio) : excess - log1p(excess));
}

/* log(x^a y^b / B(a, b)) with y = 1 - x. The large terms of log(B) cancel against the powers before
 * anything is computed (Loader, Fast and accurate computation of binomial probabilities, 2000). */
static double log_front(double a, double b, double x, double y)
{
    double n = a + b;

    return 0.5 * (log(a) + log(b / n) - LOG_2PI) - deviance(a, n * x) - deviance(b, n * y) +
           stirling_error(n) - stirling_error(a) - stirling_error(b);
}

/* 1 / (1 + d_1 / (1 + ...)) by Lentz's method: `c` and `d` are the ratios of successive numerators
 * and of successive denominators. About sqrt(max(a, b)) steps are needed at the mean, few in the
 * tails. */
static double fraction(double a, double b, double x)
{
    static const double TINY = 1e-300, ACCURACY = 1e-15;
    static const long MOST = 10000000;
    double value = 1, c = 1 / TINY, d = 1, change = 0;

    for (long i = 1; i < MOST && !(fabs(change - 1) <= ACCURACY); i++) {
        long half = i / 2;
        double j = (double)half, top = a + 2 * j;
        double term = i % 2 == 0 ? j * (b - j) * x / ((top - 1) * top)
                                 : -(a + j) * (a + b + j) * x / (top * (top + 1));

        d = 1 + term * d;
        d = 1 / (fabs(d) < TINY ? TINY : d);
        c = 1 + term / c;
        c = fabs(c) < TINY ? TINY : c;
        change = c * d;
        value *= change;
    }
    return value;
}

/* I_x(a, b) on the side where the fraction converges. */
static double tail(double a, double b, double x, double y)
{
    return exp(log_front(a, b, x, y)) * fraction(a, b, x) / a;
}

/* I_x(a, b), or 1 - I_x(a, b). */
static double incomplete(double a, double b, double x, bool lower)
{
    bool here = x < (a + 1) / (a + b + 2);
    double small;

    assert(a >= 0 && b >= 0 && a + b > 0);
    if (a == 0 || b == 0)
        return ((a == 0 ? 0 : 1) <= x) == lower ? 1 : 0;
    if (x <= 0 || x >= 1)
        return (x >= 1) == lower ? 1 : 0;
    small = here ? tail(a, b, x, 1 - x) : tail(b, a, 1 - x, x);
    return here == lower ? small : 1 - small;
}

double ks_beta_lower_tail(double a, double b, double x)
{
    return incomplete(a, b, x, true);
}

double ks_beta_upper_tail(double a, double b, double x)
{
    return incomplete(a, b, x, false);
}

double ks_beta_lower_point(double a, double b, double probability)
{
    double low = 0, high = 1;

    if (a == 0 || b == 0)
        return a == 0 ? 0 : 1;
    while (high - low > 1e-15) {
        double middle = (low + high) / 2;

        if (ks_beta_lower_tail(a, b, middle) < probability)
            low = middle;
        else
            high = middle;
    }
    return low;
}

double ks_beta_upper_point(double a, double b, double probability)
{
    return 1 - ks_beta_lower_point(b, a, probability);
}

/* If t has Student's distribution, f / (f + t^2) has Beta(f/2, 1/2). */
double ks_student_point(double freedom, double probability)
{
    double x = ks_beta_lower_point(freedom / 2, 0.5, 2 * probability);

    return sqrt(freedom * (1 - x) / x);
}
