/* The statistics of a spectrum that are intervals: counts, shares and quantiles of the eigenvalues,
 * and what the gradient sees of them. */
#ifndef KS_STATISTICS_INTERVALS_H
#define KS_STATISTICS_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "io/spectrum.h"
#include "statistics/operator_facts.h"
#include "statistics/probe.h"

/* Adds directions_1e1 .. _1e4, kappa_q99, q90, q50, zero_mass and negative_mass to the summary,
 * each NAME_lower and NAME_upper, counts and shares also NAME, `suffix` behind; of an exact
 * spectrum from its eigenvalues, +- h, else from the probes. `probe` are those with random start
 * vectors. */
ks_status ks_intervals_add(struct ks_spectrum *spectrum, const struct ks_facts *facts,
                           const struct ks_probe *probe, const char *suffix);

/* Adds kappa_gradient_90 and _50 (_lower, _upper), gradient_top_share, gradient_curvature and
 * gradient_norm where the last probe starts at the gradient; where one was asked for and the
 * gradient is zero, a norm of 0, all others NaN. */
ks_status ks_intervals_add_gradient(struct ks_spectrum *spectrum, const struct ks_facts *facts,
                                    bool asked);

#endif
