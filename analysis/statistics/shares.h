/* How the eigenvalues of an operator are distributed by size: intervals that hold with 99%.
 *
 * Every interval rests on two facts. The weight that a start vector gives to the eigenvalues of a
 * set has sharp bounds (radau.h). And for a Gaussian start vector the weight of k of n eigenvalues
 * has the distribution Beta(k/2, (n-k)/2), of the mean over P vectors, each weighted by its squared
 * norm, Beta(P k/2, P (n-k)/2). A count k is ruled out where the bounds lie in that distribution's
 * tail, 0.25% at each end; where the interval also uses the outer bound of lambda_abs_max, 0.25%
 * for each end of the spectrum are spent there. Eigenvalues that are certain (the known null space,
 * intervals theta +- (r + h) that do not overlap) narrow the counts without any probability.
 *
 * To use it: fill a ks_shares_input with the random probes and call ks_shares; with the first m
 * steps of the same matrices, and `ended` false, it gives the figures of a run of m steps.
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

struct ks_share_probe {
    size_t steps;               /* m >= 1                                                     */
    const double *alpha, *beta; /* [m] each, as in jacobi.h                                   */
    bool ended;                 /* the Krylov space ended: no part of the start vector is left */
    double start_norm2;         /* |g|^2 of the Gaussian start vector g, before scaling       */
    double null_weight;         /* |P_Z q_1|^2: its share on the n_null known null directions */
};

struct ks_shares_input {
    size_t n;           /* dimension of the operator                                           */
    size_t n_null;      /* dimension of the known null space Z                                 */
    size_t n_rank_null; /* the nullity is at least this, by a rank bound that gives no vectors */
    size_t probes;      /* random ones, P >= 1                                                 */
    const struct ks_share_probe *probe; /* [probes]                                            */
    double h;             /* half the noise floor: the run's operator is that close to A       */
    double abs_max_lower; /* lambda_abs_max is at least this (a certificate)                   */
    double abs_max_upper; /* and at most this (outer bounds, 0.25% for each end)               */
};

/* lower <= truth <= upper with 99%; `value`, the estimate of the weights, lies between them. */
struct ks_share {
    double value, lower, upper;
};

/* A ratio, without a value: `lower` infinite where it is certain to be infinite, `upper` alone
 * where it is not resolved; both NaN where there is no ratio. */
struct ks_ratio {
    double lower, upper;
};

enum { KS_DIRECTIONS = 4, KS_QUANTILES = 3 };
/* 10, 100, 1000, 10000; 99, 90, 50. */
extern const double ks_direction_factor[KS_DIRECTIONS];
extern const unsigned ks_quantile_percent[KS_QUANTILES];

struct ks_shares {
    /* The number of eigenvalues with |lambda| > lambda_abs_max / ks_direction_factor[i]. */
    struct ks_share directions[KS_DIRECTIONS];
    /* lambda_abs_max / x_q, x_q the ceil(q n)-th smallest |lambda|. */
    struct ks_ratio kappa_q[KS_QUANTILES];
    /* Shares of the n eigenvalues: |lambda| <= 2h; lambda < -2h. */
    struct ks_share zero_mass, negative_mass;
};

/* Where abs_max_lower and abs_max_upper are 0 the operator is zero: directions 0, ratios NaN. Fails
 * with KS_MEMORY, or KS_NUMBER where an eigenvalue problem does not converge. */
ks_status ks_shares(const struct ks_shares_input *in, struct ks_shares *shares);

/* The cumulative distribution F(x) = (number of eigenvalues <= x) / n at each of the x [count]: it
 * lies in [lower, upper] with 99.5%, at each x by itself. Fails as ks_shares does. */
ks_status ks_shares_band(const struct ks_shares_input *in, size_t count, const double *x,
                         double *lower, double *upper);

/* Along one start vector that is not random, as the gradient: lambda_abs_max over the size above
 * which 90% or 50% of its energy lies, and its energy on converged outliers. No probability enters
 * but that of abs_max_upper. */
struct ks_energy {
    struct ks_ratio kappa_90, kappa_50;
    double top_share;
};

/* `probe`: its start_norm2 and null_weight are not used. h and abs_max_* as above. Fails as
 * ks_shares does. */
ks_status ks_energy(const struct ks_share_probe *probe, double h, double abs_max_lower,
                    double abs_max_upper, struct ks_energy *energy);

#endif
