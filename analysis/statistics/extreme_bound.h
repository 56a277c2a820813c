/* Probabilistic bounds of the largest and the smallest eigenvalue, from a Jacobi matrix.
 *
 * van Dorsselaer, Hochstenbach, van der Vorst: Computing probabilistic bounds for extreme
 * eigenvalues of symmetric matrices with the Lanczos method. SIAM J. Matrix Anal. Appl. 22, 2000.
 */
#ifndef KS_STATISTICS_EXTREME_BOUND_H
#define KS_STATISTICS_EXTREME_BOUND_H

#include <stddef.h>

/* Returns delta such that a random unit vector of R^n (n >= 1, uniform on the sphere) has a
 * component |gamma| < delta along a given direction with probability `failure`, in (0, 1). */
double ks_extreme_bound_component(size_t n, double failure);

/* Returns the largest distance at which an eigenvalue can lie beyond `edge`, the largest or the
 * smallest of the m Ritz values `ritz`, if the start vector has a component of at least `component`
 * along its eigenvector. That condition does not depend on m, so the bounds for all m hold
 * simultaneously. beta [m] as in jacobi.h. */
double ks_extreme_bound_excess(size_t m, const double *ritz, const double *beta, double edge,
                               double component);

#endif
