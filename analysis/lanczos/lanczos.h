/* The Lanczos process with full reorthogonalization. */
#ifndef KS_LANCZOS_LANCZOS_H
#define KS_LANCZOS_LANCZOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "operators/operator.h"
#include "operators/team.h"

/* One probe's process. After j steps, with Q = [q_0 .. q_{j-1}] and T the j x j Jacobi matrix,
 *
 *   A Q - Q T = beta[j-1] q_j e_j'   and   [Q q_j]' [Q q_j] = I   to rounding. */
struct ks_lanczos {
    size_t n, order;            /* dimension; the most steps: as asked, at most n                 */
    const struct ks_team *team; /* NULL: alone */
    size_t first, length;       /* this process's slice of every vector: all of it where alone */
    uint64_t seed, probe;       /* the key of the start vector; probe KS_PROBE_GRADIENT: none     */
    double start_norm;          /* norm of the start vector before it was scaled to norm 1        */
    size_t steps;               /* taken so far                                                   */
    bool exhausted;             /* breakdown: the Krylov space is invariant, no step can follow   */
    double *alpha, *beta; /* [order]: beta[j] couples j and j+1; the last is the residual norm */
    bool single;          /* the basis is kept in float32                                      */
    bool single_products; /* products are rounded to float32: set by the caller before the start */
    bool xqc;             /* the published code's process, in float32: set by the caller, before
                           * the start, where `single` */
    double *basis;  /* [order + 1, length]: row j is q_j; row `steps` is void once exhausted */
    float *rounded; /* the same where `single`; then `basis` is NULL, else this one      */
    size_t slices;  /* that each vector is cut into, one per thread                    */
    double *sums;   /* [slices + 2, order]: each slice's products with the basis         */
    double *norms;  /* [team's size]                                                     */
    double *pair;   /* [2, length] where `single`: q_j and w in float64                  */
    double *whole;  /* in a team: the operator's two vectors                             */
    double *blocks; /* where `single`: a block of the basis for each slice               */
};

/* Allocates everything, with a basis in float32 if `single`; `team` may be NULL. The caller frees.
 * One struct serves any number of probes, one after the other. */
ks_status ks_lanczos_new(size_t n, size_t order, bool single, const struct ks_team *team,
                         struct ks_lanczos **lanczos);
/* The bytes that this takes, to within a few kB: 8 (order + 1) n, or in float32 half of that and
 * two float64 vectors; in a team a slice of these and two whole vectors. */
double ks_lanczos_bytes(size_t n, size_t order, bool single, const struct ks_team *team);
void ks_lanczos_free(struct ks_lanczos *lanczos); /* NULL is fine */

/* Begins at step 0 with a Gaussian vector of norm 1 that depends on (seed, probe) alone. */
void ks_lanczos_start(struct ks_lanczos *lanczos, uint64_t seed, uint64_t probe);

/* Begins at step 0 with `v` [n], of which a process takes its slice, scaled to norm 1. KS_NUMBER
 * where v is zero or not finite. */
enum { KS_PROBE_GRADIENT = 0x7fffffff };
ks_status ks_lanczos_start_at(struct ks_lanczos *lanczos, const double *v);

/* Takes a step; there are fewer than `order` so far and the process is not exhausted. Fails as the
 * operator does, and with KS_NUMBER, naming the step, where its product is not finite; the steps
 * before stay. With the same numbers of threads and processes, numbers have the same bits. In a
 * team all processes call it, and fail together. */
ks_status ks_lanczos_step(struct ks_lanczos *lanczos, const struct ks_operator *a);

/* out [length] = sum over j < rows of c[j] q_j, this process's slice of it; `rows` is at most
 * `steps`, or one more while the Krylov space has not ended. */
void ks_lanczos_combine(const struct ks_lanczos *lanczos, size_t rows, const double *c,
                        double *out);
/* This process's slice of q_j in float64: valid until the next call. */
const double *ks_lanczos_widened(const struct ks_lanczos *lanczos, size_t j);

/* For steps on disk: where q_j is and its size in bytes; and to take a step from there, with
 * q_{steps + 1} already in its place. */
void *ks_lanczos_vector(const struct ks_lanczos *lanczos, size_t j);
size_t ks_lanczos_vector_bytes(const struct ks_lanczos *lanczos);
void ks_lanczos_retake(struct ks_lanczos *lanczos, double alpha, double beta);
/* Goes back to `steps` steps. */
void ks_lanczos_rewind(struct ks_lanczos *lanczos, size_t steps);

/* Parts of a step. Slice t of this process's vectors is [slice(t), slice(t + 1)). */
size_t ks_lanczos_slice(const struct ks_lanczos *lanczos, size_t t);
/* From A q_j (`product`, this process's slice; j = steps) to alpha_j, beta_j and q_{j+1} as the
 * published code finds them; alpha_j or beta_j is not finite where float32 overflows. */
void ks_lanczos_xqc_step(struct ks_lanczos *lanczos, const double *product);

#endif
