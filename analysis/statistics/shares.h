/* How the eigenvalues of an operator are distributed by size: intervals that hold with 99%.
 *
 * Every interval rests on two bounds. The weight of a set of eigenvalues in the spectral measure
 * of a start vector has sharp bounds (share_bounds.h). And for a Gaussian start vector the weight
 * of k of n eigenvalues has the distribution Beta(k/2, (n-k)/2); the mean over P vectors, each
 * weighted by its squared norm, has Beta(P k/2, P (n-k)/2). A count k is excluded if the bounds lie
 * in a tail of that distribution, 0.25% at each end. If the interval also uses the upper bound of
 * lambda_abs_max, another 0.25% are spent for each end of the spectrum. Eigenvalues that are
 * certain narrow the counts without any probability: the known null space, disjoint intervals theta
 * +- (r + h), and of each probe the Ritz values beyond x + h, of which the operator has as many
 * eigenvalues beyond x (Cauchy). With a run in the complement of the first probe's Krylov space
 * counts above a size are those of both runs (share_bounds.h).
 *
 * To use it: fill a ks_shares_input with the random probes and call ks_shares. With the first m
 * steps of the same matrices, and `ended` false, it gives the statistics of a run of m steps.
 *
 *   const struct ks_share_probe probe = {steps, alpha, beta, ended, start_norm2, null_weight};
 *   const struct ks_shares_input in = {.n = n, .n_null = d, .probes = 1, .probe = &probe, .h = h,
 *                                      .abs_max_lower = certified, .abs_max_upper = outer};
 *   struct ks_shares shares;
 *   KS_TRY(ks_shares(&in, &shares));
 */
#ifndef KS_STATISTICS_SHARES_H
#define KS_STATISTICS_SHARES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/interval.h"
#include "io/spectrum.h"
#include "statistics/probe.h"
#include "statistics/share_bounds.h"

enum { KS_DIRECTIONS = 4, KS_QUANTILES = 3 };
/* 10, 100, 1000, 10000; 99, 90, 50. */
extern const double ks_direction_factor[KS_DIRECTIONS];
extern const unsigned ks_quantile_percent[KS_QUANTILES];

/* All intervals hold with 99%. The value of an estimate, from the weights, is clipped to its
 * interval. An interval for a ratio has no estimate. Both ends infinite: the ratio is certain to be
 * infinite. `upper` alone infinite: the upper end is not resolved. Both NaN: the ratio is not
 * defined. */
struct ks_shares {
    /* The number of eigenvalues with |lambda| > lambda_abs_max / ks_direction_factor[i]. */
    struct ks_estimate directions[KS_DIRECTIONS];
    /* The number of eigenvalues with |lambda| > count_above; 0 without such a size. */
    struct ks_estimate above;
    /* lambda_abs_max / x_q, x_q the ceil(q n)-th smallest |lambda|. */
    struct ks_interval kappa_q[KS_QUANTILES];
    /* Shares of the n eigenvalues: |lambda| <= 2h; lambda < -2h. */
    struct ks_estimate zero_mass, negative_mass;
};

/* If abs_max_lower and abs_max_upper are 0 the operator is zero: directions are 0 and ratios NaN.
 * KS_MEMORY; KS_NUMBER if an eigenvalue problem does not converge. */
ks_status ks_shares(const struct ks_shares_input *in, struct ks_shares *shares);

/* lower, upper [count]: bounds of the cumulative distribution F(x) = (number of eigenvalues <= x) /
 * n at each x [count], with 99.5% confidence pointwise. Fails as ks_shares does. */
ks_status ks_shares_band(const struct ks_shares_input *in, size_t count, const double *x,
                         double *lower, double *upper);

/* For one start vector that is not random, like the gradient: lambda_abs_max over the size above
 * which 90% or 50% of its squared norm lies, and its share on converged outliers. Only
 * abs_max_upper is probabilistic. */
struct ks_energy {
    struct ks_interval kappa_90, kappa_50;
    double top_share;
};

/* start_norm2 of `probe` is above 0, its null_weight 0. h and abs_max_* as in ks_shares_input.
 * Fails as ks_shares does. */
ks_status ks_energy(const struct ks_share_probe *probe, double h, double abs_max_lower,
                    double abs_max_upper, struct ks_energy *energy);

/* --- of a spectrum --- */

/* Adds directions_1e1 .. _1e4, with bounds->count_above also directions_above, kappa_q99, _q90,
 * _q50, zero_mass and negative_mass to the statistics: NAME_lower and NAME_upper, for counts and
 * shares also NAME, each followed by `suffix`. For an exact spectrum they are computed from its
 * eigenvalues +- h, otherwise from the probes with random start vectors, probe [bounds->probes].
 * KS_MEMORY, KS_NUMBER. */
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
