/* Moments of the spectrum: of the Ritz values as they are, and by quadrature of all eigenvalues. */
#include "ks/probe.h"

#include <math.h>
#include <stdbool.h>

/* For a single eigenvalue n w is distributed as chi^2 with one degree of freedom: above this with
 * probability 4e-8. A converged Ritz value that has more stands for many equal eigenvalues. */
static const double SINGLE = 30;

/* How Ritz values are weighted. */
struct weights {
    struct ks_ends ends; /* converged */
    double one;          /* weight of those there that are single: 1/n; 0: there are no such */
    double scale;        /* of the weights of all others */
};

static bool is_single(const struct ks_probe *p, const struct ks_ends *ends, size_t i)
{
    return (i < ends->low || i >= p->steps - ends->high) &&
           (double)p->known->n * p->weight[i] <= SINGLE;
}

/* Converged outliers weigh 1/n each, the bulk what is left. Where there is no bulk, but fewer Ritz
 * values than eigenvalues (a breakdown), all keep their weights. */
static struct weights spectral_weights(const struct ks_probe *p)
{
    struct weights w = {.ends = ks_probe_ends(p), .one = 1 / (double)p->known->n};
    double bulk = 0;
    size_t single = 0;

    for (size_t i = 0; i < p->steps; i++)
        if (is_single(p, &w.ends, i))
            single++;
        else
            bulk += p->weight[i];
    w.scale = (1 - (double)single * w.one) / bulk;
    if (single != p->known->n && !(bulk > 0 && w.scale > 0))
        w = (struct weights){.one = 0, .scale = 1};
    return w;
}

static double weight(const struct ks_probe *p, const struct weights *w, size_t i)
{
    return w->one > 0 && is_single(p, &w->ends, i) ? w->one : w->scale * p->weight[i];
}

/* m4 / m2^2, central, of Ritz values weighted by w, or all alike (w NULL); NaN where they are all
 * alike. In units of the largest, so that no power underflows. */
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
    double sum = 0;

    for (size_t i = 0; i < p->steps; i++)
        sum += p->weight[i] * p->theta[i];
    return (double)p->known->n * sum;
}

double ks_probe_trace_square(const struct ks_probe *p)
{
    double sum = 0;

    for (size_t i = 0; i < p->steps; i++)
        sum += p->weight[i] * p->theta[i] * p->theta[i];
    return (double)p->known->n * sum;
}

/* trace_square / lambda_abs_max^2, by ratios: a square alone can leave the range of a double. */
double ks_probe_stable_rank(const struct ks_probe *p)
{
    double sum = 0, unit = p->known->abs_max;

    for (size_t i = 0; i < p->steps; i++)
        sum += p->weight[i] * (p->theta[i] / unit) * (p->theta[i] / unit);
    return (double)p->known->n * sum;
}
