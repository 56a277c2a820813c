/* The Lanczos iteration with full reorthogonalization: from an operator and a start vector to the
 * Jacobi matrix T (alpha on its diagonal, beta beside it) and the Lanczos vectors. */
#ifndef KS_LANCZOS_LANCZOS_H
#define KS_LANCZOS_LANCZOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/memory.h"
#include "operators/operator.h"

/* The state of the iteration for one probe. After j steps, with Q = [q_0 .. q_{j-1}] and T the j x
 * j Jacobi matrix,
 *
 *   A Q - Q T = beta[j-1] q_j e_j'   and   [Q q_j]' [Q q_j] = I   to rounding.
 *
 * Beside the vectors of an earlier iteration, V, all vectors stay orthogonal to them: it is the
 * iteration of (I - VV') A (I - VV'). */
struct ks_lanczos {
    const struct ks_operator *a; /* A. Not owned                                             */
    size_t n, order;             /* dimension; largest number of steps, at most n            */
    uint64_t seed, probe; /* what determines the random start vector; probe = KS_PROBE_GRADIENT:
                           * it is not random */
    double start_norm;    /* norm of the start vector before it was scaled to norm 1        */
    size_t kept;          /* the number of vectors V; 0: beside none                        */
    size_t steps;         /* taken so far                                                   */
    bool exhausted;       /* breakdown: the Krylov space is invariant, no step can follow   */
    double *alpha, *beta; /* [order]: beta[j] couples j and j+1; the last is the residual norm */
    bool basis_f32;       /* the basis is stored in float32                                      */
    bool products_f32;    /* products are rounded to float32; set by the caller before the start */
    bool published; /* the iteration of the published code (lanczos_published.c); set by the caller
                     * before the start; requires `basis_f32` */
    size_t rows;    /* the most vectors of one sweep: order, or 2 order if made for two */
    double *basis;  /* [rows + 1, n]: V, then row kept + j is q_j; row kept + steps is undefined if
                     * exhausted */
    float *rounded; /* the basis in float32 if `basis_f32`: then `basis` is NULL, else this is */
    size_t slices;  /* pieces of a vector, one per thread                     */
    double *sums;   /* [slices + 1, rows]: scratch: inner products with the basis, by thread */
    double *pair;   /* [2, n] if `basis_f32`: q_j and w in float64            */
    double *blocks; /* if `basis_f32`: a block of the basis in float64 for each thread */
    struct ks_arena arena; /* all arrays. Owned */
};

/* Thread t works on the entries [slice(t), slice(t + 1)) of a vector. */
static inline size_t ks_lanczos_slice(const struct ks_lanczos *lanczos, size_t t)
{
    size_t longer = lanczos->n % lanczos->slices;

    return lanczos->n / lanczos->slices * t + (t < longer ? t : longer);
}

/* Allocates everything, with a basis in float32 if `basis_f32`. The caller frees with
 * ks_lanczos_free. One struct can run any number of probes of A, one after the other. KS_MEMORY;
 * KS_RUN if n exceeds what BLAS counts in an int. */
ks_status ks_lanczos_new(const struct ks_operator *a, size_t order, bool basis_f32,
                         struct ks_lanczos **lanczos);
/* The same with room for ks_lanczos_start_beside: about twice the memory. */
ks_status ks_lanczos_new_for_two(const struct ks_operator *a, size_t order, bool basis_f32,
                                 struct ks_lanczos **lanczos);
/* The bytes that ks_lanczos_new allocates: mostly 8 (order + 1) n, or in float32 half of that and
 * two float64 vectors. */
double ks_lanczos_bytes(size_t n, size_t order, bool basis_f32);
void ks_lanczos_free(struct ks_lanczos *lanczos); /* NULL is fine */
KS_OWNER(ks_lanczos_free, struct ks_lanczos *)

/* Goes to step 0 with a start vector that depends on (seed, probe) alone: Gaussian entries, scaled
 * to norm 1. */
void ks_lanczos_start(struct ks_lanczos *lanczos, uint64_t seed, uint64_t probe);

/* Keeps the `steps` < n vectors so far as V, and goes to step 0 beside them, with a Gaussian start
 * vector in their complement, which has n - kept dimensions. start_norm is its norm there. Once
 * after another start, of an iteration made by ks_lanczos_new_for_two. */
enum { KS_PROBE_BESIDE = 0x7ffffffe };
void ks_lanczos_start_beside(struct ks_lanczos *lanczos, uint64_t seed);

/* Goes to step 0 with the start vector v [n], scaled to norm 1. KS_NUMBER if v is zero or
 * not finite. */
enum { KS_PROBE_GRADIENT = 0x7fffffff };
ks_status ks_lanczos_start_at(struct ks_lanczos *lanczos, const double *v);

/* One step. The caller checks before that steps < order and that the iteration is not exhausted.
 * Fails as the operator does, or with KS_NUMBER, naming the step, if the product is not finite;
 * earlier steps stay valid. Results have the same bits for the same number of threads. */
ks_status ks_lanczos_step(struct ks_lanczos *lanczos);

/* out [n] = sum_{j < rows} c[j] q_j. rows <= steps, or steps + 1 if the iteration is not exhausted.
 * Only while kept is 0. */
void ks_lanczos_combine(const struct ks_lanczos *lanczos, size_t rows, const double *c,
                        double *out);
/* v [n] -= Q Q' v, with Q = [V q_0 .. q_{steps - 1}]: v becomes orthogonal to them. */
void ks_lanczos_remove(const struct ks_lanczos *lanczos, double *v);
/* Row `row` of the basis in float64; valid until the next call. */
const double *ks_lanczos_widened(const struct ks_lanczos *lanczos, size_t row);

/* From `product`, A q_j (j = steps), to alpha_j, beta_j and q_{j+1} by the
 * published code's recurrence (lanczos_published.c). alpha_j or beta_j is not finite if float32
 * overflows. */
void ks_lanczos_published_step(struct ks_lanczos *lanczos, const double *product);

#endif
