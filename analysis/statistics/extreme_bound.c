/* Lanczos gives q_m = p_m(A) q_0, with p_m the polynomial of degree m that is orthonormal under the
 * spectral measure of q_0:
 *
 *   p_m(t) = (t - theta_1) ... (t - theta_m) / (beta_0 ... beta_{m-1})
 *
 * From |q_m| = 1 follows |gamma p_m(lambda)| <= 1 for each eigenvalue lambda, gamma being the
 * component of q_0 along its eigenvector. Beyond the outermost Ritz value |p_m| is monotone and
 * unbounded. So if |gamma| >= delta, an eigenvalue beyond it lies no further out than the point
 * where |p_m| = 1 / delta (van Dorsselaer et al., section 3). gamma is distributed like an entry of
 * a random unit vector. */
#include "statistics/probe.h"

#include <assert.h>
#include <math.h>

static const double PI = 3.14159265358979323846;

/* The probability of |gamma| < sin x: 2 c times the integral of cos^(n-2) from 0 to x, by Simpson's
 * rule. */
static double probability(size_t n, double c, double x)
{
    enum { PIECES = 200 };
    double h = x / PIECES, sum = 0;

    for (int i = 0; i <= PIECES; i++)
        sum += (i == 0 || i == PIECES ? 1 : i % 2 == 1 ? 4 : 2) * pow(cos(i * h), (double)n - 2);
    return 2 * c * sum * h / 3;
}

/* Newton's method for gamma = sin x. The probability is concave in x, so the iterates increase
 * towards the root, and none of them exceeds `failure`. */
double ks_extreme_bound_component(size_t n, double failure)
{
    double c = exp(lgamma((double)n / 2) - lgamma(((double)n - 1) / 2)) / sqrt(PI), x = 0;

    assert(n >= 1 && failure > 0 && failure < 1);
    if (n == 1)
        return 1;
    for (int i = 0; i < 100; i++) {
        double step = (failure - probability(n, c, x)) / (2 * c * pow(cos(x), (double)n - 2));

        x += step;
        if (step <= 1e-14 * x)
            break;
    }
    return sin(x);
}

/* p_m delta as a function of the distance beyond the edge, in units of the largest beta. */
struct polynomial {
    size_t m;
    const double *ritz; /* [m]: its roots */
    double edge, unit;
    double scale; /* log of the product of the betas in units, over delta */
};

/* log(|p_m| delta) at the distance exp(y) units beyond the edge; ascending in y. */
static double log_size(const struct polynomial *p, double y)
{
    double x = exp(y), sum = -p->scale;

    for (size_t i = 0; i < p->m; i++)
        sum += log(x + fabs(p->edge - p->ritz[i]) / p->unit);
    return sum;
}

/* Bisection in y; the upper end of the bracket is returned, which is the safe side. No factor of
 * p_m is smaller than the distance, so the distance is at most exp(scale / m) units. */
double ks_extreme_bound_excess(size_t m, const double *ritz, const double *beta, double edge,
                               double component)
{
    static const double DEPTH = 80; /* an excess below exp(-80) of the upper end counts as 0 */
    struct polynomial p = {.m = m, .ritz = ritz, .edge = edge, .scale = -log(component)};
    double low, high;

    for (size_t i = 0; i < m; i++)
        p.unit = fmax(p.unit, beta[i]);
    for (size_t i = 0; i < m; i++)
        p.scale += log(beta[i] / p.unit);
    high = p.scale / (double)m;
    low = high - DEPTH;
    if (!isfinite(high) || log_size(&p, low) >= 0) /* invariant space */
        return 0;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;

        if (log_size(&p, middle) < 0)
            low = middle;
        else
            high = middle;
    }
    return exp(high) * p.unit;
}
