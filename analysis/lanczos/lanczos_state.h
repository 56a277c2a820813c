/* The state of the Lanczos iteration, which both recurrences share: lanczos.c and lanczos_xqc.c. */
#ifndef KS_LANCZOS_LANCZOS_STATE_H
#define KS_LANCZOS_LANCZOS_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "operators/team.h"

/* The state of the iteration for one probe. After j steps, with Q = [q_0 .. q_{j-1}] and T the j x
 * j Jacobi matrix,
 *
 *   A Q - Q T = beta[j-1] q_j e_j'   and   [Q q_j]' [Q q_j] = I   to rounding. */
struct ks_lanczos {
    size_t n, order;            /* dimension; largest number of steps, at most n            */
    const struct ks_team *team; /* the ranks that share the work; NULL: one rank            */
    size_t first, length;       /* the slice of every vector that this rank stores, [first, first +
                                 * length); a single rank stores entire vectors */
    uint64_t seed, probe; /* what determines the random start vector; probe = KS_PROBE_GRADIENT:
                           * it is not random */
    double start_norm;    /* norm of the start vector before it was scaled to norm 1        */
    size_t steps;         /* taken so far                                                   */
    bool exhausted;       /* breakdown: the Krylov space is invariant, no step can follow   */
    double *alpha, *beta; /* [order]: beta[j] couples j and j+1; the last is the residual norm */
    bool basis_f32;       /* the basis is stored in float32                                      */
    bool products_f32;    /* products are rounded to float32; set by the caller before the start */
    bool published; /* the iteration of the published code (lanczos_xqc.c); set by the caller before
                     * the start; requires `basis_f32` */
    double *basis;  /* [order + 1, length]: row j is q_j; row `steps` is undefined if exhausted */
    float *rounded; /* the basis in float32 if `basis_f32`: then `basis` is NULL, else this is */
    size_t slices;  /* parts of this rank's slice, one per thread             */
    double *sums;   /* [slices + 1, order]: scratch: inner products with the basis, by thread */
    double *norms;  /* [ranks]: scratch                                       */
    double *pair;   /* [2, length] if `basis_f32`: q_j and w in float64          */
    double *full;   /* in a team: scratch for complete vectors v and A v         */
    double *blocks; /* if `basis_f32`: a block of the basis in float64 for each thread */
};

/* Thread t works on the entries [slice(t), slice(t + 1)) of this rank's slice. */
static inline size_t ks_lanczos_slice(const struct ks_lanczos *lanczos, size_t t)
{
    size_t longer = lanczos->length % lanczos->slices;

    return lanczos->length / lanczos->slices * t + (t < longer ? t : longer);
}

#endif
