/* Root finding: where an increasing function crosses a level. */
#ifndef KS_STATISTICS_MONOTONE_ROOT_H
#define KS_STATISTICS_MONOTONE_ROOT_H

#include <stddef.h>

#include "core/error.h"

struct ks_monotone {
    ks_status (*evaluate)(const void *context, double x, double *value);
    const void *context;
    size_t breaks;          /* number of points where it may jump or change its formula */
    const double *break_at; /* [breaks]: these points, ascending, not negative          */
};

/* The function is below the level at `before`, and at or above it at `after`. */
struct ks_crossing {
    double before, after;
};

/* Brackets the crossing of `level` in [low, high], 0 < low < high, with after - before <= 2.1e-13
 * after. If the function is below the level at `high`, before = high and after is infinite; if it
 * is not below at `low`, before = 0 and after = low. Fails as evaluate() does. */
ks_status ks_monotone_root(const struct ks_monotone *f, double level, double low, double high,
                           struct ks_crossing *crossing);

#endif
