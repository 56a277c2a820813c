/* The smallest |A y| / |y| over the vectors y of a Krylov space, after projection off the known
 * null space. */
#ifndef KS_LANCZOS_DEFLATION_H
#define KS_LANCZOS_DEFLATION_H

#include <stddef.h>

#include "core/error.h"
#include "lanczos/jacobi.h"

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
