/* An orthonormal basis Z of the explicit null directions of an operator: those that its
 * architecture implies (null_space.h), and the unit vectors of dead coordinates, whose rows of the
 * operator are zero at this theta and batch.
 *
 * Z is never stored dense. A direction is a sparse vector; directions whose supports overlap form a
 * group, inside of which a triangular matrix makes them orthonormal:
 *
 *   U_g' U_g = L_g L_g',   Z_g = U_g L_g^-T,   Z_g' v = L_g^-1 (U_g' v)
 *
 * Directions are first restricted to the coordinates that are not dead: what is left of a null
 * direction without its dead coordinates is a null direction again. */
#ifndef KS_OPERATORS_NULL_BASIS_H
#define KS_OPERATORS_NULL_BASIS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "operators/null_space.h"

/* All arrays are owned. */
struct ks_null_basis {
    size_t n;         /* dimension of the operator                                           */
    size_t dimension; /* d: columns of Z, n_dead + n_directions                              */
    size_t n_dead;    /* dead coordinates                                                    */
    size_t *dead;     /* [n_dead], ascending                                                 */
    size_t n_directions;
    size_t *start; /* [n_directions + 1]: direction k has entries start[k] .. start[k+1]-1 */
    size_t *at;    /* coordinates of the entries                                           */
    double *value; /* their values: every direction has norm 1                             */
    size_t n_groups;
    size_t *group;  /* [n_groups + 1]: group g has directions group[g] .. group[g+1]-1      */
    size_t *factor; /* [n_groups]: where L_g starts in `lower`                              */
    double *lower;  /* the matrices L_g, row by row, their upper halves left out            */
};

/* Builds Z from the directions of `space` and from `dead` [space->selection->n] (NULL: no
 * coordinate is dead). Directions that depend linearly on others of their group are left out. The
 * caller frees. KS_MEMORY. */
ks_status ks_null_basis_new(const struct ks_null_space *space, const bool *dead,
                            struct ks_null_basis **basis);
/* Where directions and dead coordinates depend on each other, counts no more dead ones than make
 * the basis larger than the null space that the architecture implies. */
void ks_null_basis_recount(const struct ks_null_basis *basis, struct ks_null *null);
void ks_null_basis_free(struct ks_null_basis *basis); /* NULL is fine */

/* The part of U' v that the coordinates [first, first + length) contribute, of which `v` [length]
 * holds the values: product [n_directions] is set. Parts of different slices add up to U' v. */
void ks_null_basis_multiply(const struct ks_null_basis *basis, size_t first, size_t length,
                            const double *v, double *product);
/* From U' v [n_directions] to the coefficients L^-1 U' v of v in Z (but for the dead coordinates,
 * whose coefficients are v itself), in place. */
void ks_null_basis_solve(const struct ks_null_basis *basis, double *product);
/* v -= Z Z' v on the coordinates [first, first + length), given the coefficients [n_directions] of
 * the whole v, which are overwritten; the dead coordinates become zero. */
void ks_null_basis_remove(const struct ks_null_basis *basis, double *coefficient, size_t first,
                          size_t length, double *v);

#endif
