/* Linear operators on double vectors: what Lanczos, --apply and --exact see. */
#ifndef KS_OPERATORS_OPERATOR_H
#define KS_OPERATORS_OPERATOR_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "io/checkpoint.h"
#include "operators/team.h"

struct ks_operator {
    size_t n;   /* dimension */
    void *self; /* its own data */
    /* Before the first product: computes what depends on theta alone, and keeps as much of it as
     * `memory` bytes hold; the rest is computed again in each product. NULL: there is nothing. */
    ks_status (*prepare)(void *self, size_t memory);
    /* out = A v, both [n]. */
    ks_status (*apply)(void *self, const double *v, double *out);
    /* Of a ks_team_operator, otherwise NULL: the team, and this process's part of A v. */
    const struct ks_team *team;
    ks_status (*part)(void *self, const double *v, double *out);
    void (*free)(void *self); /* `self` and what it owns; NULL: nothing is owned */
};

/* An operator with the functions of `kind` and `size` bytes, all zero, of its own data. The caller
 * sets n and frees it with ks_operator_free. */
ks_status ks_operator_new(const struct ks_operator *kind, size_t size, struct ks_operator **a);
void ks_operator_free(struct ks_operator *a); /* NULL is fine */
ks_status ks_operator_prepare(const struct ks_operator *a, size_t memory);
/* The same operator for one more owner, who frees it before `a` is freed: freeing it leaves `a`
 * alone. */
ks_status ks_operator_share(const struct ks_operator *a, struct ks_operator **shared);
ks_status ks_operator_apply(const struct ks_operator *a, const double *v, double *out);
/* The sum over a team of operators `a`, one per process; in a team of one, `a` itself. It owns `a`,
 * also after a failure. All processes call this and `apply`, which gives all of them A v. */
ks_status ks_team_operator_new(struct ks_operator *a, const struct ks_team *team,
                               struct ks_operator **sum);

/* What of a checkpoint is analyzed:
 *
 *   L(theta) = scale * ( 1/N sum_n sum_e 1/B sum_{i<B} l(f_e(input[n])[i], target[n,i])
 *                        + weight_decay/2 |theta|^2 )
 *
 * N = minibatches + other_minibatches; `minibatches` are the checkpoint's first. */
struct ks_problem {
    const struct ks_checkpoint *checkpoint; /* outlives the operator */
    size_t minibatches;
    size_t other_minibatches; /* those of other ranks: they count in N, and what is computed here is
                               * this rank's part of a sum over the ranks */
    bool omits_decay;         /* another rank adds the weight decay */
    bool evaluation;          /* batchnorm by running statistics */
    double weight_decay, scale;
    int critic; /* -1: all; else the diagonal block of that critic alone: products are zero
                 * outside of it, and cost nothing there */
    int layer;  /* -1: all; else the number of the layer that is asked for: see selection.h */
};

/* N: the minibatches of all ranks. */
static inline size_t ks_problem_minibatches(const struct ks_problem *problem)
{
    return problem->minibatches + problem->other_minibatches;
}

/* The three curvatures of L at the checkpoint's theta, in the canonical order [E P]:
 *
 *   hessian    the tangent of the gradient (Pearlmutter, Neural Computation 6, 1994)
 *   ggn        sum J' H_l J, with the weight decay's mu2 I (Schraudolph, Neural Comp. 14, 2002)
 *   residual   hessian - ggn
 *
 * All that depends on theta alone is computed once, in float64, and kept in the product's
 * precision. One thread per minibatch, at most as many as OpenMP has. The number of threads changes
 * results by rounding only. */
ks_status ks_hessian_new_f32(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_hessian_new_f64(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_ggn_new_f32(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_ggn_new_f64(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_residual_new_f32(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_residual_new_f64(const struct ks_problem *problem, struct ks_operator **a);

/* Adam's D_i = sqrt(vhat_i) + eps, or 0 where v_i is 0; the checkpoint holds v. */
double ks_preconditioner(const struct ks_checkpoint *checkpoint, size_t i);

/* D^-1/2 H D^-1/2, zero where D is 0; KS_FORMAT where the checkpoint does not hold Adam's second
 * moment. */
ks_status ks_preconditioned_new_f32(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_preconditioned_new_f64(const struct ks_problem *problem, struct ks_operator **a);

/* The Riemannian Hessian on the spheres of the projected columns. KS_FORMAT where there is no such
 * column, or one does not have norm 1. */
ks_status ks_manifold_new_f32(const struct ks_problem *problem, struct ks_operator **a);
ks_status ks_manifold_new_f64(const struct ks_problem *problem, struct ks_operator **a);

/* This process's part of L and of its gradient [E P], over all critics, always in float64. *memory:
 * the bytes that finding them may take; set to those that it takes. KS_MEMORY where these are more.
 * NULL: any number. */
ks_status ks_gradient(const struct ks_problem *problem, size_t *memory, double *loss,
                      double *gradient);

#endif
