/* Sharp bounds for the spectral measure of a start vector, from its Jacobi matrix.
 *
 * mu(S) is the sum of the squared components of the start vector (norm 1) along the eigenvectors
 * whose eigenvalues lie in S. The Jacobi matrix fixes the moments of mu up to degree 2m, so many
 * measures fit. Of all that do, the Gauss-Radau rule with a node prescribed at x has the least
 * weight below x and the most weight up to and including x (the Chebyshev, Markov, Stieltjes
 * inequalities: Szego, Orthogonal Polynomials, 1939, section 3.41; Golub and Meurant, Matrices,
 * Moments and Quadrature, 2010, sections 6.2 and 6.4). No bound that uses T alone is tighter. */
#ifndef KS_STATISTICS_RADAU_H
#define KS_STATISTICS_RADAU_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

struct ks_radau {
    size_t m;
    bool ended;                      /* the Krylov space ended: T's own weights are exact      */
    double *theta, *weight;          /* [m]: Ritz values, ascending, and weights. Owned        */
    double *residual;                /* [m]: the residual bounds. Owned                        */
    double size;                     /* max |theta|                                            */
    double *alpha, *beta;            /* [m] each. Owned                                        */
    double *node, *beside, *scratch; /* [m + 1] each, for one rule. Owned                      */
};

/* lower <= mu <= upper */
struct ks_range {
    double lower, upper;
};

/* alpha[0..m-1] and beta[0..m-1] as in jacobi.h, m >= 1; both are copied. Fails with KS_MEMORY, or
 * KS_NUMBER where LAPACK does. */
ks_status ks_radau_new(size_t m, const double *alpha, const double *beta, bool ended,
                       struct ks_radau **radau);
void ks_radau_free(struct ks_radau *radau); /* NULL is fine */

/* A lower bound for mu((-inf, x)) and an upper bound for mu((-inf, x]). x is finite. Both ascend
 * with x, to rounding. KS_NUMBER where the QL iteration does not converge. */
ks_status ks_radau_below(struct ks_radau *radau, double x, struct ks_range *mu);

/* Bounds L(x) <= mu([-x, x]) <= U(x), from the rules at x and at -x. Both are 0 for x < 0; L may be
 * a little below 0 or U above 1. */
ks_status ks_radau_within(struct ks_radau *radau, double x, struct ks_range *mu);

#endif
