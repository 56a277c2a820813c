#include "env/tolerance.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

/* f(d) for d > 0; the scale is chosen such that f(1) = v. */
static double sigmoid(double d, enum ks_sigmoid kind, double v)
{
    double s, sd;

    assert(v < 1 && (v > 0 || (v == 0 && kind != KS_GAUSSIAN)));
    switch (kind) {
    case KS_GAUSSIAN:
        s = sqrt(-2 * log(v)), sd = d * s;
        return exp(-0.5 * (sd * sd));
    case KS_LINEAR:
        s = 1 - v, sd = d * s;
        return fabs(sd) < 1 ? 1 - sd : 0;
    case KS_QUADRATIC:
        s = sqrt(1 - v), sd = d * s;
        return fabs(sd) < 1 ? 1 - sd * sd : 0;
    }
    return NAN;
}

double ks_tolerance(double x, struct ks_bounds bounds, double margin, enum ks_sigmoid kind,
                    double v)
{
    bool inside = bounds.lower <= x && x <= bounds.upper;

    assert(bounds.lower <= bounds.upper && margin >= 0);
    if (inside || margin == 0)
        return inside;
    return sigmoid((x < bounds.lower ? bounds.lower - x : x - bounds.upper) / margin, kind, v);
}

double ks_at_least(double x, double bound, double margin, enum ks_sigmoid kind, double v)
{
    return ks_tolerance(x, (struct ks_bounds){bound, INFINITY}, margin, kind, v);
}

double ks_small_control(size_t n, const double *ctrl)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += ks_tolerance(ctrl[i], (struct ks_bounds){0, 0}, 1, KS_QUADRATIC, 0);
    return (4 + sum / (double)n) / 5;
}
