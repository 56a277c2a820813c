/* The first layers of a critic, as one.
 *
 * A critic's input is fixed. Where it goes through a normalizer with scale g and bias b and then
 * through a dense with kernel W and bias c, the two are a single dense on z(x), the normalized
 * input, which depends on no parameter:
 *
 *   y = (g z + b) W + c = z W~ + c~,     W~ = diag(g) W,   c~ = W' b + c
 *
 * So products are taken with the folded critic, which has one layer less: a tangent goes in by the
 * derivative of (W~, c~), a product comes out by the transposed derivative and, in the Hessian, by
 * the second derivative times the gradient in (W~, c~). That saves four of the six matrix products
 * of the first dense in a Hessian-vector product, and the derivative by its input. */
#ifndef KS_OPERATORS_FOLD_H
#define KS_OPERATORS_FOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "net/arch.h"

struct ks_fold {
    const struct ks_arch *from; /* not owned: outlives the fold */
    struct ks_arch *arch;       /* the folded description; where not folded, a copy. Owned */
    bool folded;
    size_t n_scale, n_bias;       /* of the normalizer: its width or 0                        */
    size_t in, out, n_dense_bias; /* of the dense; its width or 0                             */
    double *unit;                 /* the normalizer's parameters that give z: 1 and 0. Owned  */
};

/* Folds where the description allows it: a layer of an `affine` kind, then an ungrouped dense, no
 * container that opens at either, and no running statistics in use. The caller frees. */
ks_status ks_fold_new(const struct ks_arch *arch, bool evaluation, struct ks_fold **fold);
void ks_fold_free(struct ks_fold *fold);

/* The folded network, for layers in float32 or in float64; where not folded, a copy of `from`. Its
 * `text` is that of `from`, unfolded. The caller frees it with the arch_free of that precision.
 * KS_MEMORY. */
ks_status ks_fold_arch_f32(const struct ks_fold *fold, struct ks_arch **arch);
ks_status ks_fold_arch_f64(const struct ks_fold *fold, struct ks_arch **arch);

/* z of a minibatch [rows, in]; `cache` [ks_fold_cache(fold, rows)] is scratch. Only if folded. */
size_t ks_fold_cache(const struct ks_fold *fold, size_t rows);
void ks_fold_input(const struct ks_fold *fold, size_t rows, const double *x, double *z,
                   double *cache);

/* Parameters w of one critic in those of the folded one. */
void ks_fold_parameters(const struct ks_fold *fold, const double *w, double *folded);
/* Their derivative at w along v. */
void ks_fold_tangent(const struct ks_fold *fold, const double *w, const double *v,
                     double *folded_dot);
/* out = the transposed derivative at w times bar_dot, and where bar is not NULL the derivative
 * along v of the transposed derivative times bar. With bar_dot a gradient and bar = NULL: the
 * gradient. w, v and out are in the parameters of the critic, bar and bar_dot in those of the
 * folded one. */
void ks_fold_adjoint(const struct ks_fold *fold, const double *w, const double *v,
                     const double *bar, const double *bar_dot, double *out);

#endif
