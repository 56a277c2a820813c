/* The eigenpairs of largest |eigenvalue|, by the Lanczos iteration. */
#ifndef KS_LANCZOS_EIGENPAIRS_H
#define KS_LANCZOS_EIGENPAIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "lanczos/lanczos.h"
#include "operators/operator.h"

struct ks_eigenpairs {
    size_t n, count;  /* dimension of the operator; number of pairs */
    size_t steps;     /* Lanczos steps, each with one product       */
    double *value;    /* [count], by descending |value|; owned      */
    double *residual; /* [count] |A y - value y|; owned             */
    double *vector;   /* [count, n] of norm 1; owned                */
};

/* What is searched, and what the caller does meanwhile. Both functions may be NULL. */
struct ks_eigenpairs_search {
    size_t count;
    double tolerance; /* the largest relative residual */
    void *context;
    void (*on_step)(void *context, const struct ks_lanczos *lanczos); /* called after each step */
    /* Whether the search may end, given the Ritz values [steps] in ascending order; else it goes
     * on. */
    bool (*is_enough)(void *context, const struct ks_lanczos *lanczos, const double *ritz);
};

/* Takes Lanczos steps, from a started iteration, until the residual bounds of the `count` Ritz
 * values of largest modulus are at most `tolerance` times the Ritz value, and is_enough says so.
 * `residual` has these bounds. KS_NUMBER if the order, or the dimension
 * of the Krylov space, is too small for it; KS_MEMORY; or fails as the operator does. In a team all
 * ranks call it, get the same complete vectors, and fail together. The caller frees with
 * ks_eigenpairs_clear, also after a failure.
 *
 * Each value is within its residual of an eigenvalue. That no eigenvalue of larger modulus was
 * missed follows for a random start vector with a probability only: one to which the start vector
 * is orthogonal is not found, and of a multiple eigenvalue one eigenvector is found. */
ks_status ks_eigenpairs_find(const struct ks_operator *a, struct ks_lanczos *lanczos,
                             const struct ks_eigenpairs_search *search,
                             struct ks_eigenpairs *pairs);

/* Replaces values by Rayleigh quotients y'Ay/y'y, and residuals by |A y - value y| / |y|, from a
 * product with each vector. `a` is the same operator in a higher precision. */
ks_status ks_eigenpairs_refine(const struct ks_operator *a, struct ks_eigenpairs *pairs);

void ks_eigenpairs_clear(struct ks_eigenpairs *pairs);

#endif
