/* The noise of the gradient: how far the gradient of one minibatch is from the gradient G of the
 * loss, if the N minibatches are independent draws (McCandlish et al., arXiv 1812.06162, 2018).
 *
 * With the covariance Sigma of a minibatch's gradient g_i, E g_i = G:
 *
 *   square    |G|^2, estimated without bias by the mean of g_i'g_j over i != j
 *   variance  tr Sigma = E |g_i - G|^2, likewise by the mean of |g_i|^2 minus `square`
 *   scale     tr Sigma / |G|^2: so many minibatches would have to be averaged until the noise is
 *             as large as G
 *   share     |G|^2 / (|G|^2 + tr Sigma / N): the share of G in the mean gradient's square */
#ifndef KS_STATISTICS_GRADIENT_NOISE_H
#define KS_STATISTICS_GRADIENT_NOISE_H

#include <stddef.h>

#include "core/error.h"
#include "core/interval.h"
#include "io/attribute.h"

/* An upper end that is NaN is not resolved. A scale is infinite if `square` is not positive. */
struct ks_gradient_noise {
    struct ks_estimate square, variance, scale, share;
};

/* From gram [n, n], g_i'g_j, which is changed. With one minibatch, or if a number is not finite,
 * all are NaN, and intervals are not resolved below KS_GRADIENT_NOISE_LEAST.
 *
 * The interval of |G|^2 is `square` within Student's quantile t times its standard error, from the
 * variance 4 G'Sigma G / N + 2 tr Sigma^2 / (N (N - 1)); tr Sigma^2 as in Bai and Saranadasa,
 * Statistica Sinica 6, 1996, (3.12). Two terms widen it where this is not enough: the second part
 * of the variance belongs to a sum of chi^2 variables, which reaches further up than a normal one;
 * and G'Sigma G is larger for the |G| at the upper end. tr Sigma has an interval on a logarithmic
 * scale, by the larger of two variances: the one that is found, and the one of a normal
 * distribution. Its upper end is at least by an F distribution, since the variance is known from n
 * numbers only. How often each misses is measured by tests/statistics/test_gradient_noise.c and
 * said in analysis/README.md. KS_MEMORY. */
enum { KS_GRADIENT_NOISE_LEAST = 4 };
ks_status ks_gradient_noise_find(size_t n, double *gram, struct ks_gradient_noise *noise);

/* Adds gradient_square, gradient_variance, noise_scale and signal_share, with their intervals. */
void ks_gradient_noise_add(const struct ks_gradient_noise *noise, struct ks_attributes *statistics);

#endif
