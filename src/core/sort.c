#include "core/sort.h"

#include <math.h>

int ks_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}
