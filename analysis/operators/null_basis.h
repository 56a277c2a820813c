/* An orthonormal basis Z of the explicit null directions of an operator: the directions that its
 * architecture implies (null_space.h), and the unit vectors of dead coordinates, whose rows of the
 * operator are zero at this theta and batch.
 *
 * Z is never stored as a dense matrix. Directions are sparse vectors. Directions whose nonzero
 * entries overlap form a group g with the matrix U_g, which a Cholesky factor makes orthonormal:
 *
 *   U_g' U_g = L_g L_g',   Z_g = U_g L_g^-T,   Z_g' v = L_g^-1 (U_g' v)
 *
 * Directions are first restricted to the coordinates that are not dead: a null direction remains
 * one when its dead coordinates are set to zero. */
#ifndef KS_OPERATORS_NULL_BASIS_H
#define KS_OPERATORS_NULL_BASIS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/memory.h"
#include "operators/null_space.h"

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
    size_t *group;       /* [n_groups + 1]: group g has directions group[g] .. group[g+1]-1      */
    size_t *factor;      /* [n_groups]: where L_g starts in `lower`                              */
    double *lower;       /* the lower triangles L_g, row by row                                  */
    struct ks_pool pool; /* all arrays. Owned                                               */
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

/* product [n_directions] = the contribution of the coordinates [first, first + length), whose
 * values are v [length], to U' v. The contributions of all slices add up to U' v. */
void ks_null_basis_multiply(const struct ks_null_basis *basis, size_t first, size_t length,
                            const double *v, double *product);
/* product <- L^-1 product, in place: from U' v [n_directions] to the coefficients of v in Z. (The
 * coefficients of dead coordinates are the entries of v itself.) */
void ks_null_basis_solve(const struct ks_null_basis *basis, double *product);
/* v -= Z Z' v on the coordinates [first, first + length), whose values are v [length]; dead
 * coordinates become zero. `coefficient` [n_directions] holds the coefficients of the complete
 * vector in Z and is overwritten. */
void ks_null_basis_remove(const struct ks_null_basis *basis, double *coefficient, size_t first,
                          size_t length, double *v);

#endif
