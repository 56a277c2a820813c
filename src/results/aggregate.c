#include "results/aggregate.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "core/number.h"

double ks_iqm(size_t n, double *values)
{
    size_t cut = n / 4;
    double sum = 0;

    if (n == 0)
        return NAN;
    for (size_t i = 0; i < n; i++)
        if (isnan(values[i]))
            return NAN;
    qsort(values, n, sizeof *values, ks_ascending);
    for (size_t i = cut; i < n - cut; i++)
        sum += values[i];
    return sum / (double)(n - 2 * cut);
}

double ks_iqm_drop(size_t n, double *values, size_t *dropped)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            values[kept++] = values[i];
    if (dropped)
        *dropped += n - kept;
    return ks_iqm(kept, values);
}

/* Returns equal neighbours and exact positions without subtracting: inf - inf would be NaN. */
double ks_quantile(size_t n, const double *sorted, double q)
{
    double h = (double)(n - 1) * q, fraction = h - floor(h);
    size_t i = (size_t)h;

    if (fraction == 0 || i + 1 >= n || sorted[i] == sorted[i + 1])
        return sorted[i];
    return sorted[i] + fraction * (sorted[i + 1] - sorted[i]);
}

double ks_curve_area(size_t n, const double *t, const double *y)
{
    double area = 0;

    for (size_t i = 1; i < n; i++)
        area += 0.5 * (y[i] + y[i - 1]) * (t[i] - t[i - 1]);
    return area / (t[n - 1] - t[0]);
}

/* Average ranks: with b smaller values and e equal ones (itself included), b + (e + 1)/2. */
static void rank(size_t n, const double *x, double *ranks)
{
    for (size_t i = 0; i < n; i++) {
        size_t below = 0, equal = 0;

        for (size_t j = 0; j < n; j++) {
            below += x[j] < x[i];
            equal += x[j] == x[i];
        }
        ranks[i] = (double)below + 0.5 * (double)(equal + 1);
    }
}

static double correlation_of(size_t n, const double *x, const double *y)
{
    double mean = 0.5 * (double)(n + 1), xx = 0, yy = 0, xy = 0; /* of ranks 1..n */

    for (size_t i = 0; i < n; i++) {
        xx += (x[i] - mean) * (x[i] - mean);
        yy += (y[i] - mean) * (y[i] - mean);
        xy += (x[i] - mean) * (y[i] - mean);
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}

ks_status ks_spearman(size_t n, const double *x, const double *y, double *correlation)
{
    double *ranks = NULL;

    KS_TRY(ks_alloc(2 * n, sizeof *ranks, &ranks));
    rank(n, x, ranks);
    rank(n, y, ranks + n);
    *correlation = correlation_of(n, ranks, ranks + n);
    free(ranks);
    return KS_OK;
}
