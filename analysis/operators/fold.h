/* The first two layers of a critic, folded into one.
 *
 * A critic's input is fixed. If its first layers are a normalizer with scale g and bias b and a
 * dense with kernel W and bias c, the two equal a single dense of z(x), the normalized input, which
 * depends on no parameter:
 *
 *   y = (g z + b) W + c = z W~ + c~,     W~ = diag(g) W,   c~ = W' b + c
 *
 * So products are computed with the folded critic, which has one layer less. By the chain rule, a
 * tangent is multiplied by the derivative of (W~, c~), and the product by its transpose; the
 * Hessian also has the second derivative times the gradient in (W~, c~). This saves four of the six
 * matrix products of the first dense in a Hessian-vector product, and the derivative by its input.
 */
#ifndef KS_OPERATORS_FOLD_H
#define KS_OPERATORS_FOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/memory.h"
#include "net/arch.h"

struct ks_arch_f32; /* of net/arch.h, which defines the one of the precision of the code */
struct ks_arch_f64;

struct ks_fold {
    const struct ks_arch_f64 *from; /* not owned: outlives the fold */
    struct ks_arch_f64 *arch;       /* the folded network in float64 (ks_fold_arch_f64). Owned */
    bool folded;      /* false: the two layers cannot be folded, and `arch` is a copy */
    const char *text; /* of `from`, as are its inputs and its targets */
    size_t inputs, targets;
    size_t n_scale, n_bias;       /* scales and biases of the normalizer: its width, or 0 if none */
    size_t in, out, n_dense_bias; /* inputs, outputs and biases of the dense                     */
    double *unit;                 /* the normalizer's parameters that give z: 1 and 0. Owned  */
};

/* Folds if the description allows it: a layer of an `affine` kind followed by a dense without
 * groups and norm, neither frozen nor at the opening of a container; no later layer that reads the
 * input; and no running statistics in use (in training mode all of them are, if one layer reads its
 * own). The caller frees with ks_fold_free. */
ks_status ks_fold_new(const struct ks_arch_f64 *arch, bool evaluation, struct ks_fold **fold);
void ks_fold_free(struct ks_fold *fold);
KS_OWNER(ks_fold_free, struct ks_fold *)

/* The folded network with layers in float32 or float64, or a copy of `from` if it is not folded.
 * Its `text` is always from->text. The caller frees it with ks_arch_free_f32 or _f64. KS_MEMORY. */
ks_status ks_fold_arch_f32(const struct ks_fold *fold, struct ks_arch_f32 **arch);
ks_status ks_fold_arch_f64(const struct ks_fold *fold, struct ks_arch_f64 **arch);

/* z [rows, in] of a minibatch x [rows, in]; `cache` [ks_fold_cache(fold, rows)] is scratch. To be
 * called only if `folded`. */
size_t ks_fold_cache(const struct ks_fold *fold, size_t rows);
void ks_fold_input(const struct ks_fold *fold, size_t rows, const double *x, double *z,
                   double *cache);

/* folded [fold->arch->parameters] = the parameters of the folded critic, from the parameters w
 * [fold->from->parameters] of one critic. */
void ks_fold_parameters(const struct ks_fold *fold, const double *w, double *folded);
/* folded_dot = the derivative of `folded` at w along v. */
void ks_fold_tangent(const struct ks_fold *fold, const double *w, const double *v,
                     double *folded_dot);
struct ks_fold_adjoint {
    const double *w, *v;         /* parameters of the critic and a direction in them; v is not read
                                  * if bar is NULL                                             */
    const double *bar, *bar_dot; /* gradient in the folded parameters, or NULL; its derivative   */
    double *out;                 /* the result, in the parameters of the critic                  */
};
/* out = F' bar_dot, where F is the derivative of `folded` at w; if bar is not NULL, plus the
 * derivative of F along v, transposed, times bar. If bar_dot is a gradient in the folded parameters
 * and bar is NULL, out is the gradient in the parameters of the critic. */
void ks_fold_adjoint(const struct ks_fold *fold, const struct ks_fold_adjoint *arrays);

#endif
