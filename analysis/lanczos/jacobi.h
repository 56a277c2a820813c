/* What the Jacobi matrix T of the Lanczos iteration says about the operator: Ritz values, weights,
 * bounds.
 *
 * T is m x m and tridiagonal: alpha[0..m-1] on the diagonal, beta[0..m-2] beside it; beta[m-1] is
 * the residual norm. The leading k x k block of T is the Jacobi matrix after k steps, so the
 * statistics of fewer steps come from the same arrays. */
#ifndef KS_LANCZOS_JACOBI_H
#define KS_LANCZOS_JACOBI_H

#include <stddef.h>

#include "core/error.h"

struct ks_jacobi {
    size_t m;                   /* the number of steps, at least 1 */
    const double *alpha, *beta; /* [m] each, not owned             */
};

/* ritz [m]: the Ritz values, ascending. weight [m]: the squared first components of T's
 * eigenvectors s_i, with sum 1. residual [m]: the bounds beta[m-1] |s_mi|; an eigenvalue of A lies
 * within this distance of the Ritz value (Parlett, The Symmetric Eigenvalue Problem, 1998, section
 * 13.2). KS_MEMORY; KS_NUMBER if LAPACK fails. */
ks_status ks_jacobi_ritz(const struct ks_jacobi *t, double *ritz, double *weight, double *residual);

/* The Ritz values as above, and vector [m, m]: T's eigenvectors s_i of norm 1, one after the other.
 * Fails as above. */
ks_status ks_jacobi_vectors(const struct ks_jacobi *t, double *ritz, double *vector);

/* out [m + 1] = T~ s, T~ being the (m+1) x m matrix T extended by the row beta[m-1] e_m'. By the
 * Lanczos recurrence A Q_m s = Q_{m+1} T~ s. */
void ks_jacobi_multiply(const struct ks_jacobi *t, const double *s, double *out);

/* *sigma = the smallest singular value of the extended (m+1) x m matrix [T; beta[m-1] e_m']. It is
 * the smallest |A x| over the unit vectors x of the Krylov space, so it is at least the smallest
 * |eigenvalue| of A. Fails as above. */
ks_status ks_jacobi_smallest(const struct ks_jacobi *t, double *sigma);

/* Returns the largest Ritz value and sets *residual to its residual bound. Both are NaN if LAPACK
 * fails or there is no memory. */
double ks_jacobi_largest(const struct ks_jacobi *t, double *residual);

/* --- off the known null space --- */

/* The smallest |A y| / |y| over the vectors y of a Krylov space, after projection off the known
 * null space. */

/* Let T~ be the (m+1) x m matrix T extended by the row beta[m-1] e_m', Q the Lanczos vectors, Z an
 * orthonormal basis of known null directions and C = Z' Q_{m+1}. With G = I - C'C and its leading
 * m x m block G_m,
 *
 *   |(I - P_Z) Q_m s|^2   = s' G_m s
 *   |A (I - P_Z) Q_m s|^2 = s' T~' G T~ s                 since A commutes with P_Z
 *
 * so *sigma, the square root of the smallest eigenvalue of the pencil (T~' G T~, G_m), is the
 * smallest |A y|/|y| over y = (I - P_Z) Q_m s. s [m] is its eigenvector, scaled so that |y| = 1.
 * The pencil is restricted to the span of G_m's eigenvectors with eigenvalues above 1e-6: the
 * others are combinations of Lanczos vectors that lie in the null space up to rounding. `gram`
 * [m+1, m+1] is C'C; NULL: no null direction is known. *sigma is NaN if all of the Krylov space
 * lies in the null space. KS_MEMORY; KS_NUMBER if LAPACK fails. */
ks_status ks_deflated_sigma(const struct ks_jacobi *t, const double *gram, double *sigma,
                            double *s);

#endif
