#include "core/round.h"

#include <math.h>

/* Tolerance in units of the last digit: rounding 1.9999999999999996 down gives 2, not 1.9. */
static const double ROUNDING = 1e-9;

static double last_digit(double x, int digits)
{
    return pow(10, floor(log10(x)) - (digits - 1));
}

/* The largest number with this number of digits that is at most x > 0. */
static double smaller(double x, int digits)
{
    double unit = last_digit(x, digits);

    return floor(x / unit + ROUNDING) * unit;
}

static double larger(double x, int digits)
{
    double unit = last_digit(x, digits);

    return ceil(x / unit - ROUNDING) * unit;
}

double ks_round_down(double x, int digits)
{
    if (!isfinite(x) || x == 0)
        return x;
    return x > 0 ? smaller(x, digits) : -larger(-x, digits);
}

double ks_round_up(double x, int digits)
{
    if (!isfinite(x) || x == 0)
        return x;
    return x > 0 ? larger(x, digits) : -smaller(-x, digits);
}
