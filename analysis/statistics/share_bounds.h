/* Bounds of the number of eigenvalues in a set, and of the k-th smallest |eigenvalue|: what the
 * intervals in shares.h are made of. */
#ifndef KS_STATISTICS_SHARE_BOUNDS_H
#define KS_STATISTICS_SHARE_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/interval.h"
#include "core/memory.h"

struct ks_share_probe {
    size_t steps;               /* m >= 1                                                     */
    const double *alpha, *beta; /* [m] each, as in jacobi.h                                   */
    bool ended;                 /* the Krylov space ended: the weights of T are exact          */
    double start_norm2;         /* |g|^2 of the Gaussian start vector g, before scaling       */
    double null_weight;         /* |P_Z q_1|^2: the weight of the n_null known null directions */
};

struct ks_shares_input {
    size_t n;             /* dimension of the operator                                           */
    size_t n_null;        /* dimension of the known null space Z                                 */
    size_t least_nullity; /* lower bound of the nullity from the rank of the operator, which gives
                             no vectors */
    size_t probes;        /* P >= 1: probes with random start vectors                            */
    const struct ks_share_probe *probe; /* [probes]                                            */
    size_t pretend_probes; /* each probe counts as this many start vectors that all have its Jacobi
                            * matrix, which shows how wide the intervals of more probes would be; 0
                            * counts as 1 */
    /* A run from a Gaussian vector in the complement of the Krylov space of probe[0], for counts
     * (see the end); its null_weight is that in the n_null_beside null directions that are known
     * there. NULL: none. */
    const struct ks_share_probe *complement;
    size_t n_null_beside;
    double null_last;     /* the largest part of probe[0]'s last vector in one of them        */
    double null_image;    /* |A z| <= this for the known null directions z, |z| = 1           */
    double h;             /* half the noise floor: |operator of the run - A| <= h              */
    double abs_max_lower; /* lower bound of lambda_abs_max, from a certificate                 */
    double abs_max_upper; /* upper bound of it (probe.h), 0.25% for each end                   */
    double count_above;   /* an absolute size; 0: none                                         */
};

/* The number of start vectors that the intervals count. */
static inline double ks_shares_vectors(const struct ks_shares_input *in)
{
    return (double)in->probes * (in->pretend_probes > 0 ? (double)in->pretend_probes : 1);
}

/* Counts refer to the n' = n - n_null eigenvalues off the known null space. "Size" is |lambda|. */
struct ks_share_bounds {
    const struct ks_shares_input *in;
    size_t others;           /* n'                                                              */
    size_t zeros;            /* how many of these are certain to be zero by the operator's rank */
    struct ks_radau **radau; /* [probes]. Owned                                                 */
    double *fraction;        /* [probes]: the weights of the probes in a mean, sum 1. Owned     */
    double null_size; /* square root of the mean ratio of the weight in Z to the weight off Z    */
    size_t sizes;
    double *size; /* [sizes]: all |theta|, ascending. Owned                                     */
    size_t spans;
    struct ks_interval *span; /* [spans]: theta +- (r + h), `upper` ascending. Owned */
    struct ks_pool pool;      /* the arrays */
};

/* `in` must outlive the bounds. The caller frees with ks_share_bounds_free. Fails as ks_shares
 * does. */
ks_status ks_share_bounds_new(const struct ks_shares_input *in, struct ks_share_bounds **bounds);
void ks_share_bounds_free(struct ks_share_bounds *bounds); /* NULL is fine */
KS_OWNER(ks_share_bounds_free, struct ks_share_bounds *)

/* *mu = [L', U']: bounds of the weight of [-x, x] off the known null space, as a share of all
 * weight off it, averaged over the probes; 0 for x < 0. x is not widened for rounding. */
ks_status ks_share_bounds_within(const struct ks_share_bounds *b, double x, struct ks_interval *mu);

/* From bounds of weights to bounds of counts. */

/* Bounds of the number of eigenvalues with |lambda| <= x, if x itself is only known to be in
 * [inner, outer]: count->lower holds for x = inner, count->upper for x = outer. L' is evaluated at
 * inner - h, U' at outer + h. */
ks_status ks_share_bounds_count_within(const struct ks_share_bounds *b, double inner, double outer,
                                       struct ks_interval *count);
/* The part of these bounds that is certain. */
struct ks_interval ks_share_bounds_certain_within(const struct ks_share_bounds *b, double inner,
                                                  double outer);
/* Bounds of the number of all n eigenvalues with lambda <= x. */
ks_status ks_share_bounds_count_below(const struct ks_share_bounds *b, double x,
                                      struct ks_interval *count);

/* Bounds of the size at which the share reaches a level, if all |lambda| are at most `most`:
 * size->upper = inf{x: L' > reached} + h, size->lower = sup{x: U' < missed} - h, both in [0, most].
 */
ks_status ks_share_bounds_reach(const struct ks_share_bounds *b, double reached, double missed,
                                double most, struct ks_interval *size);

/* Bounds of the k-th smallest |lambda|, zeros < k <= others; each end fails with probability
 * 0.25%. `most` as above. */
ks_status ks_share_bounds_size(const struct ks_share_bounds *b, size_t k, double most,
                               struct ks_interval *size);

/* --- Root finding: where an increasing function crosses a level. --- */

struct ks_monotone {
    ks_status (*evaluate)(const void *context, double x, double *value);
    const void *context;
    size_t breaks;          /* number of points where it may jump or change its formula */
    const double *break_at; /* [breaks]: these points, ascending, not negative          */
};

/* The function is below the level at `before`, and at or above it at `after`. */
struct ks_crossing {
    double before, after;
};

/* Brackets the crossing of `level` in [low, high], 0 < low < high, with after - before <= 2.1e-13
 * after. If the function is below the level at `high`, before = high and after is infinite; if it
 * is not below at `low`, before = 0 and after = low. Fails as evaluate() does. */
ks_status ks_monotone_root(const struct ks_monotone *f, double level, double low, double high,
                           struct ks_crossing *crossing);

/* --- Sharp bounds for the spectral measure of a start vector, from its Jacobi matrix.
 *
 * mu(S) is the sum of the squared components of the start vector (norm 1) along the eigenvectors
 * whose eigenvalues lie in S. The Jacobi matrix fixes the moments of mu up to degree 2m, which many
 * measures have. Of all these, the Gauss-Radau rule with a node prescribed at x has the least
 * weight below x and the most weight up to and including x (the Chebyshev, Markov, Stieltjes
 * inequalities: Szego, Orthogonal Polynomials, 1939, section 3.41; Golub and Meurant, Matrices,
 * Moments and Quadrature, 2010, sections 6.2 and 6.4). No bound that uses T alone is tighter. ---
 */

struct ks_radau {
    size_t m;
    bool ended;                      /* the Krylov space ended: the weights of T are exact     */
    double *theta, *weight;          /* [m]: Ritz values, ascending, and weights               */
    double *residual;                /* [m]: the residual bounds                               */
    double size;                     /* max |theta|                                            */
    double *alpha, *beta;            /* [m] each                                               */
    double *node, *beside, *scratch; /* [m + 1] each, for one rule                             */
    struct ks_pool pool;             /* all arrays. Owned                                      */
};

/* alpha [m] and beta [m] as in jacobi.h, m >= 1; both are copied. The caller frees with
 * ks_radau_free. KS_MEMORY; KS_NUMBER if LAPACK fails. */
ks_status ks_radau_new(size_t m, const double *alpha, const double *beta, bool ended,
                       struct ks_radau **radau);
void ks_radau_free(struct ks_radau *radau); /* NULL is fine */
KS_OWNER(ks_radau_free, struct ks_radau *)

/* mu->lower <= mu((-inf, x)) and mu((-inf, x]) <= mu->upper, for finite x. Both increase with x, up
 * to rounding. KS_NUMBER if the QL iteration does not converge. */
ks_status ks_radau_below(struct ks_radau *radau, double x, struct ks_interval *mu);

/* mu->lower <= mu([-x, x]) <= mu->upper, from the rules at x and at -x. Both are 0 for x < 0. By
 * rounding the lower bound may be slightly below 0 and the upper one above 1. Fails as above. */
ks_status ks_radau_within(struct ks_radau *radau, double x, struct ks_interval *mu);

/* --- The number of eigenvalues beyond +-x from two Lanczos runs, the second one in the orthogonal
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
 * V. --- */

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
