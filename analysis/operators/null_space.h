/* Null directions that follow from the architecture alone, and their measurement on the operator.
 *
 * Along such a direction u, the same for every theta and batch, L is constant. So
 * gradient(theta)' u = 0 for all theta, and its derivative H u = 0. The outputs are constant too,
 * or move in a way that does not change the loss, so G u = 0. They are
 *
 *   softmax                a row of the last kernel, all of its bias: the outputs shift alike
 *   layernorm              the same for a dense whose output only layernorms read; all of the bias
 *                          of a norm whose output only layernorms read. With groupnorm or simnorm
 *                          in place of layernorm, for each of its groups
 *   batchnorm, training    each entry of a bias that adds the same vector to all rows of the inputs
 *                          of batchnorms and nothing else, directly or through linear layers
 *   layernorm affine=no    a column of the kernel of the dense that reads it: each row of its
 *                          output sums to zero; the same for groupnorm affine=no
 *
 * also through residual sums; if such a sum has other readers too, the difference of a bias before
 * the sum and a bias behind it. Not searched for are null directions that combine three or more
 * biases, which nested residuals can have; that come from an appended constant, whose row of a
 * kernel acts as one more bias, from the groups of a simnorm, which sum to 1, or from branches and
 * `dueling` (a shift of all advantages); and that belong to single groups of a groupnorm affine=no
 * in front of a kernel, or to groups that only some of several norms have. Scale invariances give
 * no such direction: there u depends on theta, and H u = 0 only where the gradient is zero. What
 * holds for one theta and batch only (dead units, constant inputs) is counted separately.
 *
 * For operators other than the Hessian and its two terms:
 *
 *   ntk                    none of the softmax: an equal shift of all outputs is a change
 *   preconditioned         D^1/2 u, if all of u is among the coordinates; none with a weight decay
 *   manifold               u on parameters that are on no sphere, none with a weight decay; and the
 *                          normals of the spheres, the projected columns w_j, as P_j w_j = 0 */
#ifndef KS_OPERATORS_NULL_SPACE_H
#define KS_OPERATORS_NULL_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/checkpoint.h"
#include "operators/operator.h"

#define KS_NO_PARTNER SIZE_MAX

/* `count` null directions of the same form. Direction 0 has the entry 1 at the parameters offset +
 * i stride, i < length, of one critic, -1 at partner + i stride if there is a partner, and 0 at all
 * others. Direction k < count is direction 0 shifted by k step. The normal of a sphere has the
 * values of the parameters in place of the 1. */
struct ks_null_family {
    size_t offset, length, stride, count, step, partner;
    bool normal;
};

/* The null directions of all families and critics whose nonzero entries are all among the
 * coordinates of an operator. They are linearly independent. */
struct ks_null_space {
    const struct ks_checkpoint *checkpoint; /* not owned                                     */
    const struct ks_selection *selection;   /* the operator's coordinates; not owned         */
    size_t first, critics; /* the operator's first critic, and how many it has               */
    size_t parameters;     /* P: parameters of one critic                                    */
    size_t dimension;      /* the number of directions, over all critics                     */
    size_t normals;        /* how many of them are normals of spheres                        */
    double shift;          /* A u = shift u, from the weight decay */
    bool scaled; /* entries are multiplied by D^1/2; directions with an entry D_i = 0 are omitted */
    size_t n_families;
    struct ks_null_family *family; /* owned */
};

struct ks_null {
    size_t dimension; /* dimension of the null space that the architecture implies */
    double product;   /* max |A u - shift u| / |u| over the tested null directions u; NaN without
                       * one */
    double leak;      /* |Z' (A v - shift v)| / |A v - shift v| for a random v, with the null
                       * directions as the columns of Z: how much of a product rounding puts into
                       * the null space; NaN without null directions */
    size_t dead;      /* further coordinates where products are exactly zero at this theta and
                       * batch: units that are dead on all rows, constant inputs */
    size_t n;         /* dimension of the operator */
    bool *is_dead;    /* [n] whether products are zero at this coordinate, also if a null direction
                       * of the architecture explains it */
    struct ks_arena arena; /* `is_dead`. Owned */
};

/* Finds the null directions that the problem's architecture implies for an operator of this kind.
 * `selection` holds the coordinates of the problem's block. Of a checkpoint without parameters,
 * whose shapes alone are known, all directions that may exist are counted. The caller frees with
 * ks_null_space_free. KS_MEMORY. */
ks_status ks_null_space_new(const struct ks_problem *problem, const struct ks_operator_kind *kind,
                            const struct ks_selection *selection, struct ks_null_space **space);
void ks_null_space_free(struct ks_null_space *space); /* NULL is fine */
KS_OWNER(ks_null_space_free, struct ks_null_space *)

/* Direction k of a family in critic `critic`, both counted from 0. */
struct ks_null_direction {
    const struct ks_null_family *family;
    size_t critic, k;
};

/* Goes through the directions of all families, critic by critic. `u` is all zero before the first
 * call; false after the last direction. */
bool ks_null_space_next(const struct ks_null_space *space, struct ks_null_direction *u);

/* full += factor u. u is the direction scaled to norm 1, or 0 if one of its entries is not among
 * the coordinates; `full` [E P] is a vector over all parameters. */
void ks_null_space_add(const struct ks_null_space *space, const struct ks_null_direction *u,
                       double factor, double *full);

/* Lists the entries of u: their indices in [E P] into `at`, their values into `value`. Returns
 * their number, 0 if u is 0. With `at` and `value` NULL it only returns the number, so that the
 * caller can allocate both. */
size_t ks_null_space_entries(const struct ks_null_space *space, const struct ks_null_direction *u,
                             size_t *at, double *value);

/* An upper bound of the number of products that ks_null_measure computes: n_families + 2. */
size_t ks_null_products(const struct ks_null_space *space);

/* Measures how far products of `a`, of dimension selection->n, with null directions are from zero.
 * One product per family takes a random combination of all its directions, over all critics. The
 * largest image, projected onto the null space, is multiplied next: this step of a power iteration
 * favours the directions that rounding affects most. One product with a random vector gives `dead`
 * and `leak`. `on_product` (may be NULL) is called after each product. With a weight decay, entries
 * below the rounding error of shift v count as zero. KS_NUMBER if a product holds a NaN or an
 * infinity. The caller ends with ks_null_clear, also after a failure. */
ks_status ks_null_measure(const struct ks_null_space *space, const struct ks_operator *a,
                          ks_status (*on_product)(void *context, size_t products), void *context,
                          struct ks_null *null);
/* Moves `dead` and `is_dead` from `other`, which was tested on another operator, to `null`. */
void ks_null_take_dead(struct ks_null *null, struct ks_null *other);
/* Frees what `null` holds, but not `null` itself. */
void ks_null_clear(struct ks_null *null);

/* --- An orthonormal basis Z of the explicit null directions of an operator: the directions that
 * its architecture implies (above), and the unit vectors of dead coordinates, whose rows of
 * the operator are zero at this theta and batch.
 *
 * Z is never stored as a dense matrix. Directions are sparse vectors. Directions whose nonzero
 * entries overlap form a group g with the matrix U_g, which a Cholesky factor makes orthonormal:
 *
 *   U_g' U_g = L_g L_g',   Z_g = U_g L_g^-T,   Z_g' v = L_g^-1 (U_g' v)
 *
 * Directions are first restricted to the coordinates that are not dead: a null direction remains
 * one when its dead coordinates are set to zero. --- */

struct ks_null_basis {
    size_t n;         /* dimension of the operator                                           */
    size_t dimension; /* d: columns of Z, n_dead + n_directions                              */
    size_t n_dead;    /* dead coordinates                                                    */
    size_t *dead;     /* [n_dead], ascending                                                 */
    size_t n_directions;
    size_t *start; /* [n_directions + 1]: direction k has entries start[k] .. start[k+1]-1 */
    size_t *at;    /* the coordinates of all entries                                       */
    double *value; /* the values of all entries, such that every direction has norm 1      */
    size_t n_groups;
    size_t *group;  /* [n_groups + 1]: group g has directions group[g] .. group[g+1]-1      */
    size_t *factor; /* [n_groups]: where L_g starts in `lower`                              */
    double *lower;  /* the lower triangles L_g, row by row                                  */
    struct ks_arena arena; /* all arrays. Owned                                             */
};

/* Builds Z from the directions of `space` and from `dead` [space->selection->n] (NULL: no
 * coordinate is dead). Directions that are linear combinations of others are left out. The caller
 * frees with ks_null_basis_free. KS_MEMORY. */
ks_status ks_null_basis_new(const struct ks_null_space *space, const bool *dead,
                            struct ks_null_basis **basis);
/* Replaces *basis, which may be NULL, by the basis of the tested null directions. Reduces
 * null->dead to the number of columns that Z has beyond null->dimension: directions and dead
 * coordinates can be linearly dependent. With a weight decay the operator is not zero on directions
 * along which the loss is constant: they are counted, but *basis becomes NULL. KS_MEMORY. */
ks_status ks_null_basis_update(const struct ks_null_space *space, struct ks_null *null,
                               struct ks_null_basis **basis);
void ks_null_basis_free(struct ks_null_basis *basis); /* NULL is fine */
KS_OWNER(ks_null_basis_free, struct ks_null_basis *)

/* product [n_directions] = U' v, for v [n]. */
void ks_null_basis_multiply(const struct ks_null_basis *basis, const double *v, double *product);
/* product <- L^-1 product, in place: from U' v [n_directions] to the coefficients of v in Z. (The
 * coefficients of dead coordinates are the entries of v itself.) */
void ks_null_basis_solve(const struct ks_null_basis *basis, double *product);
/* v [n] -= Z Z' v; dead coordinates become zero. `coefficient` [n_directions] holds the
 * coefficients of v in Z and is overwritten. */
void ks_null_basis_remove(const struct ks_null_basis *basis, double *coefficient, double *v);

#endif
