/* The Lanczos process with full reorthogonalization. */
#ifndef KS_LANCZOS_H
#define KS_LANCZOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ks/error.h"
#include "ks/operator.h"

/* One probe's process. After j steps, with Q = [q_0 .. q_{j-1}] and T the j x j Jacobi matrix,
 *
 *   A Q - Q T = beta[j-1] q_j e_j'   and   [Q q_j]' [Q q_j] = I   to rounding. */
struct ks_lanczos {
    size_t n, order;      /* dimension; the most steps: as asked, at most n                 */
    uint64_t seed, probe; /* the key of the start vector                                    */
    size_t steps;         /* taken so far                                                   */
    bool exhausted;       /* breakdown: the Krylov space is invariant, no step can follow   */
    double *alpha, *beta; /* [order]: beta[j] couples j and j+1; the last is the residual norm */
    double *basis;        /* [order + 1, n]: row j is q_j; row `steps` is void once exhausted  */
    size_t slices;        /* the vectors are cut into so many, one a thread                    */
    double *sums;         /* [slices + 2, order]: each slice's products with the basis         */
};

/* Allocates everything, for vectors of a's size; 8 n (order + 1) bytes are the basis. The caller
 * frees. One process serves any number of probes, one after the other. */
ks_status ks_lanczos_new(size_t n, size_t order, struct ks_lanczos **lanczos);
void ks_lanczos_free(struct ks_lanczos *lanczos); /* NULL is fine */

/* Begins at step 0 with a Gaussian vector of norm 1 that depends on (seed, probe) alone. */
void ks_lanczos_start(struct ks_lanczos *lanczos, uint64_t seed, uint64_t probe);

/* One step; there are fewer than `order` so far and the process is not exhausted. Fails as the
 * operator does, and with KS_NUMBER, naming the step, where its product is not finite; then nothing
 * has happened to the steps before. The same numbers to the bit with the same number of threads. */
ks_status ks_lanczos_step(struct ks_lanczos *lanczos, const struct ks_operator *a);

#endif
