/* Tolerances: how tight the interval of a statistic is to be (--tolerance). An analysis with
 * tolerances takes Lanczos steps and start vectors until its intervals are that tight, or until the
 * limits of its options are reached. */
#ifndef KS_STATISTICS_TOLERANCE_H
#define KS_STATISTICS_TOLERANCE_H

#include <stddef.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "statistics/catalogue.h"

enum { KS_TOLERANCES = 16 };

struct ks_tolerance {
    enum ks_statistic_id statistic; /* one with a rule for its width in the catalogue */
    double most;                    /* the largest width */
};

struct ks_tolerances {
    size_t n;
    struct ks_tolerance list[KS_TOLERANCES];
};

/* Reads "0.05", which holds for lambda_max and lambda_min, or "lambda_max=0.01,trace=0.02".
 * KS_USAGE with the names that are possible; a lower bound has no width and is refused. */
ks_status ks_tolerances_read(const char *text, struct ks_tolerances *tolerances);

/* The width of the interval in these statistics; NaN if the interval is missing or not resolved.
 *
 *   counts, kappa_q99, ...    upper / lower - 1: with 1, the ends are within a factor of 2
 *   zero_mass, negative_mass  upper - lower
 *   lambda_max, lambda_min    (outer bound - value) / lambda_abs_max
 *   trace                     half of (upper - lower), divided by |trace| */
double ks_tolerance_width(const struct ks_tolerance *tolerance, const struct ks_spectrum *spectrum);

/* The error from few minibatches, lambda_max_data_se or lambda_min_data_se in units of the largest
 * absolute eigenvalue, which the tolerance limits as well; NaN for other statistics. */
double ks_tolerance_data_error(const struct ks_tolerance *tolerance,
                               const struct ks_spectrum *spectrum);
/* Whether it has a tolerance for one end of the spectrum: 1 lambda_max, -1 lambda_min, 0 neither.
 */
int ks_tolerance_end(const struct ks_tolerance *tolerance);

const char *ks_tolerance_name(const struct ks_tolerance *tolerance);

#endif
