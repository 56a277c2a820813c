/* What a Jacobi matrix says about the operator that it comes from.
 *
 * T is m x m: alpha[0..m-1] on the diagonal, beta[0..m-2] beside it; beta[m-1] is the residual
 * norm. A leading part of T is T of the process stopped there, so its figures need no other arrays.
 */
#ifndef KS_LANCZOS_JACOBI_H
#define KS_LANCZOS_JACOBI_H

#include <stddef.h>

#include "core/error.h"

/* Ritz values, ascending; weights, the squares of the eigenvectors' first components, with sum 1;
 * and the residual bounds beta[m-1] |s_mi|: so close to the Ritz value lies an eigenvalue of A.
 * Each [m], m >= 1. */
ks_status ks_jacobi_ritz(size_t m, const double *alpha, const double *beta, double *ritz,
                         double *weight, double *residual);

/* The smallest singular value of the extended (m+1) x m matrix [T; beta[m-1] e_m']. It is the
 * smallest |A x| over the unit vectors x of the Krylov space, so not below the smallest
 * |eigenvalue| of A. */
ks_status ks_jacobi_smallest(size_t m, const double *alpha, const double *beta, double *sigma);

/* The largest Ritz value and its residual bound; `work` [KS_JACOBI_WORK m]. Allocates nothing. NaN
 * where LAPACK fails. */
enum { KS_JACOBI_WORK = 32 };
double ks_jacobi_largest(size_t m, const double *alpha, const double *beta, double *work,
                         double *residual);

#endif
