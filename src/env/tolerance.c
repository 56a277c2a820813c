#include "tolerance.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

static const double pi = 3.14159265358979323846;

/* f(d) for d > 0, with the scale s chosen so that f(1) = v. */
static double sigmoid(double d, enum ks_sigmoid kind, double v)
{
    double s, sd;

    assert(v < 1 &&
           (v > 0 || (v == 0 && (kind == KS_LINEAR || kind == KS_QUADRATIC || kind == KS_COSINE))));
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
    case KS_HYPERBOLIC:
        return 1 / cosh(d * acosh(1 / v));
    case KS_LONG_TAIL:
        s = sqrt(1 / v - 1), sd = d * s;
        return 1 / (sd * sd + 1);
    case KS_RECIPROCAL:
        return 1 / (d * (1 / v - 1) + 1);
    case KS_COSINE:
        s = acos(2 * v - 1) / pi, sd = d * s;
        return fabs(sd) < 1 ? (1 + cos(pi * sd)) / 2 : 0;
    case KS_TANH_SQUARED:
        s = tanh(d * atanh(sqrt(1 - v)));
        return 1 - s * s;
    }
    return NAN;
}

double ks_tolerance(double x, double lower, double upper, double margin, enum ks_sigmoid kind,
                    double v)
{
    bool inside = lower <= x && x <= upper;

    assert(lower <= upper && margin >= 0);
    if (inside || margin == 0)
        return inside;
    return sigmoid((x < lower ? lower - x : x - upper) / margin, kind, v);
}

double ks_at_least(double x, double bound, double margin, enum ks_sigmoid kind, double v)
{
    return ks_tolerance(x, bound, INFINITY, margin, kind, v);
}

double ks_small_control(size_t n, const double *ctrl)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += ks_tolerance(ctrl[i], 0, 0, 1, KS_QUADRATIC, 0);
    return (4 + sum / (double)n) / 5;
}
