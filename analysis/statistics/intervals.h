/* The statistics of a spectrum that are intervals: counts, shares and quantiles of the eigenvalues,
 * and the distribution of the gradient over them. */
#ifndef KS_STATISTICS_INTERVALS_H
#define KS_STATISTICS_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "statistics/probe.h"

/* Adds directions_1e1 .. _1e4, kappa_q99, _q90, _q50, zero_mass and negative_mass to the
 * statistics: NAME_lower and NAME_upper, for counts and shares also NAME, each followed by
 * `suffix`. For an exact spectrum they are computed from its eigenvalues +- h, otherwise from the
 * probes with random start vectors, probe [bounds->probes]. KS_MEMORY, KS_NUMBER. */
ks_status ks_intervals_add(struct ks_spectrum *spectrum, const struct ks_bounds *bounds,
                           const struct ks_probe *probe, const char *suffix);

/* Fills the band of the cumulative distribution, which holds with 99.5% at each point:
 * band_at, band_lower, band_upper, at 16 points per decade on both sides of zero, from the upper
 * bound of lambda_abs_max down to a millionth of it. No band if the products are too inaccurate or
 * the operator is zero. KS_MEMORY, KS_NUMBER. */
ks_status ks_band_add(struct ks_spectrum *spectrum, const struct ks_bounds *bounds,
                      const struct ks_probe *probe);

/* If the last probe starts at the gradient, adds kappa_gradient_90 and _50 (_lower, _upper),
 * gradient_top_share, gradient_curvature and gradient_norm. If such a probe was requested (`asked`)
 * and the gradient is zero, the norm is 0 and the others are NaN. Fails as above. */
ks_status ks_intervals_add_gradient(struct ks_spectrum *spectrum, const struct ks_bounds *bounds,
                                    bool asked);

#endif
