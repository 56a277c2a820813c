/* Directions in which the architecture keeps the loss from changing, and a check of them on the
 * operator.
 *
 * Along such a direction u, the same for every theta and batch, L is constant: for all theta
 * gradient(theta)' u = 0, and its derivative H u = 0. The outputs do not move either, or in a way
 * that the loss does not see, so G u = 0. They are
 *
 *   softmax                a row of the last kernel, all of its bias: the outputs shift alike
 *   layernorm              the same of a dense whose output only layernorms read; all of the bias
 *                          of a norm that only layernorms read
 *   batchnorm, training    each entry of a bias that only shifts the rows of batchnorms' inputs
 *                          alike, directly or through linear layers
 *   layernorm affine=no    a column of the kernel of the dense that reads it: its rows sum to zero
 *
 * also past residual sums; where such a sum has other readers too, a bias before a norm minus one
 * behind it. Two sorts are not looked for: combinations of three biases and more, which residuals
 * inside residuals can have, and what follows from an appended constant, whose row of a kernel is
 * one more bias. Scale invariances are no such directions: u depends on theta there, and H u = 0
 * only where the gradient is zero. Nor is what one batch implies, dead units and constant inputs:
 * that is counted apart.
 *
 * Of other operators than the Hessian and its two parts:
 *
 *   preconditioned         D^1/2 u, where all of u is among the coordinates; none with a weight
 *                          decay
 *   manifold               u on parameters that are on no sphere, none with a weight decay; and the
 *                          spheres' normals, the projected columns w_j: P_j w_j = 0, as far as they
 *                          have norm 1 */
#ifndef KS_OPERATORS_NULL_SPACE_H
#define KS_OPERATORS_NULL_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "operators/operator.h"
#include "operators/operator_kinds.h"
#include "operators/selection.h"

#define KS_NO_PARTNER SIZE_MAX

/* Direction 0 is 1 on the parameters offset + i stride, i < length, of one critic, 0 elsewhere;
 * with a partner it is -1 on partner + i stride. Direction k < count is that moved by k step. In
 * place of the 1 a normal has the parameters themselves. */
struct ks_null_family {
    size_t offset, length, stride, count, step, partner;
    bool normal;
};

/* The directions that lie wholly in the coordinates of an operator: those of all families, for each
 * of its critics. They are linearly independent. */
struct ks_null_space {
    const struct ks_checkpoint *checkpoint; /* neither is owned: both outlive */
    const struct ks_selection *selection;   /* the space                      */
    size_t first, critics;                  /* critics that the operator is of */
    size_t parameters;                      /* of one                          */
    size_t dimension;                       /* over all critics                */
    size_t normals;                         /* of these those of spheres       */
    double shift;                           /* A u = shift u: what the weight decay adds */
    bool scaled;                            /* by D^1/2: none where D is 0     */
    size_t n_families;
    struct ks_null_family *family; /* owned */
};

struct ks_null {
    size_t
        dimension;  /* of the null space that the architecture implies, for every theta and batch */
    double product; /* max |A u - shift u| / |u| over the directions u that were tried, shift what
                     * the weight decay adds; NAN: there are none */
    double leak;    /* |Z' (A v - shift v)| / |A v - shift v| for a random v, Z all directions: the
                     * part of a product that rounding puts into the null space; NAN likewise */
    size_t dead;    /* further coordinates whose product is exactly zero at this theta and batch:
                     * units that are dead on all rows, constant inputs */
    bool *is_dead;  /* [n] whether the product is zero there, also where a direction is; owned */
};

/* What the problem's architecture implies of an operator of this kind on these coordinates, those
 * of the problem's critic and layer. The caller frees with ks_null_space_free. */
ks_status ks_null_space_new(const struct ks_problem *problem, const struct ks_operator_kind *kind,
                            const struct ks_selection *selection, struct ks_null_space **space);
void ks_null_space_free(struct ks_null_space *space); /* NULL is fine */

/* u: direction k of a family in critic `critic`, scaled to norm 1; zero where a part of it is not
 * among the coordinates. `add`: whole [E P] += factor u. `dot`: u' whole. `is_zero`: u is not zero,
 * and `whole` is zero wherever u is not. */
void ks_null_space_add(const struct ks_null_space *space, const struct ks_null_family *family,
                       size_t critic, size_t k, double factor, double *whole);
double ks_null_space_dot(const struct ks_null_space *space, const struct ks_null_family *family,
                         size_t critic, size_t k, const double *whole);
bool ks_null_space_is_zero(const struct ks_null_space *space, const struct ks_null_family *family,
                           size_t critic, size_t k, const double *whole);

/* The entries of that u (`at`: in whole vectors, `value`), their number; 0 where u is zero. Room
 * for ks_null_space_entries(space, family, critic, k, NULL, NULL) entries is needed. */
size_t ks_null_space_entries(const struct ks_null_space *space, const struct ks_null_family *family,
                             size_t critic, size_t k, size_t *at, double *value);

/* The most products that ks_null_measure takes: n_families + 2. */
size_t ks_null_products(const struct ks_null_space *space);

/* Tries `a`, of dimension selection->n. One random combination per family, over all critics, tries
 * all its directions at once. The part of the largest image in the null space is tried next, as in
 * a power iteration: it leans towards the directions that rounding affects most. One product with a
 * random vector finds what is dead, and what leaks. `on_product`, if it is not NULL, is called
 * after each product. With a weight decay, what is below the rounding error of its own part of the
 * product counts as zero. KS_NUMBER: a NaN or an infinity. The caller ends with ks_null_clear, also
 * after a failure. */
ks_status ks_null_measure(const struct ks_null_space *space, const struct ks_operator *a,
                          void (*on_product)(void *context, size_t products), void *context,
                          struct ks_null *null);
/* Takes over what is dead, from what was measured with another operator. */
void ks_null_take_dead(struct ks_null *null, struct ks_null *other);
/* Frees what it holds. */
void ks_null_clear(struct ks_null *null);

#endif
