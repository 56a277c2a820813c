/* Probabilistic bounds for the extreme eigenvalues, from a Jacobi matrix.
 *
 * van Dorsselaer, Hochstenbach, van der Vorst: Computing probabilistic bounds for extreme
 * eigenvalues of symmetric matrices with the Lanczos method. SIAM J. Matrix Anal. Appl. 22, 2000.
 */
#ifndef KS_STATISTICS_EXTREME_BOUND_H
#define KS_STATISTICS_EXTREME_BOUND_H

#include <stddef.h>

/* The delta for which a random unit vector of R^n (n >= 1, uniform on the sphere) has with
 * probability `failure`, in (0, 1), a component |gamma| < delta along a given direction. */
double ks_extreme_bound_component(size_t n, double failure);

/* How far beyond `edge`, the largest or the smallest of the m Ritz values, an eigenvalue can lie if
 * the start vector has a component of at least `component` along its eigenvector. Whether it has
 * depends on the start vector alone, so the bounds of all m hold together. `beta` [m] as in
 * jacobi.h. */
double ks_extreme_bound_excess(size_t m, const double *ritz, const double *beta, double edge,
                               double component);

#endif
