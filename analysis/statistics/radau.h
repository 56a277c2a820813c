/* Sharp bounds for the spectral measure of a start vector, from its Jacobi matrix.
 *
 * mu(S) is the sum of the squared components of the start vector (norm 1) along the eigenvectors
 * whose eigenvalues lie in S. The Jacobi matrix fixes the moments of mu up to degree 2m, which many
 * measures have. Of all these, the Gauss-Radau rule with a node prescribed at x has the least
 * weight below x and the most weight up to and including x (the Chebyshev, Markov, Stieltjes
 * inequalities: Szego, Orthogonal Polynomials, 1939, section 3.41; Golub and Meurant, Matrices,
 * Moments and Quadrature, 2010, sections 6.2 and 6.4). No bound that uses T alone is tighter. */
#ifndef KS_STATISTICS_RADAU_H
#define KS_STATISTICS_RADAU_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/interval.h"
#include "core/memory.h"

struct ks_radau {
    size_t m;
    bool ended;                      /* the Krylov space ended: the weights of T are exact     */
    double *theta, *weight;          /* [m]: Ritz values, ascending, and weights               */
    double *residual;                /* [m]: the residual bounds                               */
    double size;                     /* max |theta|                                            */
    double *alpha, *beta;            /* [m] each                                               */
    double *node, *beside, *scratch; /* [m + 1] each, for one rule                             */
    struct ks_pool pool;             /* all arrays. Owned                                      */
};

/* alpha [m] and beta [m] as in jacobi.h, m >= 1; both are copied. The caller frees with
 * ks_radau_free. KS_MEMORY; KS_NUMBER if LAPACK fails. */
ks_status ks_radau_new(size_t m, const double *alpha, const double *beta, bool ended,
                       struct ks_radau **radau);
void ks_radau_free(struct ks_radau *radau); /* NULL is fine */

/* mu->lower <= mu((-inf, x)) and mu((-inf, x]) <= mu->upper, for finite x. Both increase with x, up
 * to rounding. KS_NUMBER if the QL iteration does not converge. */
ks_status ks_radau_below(struct ks_radau *radau, double x, struct ks_interval *mu);

/* mu->lower <= mu([-x, x]) <= mu->upper, from the rules at x and at -x. Both are 0 for x < 0. By
 * rounding the lower bound may be slightly below 0 and the upper one above 1. Fails as above. */
ks_status ks_radau_within(struct ks_radau *radau, double x, struct ks_interval *mu);

#endif
