/* Directions in which the loss is known not to change: what the architecture implies, checked on
 * the operator.
 *
 * The directions u, the same for every theta and batch, along which L stays as it is:
 * gradient(theta)' u = 0 for all theta, whose derivative is H u = 0; the outputs do not move
 * either, or by what the loss does not see, so G u = 0. They are
 *
 *   softmax                a row of the last kernel, all of its bias: the outputs shift alike
 *   layernorm              the same of a dense whose output only layernorms read; all of the bias
 *                          of a norm that only layernorms read
 *   batchnorm, training    each entry of a bias that only shifts the rows of batchnorms' inputs
 *                          alike, directly or through linear layers
 *   layernorm affine=no    a column of the kernel of the dense that reads it: its rows sum to zero
 *
 * also past residual sums; where such a sum goes on to other readers, a bias on this side of a norm
 * less one beyond it. Two sorts are not looked for: combinations of three biases and more, which
 * residuals inside residuals can have, and what follows from an appended constant, whose row of a
 * kernel is one more bias. Scale invariances are no such directions: u depends on theta there, and
 * H u = 0 only where the gradient is zero. Nor is what one batch implies, dead units and constant
 * inputs: that is counted apart. */
#ifndef KS_NULL_H
#define KS_NULL_H

#include <stdbool.h>
#include <stddef.h>

#include "ks/analysis.h"
#include "ks/arch.h"
#include "ks/error.h"
#include "ks/operator.h"
#include "ks/selection.h"

#define KS_NO_PARTNER SIZE_MAX

/* Direction 0 is 1 on the parameters offset + i stride, i < length, of one critic, 0 elsewhere;
 * with a partner it is -1 on partner + i stride. Direction k < count is that moved by k step. */
struct ks_null_family {
    size_t offset, length, stride, count, step, partner;
};

/* The directions that lie wholly in the coordinates of an operator. Each of its critics has those
 * of all families; they are linearly independent. */
struct ks_null_space {
    const struct ks_selection *selection; /* not owned: outlives the space   */
    size_t first, critics;                /* critics that the operator is of */
    size_t parameters;                    /* of one                          */
    size_t dimension;                     /* over all critics                */
    double shift;                         /* A u = shift u: what the weight decay adds */
    bool unsought; /* nobody looked: the operator's kind is not `invariant` */
    size_t n_families;
    struct ks_null_family *family; /* owned */
};

struct ks_null {
    bool unsought; /* nobody looked for what the architecture implies */
    size_t
        dimension;  /* of the null space that the architecture implies, for every theta and batch */
    double product; /* max |A u - shift u| / |u| over the directions u that were tried, shift what
                     * the weight decay adds; NAN: there are none */
    size_t dead;    /* further coordinates whose product is exactly zero at this theta and batch:
                     * units that are dead on all rows, constant inputs */
};

/* What the problem's architecture implies of an operator of this kind on these coordinates, those
 * of the problem's critic and layer: nothing, so no family, where the kind is not `invariant`. The
 * caller frees with ks_null_space_free. */
ks_status ks_null_space_new(const struct ks_problem *problem, const struct ks_operator_kind *kind,
                            const struct ks_selection *selection, struct ks_null_space **space);
void ks_null_space_free(struct ks_null_space *space); /* NULL is fine */

/* Adds `factor` times direction k of a family, in critic `critic`, to whole [E P]. */
void ks_null_space_add(const struct ks_null_space *space, const struct ks_null_family *family,
                       size_t critic, size_t k, double factor, double *whole);

/* Products that ks_null_measure takes: n_families + 1. */
size_t ks_null_products(const struct ks_null_space *space);

/* Tries `a`, of dimension selection->n. One random combination a family, over all critics, tries
 * all its directions at once, and one product with a random vector finds what is dead. `watch`, if
 * it is not NULL, is called after each product. With a weight decay, what is below the rounding
 * error of its own part of the product counts as zero. KS_NUMBER: a NaN or an infinity. */
ks_status ks_null_measure(const struct ks_null_space *space, const struct ks_operator *a,
                          void (*watch)(void *context, size_t products), void *context,
                          struct ks_null *null);

#endif
