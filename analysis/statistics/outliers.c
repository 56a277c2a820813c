/* The outliers: the converged Ritz values at both ends of the spectrum. */
#include "statistics/probe.h"

#include <math.h>

/* A Ritz value has converged if its residual bound is at most this part of the distance to the
 * next. */
static const double CONVERGED = 1e-3;

/* Counts the converged Ritz values from one end inward. Two Ritz values whose distance is within
 * the noise floor may be one eigenvalue split by rounding, so the count stops there. */
static size_t count_end(const struct ks_probe *p, size_t from, int step)
{
    double floor = p->facts ? p->facts->noise_floor : 0;
    size_t count = 0, i = from;

    while (count + 1 < p->steps) {
        size_t next = step > 0 ? i + 1 : i - 1;
        double distance = fabs(p->theta[next] - p->theta[i]);

        if (!(p->residual[i] <= CONVERGED * distance) || (p->beta && !(distance > floor)))
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
