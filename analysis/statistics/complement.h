/* The number of eigenvalues beyond +-x from two Lanczos runs, the second one in the orthogonal
 * complement of the first one's Krylov space: what the first one found is counted, and only the
 * rest is estimated from a random vector.
 *
 * With the vectors V of the first run, m of them, and a basis W of their complement, A is
 *
 *   [ T  B' ]          B = W'AV = beta_m u e_m',   u = W' q_m
 *   [ B  C  ]
 *
 * By Haynsworth (Linear Algebra Appl. 1, 1968) A - x has as many positive eigenvalues as T - x and
 * its Schur complement together,
 *
 *   C - x - B (T - x)^-1 B' = C - x - beta_m^2 s u u',   s = e_m' (T - x)^-1 e_m,
 *
 * which differs from C - x by one of rank one. So with N(A, x) the number of eigenvalues above x,
 *
 *   N(A, x) = N(T, x) + N(C, x) + d,   d = 0 or -1 if s > 0,   d = 0 or 1 if s < 0,
 *
 * and the same of -A for the other end. Where beta_m^2 |s| = t is small, N(C, x + t) and N(C, x -
 * t) are tighter than N(C, x) - 1 and N(C, x) + 1: what the first run has found is then far from
 * what it has not. N(T, x) is counted. N(C, x) follows from the second run as a count follows from
 * any run (share_bounds.h), its start vector being Gaussian in n - m dimensions.
 *
 * Rounding is one symmetric E, |E| <= h, that explains both runs: V and W' have orthonormal
 * columns, and T, B and C are those of A + E. So the bounds hold for A if the lower one is taken at
 * x + h and the upper one at x - h. An eigenvalue on which the first run has converged is none of
 * C, not even with h = 0.
 *
 * Null directions Z of A that are orthogonal to V are also null directions of C. In exact
 * arithmetic these are all but one: every column of V is p(A) q_0 with a polynomial p, so its null
 * component is a multiple of that of q_0. Rounding lets V touch more of them: it finds further
 * copies of the eigenvalue 0. So directions of which more than KS_NULL_TOUCHED is in V count as
 * unknown. For the others, z, rounding apart, C W'z = -beta_m u v_m'z with the last column v_m of
 * V. */
#ifndef KS_STATISTICS_COMPLEMENT_H
#define KS_STATISTICS_COMPLEMENT_H

#include "core/error.h"
#include "core/interval.h"
#include "core/memory.h"
#include "statistics/share_bounds.h"

struct ks_complement {
    struct ks_shares_input in; /* of C                      */
    struct ks_share_bounds *c; /* of the second run. Owned  */
    const struct ks_share_bounds *first;
    const struct ks_radau *t; /* of the first run */
};

/* From bounds of the probes whose input has a complement, both of which outlive it: NULL without
 * one. The caller frees with ks_complement_free. Fails as ks_share_bounds_new. */
ks_status ks_complement_new(const struct ks_share_bounds *b, struct ks_complement **complement);
void ks_complement_free(struct ks_complement *complement); /* NULL is fine */
KS_OWNER(ks_complement_free, struct ks_complement *)

/* Replaces *count, which the first run gave, by what both say: the number of eigenvalues of a size
 * above x, if x is only known to be in [low, high], low > 2 h, and the number to be at least
 * `least`. Each bound fails with a probability of 0.25%; the estimate is for x = low. If they
 * contradict what is certain, *count stays. Fails as ks_share_bounds_count_within. */
ks_status ks_complement_count(const struct ks_complement *complement, double low, double high,
                              double least, struct ks_estimate *count);

#endif
