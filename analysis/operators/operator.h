/* Symmetric linear operators on float64 vectors: the interface that Lanczos, --apply and --exact
 * use. pipeline/pipeline.h says how to follow one kappa from theta to the number that is printed.
 */
#ifndef KS_OPERATORS_OPERATOR_H
#define KS_OPERATORS_OPERATOR_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/checkpoint.h"

struct ks_operator {
    size_t n;   /* dimension */
    void *self; /* the data of its functions */
    /* The operator whose products it uses; it is prepared and freed with it. NULL: none. Owned */
    struct ks_operator *of;
    size_t shares;         /* handles to it beside the first */
    struct ks_arena arena; /* of arrays that `self` points to. Owned */
    /* Called once, before the first product: computes what depends on theta alone and keeps as much
     * of it as fits in `memory` bytes; the rest is recomputed in each product. NULL: nothing to
     * prepare, or only `of`. */
    ks_status (*prepare)(void *self, size_t memory);
    size_t (*kept)(const void *self); /* the bytes that it keeps; NULL: as `prepare` */
    /* out = A v, both [n]. */
    ks_status (*apply)(void *self, const double *v, double *out);
    void (*free)(void *self); /* `self` and what it owns; NULL: nothing is owned */
};

/* Allocates an operator with the functions of `prototype` and `size` zero bytes for `self`. The
 * caller sets n and frees it with ks_operator_free. KS_MEMORY. */
ks_status ks_operator_new(const struct ks_operator *prototype, size_t size, struct ks_operator **a);
/* Allocates an operator of the dimension of `of` that uses the products of `of`, and *vectors [2,
 * n], which it owns. It owns `of` as well, also after a failure. */
ks_status ks_operator_around(const struct ks_operator *prototype, size_t size,
                             struct ks_operator *of, double **vectors, struct ks_operator **a);
void ks_operator_free(struct ks_operator *a); /* NULL is fine */
KS_OWNER(ks_operator_free, struct ks_operator *)
ks_status ks_operator_prepare(const struct ks_operator *a, size_t memory);
size_t ks_operator_kept(const struct ks_operator *a); /* the bytes that it keeps */
/* Another handle to the same operator: the last one that is freed frees it. */
struct ks_operator *ks_operator_share(struct ks_operator *a);
ks_status ks_operator_apply(const struct ks_operator *a, const double *v, double *out);

struct ks_problem;
struct ks_selection;
struct ks_layer_f64; /* of layers/layer.h, in code compiled for double */

/* One row of the table; the last row has the name NULL. */
struct ks_operator_kind {
    const char *name, *in_words; /* in a sentence: "H", "the ggn operator" */
    /* Makes the operator; NULL: by new_f32 or new_f64. */
    ks_status (*new)(const struct ks_problem *problem, bool products_f32, struct ks_operator **a);
    ks_status (*new_f32)(const struct ks_problem *problem, struct ks_operator **a);
    ks_status (*new_f64)(const struct ks_problem *problem, struct ks_operator **a);
    /* An upper bound of the rank of the operator, or 0 if none is known for this problem; NULL:
     * none is known for any problem. */
    size_t (*operator_rank)(const struct ks_problem *problem);
    bool wide;   /* products are in float64 by default, in place of float32 */
    bool decays; /* a weight decay adds mu2 I */
    /* The operator has D^-1/2 on both sides: coordinates whose second moment is 0 are left out
     * (see below). */
    bool moving;
    bool spheres; /* the curvature along the unit spheres of projected columns */
    bool partial; /* not the curvature of a step, or only a part of it */
    bool outputs; /* of the outputs, and not of the loss: an equal shift of all logits counts */
};
extern const struct ks_operator_kind ks_operator_kinds[];

/* Which loss of a checkpoint is analyzed, and which operator:
 *
 *   L(theta) = scale * ( 1/N sum_n sum_e 1/B sum_{i<B} w[n,i] l(f_e(input[n])[i], target[n,i])
 *                        + weight_decay/2 |theta|^2 )
 *
 * w = 1 unless the checkpoint has weights. N = minibatches + other_minibatches; `minibatches` are
 * the checkpoint's first. */
struct ks_problem {
    const struct ks_checkpoint *checkpoint; /* not owned; outlives the operator */
    /* Which curvature of L, on which of its coordinates, in which precision. Not owned, and not
     * read by the functions of single operators below. */
    const struct ks_operator_kind *kind;
    const struct ks_selection *selection;
    bool products_f32;
    enum ks_products products; /* of operators in float32: how layers multiply */
    size_t minibatches;
    size_t other_minibatches; /* they count in N alone: what is computed is the share of
                               * `minibatches` in a sum over all */
    bool omits_decay;         /* the weight decay is left to another share */
    bool evaluation;          /* batchnorm uses its running statistics */
    bool loss_rows_only; /* batchnorm computes its batch statistics over the B rows of the loss, not
                          * over all R rows; without effect if `evaluation` */
    double weight_decay, scale;
    int critic; /* -1: all; otherwise the diagonal block of that critic alone: products are zero
                 * outside it, and the other critics cost nothing */
    int layer;  /* -1: all; otherwise the number of the layer whose block is wanted             */
    /* The arrays whose block is wanted, in place of a layer: "00_dense/kernel,02_dense/bias", also
     * "0/kernel". NULL: all. Not owned. */
    const char *arrays;
};

/* N: the minibatches of all shares. */
static inline size_t ks_problem_minibatches(const struct ks_problem *problem)
{
    return problem->minibatches + problem->other_minibatches;
}

/* Operators at the checkpoint's theta, in the canonical order [E P]:
 *
 *   hessian    the tangent of the gradient (Pearlmutter, Neural Computation 6, 1994)
 *   ggn        sum J' H_l J, with the weight decay's mu2 I (Schraudolph, Neural Comp. 14, 2002)
 *   residual   hessian - ggn
 *   ntk        scale/(N B) sum J_i' J_i over the rows i, with their outputs' Jacobians J_i [K, P].
 *              Its nonzero eigenvalues are those of scale/(N B) J J', the neural tangent kernel of
 *              all rows and outputs (Jacot et al., NeurIPS 2018). Weights do not enter
 *   ntk-value  the same for the number that the outputs of each head stand for: ce, the expectation
 *              of its atoms; quantile, the mean; else each output
 *   fisher     scale/(N B) sum g_i g_i', with the gradient g_i of row i's loss w_i l_i: the second
 *              moment of the rows' gradients, often called the empirical Fisher matrix
 *
 * With batch statistics, f_i depends on all rows of its minibatch, also through them, and so J_i
 * and g_i are the derivatives of row i's outputs and loss with the minibatch as it is: the g_i of a
 * minibatch still sum to B times its gradient.
 *
 * What depends on theta alone is computed once, in float64, and stored in the precision of the
 * products (f32 or f64). Each thread takes whole minibatches, so at most one thread per minibatch
 * is used. The number of threads changes results by rounding only. Each fails with KS_USAGE or
 * KS_FORMAT if the problem does not fit its checkpoint, and with KS_MEMORY. */
ks_status ks_hessian_new_f32(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_hessian_new_f64(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_ggn_new_f32(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_ggn_new_f64(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_residual_new_f32(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_residual_new_f64(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_ntk_new_f32(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_ntk_new_f64(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_ntk_value_new_f32(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_ntk_value_new_f64(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_fisher_new_f32(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_fisher_new_f64(const struct ks_problem *problem, struct ks_operator **a);

/* Adam's D_i = sqrt(v_i / (1 - beta2^step)) + eps (Kingma and Ba, ICLR 2015, algorithm 1), or 0
 * where v_i = 0. The checkpoint must hold v. */
double ks_preconditioner(const struct ks_checkpoint *checkpoint, size_t i);

/* D^-1/2 H D^-1/2; rows and columns with D_i = 0 are zero. KS_FORMAT if the checkpoint does not
 * hold Adam's second moment. */
ks_status ks_preconditioned_new(const struct ks_problem *problem, bool products_f32,
                                struct ks_operator **a);

/* The Riemannian Hessian on the unit spheres of the projected columns. KS_FORMAT if no layer is
 * projected, or if a projected column does not have norm 1. */
ks_status ks_manifold_new(const struct ks_problem *problem, bool products_f32,
                          struct ks_operator **a);

/* L and its gradient [E P], over all critics, always in float64; without `gradient` (NULL) L alone,
 * by forward passes. */
ks_status ks_gradient(const struct ks_problem *problem, double *loss, double *gradient);
/* The row with this name, or NULL. */
const struct ks_operator_kind *ks_operator_kind_find(const char *name);

/* *a = the operator of this kind, or the Hessian, on all coordinates, with products in float32 or
 * float64. */
ks_status ks_kind_new(const struct ks_operator_kind *kind, const struct ks_problem *problem,
                      bool products_f32, struct ks_operator **a);
ks_status ks_hessian_new(const struct ks_problem *problem, bool products_f32,
                         struct ks_operator **a);
/* *a = the problem's operator on its selected coordinates, with products in float32 or float64,
 * which keeps at most `memory` bytes of activations. KS_MEMORY; fails as the
 * operator does. */
ks_status ks_problem_operator(const struct ks_problem *problem, bool products_f32, size_t memory,
                              struct ks_operator **a);

/* --- The coordinates of the parameters that an analysis is about, and the diagonal block of an
 * operator on them. --- */

struct ks_selection {
    size_t of;     /* the number of all coordinates: E P                      */
    size_t n;      /* the number of selected ones                             */
    size_t *index; /* [n]: the selected ones, ascending; NULL: all. Owned     */
};

/* Whether array `i` of a layer belongs to the block of a layer (-1: all) and of `arrays`. */
bool ks_selection_has(int layer, const char *arrays, const struct ks_layer_f64 *l, size_t i);
/* *n = the number of parameters that the block of a layer (-1: all) and of `arrays` (NULL: all) has
 * in one critic. KS_USAGE if the critic, the layer or an array does not exist, or if it has no
 * parameters. */
ks_status ks_selection_count(const struct ks_networks *critics, int critic, int layer,
                             const char *arrays, size_t *n);

/* Selects the coordinates of the problem's block; if `moving`, without coordinates that
 * never had a gradient (Adam's second moment is 0). The caller frees with ks_selection_free.
 * KS_USAGE as above; KS_NUMBER if no coordinate is left; KS_MEMORY. */
ks_status ks_selection_new(const struct ks_problem *problem, bool moving,
                           struct ks_selection **selection);
void ks_selection_free(struct ks_selection *selection); /* NULL is fine */
KS_OWNER(ks_selection_free, struct ks_selection *)

/* gather: block [n] = the selected entries of full [of]. scatter: the inverse, with 0 in all other
 * entries of `full`. */
void ks_selection_gather(const struct ks_selection *selection, const double *full, double *block);
void ks_selection_scatter(const struct ks_selection *selection, const double *block, double *full);

/* The diagonal block of `a` on the selection. It owns `a`, also after a failure; the selection must
 * outlive it. If all coordinates are selected, *block is `a` itself. KS_MEMORY. */
ks_status ks_block_new(struct ks_operator *a, const struct ks_selection *selection,
                       struct ks_operator **block);

#endif
